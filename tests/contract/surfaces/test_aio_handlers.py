"""Event handlers of async code: plain ones as ever, coroutines on their loop."""

import asyncio
import logging
import threading

import pytest

from wellkept import aio
from wellkept.events import MemoryStored, WorkingMemorySet


@pytest.mark.req("L13")
def test_coroutine_handlers_run_on_the_loop_and_are_waited_for_by_close() -> None:
    async def main() -> None:
        heard: list[str] = []
        async with aio.open("ram:", embedder=None) as memories:
            view, me = memories.view(user="ada"), memories.agent("debugger", user="ada")

            async def handler(event: MemoryStored) -> None:
                assert threading.get_ident() == here
                found = await view.get(event.memory_id)
                assert found is not None
                heard.append(found.content)

            async def working(event: WorkingMemorySet) -> None:
                heard.append(event.key)

            here = threading.get_ident()
            stop = memories.on(MemoryStored, handler)
            memories.on(WorkingMemorySet, working)
            for number in range(5):
                await view.add(f"Number {number}")
            me.working.set("step", 1)
            while len(heard) < 6:
                await asyncio.sleep(0)
            stop()
            await view.add("Unheard")

            async def slow(event: MemoryStored) -> None:
                for _ in range(10):
                    await asyncio.sleep(0)
                heard.append("slow")

            memories.on(MemoryStored, slow)
            await view.add("Heard while closing")
        assert sorted(heard) == [*(f"Number {number}" for number in range(5)), "slow", "step"]

    asyncio.run(main())


@pytest.mark.req("L13")
def test_handlers_that_fail_are_reported_whatever_their_kind(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with aio.open("ram:", embedder=None) as memories:

            async def coroutine(event: MemoryStored) -> None:
                raise OSError("no route")

            def plain(event: MemoryStored) -> None:
                raise OSError("no route")

            memories.on(MemoryStored, coroutine)
            memories.on(MemoryStored, plain)
            with caplog.at_level(logging.ERROR, logger="wellkept.events"):
                await memories.view(user="ada").add("Likes tea")
                while (await memories.health()).components["handlers"].message != "2 calls failed":
                    await asyncio.sleep(0)
        assert [record.message for record in caplog.records] == ["handler failed for MemoryStored"] * 2

    asyncio.run(main())


def test_a_handler_may_close_the_database() -> None:
    async def main() -> None:
        closed = asyncio.Event()
        memories = await aio.open("ram:", embedder=None)

        async def handler(event: MemoryStored) -> None:
            await memories.close()
            closed.set()

        memories.on(MemoryStored, handler)
        await memories.view(user="ada").add("Likes tea")
        await closed.wait()

    asyncio.run(main())
