"""Every floor of the five sources of the requirements: what they demand of speed, size, concurrency and relevance.

    make bench-floors                                  # or: python benchmarks/floors.py
    make bench-floors DATA=/a/folder                   # and the floor that is about LongMemEval, from there
    make bench-floors BENCH_ARGS="--only W8 --only H16"
    make bench-floors BENCH_ARGS="--json floors.json"

Measured is what a user calls, in a database on the disk with the embedder that is built in, unless a floor leaves
embedding out. Milliseconds pass on the clock. Microseconds are of the processor, because one of them is less than what
another program takes in between; so let nothing else run meanwhile. The exit code is 1 if a floor is missed. Those for
which there is no code yet say so.
"""

import argparse
import json
import operator
import random
import statistics
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from threading import Barrier

import wellkept
from wellkept import Filter, NewMemory, View
from wellkept.errors import WellkeptError
from wellkept.keyrings.ram import RamKeyring
from wellkept.memories import AgentMemory
from wellkept.types import Fact

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started as a script, it knows its own folder only

from benchmarks import facts, jsonl, kinds, quality
from benchmarks.core import seconds
from benchmarks.jsonl import p95
from benchmarks.quality_data import LONGMEMEVAL
from benchmarks.quality_metrics import OVERALL
from benchmarks.working import batch

MET, MISSED, NO_CODE, NO_DATA = "met", "missed", "no code yet", "needs DATA=folder"
SIGNS: Mapping[str, Callable[[float, float], bool]]
SIGNS = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt}


@dataclass(frozen=True, slots=True)
class Floor:
    """What a source demands. ``missing`` says what has to be written before it can be measured."""

    id: str
    what: str
    source: str
    sign: str
    limit: float
    unit: str
    missing: str | None = None
    needs_data: bool = False


AGENT = "working memory, acceptance criteria"
LONG_TERM = "long-term memory, acceptance criteria"
PERSISTENCE = "persistence, acceptance criteria"
LAYER = "layered memory, performance of the {} layer"
WORKING, SESSION, EPISODIC = LAYER.format("working"), LAYER.format("session"), LAYER.format("episodic")
SEMANTIC, PROCEDURAL = LAYER.format("semantic"), LAYER.format("procedural")
FILES = "session store, assumptions about performance"

