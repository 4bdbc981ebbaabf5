"""Pictures keep their size and leave nothing out, whatever the numbers are."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from wellkept import MemoryType
from wellkept.cli import charts, graph_views
from wellkept.cli.screen import one_line, safe, screen_of
from wellkept.operations.graph import Edge, Graph, Node

NUMBERS = st.floats(allow_nan=False)


@given(NUMBERS, st.integers(0, 60), st.booleans())
def test_a_bar_is_as_wide_as_it_is_told(fraction: float, width: int, plain: bool) -> None:
    drawn = charts.bar(fraction, width, plain=plain)
    assert len(drawn) == width
    assert drawn.isascii() or not plain
    if fraction >= 1:
        assert drawn in ("█" * width, "#" * width)
    if fraction <= 0:
        assert set(drawn) <= {" ", "."}


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_is_never_a_shorter_bar(one: float, other: float) -> None:
    low, high = sorted([one, other])
    assert len(charts.bar(low, 20).rstrip()) <= len(charts.bar(high, 20).rstrip())


@given(st.dictionaries(st.text(max_size=5), st.floats(-1e9, 1e9)), st.integers(1, 30))
def test_every_part_of_a_score_has_a_bar(parts: dict[str, float], width: int) -> None:
    found = charts.signed_bars(parts, width)
    assert {name: value for name, _, value in found} == parts
    assert all(len(drawn) == width for _, drawn, _ in found)
    sizes = [abs(value) for *_, value in found]
    assert sizes == sorted(sizes, reverse=True)


@given(st.lists(st.integers(0, 10**9)), st.booleans())
def test_a_timeline_has_a_letter_for_each_period_and_shows_what_is_not_nothing(counts: list[int], plain: bool) -> None:
    drawn = charts.sparkline(counts, plain=plain)
    assert [letter == " " for letter in drawn] == [count == 0 for count in counts]
    assert drawn.isascii() or not plain


@pytest.mark.parametrize(
    ("seconds", "says"), [(0, "now"), (90, "1min ago"), (7_300, "2h ago"), (-90_000, "in 1d"), (4e7, "1y ago")]
)
def test_times_are_told_as_people_do(seconds: float, says: str) -> None:
    now = datetime(2030, 1, 8, tzinfo=UTC)
    assert charts.ago(now - timedelta(seconds=seconds), now) == says


@given(st.integers(0, 10**18))
def test_sizes_are_short(count: int) -> None:
    assert len(charts.size(count)) <= 12


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_shown(text: str) -> None:
    shown = safe(text)
    assert not set(shown) & {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x2066)}
    assert len(shown) == len(text)
    assert "\n" not in one_line(text)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    ids = [f"id{number}" for number in range(draw(st.integers(0, 8)))]
    labels = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
    nodes = [Node(id=id, label=draw(labels), type=draw(st.sampled_from(MemoryType))) for id in ids]
    pairs = st.tuples(st.sampled_from(ids), st.sampled_from(ids)) if ids else st.nothing()
    edges = draw(st.lists(pairs, unique=True, max_size=20)) if ids else []
    return Graph(nodes=tuple(nodes), edges=tuple(Edge(source=one, target=other) for one, other in edges))


@given(graphs(), st.booleans())
def test_a_tree_shows_every_memory_and_every_reference(graph: Graph, plain: bool) -> None:
    branches = list(graph_views.tree(graph, plain=plain))
    opened = [branch.node.id for branch in branches if not branch.repeated]
    assert sorted(opened) == sorted(node.id for node in graph.nodes)
    indented = [branch for branch in branches if branch.prefix]
    assert len(indented) == len(graph.edges)


@given(graphs())
def test_a_picture_is_svg_with_every_memory_and_every_reference(graph: Graph) -> None:
    root = ElementTree.fromstring(graph_views.svg(graph))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}g")) == len(graph.nodes)
    assert len(root.findall(f"{space}path")) == len(graph.edges)
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    for box in root.iter(f"{space}rect"):
        assert float(box.get("x", 0)) + float(box.attrib["width"]) <= width
        assert float(box.get("y", 0)) + float(box.attrib["height"]) <= height


def test_long_chains_of_references_can_be_drawn() -> None:
    nodes = tuple(Node(id=str(number), label="x", type=MemoryType.FACT) for number in range(3_000))
    edges = tuple(Edge(source=str(number), target=str(number + 1)) for number in range(2_999))
    graph = Graph(nodes=nodes, edges=edges)
    assert len(list(graph_views.tree(graph))) == len(nodes)
    assert len(graph_views.columns(graph)) == len(nodes)


@given(st.text(st.sampled_from("ab 日本e\u0301…"), max_size=40), st.integers(1, 30))
def test_what_is_cut_fits_and_is_the_beginning(text: str, room: int) -> None:
    short = charts.cut(text, room)
    assert cell_len(short) <= room
    assert short == text or (short[-1] == "…" and text.startswith(short[:-1]) and cell_len(text) > room)


@pytest.mark.parametrize(
    ("start", "end", "begins", "ends"),
    [
        ((0, 0), (310, 62), "M240 22", "310 84"),
        ((310, 62), (0, 0), "M310 84", "240 22"),
        ((0, 0), (0, 62), "M0 22", "0 84"),
        ((0, 0), (0, 0), "M0 14", "0 30"),
    ],
)
def test_references_lead_from_box_to_box(start: tuple[int, int], end: tuple[int, int], begins: str, ends: str) -> None:
    path = graph_views._curve(start, end)
    assert f'd="{begins}C' in path
    assert f' {ends}" fill' in path


def test_a_reference_past_a_box_goes_around_it() -> None:
    assert "66" in graph_views._curve((0, 0), (620, 0))
    assert "66" not in graph_views._curve((0, 0), (310, 0))


@pytest.mark.parametrize(("told", "width"), [("", 80), ("120", 120), ("3", 20), ("wide", 80), ("0", 80), ("-5", 80)])
def test_a_screen_is_as_wide_as_it_is_told(told: str, width: int) -> None:
    assert screen_of(io.StringIO(), {"COLUMNS": told}).width == width
