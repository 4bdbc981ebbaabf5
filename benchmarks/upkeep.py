"""How long upkeep takes: retention over many agents, consolidation of one owner, what overriding adds to a search, and
what merging duplicates adds to an add.

python -m benchmarks.upkeep [retention] [consolidation] [search] [duplicates]
                            [--memories 100000] [--agents 1000] [--taken 0.2]
"""

import argparse
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar
from unittest import mock

import wellkept
from wellkept.engine import hits
from wellkept.recall import precedence
from wellkept.types import ConsolidationPolicy, Filter, LayerName, RetentionPolicy

T = TypeVar("T")
START = datetime(2026, 1, 7, tzinfo=UTC)
PARTS = ("retention", "consolidation", "search", "duplicates")
SEARCHED = 10_000
ADDED, BATCH = 800, 1_000

_WHO = "The team,The customer,The build server,Our parser,The old printer,The night shift,The garden".split(",")
_DOES = "needs,likes,stores,reports,rejects,prefers,checks,moves,paints,counts".split(",")
_WHAT = "small orders,red bricks,long letters,warm bread,quiet rooms,sharp knives,fresh water,new tires".split(",")
_HOW = "in the morning,near the station,without a break,for the office,with great care,by the lake".split(",")
_MORE = "although it rains,since the move,because of the noise,as agreed,on request,by habit".split(",")


