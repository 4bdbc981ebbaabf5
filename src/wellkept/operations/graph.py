"""The verb that shows the references between memories: graph."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wellkept import fields
from wellkept.errors import NotFound
from wellkept.operations.conditions import IDS, MANY
from wellkept.operations.verb import Caller, Example, Takes, Verb, argument, option, result
from wellkept.types import Memory, MemoryType
from wellkept.types.bounds import Bounds

if TYPE_CHECKING:
    from wellkept.memories.view import View

_PAGE = 100
_LABEL = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory in a graph."""

    id: str = result("The id of the memory.", bounds=fields.ID)
    label: str = result("The title of the memory, or the beginning of its content.", bounds=fields.LINE)
    type: MemoryType = result("The type of the memory.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A reference from one memory to another."""

    source: str = result("The id of the memory that refers to another.", bounds=fields.ID)
    target: str = result("The id of the memory that is referred to.", bounds=fields.ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Memories and the references between them. ``complete`` is false if there were more than asked for."""

    nodes: tuple[Node, ...] = result("The memories.", bounds=MANY)
    edges: tuple[Edge, ...] = result("The references between the memories.", bounds=MANY)
    complete: bool = result("Whether all memories are included; false if there were more than the limit.", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Where to start, and how far to follow references."""

    ids: tuple[str, ...] = argument(
        "Ids of the memories to start from; without ids, all memories that refer to others.",
        (),
        takes=Takes.EACH,
        bounds=IDS,
    )
    depth: int = option("How many references to follow.", 3, bounds=Bounds(minimum=1, maximum=10))
    limit: int = option("The largest number of memories.", 200, bounds=Bounds(minimum=1, maximum=10_000), short="n")


def _graph(caller: Caller, given: Walk) -> Graph:
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


def _reached(view: "View", given: Walk) -> tuple[dict[str, Memory], bool]:
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
    input=Walk,
    output=Graph,
    run=_graph,
    method="View.get_many",
    errors=(NotFound,),
    examples=(
        Example(line="wellkept graph $ID --depth 2", says="what a memory refers to, as a tree"),
        Example(line="wellkept graph --svg memories.svg", says="everything, as a picture"),
    ),
)
