"""Listing: every condition, every order, references, limits."""

from datetime import timedelta
from typing import Any

import pytest

from tests.contract.memories.test_view_adding import EVERYTHING
from tests.support.refusals import refusal
from tests.support.stand_ins import HandClock, one_store
from wellkept import Filter, Memories, Memory, NewMemory, View
from wellkept.testing.builders import START
from wellkept.types import Layers, Page, Sort, SortName

DAY = timedelta(days=1)
# Conditions that the memory with every field meets, and such that it does not.
MET: list[dict[str, Any]] = [
    {"tiers": "personal"},
    {"keyed": ["nothing", "adr-042"]},
    {"types": ["decision", "fact"]},
    {"types": "decision"},
    {"tags": ["database", "architecture"]},
    {"any_tags": ["nothing", "architecture.storage"]},
    {"no_tags": ["arch", "architecture.storage.disk"]},
    {"min_importance": 0.9},
    {"min_trust": 0.1},
    {"created_after": START, "created_before": START + DAY},
    {"occurred_after": START - 4 * DAY, "occurred_before": START - 3 * DAY},
    {"within": "1h"},
    {"within": DAY},
    {"content_contains": "POSTGRESQL\nFOR"},
    {"text": "postgres* F*R"},
    {"authors": ["bob", "ada"]},
    {"source_type": "conversation"},
    {"has_pointer": True},
    {"metadata": {"n": 1.0, "flag": True}},
    {"metadata": {"list": [1.5, None, {"deep": "ü"}]}},
]
STATES = ("include_forgotten", "include_archived", "include_superseded", "include_quarantined")
UNMET: list[dict[str, Any]] = [
    {"types": ["fact"]},
    {"types": []},
    {"tiers": ["semantic", "archival"]},
    {"tags": ["database", "nothing"]},
    {"tags": ["architecture.storage.disk"]},
    {"any_tags": ["arch", "Database"]},
    {"no_tags": ["nothing", "architecture"]},
    {"min_importance": 0.91},
    {"min_trust": 0.11},
    {"created_after": START + timedelta(microseconds=1)},
    {"created_before": START},
    {"occurred_after": START - 3 * DAY},
    {"occurred_before": START - 3 * DAY - timedelta(microseconds=1)},
    {"content_contains": "postgresql for"},
    {"content_contains": "%"},
    {"text": "postgres"},
    {"text": "postgres* nothing"},
    {"authors": ["Ada", "bob"]},
    {"source_type": "manual"},
    {"has_pointer": False},
    {"metadata": {"flag": 1}},
    {"metadata": {"n": 1, "missing": None}},
    {"keyed": ["adr-043"]},
]


@pytest.mark.req("L5", "H3", "J5")
def test_conditions(view: View) -> None:
    memory = view.add(**EVERYTHING, dangling=True)
    wrong = {}
    for wanted, met in [(wanted, True) for wanted in MET] + [(wanted, False) for wanted in UNMET]:
        ids = [memory.id] if met else []
        expected = {"listed": ids, "total": len(ids), "count": len(ids), "hits": ids, "past": ids}
        for filter in (Filter(**wanted), wanted):
            page = view.list(filter=filter)
            answers = {
                "listed": [one.id for one in page],
                "total": page.total,
                "count": view.count(filter=filter),
                "hits": [hit.memory.id for hit in view.search("postgresql", filter=filter)],
                "past": [one.id for one in view.list(filter=filter, as_of=view.position())],
            }
            if answers != expected:
                wrong[f"{type(filter).__name__} of {wanted}"] = answers
    assert wrong == {}


def test_every_condition_is_tried() -> None:
    tried = {name for one in [*MET, *UNMET] for name in one}
    assert tried == set(Filter.__dataclass_fields__) - {"references", "max_depth", *STATES}


@pytest.mark.req("L5")
def test_within_moves_on_with_the_clock(view: View, clock: HandClock) -> None:
    view.add("old")
    clock.forward(hours=2)
    view.add("new")
    assert [m.content for m in view.list(filter={"within": "1h"})] == ["new"]
    assert view.count(filter={"within": "last 2 hours"}) == 2
    assert view.count(filter={"within": "3h", "created_after": clock.time}) == 1


def build(view: View, clock: HandClock) -> list[Memory]:
    """Five memories: the importances 3 1 5 1 3, read 2 0 1 0 3 times, last at the minutes 7 - 3 - 9."""
    memories = view.add_many([NewMemory(content=str(n), importance=i / 10) for n, i in enumerate([3, 1, 5, 1, 3])])
    for minute, number in ((1, 4), (2, 4), (3, 2), (5, 0), (7, 0), (9, 4)):
        clock.time = START + timedelta(minutes=minute)
        view.get(memories[number].id)
    return memories


def texts(page: Page) -> str:
    return "".join(memory.content for memory in page)