# tools/requirements_table.py reads the ids, and what is missing, without running this module: they are literals.
FLOORS = (
    Floor("W8.1", "get among 10,000 entries, p95", AGENT, "<", 5, "ms"),
    Floor("W8.2", "set among 10,000 entries, p95", AGENT, "<", 10, "ms"),
    Floor("W8.3", "memory of 10,000 entries", AGENT, "<", 100, "MB"),
    Floor("W8.4", "10 tasks that set and get at once: values lost or wrong", AGENT, "=", 0, "of 1,000"),
    Floor("L15.1", "store without embedding, p95", LONG_TERM, "<", 50, "ms"),
    Floor("L15.2", "search by meaning among 10,000 memories, p95", LONG_TERM, "<", 100, "ms"),
    Floor("L15.3", "100 stores at once: failed, lost or not embedded", LONG_TERM, "=", 0, "of 100"),
    Floor("L15.4", "relevance: hit@3 on our sets of short facts", LONG_TERM, ">", 90, "%"),
    Floor("L15.5", "relevance: any@5 on LongMemEval", LONG_TERM, ">", 90, "%", needs_data=True),
    Floor("P8.1", "snapshot of 10,000 entries, 100 scopes and a full context, p95", PERSISTENCE, "<", 500, "ms"),
    Floor("P8.2", "restoring it, p95", PERSISTENCE, "<", 1_000, "ms"),
    Floor("P8.3", "its size when all of it is encrypted, to its plain size", PERSISTENCE, "<", 1.1, "x"),
    Floor("H16.1", "working tier: add under 1,000 entries", WORKING, "<=", 5, "us"),
    Floor("H16.2", "working tier: get", WORKING, "<=", 1, "us"),
    Floor("H16.3", "working tier: query by meaning of 999 entries", WORKING, "<=", 100, "us"),
    Floor("H16.4", "working tier: entries that it holds", WORKING, ">=", 10_000, "entries"),
    Floor("H16.5", "working tier: add that is also written to Redis", WORKING, "<=", 1, "ms", missing="Redis"),
    Floor("H16.6", "session tier: entries that one session holds", SESSION, ">=", 100_000, "entries"),
    Floor("H16.7", "session tier: add, median", SESSION, "<=", 5, "ms"),
    Floor("H16.8", "session tier: get, median", SESSION, "<=", 5, "ms"),
    Floor("H16.9", "session tier: query, median", SESSION, "<=", 20, "ms"),
    Floor("H16.10", "session tier: its named default TTL", SESSION, "=", 1, "hour", missing="the TTL of a session"),
    Floor("H16.11", "session tier on Redis: add and get", SESSION, "<=", 5, "ms", missing="Redis"),
    Floor("H16.12", "session tier on Redis: query", SESSION, "<=", 20, "ms", missing="Redis"),
    Floor("H16.13", "episodic tier: add among 10,000 events, p95", EPISODIC, "<=", 50, "ms"),
    Floor("H16.14", "episodic tier: query, p95", EPISODIC, "<=", 100, "ms"),
    Floor("H16.15", "episodic tier: query of a range of time, p95", EPISODIC, "<=", 30, "ms"),
    Floor("H16.16", "semantic tier: add among 10,000 memories, median", SEMANTIC, "<=", 5, "ms"),
    Floor("H16.17", "semantic tier: query, p95", SEMANTIC, "<=", 200, "ms"),
    Floor("H16.18", "semantic tier: batch of 100, median", SEMANTIC, "<=", 10, "ms"),
    Floor("H16.19", "semantic tier on Qdrant: add", SEMANTIC, "<=", 5, "ms", missing="Qdrant"),
    Floor("H16.20", "semantic tier on Qdrant: query", SEMANTIC, "<=", 200, "ms", missing="Qdrant"),
    Floor("H16.21", "semantic tier on Qdrant: batch of 100", SEMANTIC, "<=", 10, "ms", missing="Qdrant"),
    Floor("H16.22", "facts: add among 10,000, p95", PROCEDURAL, "<=", 30, "ms"),
    Floor("H16.23", "facts: query by subject, p95", PROCEDURAL, "<=", 30, "ms"),
    Floor("H16.24", "facts: query by predicate, p95", PROCEDURAL, "<=", 30, "ms"),
    Floor("H16.25", "facts: how many a query gives unless told otherwise", PROCEDURAL, "=", 100, "facts"),
    Floor("J14.1", "write into a session of 10 MB, p95", FILES, "<", 50, "ms"),
    Floor("J14.2", "query of a session of 10 MB, p95 of the slowest of 16 kinds", FILES, "<", 100, "ms"),
    Floor("J14.3", "rebuild of the index of 10 MB, median", FILES, "<", 1_000, "ms"),
    Floor("J14.4", "10 processes that write one session: locks not gotten in time", FILES, "<", 1, "%"),
)

Measured = Iterator[tuple[str, float]]
"""Ids of floors, with what was measured."""
Measure = Callable[[Path], Measured]
SEED = 7
CALLS = 200
AMONG = 10_000
TOPICS = ("tea and cake", "the nightly build", "a dark theme", "sailing in May", "tabs and spaces", "a port")


# -- the report ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A floor and what came of it."""

    floor: Floor
    measured: float | None

    @property
    def verdict(self) -> str:
        """Met or missed; or why it was not measured."""
        if self.floor.missing is not None:
            return f"{NO_CODE}: {self.floor.missing}"
        if self.measured is None:
            if self.floor.needs_data:
                return NO_DATA
            raise LookupError(f"nothing measured {self.floor.id}")
        return MET if SIGNS[self.floor.sign](self.measured, self.floor.limit) else MISSED

    @property
    def cells(self) -> tuple[str, ...]:
        """As the table shows it."""
        floor = self.floor
        digits = ".3g" if self.measured is not None and self.measured < 1_000 else ",.0f"
        shown = "" if self.measured is None else f"{self.measured:{digits}} {floor.unit}"
        return floor.id, floor.what, floor.source, f"{floor.sign} {floor.limit:,g} {floor.unit}", shown, self.verdict


def rows(floors: Sequence[Floor], measured: Mapping[str, float]) -> list[Row]:
    """A row for each floor. What was measured for no floor is a mistake of this program."""
    if unknown := sorted(set(measured) - {floor.id for floor in floors}):
        raise LookupError(f"no floor is called {', '.join(unknown)}")
    return [Row(floor, measured.get(floor.id)) for floor in floors]


