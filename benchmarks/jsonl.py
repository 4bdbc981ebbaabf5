"""What the store in plain files costs: a session of 5,000 entries and 10 MB, and ten processes that write a session, an
empty one and then that of 10 MB.

    make bench-jsonl                # or: python benchmarks/jsonl.py --folder /a/folder/on/the/disk/that/matters

Each figure is printed with the goal that it is held to. Times are of the processor, so that other work on the machine
counts little: the 95th percentile of calls that are repeated, the median of those that read everything, and the least.
Beside them stand the time on the clock, and what forced writes took of it: the disk's time. With ten processes, times
are those on the clock. Lock contention is the share of acquisitions that failed because their time was over; the goal
is the format's own.
"""

import argparse
import json
import logging
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import wellkept
from wellkept import Filter, NewMemory, View
from wellkept.codec import checksum
from wellkept.errors import LockTimeout
from wellkept.stores.jsonl import JsonlStore
from wellkept.types import MemoryTypeName

ENTRIES = 5_000
SESSION_MB = 10
PATIENCE_S = 60
WRITE_MS, QUERY_MS, REBUILD_MS = 50.0, 100.0, 1_000.0  # the floors of the format
CONTENTION = 0.01
TYPES: tuple[MemoryTypeName, ...] = (
    "conversation",
    "conversation",
    "fact",
    "finding",
    "decision",
    "insight",
    "event",
    "preference",
)
TOPICS = ("security", "security.authentication", "billing", "ui.dark-mode", "build", "release", "people", "database")
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Times:
    """What one call took, in milliseconds."""

    cpu: float
    wall: float
    forced: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report: one figure of several calls, by what of them is told."""

    name: str
    goal_ms: float | None
    calls: Sequence[Times]
    told: Callable[[Sequence[float]], float]


class Forced:
    """How long forced writes took. Stands in for the calls that force them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for name in ("fsync", "fdatasync"):
            if hasattr(os, name):
                setattr(os, name, partial(self._timed, getattr(os, name)))

    def _timed(self, force: Callable[[int], None], number: int) -> None:
        started = time.perf_counter()
        force(number)
        self.seconds += time.perf_counter() - started

    def times(self, work: Callable[[], object]) -> Times:
        """Call something once."""
        forced, cpu, wall = self.seconds, time.process_time(), time.perf_counter()
        work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return Times(cpu * 1e3, wall * 1e3, (self.seconds - forced) * 1e3)


