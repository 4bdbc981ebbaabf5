"""The graph of references as a tree for a terminal and as an SVG file."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

from wellkept.cli import charts
from wellkept.operations.graph import Graph, Node
from wellkept.text import plurals
from wellkept.types import MemoryType

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _EDGE = 240, 44, 70, 18, 40
_LETTERS = 34
_COLOURS: Mapping[MemoryType, str] = MappingProxyType(
    {
        MemoryType.FACT: "#dbeafe",
        MemoryType.EVENT: "#fef3c7",
        MemoryType.INSIGHT: "#ede9fe",
        MemoryType.PREFERENCE: "#fce7f3",
        MemoryType.CORRECTION: "#fee2e2",
        MemoryType.CONVERSATION: "#f3f4f6",
        MemoryType.DECISION: "#dcfce7",
        MemoryType.FINDING: "#cffafe",
    }
)


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of the tree: its prefix, the memory, and whether the memory was shown before."""

    prefix: str
    node: Node
    repeated: bool


def tree(graph: Graph, *, plain: bool = False) -> Iterator[Branch]:
    """The graph as a tree from the memories without incoming references; a repeated memory is not expanded again."""
    fork, last, line, space = ("|- ", "`- ", "|  ", "   ") if plain else ("├─ ", "└─ ", "│  ", "   ")
    nodes = {node.id: node for node in graph.nodes}
    children = _children(graph)
    seen: set[str] = set()
    for root in roots(graph):
        if root in seen:
            continue
        # A stack, because chains of references may be longer than Python's own stack.
        stack = [(root, "", "")]
        while stack:
            id, prefix, below = stack.pop()
            yield Branch(prefix, nodes[id], id in seen)
            if id in seen:
                continue
            seen.add(id)
            under = children[id]
            for place, child in reversed(list(enumerate(under, 1))):
                ends = place == len(under)
                stack.append((child, below + (last if ends else fork), below + (space if ends else line)))


def _children(graph: Graph) -> defaultdict[str, list[str]]:
    children: defaultdict[str, list[str]] = defaultdict(list)
    for edge in graph.edges:
        children[edge.source].append(edge.target)
    return children


def roots(graph: Graph) -> list[str]:
    """Where to start to reach everything: memories without incoming references, then the others, for cycles."""
    targets = {edge.target for edge in graph.edges if edge.target != edge.source}
    return [node.id for node in graph.nodes if node.id not in targets] + [
        node.id for node in graph.nodes if node.id in targets
    ]


def columns(graph: Graph) -> list[list[Node]]:
    """The memories by their distance from a root, one column for each distance."""
    nodes = {node.id: node for node in graph.nodes}
    children = _children(graph)
    depth: dict[str, int] = {}
    for root in roots(graph):
        frontier = [root] if root not in depth else []
        level = 0
        while frontier:
            for id in frontier:
                depth[id] = level
            level += 1
            following = dict.fromkeys(child for id in frontier for child in children[id])
            frontier = [id for id in following if id not in depth]
    found: list[list[Node]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for id, level in depth.items():
        found[level].append(nodes[id])
    return found


def svg(graph: Graph) -> str:
    """The graph as a self-contained SVG: boxes in columns, references as curves."""
    placed = columns(graph)
    places = {
        node.id: (_EDGE + column * (_WIDTH + _GAP_X), _EDGE + row * (_HEIGHT + _GAP_Y))
        for column, nodes in enumerate(placed)
        for row, node in enumerate(nodes)
    }
    width = 2 * _EDGE + max(1, len(placed)) * (_WIDTH + _GAP_X) - _GAP_X
    height = 2 * _EDGE + max([1, *map(len, placed)]) * (_HEIGHT + _GAP_Y) - _GAP_Y
    curves = [_curve(places[edge.source], places[edge.target]) for edge in graph.edges]
    boxes = [_box(node, places[node.id]) for nodes in placed for node in nodes]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-size="12">',
            f"<title>{plurals.memories(len(graph.nodes))} and"
            f" {plurals.counted(len(graph.edges), 'reference', 'references')} between them</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7"'
            ' orient="auto"><path d="M0 0L8 4L0 8z" fill="#6b7280"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *curves,
            *boxes,
            "</svg>\n",
        ]
    )


def _curve(start: Sequence[int], end: Sequence[int]) -> str:
    """A reference as a curve: to the right, to the left, or within a column; it bends around a box in between."""
    (x1, y1), (x2, y2) = start, end
    y1, y2 = y1 + _HEIGHT // 2, y2 + _HEIGHT // 2
    sag = 0
    if x1 == x2:  # on the left side of the column; a loop if the memory refers to itself
        bend1 = bend2 = x1 - _GAP_X // 2
        y1, y2 = (y1 - 8, y2 + 8) if y1 == y2 else (y1, y2)
    else:
        ahead = x1 < x2
        x1, x2 = (x1 + _WIDTH, x2) if ahead else (x1, x2 + _WIDTH)
        between = abs(x2 - x1)
        bend = max(_GAP_X // 2, between // 2) * (1 if ahead else -1)
        bend1, bend2 = x1 + bend, x2 - bend
        sag = _HEIGHT if between > _GAP_X and y1 == y2 else 0
    path = f"M{x1} {y1}C{bend1} {y1 + sag} {bend2} {y2 + sag} {x2} {y2}"
    return f'<path d="{path}" fill="none" stroke="#6b7280" marker-end="url(#head)"/>'


def _box(node: Node, place: Sequence[int]) -> str:
    x, y = place
    label = "".join(letter if letter.isprintable() else "�" for letter in node.label)
    short = charts.cut(label, _LETTERS)
    return (
        f"<g><title>{escape(label)} ({escape(node.id)})</title>"
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{_COLOURS[node.type]}"'
        f' stroke="#9ca3af"/><text x="{x + 10}" y="{y + 19}" fill="#111827">{escape(short)}</text>'
        f'<text x="{x + 10}" y="{y + 35}" fill="#4b5563" font-size="10">{node.type.value}</text></g>'
    )
