"""What the async facade costs: a call on its way through a thread, and a thousand calls at once.

    python benchmarks/aio.py

Times of one call are the smallest of many batches, as other work on the machine can only add to them: CPU time of the
whole process, and in parentheses wall time, which is what a caller feels. A call is measured three ways in the same
run, in turns: synchronous (in a coroutine that yields to the loop before each call, as programs do), by
``wellkept.aio``, and by ``asyncio.to_thread``.
"""

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median
from typing import NamedTuple

import wellkept
from wellkept import aio

CALLS, BATCHES = 200, 40
ADDS, THREADS, ROUNDS = 1_000, 16, 7
RATIO = 2.0

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


async def one_call(path: Path) -> None:
    with wellkept.open(path) as sync:
        memory = sync.view(user="ada").add("Likes tea")
        original = sync.view(user="ada")
        async with aio.open(path) as memories:
            view = memories.view(user="ada")

            async def inline() -> None:
                for _ in range(CALLS):
                    await asyncio.sleep(0)
                    original.get(memory.id)

            async def facade() -> None:
                for _ in range(CALLS):
                    await view.get(memory.id)

            async def to_thread() -> None:
                for _ in range(CALLS):
                    await asyncio.to_thread(original.get, memory.id)

            found = await times_us({"inline": inline, "aio": facade, "to_thread": to_thread})
    report("CPU time, in parentheses wall time", "")
    report("get, synchronous", f"{found['inline']}")
    report("get, asyncio.to_thread", f"{found['to_thread']}")
    report("get, aio", f"{found['aio']}")
    report("what aio adds to a call", f"{found['aio'].beyond(found['inline'])}")


def in_threads(view: wellkept.View) -> None:
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
        with wellkept.open(folder / f"sync-{number}.db") as sync:
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