ORDERS: dict[SortName, str] = {
    "newest": "43210",
    "oldest": "01234",
    "important": "24031",
    "most_accessed": "40231",
    "recently_accessed": "40231",
}


@pytest.mark.req("L5", "L9")
def test_orders(view: View, clock: HandClock) -> None:
    build(view, clock)
    wrong = {}
    for sort, order in ORDERS.items():
        listed = {
            "by name": texts(view.list(sort_by=sort)),
            "by value": texts(view.list(sort_by=Sort(sort))),
            "from the second": texts(view.list(sort_by=sort, offset=1, limit=3)),
        }
        pages = [view.list(sort_by=sort, limit=2)]
        while pages[-1].next_cursor:
            pages.append(view.list(sort_by=sort, limit=2, cursor=pages[-1].next_cursor))
        listed["page by page"] = "".join(map(texts, pages))
        expected = dict.fromkeys(listed, order) | {"from the second": order[1:4]}
        if sort in ("newest", "oldest", "important"):
            listed["in the past"] = texts(view.list(sort_by=sort, as_of=view.position()))
            expected["in the past"] = order
        if listed != expected or [page.total for page in pages] != [5, 5, 5]:
            wrong[sort] = listed, [page.total for page in pages]
    assert wrong == {}


@pytest.mark.req("L5")
def test_newest_is_an_order_of_recording(view: View, clock: HandClock) -> None:
    first = view.add("first")
    clock.time = START - DAY
    view.add("second, with the clock set back")
    clock.time = START + DAY
    view.update(first.id, content="first, updated")
    assert [m.content[:6] for m in view.list()] == ["second", "first,"]
    assert [m.content[:6] for m in view.list(sort_by="oldest")] == ["first,", "second"]


@pytest.mark.req("L5", "H3")
def test_limits_offsets_and_totals(view: View) -> None:
    view.add_many([f"memory {n}" for n in range(120)])
    assert len(view.list()) == 50
    assert len(view.list(limit=100)) == 100
    assert view.list().total == view.count() == 120
    assert [m.content for m in view.list(offset=119)] == ["memory 0"]
    past_the_end = view.list(offset=120)
    assert (past_the_end.memories, past_the_end.next_cursor, past_the_end.total) == ((), None, 120)
    exact = view.list(limit=100, offset=20)
    assert (len(exact), exact.next_cursor) == (100, None)
    assert [m.content for m in view.list(limit=1)] == ["memory 119"]


@pytest.mark.req("L5", "H3")
@one_store
def test_a_page_has_one_to_a_hundred(view: View) -> None:
    view.add("x")
    limits: tuple[Any, ...] = (0, 101, -1, True, "5", 5.0)
    refusals = {repr(limit): refusal(view.list, limit=limit) for limit in limits}
    assert refusals == dict.fromkeys(refusals, "list: InvalidInput of limit")


@pytest.mark.req("L5", "L7")
def test_forgotten_memories_are_listed_on_request(view: View) -> None:
    one, _, three = view.add_many(["one", "two", "three"])
    view.forget(one.id)
    view.forget(three.id, permanent=True)
    assert [m.content for m in view.list()] == ["two"]
    assert [m.content for m in view.list(filter=Filter(include_forgotten=True))] == ["two", "one"]
    assert view.count(filter=Filter(include_forgotten=True)) == 2
    assert [m.content for m in view.list(filter=Filter(include_forgotten=True, content_contains="one"))] == ["one"]


# -- references -----------------------------------------------------------------------------------------------


def chain(view: View) -> dict[str, Memory]:
    """a -> b -> c -> d -> a, and c -> e, and a leaf f."""
    made: dict[str, Memory] = {}
    for name, then in (("f", ""), ("e", ""), ("d", ""), ("c", "de"), ("b", "c"), ("a", "b")):
        made[name] = view.add(name, references=[made[one].id for one in then])
    view.update(made["d"].id, references=[made["a"].id])
    return made


def reached(view: View, start: list[str], depth: int) -> str:
    page = view.list(filter=Filter(references=start, max_depth=depth))
    return "".join(sorted(m.content for m in page))


@pytest.mark.req("J5", "J11")
def test_references_are_followed_to_a_depth(view: View) -> None:
    made = chain(view)
    expected = {
        ("a", 1): "b",
        ("a", 2): "bc",
        ("a", 3): "bcde",
        ("a", 4): "bcde",
        ("a", 10): "bcde",
        ("d", 1): "a",
        ("d", 3): "abc",
        ("ad", 1): "b",
        ("ce", 1): "d",
        ("f", 10): "",
    }
    assert {
        (start, depth): reached(view, [made[name].id for name in start], depth) for start, depth in expected
    } == expected


