"""Async calls: opening and closing, threads of their own, several loops, and many calls at once."""

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_type

import pytest

import wellkept
from wellkept import Memory, Results, aio
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.events import MemoryStored
from wellkept.stores.ram import RamStore
from wellkept.types import Changes

PATIENCE_S = 60


class Gate(HashingEmbedder):
    """Does not answer before it is opened, and says when it was asked."""

    def __init__(self) -> None:
        super().__init__(16)
        self.asked = threading.Semaphore(0)
        self.opened = threading.Event()

    def embed(self, texts: Sequence[str]) -> list[Any]:
        self.asked.release()
        assert self.opened.wait(PATIENCE_S)
        return super().embed(texts)


async def in_thread(wait: Any) -> None:
    """Wait for another thread without stopping this loop."""
    assert await asyncio.to_thread(wait, timeout=PATIENCE_S)


def test_a_database_opens_by_await_and_by_async_with(tmp_path: Path) -> None:
    async def main() -> None:
        memories = await aio.open(tmp_path / "m.db", embedder=None)
        memory = await memories.view(user="ada").add("Likes tea")
        await memories.close()
        async with aio.open(tmp_path / "m.db", embedder=None) as again:
            assert await again.view(user="ada").get(memory.id, include_vector=True) is not None
        async with await aio.open("ram:", embedder=None) as third:
            assert await third.settings() == {}

    asyncio.run(main())


def test_types_are_those_of_the_synchronous_surface() -> None:
    async def main() -> None:
        async with aio.open("ram:", embedder=None) as memories:
            view = memories.view(user="ada")
            assert_type(await view.add("Likes tea", title="Drinks"), Memory)
            assert_type(await view.search("tea"), Results)
            assert_type(await view.changes(), Changes)
            assert_type(memories.agent("a").long_term, aio.View)

    asyncio.run(main())


def test_a_wrong_number_of_workers_is_refused() -> None:
    async def main(workers: Any) -> None:
        with pytest.raises(wellkept.errors.InvalidInput, match="workers"):
            await aio.open("ram:", workers=workers)

    for workers in (0, -1, 10**6, "many", None, True):
        asyncio.run(main(workers))


def test_calls_run_in_threads_of_their_own_and_working_memory_does_not() -> None:
    async def main() -> None:
        threads: list[str] = []
        async with aio.open("ram:", embedder=None) as memories:
            memories.on(MemoryStored, lambda event: threads.append(threading.current_thread().name))
            me = memories.agent("debugger", user="ada")
            await me.long_term.add("Likes tea")
            stop = memories.on(wellkept.events.WorkingMemorySet, lambda event: threads.append("here"))
            me.working.set("step", 3)
            stop()
        assert [name.partition("_")[0] for name in threads] == ["wellkept-aio", "here"]

    asyncio.run(main())


def test_calls_see_the_context_of_their_caller() -> None:
    trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace")

    async def main() -> None:
        seen: list[str] = []
        async with aio.open("ram:", embedder=None) as memories:
            memories.on(MemoryStored, lambda event: seen.append(trace.get()))

            async def add(name: str) -> None:
                trace.set(name)
                await memories.view(user="ada").add(name)

            await asyncio.gather(*(add(str(number)) for number in range(20)))
        assert sorted(seen, key=int) == [str(number) for number in range(20)]

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3, 16])
def test_a_thousand_concurrent_adds_lose_nothing(tmp_path: Path, workers: int) -> None:
    async def main() -> None:
        before = set(threading.enumerate())
        path = tmp_path / "m.db"
        async with aio.open(path, embedder=None, workers=workers, durability="relaxed") as memories:
            view = memories.view(user="ada")
            added = await asyncio.gather(*(view.add(f"Number {number}") for number in range(1_000)))
            assert await view.count() == 1_000
            found = await view.get_many([memory.id for memory in added])
            assert {memory.content for memory in found.values()} == {f"Number {number}" for number in range(1_000)}
            assert len(set(threading.enumerate()) - before) <= workers

    asyncio.run(main())


def test_the_loop_goes_on_while_a_call_takes_its_time() -> None:
    async def main() -> None:
        gate = Gate()
        async with aio.open("ram:", embedder=gate) as memories:
            adding = asyncio.create_task(memories.view(user="ada").add("Likes tea"))
            await in_thread(gate.asked.acquire)
            assert await memories.view(user="ada").count() == 0  # another call passes it
            gate.opened.set()
            assert (await adding).content == "Likes tea"

    asyncio.run(main())