def p95(values: Sequence[float]) -> float:
    """Nineteen of twenty were at most this."""
    return sorted(values)[len(values) * 95 // 100]


class Writer:
    """Makes entries as a session has them: words as frequent as in a language, some tags, and a little metadata."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        letters = random.Random(7)
        self.words = ["".join(letters.choices("aeioulnrstdmkgb", k=letters.randint(2, 9))) for _ in range(20_000)]
        self.weights = [1 / rank for rank in range(1, len(self.words) + 1)]

    def text(self, count: int) -> str:
        """Some words."""
        return " ".join(self.dice.choices(self.words, self.weights, k=count))

    def entry(self, length: int = 1_450) -> NewMemory:
        """An entry whose content is so long."""
        text = self.text(length // 4 + 10).capitalize()[:length]
        if self.dice.random() < 0.02:
            text = f"{text[: length // 2]} Security review. {text[length // 2 :]}"
        return NewMemory(
            content=text,
            layer="session",
            type=self.dice.choice(TYPES),
            importance=round(self.dice.random(), 2),
            tags=self.dice.sample(TOPICS, k=self.dice.randint(0, 3)),
            metadata={"turn": self.dice.randrange(1_000), "tokens": {"prompt": 412, "completion": 97}},
            role="assistant",
        )


class Clock:
    """Goes on by a quarter of an hour with every look: a session of some weeks."""

    def __init__(self) -> None:
        self.now = NOW - ENTRIES * timedelta(minutes=15)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=15)
        return self.now


def fill(folder: Path) -> None:
    """Make the session, an entry at a time, so that it has as many commits; not forced, for that would take minutes."""
    writer = Writer(1)
    with wellkept.open(f"jsonl:{folder}", embedder=None, clock=Clock(), durability="relaxed") as memories:
        view = memories.view(user="ada", session="monday")
        for _ in range(ENTRIES):
            view.add_many([writer.entry()])
    size = sum(path.stat().st_size for path in folder.glob("sessions/*/memory.jsonl"))
    print(f"a session of {ENTRIES} entries, {size / 1e6:.1f} MB")
    assert abs(size / 1e6 - SESSION_MB) < 1, "not the size that the goals are about"
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        memories.configure(durability="full")


# -- one process ----------------------------------------------------------------------------------------------


def writes(view: View, forced: Forced, count: int) -> Iterator[Figure]:
    """Adding, changing and forgetting single memories."""
    writer = Writer(2)
    news = [writer.entry() for _ in range(count)]
    yield Figure("add", WRITE_MS, [forced.times(partial(view.add_many, [new])) for new in news], p95)
    ids = [memory.id for memory in view.list(limit=100)]
    calls = [forced.times(partial(view.update, id, importance=0.9)) for id in ids]
    yield Figure("update", WRITE_MS, calls, p95)
    yield Figure("forget", WRITE_MS, [forced.times(partial(view.forget, id)) for id in ids], p95)


def queries() -> Iterator[tuple[str, Callable[[View], object]]]:
    """Questions of several kinds; listings are of a page of 50, with the total."""
    listed = {
        "newest": {},
        "a tag": {"filter": Filter(tags=["security"])},
        "a type": {"filter": Filter(types=["decision"])},
        "a range of time": {"filter": Filter(created_after=NOW - timedelta(days=30), created_before=NOW)},
        "importance": {"filter": Filter(min_importance=0.7)},
        "metadata": {"filter": Filter(metadata={"turn": 7})},
        "content_contains": {"filter": Filter(content_contains="security rev")},
        'text="secur*"': {"filter": Filter(text="secur*")},
        'text="secur* review"': {"filter": Filter(text="secur* review")},
        "most important first": {"sort_by": "important"},
        "most relevant first": {"sort_by": "relevance"},
        "a tag, most relevant first": {"filter": Filter(tags=["security"]), "sort_by": "relevance"},
    }
    for name, options in listed.items():
        yield f"list: {name}", partial(lambda view, options: view.list(limit=50, **options), options=options)
    writer = Writer(3)
    asked = [f"{writer.text(4)} security" for _ in range(200)]
    for name, options in {
        "words": {},
        "words and a tag": {"filter": Filter(tags=["security"])},
        "words and content_contains": {"filter": Filter(content_contains="security rev")},
        "words by relevance": {"ranking": "relevance"},
    }.items():
        take = iter(asked * 5)
        yield (
            f"search: {name}",
            partial(lambda view, take, options: view.search(next(take), **options), take=take, options=options),
        )


def asking(view: View, forced: Forced, count: int) -> Iterator[Figure]:
    """Every kind of question, while entries are written in between: what was kept in RAM must follow."""
    writer = Writer(4)
    for name, ask in queries():
        first = forced.times(partial(ask, view))
        calls = []
        for number in range(count):
            if number % 10 == 0:
                view.add_many([writer.entry()])
            calls.append(forced.times(partial(ask, view)))
        yield Figure(name, QUERY_MS, calls, p95)
        if first.cpu > 3 * p95([one.cpu for one in calls]):
            yield Figure("  the first time", None, [first], statistics.median)


def whole(folder: Path, forced: Forced, count: int) -> Iterator[Figure]:
    """What reads everything."""
    opened: list[Times] = []
    rebuilt: list[Times] = []
    stores: list[JsonlStore] = []
    for _ in range(count):
        opened.append(forced.times(lambda: stores.append(JsonlStore(folder))))
        store = stores.pop()
        rebuilt.append(forced.times(store.rebuild))
        store.close()
    yield Figure("open", None, opened, statistics.median)
    yield Figure("rebuild: read all, write all indexes", REBUILD_MS, rebuilt, statistics.median)


def figures(folder: Path, count: int) -> Iterator[Figure]:
    """All of one process, each as soon as it is known."""
    forced = Forced()
    yield from whole(folder, forced, max(3, count // 10))
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        view = memories.view(user="ada", session="monday")
        yield from writes(view, forced, count)
        yield from asking(view, forced, count)


def report(figure: Figure) -> None:
    """Print a line."""
    cpu, wall, forced = (
        figure.told([getattr(one, part) for one in figure.calls]) for part in ("cpu", "wall", "forced")
    )
    least = min(one.cpu for one in figure.calls)
    goal = "" if figure.goal_ms is None else f"< {figure.goal_ms:g}"
    mark = "!" if figure.goal_ms is not None and cpu >= figure.goal_ms else " "
    print(f"{figure.name:40} {goal:>8} {mark}{cpu:8.2f} {least:8.2f} {wall:8.2f} {forced:8.2f}", flush=True)


# -- ten processes --------------------------------------------------------------------------------------------


def sealed(text: str) -> str:
    """A text that tells whether it is whole."""
    return f"{text} {checksum(text).hex()}"


def is_whole(content: str) -> bool:
    """Whether a content is what ``sealed`` made."""
    return content == sealed(content.rpartition(" ")[0])


class Locks(logging.Handler):
    """How long each acquisition of a lock waited, in milliseconds, and how many failed: from what the store logs."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.failed = 0
        log = logging.getLogger("wellkept")
        log.addHandler(self)
        log.setLevel(logging.DEBUG)

    def emit(self, record: logging.LogRecord) -> None:
        """Count a record of a lock."""
        told = vars(record)
        if (told.get("component"), told.get("operation")) == ("Lock", "acquire"):
            self.waits.append(told["duration_ms"])
            self.failed += "code" in told


def write_for(folder: str, name: str, start: float, until: float) -> None:
    """A child: write from one time to another, and tell what was acknowledged."""
    writer = Writer(len(name))
    ids: list[str] = []
    times: list[float] = []
    locks = Locks()
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        view = memories.view(user="ada", session="monday")
        time.sleep(max(0.0, start - time.time()))
        while time.time() < until:
            new = NewMemory(content=sealed(writer.text(40)), key=f"{name}/{len(ids)}", layer="session")
            started = time.perf_counter()
            with suppress(LockTimeout):  # it is counted
                ids.append(view.add_many([new])[0].id)
            times.append((time.perf_counter() - started) * 1e3)
    # On a busy machine, one may start too late to write.
    told = {"p95": p95(times or [0.0]), "waits": p95(locks.waits), "locks": len(locks.waits), "failed": locks.failed}
    print(json.dumps({"ids": ids, **told}))


def read_for(folder: str, until: float) -> None:
    """A child: follow the feed and list pages until a time; tell of everything that is not whole or not in order."""
    wrong: Counter[str] = Counter()
    after: str | None = None
    stamps: set[str] = set()
    seen = pages = 0
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        view = memories.view(user="ada", session="monday")
        while time.time() < until:
            for version in view.changes(after=after, limit=1_000):
                wrong["version twice"] += version.stamp in stamps
                wrong["content"] += version.memory is None or not is_whole(version.memory.content)
                stamps.add(version.stamp)
                after, seen = version.position, seen + 1
            page = view.list(limit=100)
            wrong["page"] += not all(is_whole(memory.content) for memory in page)
            wrong["page twice"] += len({memory.id for memory in page}) < len(page)
            pages += 1
        wrong["health"] += memories.health().status.value != "healthy"
    print(json.dumps({"wrong": {name: count for name, count in wrong.items() if count}, "seen": seen, "pages": pages}))


def ask_for(folder: str, start: float, until: float) -> None:
    """A child: ask every kind of question in turn from one time to another; tell how long each kind took."""
    times: dict[str, list[float]] = {}
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        view = memories.view(user="ada", session="monday")
        for _, ask in queries():  # the first search makes the index
            ask(view)
        time.sleep(max(0.0, start - time.time()))
        while time.time() < until:
            for name, ask in queries():
                started = time.perf_counter()
                ask(view)
                times.setdefault(name, []).append((time.perf_counter() - started) * 1e3)
    print(json.dumps(times))


def run_together(folder: Path, seconds: float, children: Sequence[str], ready_s: float) -> list[dict[str, Any]]:
    """Start processes that begin at the same time, when all are ready, and collect what they tell."""
    # As an installed package runs: compiled once, by the first of these processes.
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.time() + ready_s
    command = [
        sys.executable,
        __file__,
        "--folder",
        str(folder),
        "--start",
        str(start),
        "--until",
        str(start + seconds),
    ]
    started = [
        subprocess.Popen([*command, "--child", name], stdout=subprocess.PIPE, text=True, env=compiled)
        for name in children
    ]
    return [json.loads(child.communicate(timeout=ready_s + seconds + PATIENCE_S)[0]) for child in started]


def report_writes(wrote: Sequence[dict[str, Any]], seconds: float) -> None:
    """Print what the processes that wrote tell."""
    count = sum(len(one["ids"]) for one in wrote)
    locks, failed = (sum(one[name] for one in wrote) for name in ("locks", "failed"))
    print(f"{len(wrote)} processes for {seconds:g} s: {count} writes, {count / seconds:.0f}/s")
    report_goal("an add among them, p95, slowest process", WRITE_MS, max(one["p95"] for one in wrote), "ms")
    report_goal("  of which it waited for the lock", None, max(one["waits"] for one in wrote), "ms")
    report_goal(f"lock contention, of {locks}", CONTENTION * 100, failed / locks * 100, "%")


def report_goal(name: str, goal: float | None, value: float, unit: str) -> None:
    """Print a line with a goal that the value stays below."""
    mark = "!" if goal is not None and value >= goal else " "
    print(f"{name:40} {'' if goal is None else f'< {goal:g}':>8} {mark}{value:8.2f} {unit}", flush=True)


def asked_meanwhile(folder: Path, seconds: float, writers: int = 10) -> None:
    """Processes that write the session of 10 MB, and one that asks it every kind of question."""
    print("\nthe session of 10 MB, written by others while it is asked")
    names = [f"writer{number}" for number in range(writers)]
    *wrote, asked = run_together(folder, seconds, [*names, "asker"], ready_s=10)
    report_writes(wrote, seconds)
    every = [one for each in asked.values() for one in each]
    report_goal(f"{len(every)} questions of {len(asked)} kinds, p95", QUERY_MS, p95(every), "ms")
    slowest = max(asked, key=lambda name: p95(asked[name]))
    report_goal(f"  the slowest: {slowest}", QUERY_MS, p95(asked[slowest]), "ms")


def together(folder: Path, seconds: float, writers: int = 10, readers: int = 2) -> None:
    """Processes that write one session, and some that read it; then look at what is there."""
    wellkept.open(f"jsonl:{folder}", embedder=None).close()
    names = [f"writer{number}" for number in range(writers)]
    told = run_together(folder, seconds, names + ["reader"] * readers, ready_s=2)
    wrote, read = told[:writers], told[writers:]
    acknowledged = [id for one in wrote for id in one["ids"]]
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        view = memories.view(user="ada", session="monday")
        found = list(everything(view))
        findings = memories.doctor().findings
    lost, twice = len(set(acknowledged) - set(found)), len(found) - len(set(found))
    wrong = sum((Counter(one["wrong"]) for one in read), Counter())
    print()
    report_writes(wrote, seconds)
    for name, count in {
        "acknowledged and lost": lost,
        "there twice": twice,
        "there and never acknowledged": len(set(found) - set(acknowledged)),
        f"wrong in {sum(one['pages'] for one in read)} pages of {readers} readers": wrong.total(),
        "findings of doctor": len(findings),
    }.items():
        print(f"{name:40} {'0':>8} {'!' if count else ' '}{count:8}")


def everything(view: View) -> Iterator[str]:
    """The ids of all memories."""
    cursor = None
    while True:
        page = view.list(limit=100, sort_by="oldest", cursor=cursor)
        yield from (memory.id for memory in page)
        if (cursor := page.next_cursor) is None:
            return


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where to measure: the disk matters")
    parser.add_argument("--calls", type=int, default=200, help="calls of each kind")
    parser.add_argument("--seconds", type=float, default=30, help="how long ten processes write; 0: not at all")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--start", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child == "reader":
        read_for(arguments.folder, arguments.until)
        return
    if arguments.child == "asker":
        ask_for(arguments.folder, arguments.start, arguments.until)
        return
    if arguments.child:
        write_for(arguments.folder, arguments.child, arguments.start, arguments.until)
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        fill(Path(name) / "session")
        print(f"{'ms':40} {'goal':>8}  {'measured':>8} {'least':>8} {'clock':>8} {'forced':>8}")
        for figure in figures(Path(name) / "session", arguments.calls):
            report(figure)
        if arguments.seconds:
            together(Path(name) / "shared", arguments.seconds)
            asked_meanwhile(Path(name) / "session", arguments.seconds / 3)  # so that it stays near its size


if __name__ == "__main__":
    main()
