"""What working memory costs: times per call in one process, and the bytes of many entries.

    python benchmarks/working.py

Each figure is printed with the goal that it is held to. A time is that of the fastest batch of calls, as other work on
the machine can only add to it; the median batch stands beside it. The first lines are what cannot be saved: the clock
and the JSON codec alone.
"""

import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from recollect.codec import decode_json, encode_json
from recollect.events import Event, EventBus
from recollect.working import WorkingMemory, WorkingSnapshot

BATCH, BATCHES = 200, 1_000
STATE = {
    "goal": "find out why the nightly build fails on the second runner and not on the first",
    "summary": "The failure began on Tuesday. The log ends in a timeout of the database; the same commit passes here. "
    "Ada thinks that the cache is to blame, and wants a proof before anything is changed; "
    "until then the second runner stays off.",
    "step": 4,
    "confidence": 0.75,
    "blocked": False,
    "open": ["read the log of the runner", "compare the environments", "run the failing test alone"],
    "done": ["look at the last five commits", "repeat the build"],
    "user": {"id": "ada", "language": "en", "zone": "Europe/Berlin"},
}


@dataclass
class Task:
    """A small value with a type."""

    name: str
    step: int


clock = partial(datetime.now, UTC)


def new_memory(bus: EventBus | None = None) -> WorkingMemory:
    return WorkingMemory("bench", clock=clock, bus=bus)


def timed(name: str, work: Callable[[], object], goal: float | None = None) -> "Figure":
    """The time of one call, with that of the loop and the lambda around it."""
    times = []
    for _ in range(BATCHES):
        started = time.perf_counter()
        for _ in range(BATCH):
            work()
        times.append(time.perf_counter() - started)
    return Figure(name, min(times) / BATCH * 1e6, "us", goal, statistics.median(times) / BATCH * 1e6)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    median: float | None = None


def floors() -> Iterator[Figure]:
    small, state = encode_json(42), encode_json(STATE)
    yield timed("the clock", clock)
    yield timed("decoding a small value", lambda: decode_json(small))
    yield timed("decoding the state", lambda: decode_json(state))
    yield timed("encoding the state", lambda: encode_json(STATE))


def reads() -> Iterator[Figure]:
    working = new_memory()
    working.set("small", 42)
    working.set("state", STATE)
    working.set("task", Task("look", 3))
    get, size = working.get, len(encode_json(STATE))
    yield timed("get of a small value", lambda: get("small"), 1.0)
    yield timed(f"get of a state of {size} bytes", lambda: get("state"), 2.5)
    yield timed("get of a missing key", lambda: get("missing"))
    yield timed("get of a dataclass", lambda: get("task", type=Task))
    yield timed("get_or_set of a key that is there", lambda: working.get_or_set("small", dict))
    level = working.create_scope("1")
    for depth in range(2, 11):
        level = level.create_scope(str(depth))
    yield timed("get through 10 levels", lambda: level.get("small"), 5.0)


def writes() -> Iterator[Figure]:
    working, bus = new_memory(EventBus()), EventBus()
    count = iter(range(BATCH * BATCHES))

    def set_new() -> None:
        number = next(count)
        if number % 5_000 == 0:
            working.clear()
        working.set(f"key {number}", number)

    yield timed("set of a new key", set_new, 5.0)
    yield timed("set of a known key", lambda: working.set("small", 42), 5.0)
    yield timed("set of a state", lambda: working.set("state", STATE), 5.0)
    tagged: dict[str, Any] = {"tags": ("a", "b"), "metadata": {"turn": 3}, "importance": 0.8}
    yield timed("set with tags and metadata", lambda: working.set("small", 42, **tagged))
    bus.on(Event, lambda _: None)
    told = new_memory(bus)
    yield timed("set with a handler attached", lambda: told.set("small", 42))
    yield timed("a scope from its beginning to its end", lambda: working.create_scope("s").dispose())


def space() -> Iterator[Figure]:
    for name, value in (("small values", 42), ("states", STATE)):
        tracemalloc.start()
        working = new_memory()
        for number in range(10_000):
            working.set(f"key {number}", value)
        used = tracemalloc.get_traced_memory()[0] / 1e6
        tracemalloc.stop()
        yield Figure(f"10,000 {name}", used, "MB", 20.0)
        started = time.perf_counter()
        text = working.snapshot().to_json()
        taken = time.perf_counter()
        new_memory().restore(WorkingSnapshot.from_json(text))
        yield Figure("their snapshot as JSON", (taken - started) * 1e3, "ms")
        yield Figure("restoring it", (time.perf_counter() - taken) * 1e3, "ms")


def main() -> None:
    """Measure and print."""
    print(f"{'figure':40} {'goal':>10}  measured")
    for part in (floors, reads, writes, space):
        for figure in part():
            goal = "" if figure.goal is None else f"< {figure.goal:g} {figure.unit}"
            mark = "!" if figure.goal is not None and figure.value >= figure.goal else " "
            median = "" if figure.median is None else f" (median {figure.median:.2f})"
            print(f"{figure.name:40} {goal:>10} {mark}{figure.value:.2f} {figure.unit}{median}", flush=True)


if __name__ == "__main__":
    main()
