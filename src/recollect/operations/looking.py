"""Verbs that show what happened and how things hang together: history, watch, stats, graph."""

from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from recollect.errors import InvalidInput, InvalidLayer, NotFound
from recollect.operations.verb import Caller, Example, Needs, Takes, Verb, argument, option
from recollect.types import Filter, Layer, Memory, MemoryType, Stats, Version

if TYPE_CHECKING:
    from recollect.memories.view import View

_PAGE = 100
_LABEL = 60
_PERIODS = 30
_STEPS = (timedelta(hours=1), timedelta(days=1), timedelta(weeks=1), timedelta(days=30), timedelta(days=365))


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions, the oldest first. ``last`` is the sequence to go on from; what was given if there are none."""

    versions: tuple[Version, ...]
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Whose history."""

    id: str = argument("the id of the memory")


def _history(caller: Caller, given: History) -> Versions:
    found = tuple(caller.view.history(given.id))
    if not found:
        raise NotFound(
            f"no memory {given.id[:64]!r} is visible here",
            operation="history",
            details={"memory_id": given.id[:64]},
            hint="check the id and the identity",
        )
    return Versions(versions=found, last=found[-1].sequence)


HISTORY = Verb(
    name="history",
    input=History,
    output=Versions,
    run=_history,
    needs=Needs.READ,
    errors=(NotFound,),
    examples=(Example(line="recollect history $ID", says="the oldest first; erased ones say only that they were"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """From where to go on."""

    after: int = option("what was written behind this sequence", 0)
    limit: int = option("at most so many at once", 1_000, short="n")
    layers: tuple[Layer, ...] = option("only of this layer", (), flag="layer", short="l")


def _watch(caller: Caller, given: Watch) -> Versions:
    found = tuple(caller.view.changes(after=given.after, limit=given.limit, layers=given.layers or None))
    return Versions(versions=found, last=found[-1].sequence if found else given.after)


WATCH = Verb(
    name="watch",
    input=Watch,
    output=Versions,
    run=_watch,
    needs=Needs.READ,
    errors=(InvalidLayer,),
    live=True,
    interrupted="go on with --after and the last sequence you saw",
    examples=(
        Example(line="recollect watch --once", says="what was written so far"),
        Example(line="recollect watch --once --after 120 --json", says="a line of JSON for each change since"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """How many memories were recorded from ``start`` until ``end``."""

    start: datetime
    end: datetime
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The statistics of a view, and when its memories were recorded."""

    stats: Stats
    timeline: tuple[Period, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Of which memories."""

    layers: tuple[Layer, ...] = option("only of this layer", (), flag="layer", short="l")


def _stats(caller: Caller, given: Summary) -> Statistics:
    view, layers = caller.view, given.layers or None
    stats = view.stats(layers=layers)
    if stats.oldest is None or stats.newest is None:
        return Statistics(stats=stats)
    timeline = []
    for start, end in periods(stats.oldest, stats.newest):
        within = Filter(created_after=start, created_before=end)
        timeline.append(Period(start=start, end=end, count=view.count(filter=within, layers=layers)))
    return Statistics(stats=stats, timeline=tuple(timeline))


def periods(oldest: datetime, newest: datetime) -> list[tuple[datetime, datetime]]:
    """Equal periods that hold both times: hours, days, weeks, months or years, as many as can be looked at.

    >>> from datetime import UTC
    >>> len(periods(datetime(2030, 1, 1, 9, tzinfo=UTC), datetime(2030, 1, 7, 8, tzinfo=UTC)))
    7
    """
    wide = (step for step in _STEPS if (newest - oldest) / step <= _PERIODS - 2)
    step = next(wide, (newest - oldest) / (_PERIODS - 2))
    start = oldest.replace(minute=0, second=0, microsecond=0)
    if step >= timedelta(days=1):
        start = start.replace(hour=0)
    found = []
    while start <= newest:
        found.append((start, start + step))
        start += step
    return found


STATS = Verb(
    name="stats",
    input=Summary,
    output=Statistics,
    run=_stats,
    needs=Needs.READ,
    errors=(InvalidLayer,),
    examples=(Example(line="recollect stats --layer user", says="with a timeline, and bars for types and tags"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory in a graph."""

    id: str
    label: str
    type: MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A reference from one memory to another."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Memories and the references between them. ``complete`` is false if there were more than asked for."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Where to start, and how far to go."""

    ids: tuple[str, ...] = argument(
        "start here; without any, everything that refers to something", (), takes=Takes.EACH
    )
    depth: int = option("how many references to follow", 3)
    limit: int = option("at most so many memories", 200, short="n")


def _graph(caller: Caller, given: Drawn) -> Graph:
    for name, value, most in (("depth", given.depth, 10), ("limit", given.limit, 10_000)):
        if not 1 <= value <= most:
            raise InvalidInput(
                f"{name} is {value}, not between 1 and {most}",
                operation="graph",
                details={"field": name},
                hint="choose one in between",
            )
    view = caller.view
    found, complete = _reached(view, given) if given.ids else _referring(view, given.limit)
    edges = [
        Edge(source=memory.id, target=target)
        for memory in found.values()
        for target in memory.references
        if target in found
    ]
    nodes = (Node(id=memory.id, label=_label(memory), type=memory.type) for memory in found.values())
    return Graph(nodes=tuple(nodes), edges=tuple(edges), complete=complete)


def _reached(view: "View", given: Drawn) -> tuple[dict[str, Memory], bool]:
    found = view.get_many(given.ids)
    if len(found) < len(set(given.ids)):
        missing = next(id for id in given.ids if id not in found)
        raise NotFound(
            f"no memory {missing[:64]!r} is visible here",
            operation="graph",
            details={"memory_id": missing[:64]},
            hint="check the id and the identity",
        )
    frontier = deque((memory, 0) for memory in found.values())
    while frontier:
        memory, depth = frontier.popleft()
        if depth == given.depth:
            continue
        for one in view.get_many(id for id in memory.references if id not in found).values():
            if len(found) >= given.limit:
                return found, False
            found[one.id] = one
            frontier.append((one, depth + 1))
    return found, True


def _referring(view: "View", limit: int) -> tuple[dict[str, Memory], bool]:
    """The newest memories that refer to something, with what they refer to."""
    found: dict[str, Memory] = {}
    cursor = None
    while True:
        page = view.list(limit=_PAGE, cursor=cursor)
        for memory in page:
            if not memory.references:
                continue
            others = view.get_many(id for id in memory.references if id not in found)
            if len({memory.id, *others, *found}) > limit:
                return found, False
            found[memory.id] = memory
            found.update(others)
        cursor = page.next_cursor
        if cursor is None:
            return found, True


def _label(memory: Memory) -> str:
    text = memory.title or " ".join(memory.content[: 4 * _LABEL].split())
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


GRAPH = Verb(
    name="graph",
    input=Drawn,
    output=Graph,
    run=_graph,
    needs=Needs.READ,
    errors=(NotFound,),
    examples=(
        Example(line="recollect graph $ID --depth 2", says="what a memory refers to, as a tree"),
        Example(line="recollect graph --svg memories.svg", says="everything, as a picture"),
    ),
)