def table(results: Sequence[Row]) -> str:
    """The rows in columns, and how many have which verdict."""
    lines = [("id", "what", "from", "floor", "measured", "verdict"), *(row.cells for row in results)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    verdicts = [row.verdict.partition(":")[0] for row in results]
    counts = [f"{verdicts.count(name)} {name}" for name in (MET, MISSED, NO_CODE, NO_DATA) if name in verdicts]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*shown, "", f"{len(results)} floors: {', '.join(counts)}"])


def as_json(results: Sequence[Row]) -> str:
    """The rows for programs."""
    values = [asdict(row.floor) | {"measured": row.measured, "verdict": row.verdict} for row in results]
    return json.dumps(values, indent=1)


def exit_code(results: Sequence[Row]) -> int:
    """1 if a floor is missed. What cannot be measured yet is not missed."""
    return int(any(row.verdict == MISSED for row in results))


# -- what is measured ------------------------------------------------------------------------------------------


def times_ms(work: Callable[[], object], calls: int = CALLS) -> list[float]:
    """How long each call took. The first ones load what is loaded once, and do not count."""
    for _ in range(3):
        work()
    return [seconds(work) * 1e3 for _ in range(calls)]


def median_us(work: Callable[[], object], between: Callable[[], object] = lambda: None) -> float:
    """The time of the processor for a call: of many batches, with something between them, the median one."""
    taken = []
    for _ in range(100):
        between()
        taken.append(batch(work, CALLS) / CALLS * 1e6)
    return statistics.median(taken)


def texts() -> Iterator[str]:
    """No two alike."""
    dice = random.Random(SEED)
    return (f"Note {number} is about {dice.choice(TOPICS)} and {dice.randrange(1_000)}" for number in count())


def questions() -> Iterator[str]:
    """What the texts are about."""
    return (f"What do we know about {TOPICS[number % len(TOPICS)]}?" for number in count())


