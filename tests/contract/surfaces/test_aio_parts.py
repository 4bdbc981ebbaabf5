"""Embedders, rerankers and summarisers that are coroutines are awaited on the loop; the engine's rules hold."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import ONCE, HandClock
from wellkept import aio
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.window import ContextItem


class Remote(HashingEmbedder):
    """Is awaited, and remembers where it ran and what for."""

    lexicon = None

    def __init__(self) -> None:
        super().__init__(16)
        self.threads: set[int] = set()
        self.asked: list[str] = []
        self.error: BaseException | None = None

    async def embed(self, texts: Sequence[str]) -> list[Any]:  # type: ignore[override]
        return await self._answer("text", texts)

    async def embed_query(self, texts: Sequence[str]) -> list[Any]:
        return await self._answer("question", texts)

    async def _answer(self, kind: str, texts: Sequence[str]) -> list[Any]:
        self.threads.add(threading.get_ident())
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        self.asked += [f"{kind}: {text}" for text in texts]
        return super().embed(texts)


@pytest.mark.req("L1")
def test_an_async_embedder_is_awaited_on_the_loop() -> None:
    async def main() -> None:
        remote = Remote()
        async with aio.open("ram:", embedder=remote) as memories:
            view = memories.view(user="ada")
            await asyncio.gather(*(view.add(f"Likes {what}") for what in ("tea", "cake", "rain")))
            assert [hit.memory.content for hit in await view.search("cake", limit=1)] == ["Likes cake"]
            assert (await memories.settings())["embedder"] == "hashing-16"
        assert remote.threads == {threading.get_ident()}
        assert {"text: Likes tea", "question: cake"} <= set(remote.asked)

    asyncio.run(main())


def test_an_async_embedder_can_be_taken_over_to() -> None:
    async def main() -> None:
        remote, told = Remote(), list[tuple[int, int]]()
        async with aio.open("ram:", embedder=None) as memories:
            await memories.view(user="ada").add_many(["Likes tea", "Likes cake"])
            assert await memories.reembed(remote, progress=lambda done, of: told.append((done, of))) == 2
            assert await memories.settings() == {"embedder": "hashing-16", "dimension": "16"}
        assert told[-1] == (2, 2)
        assert remote.threads == {threading.get_ident()}

    asyncio.run(main())


def test_a_memory_is_stored_without_a_vector_while_an_async_embedder_is_down() -> None:
    async def main() -> None:
        remote = Remote()
        clock = HandClock()
        async with aio.open("ram:", embedder=remote, clock=clock, retry=ONCE) as memories:
            view = memories.view(user="ada")
            for error in (OSError("no route"), asyncio.CancelledError()):  # the second is its own, not the caller's
                remote.error = error
                clock.forward(minutes=1)
                memory = await view.add(f"Said during {type(error).__name__}")
                assert (await view.get_many([memory.id], include_vector=True))[memory.id].vector is None
            remote.error = wellkept.errors.ConfigurationError("wrong key")
            clock.forward(minutes=1)
            with pytest.raises(wellkept.errors.ConfigurationError):
                await view.add("Refused")
            remote.error = None
            await view.add("It is back")
            found = await view.list(limit=100)
            kept = await view.get_many([memory.id for memory in found], include_vector=True)
            assert [memory.vector is None for memory in kept.values()] == [False] * 3

    asyncio.run(main())


def test_what_is_no_embedder_is_refused_in_the_same_words() -> None:
    class Nameless:
        async def embed(self, texts: Sequence[str]) -> list[Any]:
            return []

    async def main() -> None:
        nameless: Any = Nameless()
        with pytest.raises(wellkept.errors.ConfigurationError, match="embedder is a Nameless"):
            await aio.open("ram:", embedder=nameless)

    asyncio.run(main())


def test_an_async_reranker_is_awaited() -> None:
    class Longest:
        name = "longest"

        def __init__(self) -> None:
            self.threads: set[int] = set()

        async def score(self, query: str, texts: Sequence[str]) -> list[float]:
            await asyncio.sleep(0)
            self.threads.add(threading.get_ident())
            return [float(len(text)) for text in texts]

    async def main() -> None:
        longest = Longest()
        async with aio.open("ram:", embedder=None, reranker=longest) as memories:
            view = memories.view(user="ada")
            await view.add_many(["Likes tea", "Likes tea with milk in the morning"])
            hits = await view.search("tea", explain=True)
            assert "reranker" in hits.hits[0].reasons
            assert hits.hits[0].memory.content == "Likes tea with milk in the morning"
        assert longest.threads == {threading.get_ident()}

    asyncio.run(main())


@pytest.mark.req("C3")
def test_an_async_summariser_is_awaited() -> None:
    async def main() -> None:
        async with aio.open("ram:", embedder=None) as memories:
            context = memories.agent("debugger", user="ada", context_tokens=100).context
            for number in range(8):
                context.add("user", f"The number {number} is what I like best.")

            async def summarise(items: Sequence[ContextItem], tokens: int) -> str:
                await asyncio.sleep(0)
                assert threading.get_ident() == here
                return f"{len(items)} numbers."

            here = threading.get_ident()
            done = await context.compact(50, strategy="summariser", summariser=summarise)
            assert done.receipt.summarised
            assert f"{len(done.removed)} numbers." in context.items[0].content
            assert (await context.acompact(30, summariser=summarise)).receipt.summarised
            assert (await context.compact(20, strategy="summariser", summariser=lambda items, n: "Ok.")).removed

    asyncio.run(main())


def test_an_async_embedder_may_use_the_database_that_it_serves() -> None:
    class Reading(Remote):
        view: aio.View

        async def embed(self, texts: Sequence[str]) -> list[Any]:  # type: ignore[override]
            await self.view.count()
            return await super().embed(texts)

    async def main() -> None:
        reading = Reading()
        async with aio.open("ram:", embedder=reading, workers=1) as memories:
            reading.view = memories.view(user="ada")
            await asyncio.gather(*(reading.view.add(f"Likes {what}") for what in ("tea", "cake", "rain")))
            assert await reading.view.count() == 3

    asyncio.run(main())


def test_an_async_embedder_may_use_a_database_that_is_closing() -> None:
    class Reading(Remote):
        view: aio.View

        async def embed(self, texts: Sequence[str]) -> list[Any]:  # type: ignore[override]
            if not asked.is_set():
                asked.set()
                while reading.closing is None:
                    await asyncio.sleep(0)
                assert await self.view.count() == 0
            return await super().embed(texts)

        closing: asyncio.Task[None] | None = None

    async def main() -> None:
        async with aio.open("ram:", embedder=reading) as memories:
            reading.view = memories.view(user="ada")
            adding = asyncio.create_task(reading.view.add("Likes tea"))
            await asked.wait()
            closing = asyncio.create_task(memories.close())
            await asyncio.sleep(0)
            reading.closing = closing
            assert (await adding).content == "Likes tea"
            await closing

    reading, asked = Reading(), asyncio.Event()
    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_thread_that_waits_for_a_coroutine_ends_with_its_loop() -> None:
    class Never(Remote):
        async def embed(self, texts: Sequence[str]) -> list[Any]:  # type: ignore[override]
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

    async def opened() -> aio.Memories:
        return await aio.open("ram:", embedder=Never(), retry=ONCE)

    asked = threading.Event()
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # a closed loop never ends its tasks; it would complain
    memories = loop.run_until_complete(opened())
    adding = loop.create_task(memories.view(user="ada").add("Likes tea"))
    while not asked.is_set():
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    asyncio.run(memories.close())  # waits for the thread
    del adding


def test_the_synchronous_engine_does_not_wait_on_the_loop_itself() -> None:
    async def main() -> None:
        async with aio.open("ram:", embedder=Remote()) as memories:
            with pytest.raises(wellkept.errors.ConfigurationError, match="event loop"):
                memories.sync.view(user="ada").add("Likes tea")

    asyncio.run(main())
