"""What the handle of an agent costs: times per call in one process, the bytes of many entries, and a prompt.

    python benchmarks/working.py

Each figure is printed with the goal that it is held to. Times are of the processor, so that other work on the machine
counts little: that of the fastest batch of calls, and of the median one, which is held to the goal. The kinds of calls
take turns, batch by batch: a machine that changes its speed every few seconds does so for all of them. The first lines
are what cannot be saved: the clock and the JSON codec alone.
"""

import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any

import wellkept
from wellkept import NewMemory
from wellkept.codec import decode_json, encode_json
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.events import Event, EventBus
from wellkept.window import RecalledMemory
from wellkept.working import WorkingMemory, WorkingSnapshot

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


@dataclass(frozen=True, slots=True)
class Call:
    """A kind of call to be timed."""

    name: str
    work: Callable[[], object]
    goal: float | None = None


def timed(calls: Iterable[Call]) -> Iterator["Figure"]:
    """The time of one call of each kind, with that of the loop and the lambda around it."""
    kinds = list(calls)
    rounds = [[batch(call.work, BATCH) / BATCH * 1e6 for call in kinds] for _ in range(BATCHES)]
    for call, times in zip(kinds, zip(*rounds, strict=True), strict=True):
        yield Figure(call.name, statistics.median(times), "us", call.goal, min(times))


def batch(work: Callable[[], object], calls: int) -> float:
    """The seconds that so many calls take the processor."""
    started = time.process_time()
    for _ in range(calls):
        work()
    return time.process_time() - started


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    least: float | None = None


def floors() -> Iterator[Call]:
    small, state = encode_json(42), encode_json(STATE)
    yield Call("the clock", clock)
    yield Call("decoding a small value", lambda: decode_json(small))
    yield Call("decoding the state", lambda: decode_json(state))
    yield Call("encoding the state", lambda: encode_json(STATE))


def reads() -> Iterator[Call]:
    working = new_memory()
    working.set("small", 42)
    working.set("state", STATE)
    working.set("task", Task("look", 3))
    get, size = working.get, len(encode_json(STATE))
    yield Call("get of a small value", lambda: get("small"), 1.0)
    yield Call(f"get of a state of {size} bytes", lambda: get("state"), 2.5)
    yield Call("get of a missing key", lambda: get("missing"))
    yield Call("get of a dataclass", lambda: get("task", type=Task))
    yield Call("get_or_set of a key that is there", lambda: working.get_or_set("small", dict))
    level = working.create_scope("1")
    for depth in range(2, 11):
        level = level.create_scope(str(depth))
    yield Call("get through 10 levels", lambda: level.get("small"), 5.0)


def writes() -> Iterator[Call]:
    working, bus = new_memory(EventBus()), EventBus()
    count = iter(range(BATCH * BATCHES))

    def set_new() -> None:
        number = next(count)
        if number % 5_000 == 0:
            working.clear()
        working.set(f"key {number}", number)

    yield Call("set of a new key", set_new, 5.0)
    yield Call("set of a known key", lambda: working.set("small", 42), 5.0)
    yield Call("set of a state", lambda: working.set("state", STATE), 5.0)
    tagged: dict[str, Any] = {"tags": ("a", "b"), "metadata": {"turn": 3}, "importance": 0.8}
    yield Call("set with tags and metadata", lambda: working.set("small", 42, **tagged))
    bus.on(Event, lambda _: None)
    told = new_memory(bus)
    yield Call("set with a handler attached", lambda: told.set("small", 42))
    yield Call("a scope from its beginning to its end", lambda: working.create_scope("s").dispose())


def space() -> Iterator[Figure]:
    for name, value in (("small values", 42), ("states", STATE)):
        tracemalloc.start()
        working = new_memory()
        for number in range(10_000):
            working.set(f"key {number}", value)
        used = tracemalloc.get_traced_memory()[0] / 1e6
        tracemalloc.stop()
        yield Figure(f"10,000 {name}", used, "MB", 20.0)
        yield Figure("their snapshot as JSON", batch(partial(saved, working), 1) * 1e3, "ms")
        yield Figure("restoring it", batch(partial(restored, new_memory(), saved(working)), 1) * 1e3, "ms")


def saved(working: WorkingMemory) -> str:
    return working.snapshot().to_json()


def restored(working: WorkingMemory, text: str) -> None:
    working.restore(WorkingSnapshot.from_json(text))


class Known(HashingEmbedder):
    """Embeds each text once: what is asked again costs no embedding."""

    def __init__(self) -> None:
        super().__init__(384)
        self._known: dict[str, Any] = {}

    def embed(self, texts: Sequence[str]) -> list[Any]:
        new = [text for text in texts if text not in self._known]
        self._known |= zip(new, super().embed(new), strict=True)
        return [self._known[text] for text in texts]


def prompts() -> Iterator[Figure]:
    """A prompt of 4,000 tokens: a conversation that fills half of it, and what is recalled of 10,000 memories."""
    dice = random.Random(7)
    words = ["".join(dice.choices("aeioulnrstdmkgb", k=dice.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]  # as frequent as in a language

    def text(length: int) -> str:
        return " ".join(dice.choices(words, weights, k=length))

    with (
        tempfile.TemporaryDirectory() as folder,
        wellkept.open(f"sqlite:{folder}/bench.wellkept", embedder=Known(), clock=clock) as memories,
    ):
        me = memories.agent("bench", user="ada")
        me.long_term.add_many(NewMemory(content=text(dice.randint(8, 25))) for _ in range(10_000))
        me.context.add("system", text(100), pinned=True)
        for _ in range(60):
            me.context.add("user", text(20))
        questions = [text(8) for _ in range(50)]
        compose = partial(me.context.compose, budget_tokens=4_000)
        for name, ask, goal in (
            ("compose over 10,000 memories", compose, 10.0),
            ("of which the search", partial(me.long_term.search, limit=20), None),
        ):
            for question in questions:
                ask(question)
            times = [batch(partial(ask, question), 4) / 4 * 1e3 for _ in range(5) for question in questions]
            yield Figure(name, statistics.median(times), "ms", goal, min(times))
        hits = [RecalledMemory.of(hit) for hit in me.long_term.search(questions[0], limit=1_000, min_score=0)]
        times = [batch(lambda: compose(recalled=hits), 1) * 1e3 for _ in range(50)]
        yield Figure(f"compose of {len(hits)} hits that are given", statistics.median(times), "ms", None, min(times))


def main() -> None:
    """Measure and print."""
    print(f"{'figure':40} {'goal':>10}  measured")
    for figure in chain(timed(chain(floors(), reads(), writes())), space(), prompts()):
        goal = "" if figure.goal is None else f"< {figure.goal:g} {figure.unit}"
        mark = "!" if figure.goal is not None and figure.value >= figure.goal else " "
        least = "" if figure.least is None else f" (least {figure.least:.2f})"
        print(f"{figure.name:40} {goal:>10} {mark}{figure.value:.2f} {figure.unit}{least}", flush=True)


if __name__ == "__main__":
    main()