def filled(view: View, news: Iterator[NewMemory], size: int = AMONG) -> None:
    """So many memories in one view, a thousand at a time."""
    for _ in range(size // 1_000):
        view.add_many([next(news) for _ in range(1_000)])


def working_memory(folder: Path) -> Measured:
    with wellkept.open(folder / "working.db") as memories, memories.agent("debugger") as me:
        working = me.working
        tracemalloc.start()
        for number in range(AMONG):
            working.set(f"key {number}", {"text": "x" * 200, "step": number})
        yield "W8.3", tracemalloc.get_traced_memory()[0] / 1e6
        tracemalloc.stop()
        keys = (f"key {number * 7919 % AMONG}" for number in count())
        yield "W8.1", p95(times_ms(lambda: working.get(next(keys)), 1_000))
        yield "W8.2", p95(times_ms(lambda: working.set(next(keys), {"step": 1}), 1_000))
    with wellkept.open(folder / "tasks.db") as memories, memories.agent("debugger") as me:
        yield "W8.4", wrong_of_tasks(me)


def wrong_of_tasks(me: AgentMemory, tasks: int = 10, calls: int = 100) -> int:
    """How many values are not what a task set them to, each by itself and all at the same time."""

    def task(number: int) -> int:
        keys = [f"{number}/{call}" for call in range(calls)]
        for key in keys:
            me.working.set(key, [key])
        return sum(me.working.get(key) != [key] for key in keys)

    with ThreadPoolExecutor(tasks) as threads:
        wrong = sum(threads.map(task, range(tasks), timeout=60))
    return wrong + abs(tasks * calls - len(me.working))


def long_term(folder: Path) -> Measured:
    said, asked = texts(), questions()
    with wellkept.open(folder / "stored.db", embedder=None) as memories:
        view = memories.view(user="ada")
        yield "L15.1", p95(times_ms(lambda: view.add(next(said))))
    with wellkept.open(folder / "searched.db") as memories:
        view = memories.view(user="ada")
        filled(view, (NewMemory(content=text) for text in said))
        yield "L15.2", p95(times_ms(lambda: view.search(next(asked))))
        yield "L15.3", wrong_of_stores(memories.view(user="bob"))
    answers = [one for world in facts.load([facts.OWN]) for one in kinds.ask(world, ())]
    yield "L15.4", 100 * statistics.mean(one.hit(3) for one in answers if one.question.expected)


def long_conversations(data: Path) -> Measured:
    figures = quality.measure(data, quality.Setup("default", order_only=True), [LONGMEMEVAL], None)
    if LONGMEMEVAL in figures:
        yield "L15.5", 100 * figures[LONGMEMEVAL]["quality"][OVERALL]["any@5"]


def wrong_of_stores(view: View, tasks: int = 100) -> int:
    """How many of so many stores at the same moment failed, or left nothing behind that has a vector."""
    start = Barrier(tasks)

    def store(number: int) -> str | None:
        start.wait(timeout=60)
        try:
            return view.add(f"Task {number} is done").id
        except WellkeptError:
            return None

    with ThreadPoolExecutor(tasks) as threads:
        ids = list(threads.map(store, range(tasks)))
    stored = view.get_many(filter(None, ids), include_vector=True).values()
    return tasks - sum(memory.vector is not None for memory in stored)


def snapshots(folder: Path) -> Measured:
    with wellkept.open(folder / "plain.db") as memories, memories.agent("debugger") as me:
        fill(me)
        snapshot = me.snapshot()
        plain = len(snapshot.to_json())
        yield "P8.1", p95(times_ms(me.snapshot, 40))
        yield "P8.2", p95(times_ms(partial(me.restore, snapshot), 40))
    encrypted = wellkept.open(folder / "encrypted.db", keyring=RamKeyring(), encrypt="all")
    with encrypted as memories, memories.agent("debugger") as me:
        fill(me)
        yield "P8.3", len(me.snapshot().to_json()) / plain


def fill(me: AgentMemory) -> None:
    """All that an agent may hold by default, in entries of about 500 bytes."""
    said = jsonl.Writer(SEED)
    levels = [me.working, *(me.working.create_scope(f"task {number}") for number in range(100))]
    for number in range(AMONG):
        levels[number % len(levels)].set(f"key {number}", said.text(80)[:480])
    while me.context.tokens_free > 200:
        me.context.add("user", said.text(20))


def tiers(folder: Path) -> Measured:
    yield from working_tier(folder)
    yield from session_tier(folder)
    yield from episodic_tier(folder)
    yield from semantic_tier(folder)
    yield from procedural_tier(folder)


def working_tier(folder: Path) -> Measured:
    said, keys, asked = texts(), count(), questions()
    with wellkept.open(folder / "working-tier.db") as memories, memories.agent("debugger") as me:
        working = me.working
        for _ in range(AMONG):
            working.set(f"key {next(keys)}", next(said))
        yield "H16.4", len(working)
        working.clear()
        names, values = [f"name {number}" for number in range(CALLS)], [next(said) for _ in range(CALLS)]
        each = iter(zip(names, values, strict=True))

        def again() -> None:
            nonlocal each
            working.clear()
            each = iter(zip(names, values, strict=True))

        yield "H16.1", median_us(lambda: working.set(*next(each)), again)
        yield "H16.2", median_us(lambda: working.get("name 7"))
        for number in range(999 - len(working)):
            working.set(f"key {number}", next(said))
        working.search(next(asked))
        yield "H16.3", statistics.median(batch(lambda: working.search(next(asked)), 1) * 1e6 for _ in range(CALLS))


def session_tier(folder: Path) -> Measured:
    said, asked = texts(), questions()
    with wellkept.open(folder / "session.db") as memories:
        session = memories.view(user="ada").sessions.create("monday")
        session.configure({"limit_bytes": 1_000_000_000})  # by default it is 10 MB, which the session store demands
        filled(session.view, (NewMemory(content=text, layer="session") for text in said), 100_000)
        yield "H16.6", session.view.count(layers=["session"])
        first = session.view.add("Use OAuth for the login", layer="session")
        yield "H16.7", statistics.median(times_ms(lambda: session.view.add(next(said), layer="session")))
        yield "H16.8", statistics.median(times_ms(partial(session.view.get, first.id)))
        yield "H16.9", statistics.median(times_ms(lambda: session.view.search(next(asked)), 50))


def episodic_tier(folder: Path) -> Measured:
    said, asked, now = texts(), questions(), datetime.now(UTC)
    with wellkept.open(folder / "episodic.db") as memories:
        view = memories.view(user="ada")
        hours = (now - timedelta(hours=number) for number in count(1))
        filled(view, (NewMemory(content=next(said), type="event", occurred_at=hour) for hour in hours))
        yield "H16.13", p95(times_ms(lambda: view.add(next(said), type="event")))
        events = Filter(types=["event"])
        yield "H16.14", p95(times_ms(lambda: view.search(next(asked), filter=events)))
        week = Filter(occurred_after=now - timedelta(days=38), occurred_before=now - timedelta(days=31))
        yield "H16.15", p95(times_ms(partial(view.list, filter=week)))


def semantic_tier(folder: Path) -> Measured:
    said, asked = texts(), questions()
    with wellkept.open(folder / "semantic.db") as memories:
        view = memories.view(user="ada")
        filled(view, (NewMemory(content=text) for text in said))
        yield "H16.16", statistics.median(times_ms(lambda: view.add(next(said))))
        yield "H16.17", p95(times_ms(lambda: view.search(next(asked))))
        yield "H16.18", statistics.median(times_ms(lambda: view.add_many([next(said) for _ in range(100)]), 30))


def procedural_tier(folder: Path) -> Measured:
    numbers = count()

    def fact() -> Fact:
        number = next(numbers)
        return Fact(subject=f"server {number}", predicate="runs in", object=f"zone {number % 20}")

    with wellkept.open(folder / "facts.db") as memories:
        view = memories.view(user="ada")
        made = (fact() for _ in count())
        filled(view, (NewMemory(content=f"{one.subject} {one.predicate} {one.object}", fact=one) for one in made))
        parts = (fact() for _ in count())
        yield "H16.22", p95(times_ms(lambda: add_fact(view, next(parts)), 50))
        yield "H16.23", p95(times_ms(lambda: view.facts.find(subject=f"server {next(numbers) % AMONG}"), 30))
        yield "H16.24", p95(times_ms(lambda: view.facts.find(predicate="runs in"), 30))
        yield "H16.25", len(view.facts.find(predicate="runs in"))


def add_fact(view: View, fact: Fact) -> None:
    view.facts.add(fact.subject, fact.predicate, fact.object)


def plain_files(folder: Path) -> Measured:
    session = folder / "session"
    with redirect_stdout(sys.stderr):
        jsonl.fill(session)
    with wellkept.open(f"jsonl:{session}", embedder=None) as memories:
        view, writer = memories.view(user="ada", session="monday"), jsonl.Writer(SEED)
        yield "J14.3", statistics.median(times_ms(memories.rebuild, 5))
        yield "J14.1", p95(times_ms(lambda: view.add_many([writer.entry()])))
        yield "J14.2", max(p95(times_ms(partial(ask, view), 20)) for _, ask in jsonl.queries())
    together = folder / "together"
    wellkept.open(f"jsonl:{together}", embedder=None).close()
    wrote = jsonl.run_together(together, 8, [f"writer{number}" for number in range(10)], ready_s=8)
    yield "J14.4", 100 * sum(one["failed"] for one in wrote) / sum(one["locks"] for one in wrote)


MEASURES: Mapping[str, Measure] = {
    "W8": working_memory,
    "L15": long_term,
    "P8": snapshots,
    "H16": tiers,
    "J14": plain_files,
}
"""By requirement: what measures its floors."""


def chosen(only: Sequence[str]) -> list[Floor]:
    """The floors of some requirements; all if none is named."""
    return [floor for floor in FLOORS if not only or floor.id.partition(".")[0] in only]


def figures(measures: Mapping[str, Measure], only: Sequence[str], folder: Path) -> dict[str, float]:
    """What was measured for some requirements, all if none is named: each in a new folder that is gone afterwards."""
    found: dict[str, float] = {}
    for requirement, measure in measures.items():
        if not only or requirement in only:
            print(f"measuring {requirement}", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=folder) as place:
                found |= measure(Path(place))
    return found


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="where the file of LongMemEval is")
    parser.add_argument("--only", action="append", choices=MEASURES, default=[], help="a requirement; may be repeated")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where to measure: the disk matters")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows into a file as well")
    arguments = parser.parse_args()
    measured = figures(MEASURES, arguments.only, arguments.folder)
    if arguments.data is not None and "L15" in (arguments.only or MEASURES):
        measured |= long_conversations(arguments.data)
    results = rows(chosen(arguments.only), measured)
    print(table(results))
    if arguments.json is not None:
        arguments.json.write_text(as_json(results) + "\n", encoding="utf-8")
    return exit_code(results)


if __name__ == "__main__":
    sys.exit(main())
