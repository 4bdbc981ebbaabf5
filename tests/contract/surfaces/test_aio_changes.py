"""The change feed as an async iterator: resumable, prompt, and over when the database is."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import wellkept
from wellkept import aio

SELDOM_S = 3_600.0
"""So that only a wake-up can explain that something was noticed."""


def test_iterating_goes_through_everything_page_by_page() -> None:
    async def main() -> None:
        async with aio.open("ram:", embedder=None) as memories:
            view = memories.view(user="ada")
            await view.add_many([f"Number {number}" for number in range(10)])
            for limit in (1, 3, 5, 10, 11):
                found = [version.memory.content async for version in view.changes(limit=limit) if version.memory]
                assert found == [f"Number {number}" for number in range(10)]
            seven = (await view.changes(limit=7)).next
            rest = [version.memory.content async for version in view.changes(after=seven, limit=2) if version.memory]
            assert rest == ["Number 7", "Number 8", "Number 9"]
            assert len(await view.changes(limit=3)) == 3

    asyncio.run(main())


Write = Callable[[aio.View, str], Coroutine[Any, Any, Any]]
WRITES: list[Write] = [
    lambda view, id: view.add("Likes cake"),
    lambda view, id: view.update(id, content="Likes cake"),
    lambda view, id: view.forget(id),
    lambda view, id: view.forget(id, permanent=True),
    lambda view, id: view.restore(id),
]


@pytest.mark.parametrize("write", WRITES)
def test_a_follower_hears_at_once_of_what_is_written_here(write: Write) -> None:
    async def main() -> None:
        async with aio.open("ram:", embedder=None) as memories:
            view = memories.view(user="ada")
            memory, other = await view.add_many(["Likes tea", "Likes rain"])
            await view.forget(other.id)
            two = (await view.changes(limit=2)).next
            feed = aiter(view.changes(after=two, follow=True, poll_s=SELDOM_S))
            assert (await anext(feed)).operation == "forgotten"
            waiting = asyncio.ensure_future(anext(feed))
            await asyncio.sleep(0)
            await write(view, other.id if write is WRITES[-1] else memory.id)
            assert (await waiting).stamp == (await view.changes())[-1].stamp

    asyncio.run(main())


@pytest.mark.req("N10")
def test_a_follower_misses_nothing_and_hears_nothing_twice(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.open(tmp_path / "m.db", embedder=None) as memories:
            view = memories.view(user="ada")

            async def follow() -> list[str]:
                found: list[str] = []
                after: str | None = None
                while len(found) < 300:
                    # Stops now and then, and goes on where it was.
                    async for version in view.changes(after=after, limit=7, follow=True, poll_s=SELDOM_S):
                        found.append(version.stamp)
                        after = version.position
                        if len(found) % 50 == 0:
                            break
                return found

            followers = [asyncio.create_task(follow()) for _ in range(3)]
            await asyncio.gather(*(view.add(f"Number {number}") for number in range(300)))
            everything = [version.stamp for version in await view.changes()]
            assert await asyncio.gather(*followers) == [everything] * 3
            assert len(set(everything)) == 300

    asyncio.run(main())


def test_a_follower_sees_what_others_write_to_the_file(tmp_path: Path) -> None:
    async def main() -> None:
        with wellkept.open(tmp_path / "m.db", embedder=None) as other:
            async with aio.open(tmp_path / "m.db", embedder=None) as memories:
                feed = aiter(memories.view(user="ada").changes(follow=True, poll_s=0.001))
                waiting = asyncio.ensure_future(anext(feed))
                await memories.settings()
                other.view(user="ada").add("Likes tea")
                assert (await waiting).operation == "added"

    asyncio.run(main())


def test_followers_end_when_the_database_is_closed() -> None:
    async def main() -> None:
        memories = await aio.open("ram:", embedder=None)
        view, begun = memories.view(user="ada"), asyncio.Event()
        await view.add("Likes tea")

        async def follow(after: str | None) -> list[int]:
            found = []
            async for version in view.changes(after=after, follow=True, poll_s=SELDOM_S):
                found.append(version.version)
                begun.set()
            return found

        followers = [asyncio.create_task(follow(None)), asyncio.create_task(follow(await view.position()))]
        await begun.wait()
        await view.count()  # by now the second one has read, too
        await memories.close()
        assert await asyncio.gather(*followers) == [[1], []]
        with pytest.raises(wellkept.errors.StoreClosed):
            await anext(aiter(view.changes(follow=True)))

    asyncio.run(main())


def test_bad_input_is_refused() -> None:
    async def main() -> None:
        async with aio.open("ram:", embedder=None) as memories:
            view = memories.view(user="ada")
            bad: list[Any] = [0, -1, "often", None, True, float("nan"), float("inf")]
            for poll_s in bad:
                with pytest.raises(wellkept.errors.InvalidInput, match="poll_s"):
                    view.changes(follow=True, poll_s=poll_s)
            with pytest.raises(wellkept.errors.InvalidInput, match="no end"):
                await view.changes(follow=True)
            with pytest.raises(wellkept.errors.InvalidInput, match="after"):
                await anext(aiter(view.changes(after="-1")))

    asyncio.run(main())
