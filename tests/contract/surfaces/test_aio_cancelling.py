"""Cancelled calls leave no half state, and nothing behind them suffers."""

import asyncio
import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.contract.surfaces.test_aio_calls import Gate, in_thread
from wellkept import aio
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.stores.ram import RamStore


class Slow(HashingEmbedder):
    """Is awaited, and remembers how it ended."""

    def __init__(self) -> None:
        super().__init__(16)
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()
        self.cancelled = 0

    async def embed(self, texts: Sequence[str]) -> list[Any]:  # type: ignore[override]
        self.asked.set()
        try:
            await self.answer.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return super().embed(texts)


@pytest.mark.parametrize("seed", range(3))
def test_of_cancelled_adds_each_is_there_as_a_whole_or_not_at_all(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        async with aio.open(tmp_path / "m.db", embedder=HashingEmbedder(16), workers=4) as memories:
            view = memories.view(user="ada")
            pairs = [[f"first of {number}", f"second of {number}"] for number in range(400)]
            tasks = [asyncio.create_task(view.add_many(pair)) for pair in pairs]
            tasks += [asyncio.create_task(view.add_many([""])) for _ in range(50)]  # these fail
            dice.shuffle(tasks)
            for task in tasks:
                if dice.random() < 0.3:
                    await asyncio.sleep(0)
                if dice.random() < 0.7:
                    task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            acknowledged = {one.content for group in done if isinstance(group, list) for one in group}
            assert await view.count(layers=["user"]) >= len(acknowledged)
            memory = await view.add("Afterwards everything works")
            assert await view.get(memory.id) == memory
        assert acknowledged <= contents(tmp_path / "m.db")

    asyncio.run(main())
    assert complaints == []
    found = contents(tmp_path / "m.db")
    assert all((f"first of {number}" in found) == (f"second of {number}" in found) for number in range(400))
    with wellkept.open(tmp_path / "m.db", embedder=None) as kept:
        assert kept.doctor().healthy
        versions = kept.view(user="ada").changes(limit=10_000)
        assert len(versions) == len(found)


def contents(path: Path) -> set[str]:
    with wellkept.open(path, embedder=None) as kept:
        versions = kept.view(user="ada").changes(limit=10_000)
        return {version.memory.content for version in versions if version.memory is not None}


def test_a_call_that_has_not_begun_is_dropped_and_one_that_has_comes_to_its_end() -> None:
    async def main() -> None:
        gate = Gate()
        async with aio.open("ram:", embedder=gate, workers=1) as memories:
            view = memories.view(user="ada")
            begun = asyncio.create_task(view.add("Begun"))
            await in_thread(gate.asked.acquire)
            waiting = asyncio.create_task(view.add("Waiting"))
            await asyncio.sleep(0)
            for task in (begun, waiting):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            gate.opened.set()
            assert [memory.content for memory in await view.list()] == ["Begun"]

    asyncio.run(main())


def test_a_call_that_waits_for_an_async_embedder_stops_there_and_writes_nothing() -> None:
    async def main() -> None:
        slow = Slow()
        async with aio.open("ram:", embedder=slow, workers=1) as memories:
            view = memories.view(user="ada")
            adding = asyncio.create_task(view.add("Likes tea"))
            await slow.asked.wait()
            adding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await adding
            assert await view.count() == 0
            assert slow.cancelled == 1
            slow.answer.set()
            await view.add("Likes cake")
            assert [hit.memory.content for hit in await view.search("cake")] == ["Likes cake"]

    asyncio.run(main())


def test_a_time_limit_of_the_caller_ends_a_call() -> None:
    async def main() -> None:
        slow = Slow()
        async with aio.open("ram:", embedder=slow) as memories:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await memories.view(user="ada").add("Likes tea")
            slow.answer.set()
            assert await memories.view(user="ada").count() == 0

    asyncio.run(main())


def test_a_cancelled_open_closes_what_it_opened(tmp_path: Path) -> None:
    closed, asked, going_on = threading.Event(), threading.Event(), threading.Event()
    store = RamStore()
    original = store.close

    def close() -> None:
        original()
        closed.set()

    store.close = close  # type: ignore[method-assign]

    class Asked:
        """An embedder whose name is asked for while a database is opened."""

        dimension = 16

        @property
        def name(self) -> str:
            asked.set()
            assert going_on.wait(60)
            return "asked"

        def embed(self, texts: Sequence[str]) -> list[Any]:
            return []

    async def opened() -> aio.Memories:
        return await aio.open(store=store, embedder=Asked())

    async def main() -> None:
        store.journal.set_settings({"embedder": "asked", "dimension": "16"})
        opening = asyncio.ensure_future(opened())
        await in_thread(asked.wait)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        going_on.set()
        await in_thread(closed.wait)

    asyncio.run(main())
