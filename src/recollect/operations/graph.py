"""The verb that shows the references between memories: graph."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.errors import InvalidInput, NotFound
from recollect.operations.verb import Caller, Example, Needs, Takes, Verb, argument, option
from recollect.types import Memory, MemoryType

if TYPE_CHECKING:
    from recollect.memories.view import View

_PAGE = 100
_LABEL = 60


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