def main() -> None:
    """Measure what is asked for, or everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=PARTS)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--taken", type=float, default=0.2)
    given = parser.parse_args()
    for part in given.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "memory.db"
            if part == "retention":
                _retention(file, given.memories, given.agents, given.taken)
            elif part == "consolidation":
                _consolidation(file, given.memories)
            elif part == "search":
                _search(file)
            else:
                _duplicates(file)
        print(f"peak memory so far {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB\n")


# -- retention --------------------------------------------------------------------------------------------------------


def _retention(file: Path, memories_in_all: int, agents: int, taken: float) -> None:
    now = [START]
    with wellkept.open(file, embedder=None, clock=lambda: now[0]) as memories:
        _fill(memories, memories_in_all // agents, agents, taken, now)
        upkeep = memories.upkeep
        upkeep.set_retention(RetentionPolicy(long_term_age="365d", forgotten_age="90d", automatic=False))
        upkeep.hold(Filter(tags=["legal"]), reason="case 17")
        plan = _timed("retention: plan", upkeep.plan)
        run = _timed("retention: apply", lambda: upkeep.apply(plan))
        undone = _timed("retention: undo", lambda: upkeep.undo(run.id))
        _timed("retention: run, plan and apply at once", upkeep.run)
        print(f"{len(plan.steps)} steps, {run.owners_processed} owners, {len(undone.ids)} brought back, {run.errors}")
    _timed("open with policies", lambda: wellkept.open(file, embedder=None, clock=lambda: now[0]).close())


def _fill(memories: wellkept.Memories, each: int, agents: int, taken: float, now: list[datetime]) -> None:
    """The first memories of each agent are old, a few of them held."""
    old = int(each * taken)
    for start, count in ((0, old), (old, each - old)):
        for agent in range(agents):
            view = memories.view(agent=f"agent-{agent}", user=f"user-{agent % 50}")
            view.add_many(
                [
                    wellkept.NewMemory(
                        content=f"Fact {number} of agent {agent}: the build took {number} seconds",
                        tags=("legal",) if number % 50 == 1 else ("build",),
                    )
                    for number in range(start, start + count)
                ]
            )
        now[0] += timedelta(days=400 if start == 0 else 1)


# -- consolidation ----------------------------------------------------------------------------------------------------


def _consolidation(file: Path, count: int) -> None:
    """One owner; some sentences share their skeleton, and one in twenty is said a second time with another article."""
    with wellkept.open(file) as memories:
        view = memories.view(user="ada")
        texts = list(_sentences(count))
        for start in range(0, count, 5_000):
            view.add_many([wellkept.NewMemory(content=text) for text in texts[start : start + 5_000]])
        print(f"peak memory before the plan {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    with wellkept.open(file) as memories:
        memories.upkeep.set_consolidation(ConsolidationPolicy(automatic=False))
        plan = _timed("consolidation: plan", lambda: memories.upkeep.plan(job="consolidation"))
        run = _timed("consolidation: apply", lambda: memories.upkeep.apply(plan, max_share=1.0))
        undone = _timed("consolidation: undo", lambda: memories.upkeep.undo(run.id))
    print(f"{count} memories, {len(plan.merges)} merges of {run.merged}, {len(undone.ids)} brought back, {run.errors}")


def _sentences(count: int) -> Iterator[str]:
    chance = random.Random(19)  # a benchmark, the same each time
    told: list[str] = []
    for number in range(count):
        if told and number % 20 == 0:
            yield chance.choice(told).replace(" the ", " a ").replace(".", "!")
            continue
        parts = [chance.choice(some) for some in (_WHO, _DOES, _WHAT, _HOW, _MORE)]
        named = "".join(chance.choice("abcdefghijklmnoprstuvw") for _ in range(6))
        told.append(f"{parts[0]} {parts[1]} {named} {' '.join(parts[2:])}.")
        yield told[-1]


# -- search -----------------------------------------------------------------------------------------------------------


def _search(file: Path) -> None:
    """What precedence, overriding and the folding of duplicates add to a search over memories of three layers."""
    with wellkept.open(file) as memories:
        view = memories.view(user="ada", project="api", company="acme")
        texts = list(_sentences(SEARCHED))
        layers: tuple[LayerName, ...] = ("user", "project", "company")
        for place, layer in enumerate(layers):
            some = texts[place::3]
            view.add_many([wellkept.NewMemory(content=text, layer=layer) for text in some])
        questions = [" ".join(text.split()[1:8]) for text in texts[:: SEARCHED // 100]]
        for one in questions:
            view.search(one)
        whole = statistics.median(_seconds(partial(view.search, one)) for one in questions * 3)
        with (
            mock.patch.object(precedence, "overriding", lambda found, *_, **__: list(found)),
            mock.patch.object(hits, "_near", return_value={}),
        ):
            bare = statistics.median(_seconds(partial(view.search, one)) for one in questions * 3)
    print(f"search over {SEARCHED} memories: {1e3 * whole:.2f} ms, without overriding {1e3 * bare:.2f} ms")
    print(f"overriding, superseding and meaning add {100 * (whole / bare - 1):.1f} %")


# -- duplicates -------------------------------------------------------------------------------------------------------


def _duplicates(file: Path) -> None:
    """What looking for equal texts adds to an add of something new, by the processor: turn by turn on one file."""
    kinds: tuple[Literal["keep", "merge"], ...] = ("keep", "merge")
    for embedder in (None, "static"):
        with wellkept.open(file.with_name(f"{embedder}.db"), embedder=embedder) as memories:
            view = memories.view(user="ada")
            texts = [text for text in _sentences(4 * ADDED + 20 * BATCH) if not text.endswith("!")]
            fresh = iter(texts)
            took: dict[tuple[str, str], list[float]] = {}
            for _ in range(ADDED):
                for how in kinds:
                    spent = _seconds(partial(view.add, next(fresh), duplicates=how))
                    took.setdefault(("add", how), []).append(spent)
            for _ in range(6):
                for how in kinds:
                    spent = _seconds(partial(view.add_many, list(islice(fresh, BATCH)), duplicates=how))
                    took.setdefault((f"add_many of {BATCH}", how), []).append(spent)
            took["the same again", "merge"] = [_seconds(partial(view.add, one)) for one in texts[1 : 2 * ADDED : 2]]
        for (what, named), measured in took.items():
            spent = 1e3 * statistics.median(measured)
            plain = 1e3 * statistics.median(took.get((what, "keep"), took["add", "keep"]))
            print(f"{embedder or 'no embedder'}: {what}, {named}: {spent:.2f} ms ({100 * (spent / plain - 1):+.1f} %)")


def _seconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def _timed(what: str, call: Callable[[], T]) -> T:
    started, worked = time.perf_counter(), time.process_time()
    answer = call()
    took, computed = time.perf_counter() - started, time.process_time() - worked
    print(f"{what}: {took:.2f} s, of the processor {computed:.2f} s")
    return answer


if __name__ == "__main__":
    main()
