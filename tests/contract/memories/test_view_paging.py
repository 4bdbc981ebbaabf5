"""Cursors: nothing twice, nothing left out, and no use for anything else."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.bad_values import HOSTILE
from tests.support.refusals import refusal
from tests.support.stand_ins import HandClock, one_store, somebody
from wellkept import Filter, Memories, NewMemory, View
from wellkept.errors import InvalidInput
from wellkept.types import Page, SortName

STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "update", "forget", "erase", "restore", "read"]), st.integers(0, 30)), max_size=4
)


def turn(view: View, step: str, number: int) -> str | None:
    """One write of somebody else. Returns the id of a memory that was not there throughout."""
    everything = view.list(limit=100, filter=Filter(include_forgotten=True)).memories
    if step == "add" or not everything:
        return view.add(f"new {number}", importance=number / 30).id
    memory = everything[number % len(everything)]
    if step == "update" and memory.state == "active":
        view.update(memory.id, content=f"changed {number}", importance=number / 30)
    elif step == "read":
        view.get(memory.id)
    elif step == "restore":
        view.restore(memory.id)
        return memory.id
    elif step in ("forget", "erase"):
        view.forget(memory.id, permanent=step == "erase")
        return memory.id
    return None


@pytest.mark.req("L5", "H3")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    count=st.integers(0, 12),
    limit=st.integers(1, 5),
    sort=st.sampled_from(["newest", "oldest"]),
    interruptions=st.lists(STEPS, max_size=8),
)
def test_pages_show_what_stays_exactly_once(
    memories: Memories, count: int, limit: int, sort: SortName, interruptions: list[list[tuple[str, int]]]
) -> None:
    view = somebody(memories)
    present = {memory.id for memory in view.add_many([f"memory {n}" for n in range(count)])}
    seen: list[str] = []
    cursor: str | None = None
    remaining = iter(interruptions)
    while True:
        page = view.list(limit=limit, cursor=cursor, sort_by=sort)
        assert len(page) <= limit
        seen += [memory.id for memory in page]
        cursor = page.next_cursor
        if cursor is None:
            break
        for step, number in next(remaining, []):
            present.discard(turn(view, step, number) or "")
    assert len(set(seen)) == len(seen)
    assert present <= set(seen)


@pytest.mark.req("L5")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    importances=st.lists(st.sampled_from([0.0, 0.1, 0.1 + 0.2, 0.3, 1.0]), min_size=1, max_size=9),
    sort=st.sampled_from(["newest", "oldest", "important"]),
    steps=st.lists(st.tuples(st.sampled_from(["add", "update", "forget"]), st.integers(0, 30)), max_size=4),
)
def test_the_past_does_not_move_while_it_is_read(
    memories: Memories, importances: list[float], sort: SortName, steps: list[tuple[str, int]]
) -> None:
    view = somebody(memories)
    view.add_many([NewMemory(content=str(n), importance=i) for n, i in enumerate(importances)])
    now = view.position()
    expected = [memory.id for memory in view.list(sort_by=sort, limit=100)]
    seen: list[str] = []
    page = view.list(sort_by=sort, limit=2, as_of=now)
    seen += [memory.id for memory in page]
    while page.next_cursor:
        for step, number in steps:
            turn(view, step, number)
        page = view.list(sort_by=sort, limit=2, as_of=now, cursor=page.next_cursor)
        seen += [memory.id for memory in page]
        assert page.total == len(importances)
    assert seen == expected


@pytest.fixture
def page(view: View) -> Page:
    """The first of two pages."""
    view.add_many([NewMemory(content=f"tea {n}", tags=["t"], metadata={"n": 1}) for n in range(4)])
    return view.list(limit=2, filter=Filter(tags=["t"]))


@pytest.mark.req("H3")
def test_a_cursor_goes_on_with_any_limit(view: View, page: Page) -> None:
    for limit in (1, 2, 100):
        rest = view.list(limit=limit, filter={"tags": ["t"]}, cursor=page.next_cursor)
        assert [memory.content for memory in rest] == ["tea 1", "tea 0"][:limit]
        assert rest.total == 4


OTHER: list[dict[str, Any]] = [
    {"filter": None},
    {"filter": {"tags": ["t", "u"]}},
    {"filter": {"any_tags": ["t"]}},
    {"filter": {"tags": ["t"], "types": ["fact"]}},
    {"filter": {"tags": ["t"], "metadata": {"n": 1}}},
    {"filter": {"tags": ["t"], "include_forgotten": True}},
    {"filter": {"tags": ["t"], "content_contains": "tea"}},
    {"filter": {"tags": ["t"], "text": "tea"}},
    {"sort_by": "oldest"},
    {"sort_by": "important"},
    {"sort_by": "relevance"},
    {"layers": ["user"]},
    {"layers": []},
    {"as_of": datetime(2030, 1, 1, tzinfo=UTC)},
]


@pytest.mark.req("H3")
@one_store
def test_a_cursor_belongs_to_one_listing(view: View, page: Page) -> None:
    same: dict[str, Any] = {"limit": 2, "cursor": page.next_cursor, "filter": {"tags": ["t"]}}
    refusals = {str(other): refusal(view.list, **same | other) for other in OTHER}
    wrong = {other: answer for other, answer in refusals.items() if answer != "list: InvalidInput of cursor"}
    assert wrong == {}


@pytest.mark.req("H3")
@one_store
def test_a_cursor_belongs_to_one_view(memories: Memories, page: Page) -> None:
    for ids in ({"user": "bob", "project": "api"}, {"user": "ada"}, {"project": "api"}, {"user": "ada", "team": "api"}):
        with pytest.raises(InvalidInput) as caught:
            memories.view(**ids).list(limit=2, cursor=page.next_cursor, filter={"tags": ["t"]})  # type: ignore[arg-type]  # only ids
        assert caught.value.details["field"] == "cursor"
    same = memories.view(user="ada", project="api").list(limit=2, cursor=page.next_cursor, filter={"tags": ["t"]})
    assert len(same) == 2


@one_store
def test_a_cursor_knows_where_to_go_on(view: View, page: Page) -> None:
    with pytest.raises(InvalidInput) as caught:
        view.list(limit=2, cursor=page.next_cursor, filter={"tags": ["t"]}, offset=1)
    assert caught.value.details["field"] == "offset"


@pytest.mark.req("H3")
def test_a_cursor_with_a_relative_time_goes_on_as_time_goes_on(view: View, page: Page, clock: HandClock) -> None:
    first = view.list(limit=3, filter={"within": "1h"})
    clock.forward(minutes=5)
    rest = view.list(limit=3, filter={"within": "1h"}, cursor=first.next_cursor)
    assert [memory.content for memory in (*first, *rest)] == ["tea 3", "tea 2", "tea 1", "tea 0"]


@pytest.mark.req("H3")
@one_store
def test_garbage_is_no_cursor(view: View, page: Page) -> None:
    ask = partial(view.list, limit=2, filter={"tags": ["t"]})
    refusals = {ascii(hostile)[:80]: refusal(ask, cursor=hostile) for hostile in HOSTILE[1:]}
    wrong = {hostile: answer for hostile, answer in refusals.items() if answer != "list: InvalidInput of cursor"}
    assert wrong == {}