def test_several_loops_share_one_database(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.open(tmp_path / "m.db", embedder=None, workers=4) as memories:

            async def many(user: str) -> int:
                view = memories.view(user=user)
                await asyncio.gather(*(view.add(f"Number {number}") for number in range(50)))
                return await view.count()

            users = [f"user {number}" for number in range(4)]
            loops = [asyncio.to_thread(asyncio.run, many(user)) for user in users]
            assert await asyncio.gather(*loops, many("here")) == [50] * 5

    asyncio.run(main())


def test_leaving_the_block_waits_for_what_is_running(tmp_path: Path) -> None:
    async def main() -> None:
        gate = Gate()
        async with aio.open(tmp_path / "m.db", embedder=gate, workers=2) as memories:
            view = memories.view(user="ada")
            adding = [asyncio.create_task(view.add(f"Number {number}")) for number in range(5)]
            await in_thread(gate.asked.acquire)
            asyncio.get_running_loop().call_later(0, gate.opened.set)
        assert len(await asyncio.gather(*adding)) == 5
        with wellkept.open(tmp_path / "m.db", embedder=None) as kept:
            assert kept.view(user="ada").count() == 5

    asyncio.run(main())


def test_what_is_asked_while_closing_meets_a_closed_store() -> None:
    async def main() -> None:
        gate = Gate()
        memories = await aio.open("ram:", embedder=gate)
        view = memories.view(user="ada")
        adding = asyncio.create_task(view.add("In time"))
        await in_thread(gate.asked.acquire)
        closing = [asyncio.create_task(memories.close()) for _ in range(2)]
        await asyncio.sleep(0)
        late = asyncio.create_task(view.count())
        await asyncio.sleep(0)
        gate.opened.set()
        assert (await adding).content == "In time"
        await asyncio.gather(*closing)
        with pytest.raises(wellkept.errors.StoreClosed):
            await late

    asyncio.run(main())


def test_everything_that_is_asked_while_the_database_closes_is_answered(tmp_path: Path) -> None:
    async def main() -> None:
        for _ in range(20):
            memories = await aio.open(tmp_path / "m.db", embedder=None)
            view = memories.view(user="ada")
            asked = [asyncio.ensure_future(view.count()) for _ in range(20)]
            await asyncio.sleep(0)
            closing = asyncio.ensure_future(memories.close())
            await asyncio.sleep(0)
            late = [asyncio.ensure_future(view.count()) for _ in range(20)]
            assert await asyncio.gather(*asked) == [0] * 20
            answers = await asyncio.gather(*late, return_exceptions=True)
            assert all(isinstance(answer, wellkept.errors.StoreClosed) for answer in answers)
            await closing

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_a_close_that_fails_says_so_and_later_calls_are_answered() -> None:
    async def main() -> None:
        store = RamStore()
        memories = await aio.open(store=store, embedder=None)
        original = store.close

        def close() -> None:
            original()
            raise OSError("no room")

        store.close = close  # type: ignore[method-assign]
        with pytest.raises(OSError, match="no room"):
            await memories.close()
        with pytest.raises(wellkept.errors.StoreClosed):
            await memories.view(user="ada").count()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_a_call_that_raises_stop_iteration_is_answered() -> None:
    async def main() -> None:
        async with aio.open("ram:", embedder=None, clock=lambda: next(iter(()))) as memories:
            with pytest.raises(RuntimeError, match="StopIteration"):
                await memories.view(user="ada").add("Likes tea")

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_a_cancelled_close_goes_on_by_itself() -> None:
    async def main() -> None:
        gate = Gate()
        memories = await aio.open("ram:", embedder=gate)
        adding = asyncio.create_task(memories.view(user="ada").add("In time"))
        await in_thread(gate.asked.acquire)
        closing = asyncio.create_task(memories.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        gate.opened.set()
        await adding
        await memories.close()
        with pytest.raises(wellkept.errors.StoreClosed):
            await memories.settings()

    asyncio.run(main())


def test_threads_end_with_the_database() -> None:
    before = set(threading.enumerate())

    async def main() -> set[threading.Thread]:
        async with aio.open("ram:", embedder=None) as memories:
            await asyncio.gather(*(memories.view(user="ada").add(str(number)) for number in range(50)))
            return set(threading.enumerate()) - before

    threads = asyncio.run(main())
    assert threads
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_no_file_stays_open_with_a_database_that_was_closed(tmp_path: Path) -> None:
    def open_files() -> int:
        gc.collect()
        return sum(1 for _ in Path("/dev/fd").iterdir())

    async def main() -> None:
        for _ in range(5):
            async with aio.open(tmp_path / "m.db", embedder=None) as memories:
                await memories.view(user="ada").add("Likes tea")
            with pytest.raises(wellkept.errors.StoreClosed):
                await memories.view(user="ada").count()

    asyncio.run(main())
    before = open_files()
    asyncio.run(main())
    assert open_files() == before


def test_threads_end_with_an_opening_that_fails() -> None:
    before = set(threading.enumerate())

    async def main() -> set[threading.Thread]:
        with pytest.raises(wellkept.errors.ConfigurationError):
            await aio.open("nosuch:store")
        return set(threading.enumerate()) - before

    for thread in asyncio.run(main()):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_an_error_is_freed_with_its_traceback() -> None:
    class Marked(Exception):
        pass

    async def main() -> "weakref.ref[Marked]":
        async with aio.open("ram:", embedder=None) as memories:

            def items() -> Any:
                yield "Likes tea"
                raise Marked

            with pytest.raises(Marked) as raised:
                await memories.view(user="ada").add_many(items())
            found = weakref.ref(raised.value)
            del raised
            return found

    gc.disable()
    try:
        found = asyncio.run(main())
        assert found() is None
    finally:
        gc.enable()


SCRIPT = """
import asyncio, sys, wellkept.aio
async def main():
    memories = await wellkept.aio.open(sys.argv[1], embedder=None)
    view = memories.view(user="ada")
    await view.add("Likes tea")
    asyncio.create_task(view.add("Nobody waits for it"))
    await asyncio.sleep(0)
asyncio.run(main())
"""


def test_a_process_that_forgets_to_close_still_ends(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "m.db")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with wellkept.open(tmp_path / "m.db", embedder=None) as kept:
        assert kept.view(user="ada").count() in (1, 2)
        assert kept.doctor().healthy


def test_wellkept_imports_asyncio_only_for_aio() -> None:
    script = "import sys, wellkept; print('asyncio' in sys.modules, wellkept.aio.open.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "open"]
