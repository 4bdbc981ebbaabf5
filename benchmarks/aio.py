"""What the async facade costs: a call on its way through a thread, and a thousand calls at once.

    python benchmarks/aio.py

Each figure is printed with the goal that it is held to. Times of one call are the smallest of many batches, as other
work on the machine can only add to them: CPU time of the whole process, and what passed on the wall meanwhile, which is
what a caller feels. What a hop costs depends on the machine more than on anything else, above all on what it takes to
wake a processor that sleeps. So two others stand beside it, measured in the same run in turns: a bare one, which is two
threads that wake each other by a lock, and that of ``asyncio.to_thread``.

The synchronous call is measured twice: in a tight loop, and as a coroutine would make it, giving way to the loop before
each call. The second is what the facade is compared with: most of the difference between the two is cold caches, which
every program has that does something else between two calls.
"""

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median
from typing import NamedTuple

import recollect
from recollect import aio

CALLS, BATCHES = 200, 40
ADDS, THREADS, ROUNDS = 1_000, 16, 7
ADDED_US, RATIO = 60.0, 2.0

Batch = Callable[[], Coroutine[None, None, None]]


def report(name: str, value: str, goal: str = "") -> None:
    print(f"{name:<64}{value:>20}  {goal}")


class Times(NamedTuple):
    """Of one call, in microseconds."""

    cpu: float
    wall: float

    def __str__(self) -> str:
        return f"{self.cpu:.1f} us ({self.wall:.1f})"

    def beyond(self, other: "Times") -> "Times":
        return Times(self.cpu - other.cpu, self.wall - other.wall)


async def times_us(batches: dict[str, Batch]) -> dict[str, Times]:
    """What one call of each kind takes, in turns."""
    found: dict[str, list[Times]] = {name: [] for name in batches}
    for _ in range(BATCHES):
        for name, batch in batches.items():
            cpu, wall = time.process_time(), time.perf_counter()
            await batch()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            found[name].append(Times(cpu / CALLS * 1e6, wall / CALLS * 1e6))
    return {name: Times(*map(min, zip(*several, strict=True))) for name, several in found.items()}


class Other:
    """A thread that does nothing but wake whoever woke it."""

    def __init__(self) -> None:
        self._there, self._back = threading.Lock(), threading.Lock()
        self._there.acquire()
        self._back.acquire()
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while True:
            self._there.acquire()
            self._back.release()

    def ask(self) -> None:
        """There and back."""
        self._there.release()
        self._back.acquire()


async def one_call(path: Path) -> None:
    with recollect.open(path) as sync:
        memory = sync.view(user="ada").add("Likes tea")
        original = sync.view(user="ada")
        async with aio.open(path) as memories:
            view = memories.view(user="ada")

            async def tight() -> None:
                for _ in range(CALLS):
                    original.get(memory.id)

            async def inline() -> None:
                for _ in range(CALLS):
                    await asyncio.sleep(0)
                    original.get(memory.id)

            other = Other()

            async def bare() -> None:
                for _ in range(CALLS):
                    other.ask()

            async def facade() -> None:
                for _ in range(CALLS):
                    await view.get(memory.id)

            async def to_thread() -> None:
                for _ in range(CALLS):
                    await asyncio.to_thread(original.get, memory.id)

            found = await times_us(
                {"tight": tight, "inline": inline, "bare": bare, "aio": facade, "to_thread": to_thread}
            )
    report("CPU time, in parentheses wall time", "")
    report("to another thread and back, bare", f"{found['bare']}")
    report("get, synchronous, in a tight loop", f"{found['tight']}")
    report("get, synchronous, in a coroutine that gives way", f"{found['inline']}")
    report("get, asyncio.to_thread", f"{found['to_thread']}")
    report("get, aio", f"{found['aio']}")
    report("what aio adds, to the call in a tight loop", f"{found['aio'].beyond(found['tight'])}")
    added = found["aio"].beyond(found["inline"])
    report("what aio adds to a call", f"{added}", f"goal: under {ADDED_US:.0f} us, of both")


def in_threads(view: recollect.View) -> None:
    def some(first: int) -> None:
        for number in range(first, ADDS, THREADS):
            view.add(f"The number {number} is remembered")

    threads = [threading.Thread(target=some, args=(first,)) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def many_calls(folder: Path) -> None:
    """In turns, each on a new file, so that a busy moment of the machine meets both."""
    ratios, seconds = [], []
    for number in range(ROUNDS):
        with recollect.open(folder / f"sync-{number}.db") as sync:
            started = time.perf_counter()
            in_threads(sync.view(user="ada"))
            by_threads = time.perf_counter() - started
        async with aio.open(folder / f"async-{number}.db") as memories:
            view = memories.view(user="ada")
            started = time.perf_counter()
            await asyncio.gather(*(view.add(f"The number {one} is remembered") for one in range(ADDS)))
            by_aio = time.perf_counter() - started
            assert await view.count() == ADDS
        ratios.append(by_aio / by_threads)
        seconds.append((by_threads, by_aio))
    fastest = [min(several) * 1000 for several in zip(*seconds, strict=True)]
    report(f"{ADDS} durable adds, {THREADS} threads, fastest round", f"{fastest[0]:.0f} ms")
    report(f"{ADDS} durable adds, asyncio.gather, fastest round", f"{fastest[1]:.0f} ms")
    report("aio to threads, median round; none was lost", f"{median(ratios):.2f} x", f"goal: at most {RATIO:.0f} x")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(one_call(Path(folder) / "one.db"))
        asyncio.run(many_calls(Path(folder)))


if __name__ == "__main__":
    main()