@pytest.mark.req("J5")
def test_references_combine_with_other_conditions(view: View) -> None:
    made = chain(view)
    wanted = Filter(references=[made["a"].id], max_depth=5, content_contains="E")
    assert [m.content for m in view.list(filter=wanted)] == ["e"]
    assert view.count(filter=wanted) == 1
    assert [hit.memory.content for hit in view.search("e c", filter=wanted)] == ["e"]
    assert view.count(filter={"references": made["a"].id}) == 1
    assert view.count(filter={"references": []}) == view.count(filter={"references": ["missing"]}) == 0


@pytest.mark.req("J5", "L11")
def test_references_never_lead_through_foreign_memories(memories: Memories, view: View) -> None:
    bob = memories.view(user="bob")
    mine = view.add("mine")
    foreign = bob.add("bob's", references=[mine.id], dangling=True)
    start = view.add("start", references=[foreign.id], dangling=True)
    assert reached(view, [start.id], 10) == ""
    assert reached(view, [foreign.id], 10) == ""
    assert reached(view, [foreign.id, start.id], 10) == ""
    assert reached(bob, [foreign.id], 10) == ""
    shared = memories.view(user="bob", project="api")
    team = shared.add("shared", layer="project", references=[foreign.id, mine.id], dangling=True)
    assert reached(view, [team.id], 10) == "mine"


@pytest.mark.req("J5")
def test_forgotten_memories_are_not_reached(view: View) -> None:
    last = view.add("last")
    middle = view.add("middle", references=[last.id])
    first = view.add("first", references=[middle.id])
    view.forget(last.id)
    assert reached(view, [first.id], 3) == "middle"
    view.restore(last.id)
    view.forget(middle.id, permanent=True)
    assert reached(view, [first.id], 3) == ""


# -- layers ---------------------------------------------------------------------------------------------------


@pytest.mark.req("H1", "H4")
def test_layers_narrow_what_is_seen(memories: Memories) -> None:
    view = memories.view(agent="a", user="u", session="s", project="p")
    for layer in ("agent", "user", "session", "project"):
        view.add(f"tea of {layer}", layer=layer)
    narrowings: tuple[tuple[Layers | None, list[str]], ...] = (
        (None, ["agent", "project", "session", "user"]),
        (["agent"], ["agent"]),
        ("user", ["user"]),
        (["project", "session"], ["project", "session"]),
        ([], []),
    )
    for layers, expected in narrowings:
        names = sorted(m.content.split()[-1] for m in view.list(layers=layers))
        assert names == expected
        assert view.count(layers=layers) == view.stats(layers=layers).active == len(expected)
        results = view.search("tea", layers=layers)
        assert sorted(hit.memory.layer.value for hit in results) == expected
        assert [layer.value for layer in results.layers] == [
            one for one in ("agent", "user", "session", "project") if one in expected
        ]
        assert sorted(version.owner.layer.value for version in view.changes(layers=layers)) == expected


@pytest.mark.req("H1")
def test_views_share_the_layers_that_they_have_in_common(memories: Memories) -> None:
    ada, bob = memories.view(user="ada", team="core"), memories.view(user="bob", team="core")
    shared = ada.add("ours", layer="team")
    ada.add("mine")
    assert [m.content for m in bob.list()] == ["ours"]
    assert bob.update(shared.id, title="by bob").version == 2
    assert bob.forget(shared.id)
    assert ada.get(shared.id) is None


# The default limits of the sources. Long-term memory: MemoryFilter.Limit, GetByTypeAsync and GetByTagAsync 100,
# GetRecentAsync and GetImportantAsync 10, SearchSemanticAsync 10. Layered memory: list 50.
SOURCE_LIMITS: list[tuple[str, dict[str, Any], int]] = [
    ("filter search", {"filter": {"min_importance": 0.1}}, 100),
    ("filter search in another order", {"filter": {"min_importance": 0.1}, "sort_by": "important"}, 100),
    ("by type", {"filter": {"types": ["fact"]}}, 100),
    ("by tag", {"filter": Filter(tags=["t"])}, 100),
    ("most recently accessed", {"sort_by": "recently_accessed"}, 10),
    ("most important", {"sort_by": Sort.IMPORTANT, "filter": Filter()}, 10),
    ("list", {}, 50),
    ("list, the oldest first", {"sort_by": "oldest", "filter": {}}, 50),
]


@pytest.mark.req("L5", "L9", "H3")
def test_pages_have_the_limits_of_the_sources_by_default(view: View) -> None:
    view.add_many([NewMemory(content=f"Note {number}", tags=["t"]) for number in range(105)])
    assert {what: len(view.list(**asked)) for what, asked, _ in SOURCE_LIMITS} == {
        what: limit for what, _, limit in SOURCE_LIMITS
    }
    assert len(view.search("note", min_score=0)) == 10
    first = view.list(sort_by="important")
    second = view.list(sort_by="important", cursor=first.next_cursor)
    assert len({one.id for one in (*first, *second)}) == 20
