"""Scopes: what they show, what they hide, how they merge and how they end."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from tests.support.stand_ins import HandClock
from tests.support.working_memory import counted
from wellkept.errors import InvalidInput, LimitReached, ScopeDisposed
from wellkept.testing.cases import Cases
from wellkept.working import Limits, WorkingMemory, WorkingScope


@pytest.fixture
def working(clock: HandClock) -> WorkingMemory:
    return WorkingMemory("debugger", clock=clock)


USES: dict[str, Callable[[WorkingScope], object]] = {
    "set": lambda scope: scope.set("a", 1),
    "get": lambda scope: scope.get("a"),
    "get_or_set": lambda scope: scope.get_or_set("b", lambda: 1),
    "aget_or_set": lambda scope: asyncio.run(scope.aget_or_set("b", lambda: 1)),
    "contains": lambda scope: scope.contains("a"),
    "in": lambda scope: "a" in scope,
    "remove": lambda scope: scope.remove("a"),
    "entry": lambda scope: scope.entry("a"),
    "all": lambda scope: scope.all(),
    "keys": lambda scope: scope.keys(),
    "get_local": lambda scope: scope.get_local("a"),
    "contains_local": lambda scope: scope.contains_local("a"),
    "local_entries": lambda scope: scope.local_entries(),
    "local_count": lambda scope: scope.local_count,
    "create_scope": lambda scope: scope.create_scope("x"),
    "children": lambda scope: scope.children(),
    "merge_to_parent": lambda scope: scope.merge_to_parent(),
    "with": lambda scope: scope.__enter__(),
}


@pytest.mark.req("W3")
def test_a_scope_shadows_its_parent_and_leaves_it_alone(working: WorkingMemory) -> None:
    working.set("goal", "ship")
    scope = working.create_scope("task")
    assert scope.get("goal") == "ship"
    scope.set("goal", "test")
    assert (scope.get("goal"), working.get("goal")) == ("test", "ship")
    assert scope.remove("goal")
    assert (scope.get("goal"), working.get("goal")) == ("ship", "ship")
    assert not scope.remove("goal")
    assert working.get("goal") == "ship"


@pytest.mark.req("W3")
def test_reads_fall_back_through_all_levels(working: WorkingMemory) -> None:
    working.set("root", 0)
    level: Any = working
    for depth in range(1, 11):
        level = level.create_scope(f"level {depth}")
        level.set(f"k{depth}", depth)
    assert [level.get(f"k{depth}", type=int) for depth in range(1, 11)] == list(range(1, 11))
    assert (level.get("root"), level.get("k0", default="-"), level.contains("k1")) == (0, "-", True)
    assert level.keys() == ("root", *(f"k{depth}" for depth in range(1, 11)))
    assert working.keys() == ("root",)


@pytest.mark.req("W3")
def test_local_reads_do_not_look_further(working: WorkingMemory) -> None:
    working.set("far", 1)
    scope = working.create_scope("task")
    scope.set("near", {"a": 1})
    assert (scope.get_local("far"), scope.get_local("far", default=7), scope.get_local("near")) == (None, 7, {"a": 1})
    assert scope.get_local("near", type=dict[str, int]) == {"a": 1}
    assert (scope.contains("far"), scope.contains_local("far"), scope.contains_local("near")) == (True, False, True)
    assert (list(scope.local_entries()), scope.local_count, list(scope.all())) == (["near"], 1, ["far", "near"])
    assert scope.local_entries()["near"].access_count == 2
    with pytest.raises(InvalidInput, match="'near' does not fit int"):
        scope.get_local("near", type=int)


@pytest.mark.req("W3")
def test_an_entry_that_expired_shadows_nothing(working: WorkingMemory, clock: HandClock) -> None:
    working.set("key", "below")
    scope = working.create_scope("task")
    scope.set("key", "above", ttl=timedelta(minutes=1))
    scope.set("own", 1, ttl=timedelta(minutes=1))
    clock.forward(minutes=1)
    assert (scope.get("key"), scope.all()["key"].value) == ("below", "below")
    assert (scope.local_count, scope.get_local("own"), scope.contains_local("own")) == (0, None, False)
    assert scope.merge_to_parent() == 0
    assert scope.dispose() == 0


@pytest.mark.req("W3")
def test_get_or_set_uses_what_is_visible_and_stores_locally(working: WorkingMemory) -> None:
    working.set("seen", 1)
    scope = working.create_scope("task")
    assert scope.get_or_set("seen", lambda: 2) == 1
    assert scope.get_or_set("made", lambda: 3) == 3
    assert (scope.contains_local("seen"), scope.contains_local("made"), working.contains("made")) == (
        False,
        True,
        False,
    )


@pytest.mark.req("W3")
def test_scopes_have_names_ids_parents_and_children(working: WorkingMemory) -> None:
    one, two = working.create_scope("same"), working.create_scope("same")
    child = one.create_scope("child")
    assert (one.name, two.name, one.id != two.id) == ("same", "same", True)
    assert (one.parent, child.parent) == (working, one)
    assert (one.children(), two.children()) == ((child,), ())
    assert working.active_scopes() == (one, two, child)


@pytest.mark.req("W3")
def test_merging_moves_entries_to_the_parent(working: WorkingMemory, clock: HandClock) -> None:
    working.set("both", "old")
    scope = working.create_scope("task")
    scope.set("both", "new", tags=["t"])
    scope.set("own", 1, ttl=timedelta(hours=1))
    scope.get("both")
    before = scope.local_entries()
    clock.forward(minutes=1)
    assert scope.merge_to_parent() == 2
    assert working.all() == before
    assert (scope.local_count, scope.get("both"), working.stats().entries) == (0, "new", 2)
    assert counted(working) == 2
    assert scope.merge_to_parent() == 0
    clock.forward(hours=1)
    assert working.keys() == ("both",)


@pytest.mark.req("W3")
def test_merging_without_overwriting_leaves_what_the_parent_has(working: WorkingMemory, clock: HandClock) -> None:
    working.set("both", "old")
    working.set("ended", "old", ttl=timedelta(seconds=1))
    outer = working.create_scope("outer")
    inner = outer.create_scope("inner")
    inner.set("both", "new")
    inner.set("ended", "new")
    clock.forward(seconds=1)
    assert inner.merge_to_parent(overwrite=False) == 2  # the parent is the scope around it, which has neither
    assert outer.merge_to_parent(overwrite=False) == 1
    assert (working.get("both"), working.get("ended")) == ("old", "new")
    assert (outer.get("both"), outer.local_count, working.stats().entries) == ("new", 1, 3)
    with pytest.raises(InvalidInput, match="overwrite must be True or False"):
        outer.merge_to_parent(overwrite="no")  # type: ignore[arg-type]  # refused is what is proven


@pytest.mark.req("W3")
def test_what_has_expired_is_not_merged(working: WorkingMemory, clock: HandClock) -> None:
    working.set("key", "old")
    scope = working.create_scope("task")
    scope.set("key", "new", ttl=timedelta(seconds=1))
    clock.forward(seconds=1)
    assert (scope.merge_to_parent(), working.get("key")) == (0, "old")


@pytest.mark.req("W3")
def test_merging_needs_no_room(clock: HandClock) -> None:
    working = WorkingMemory("a", clock=clock, limits=Limits(entries=2))
    with working.create_scope("task") as scope:
        scope.set("a", 1)
        scope.set("b", 2)
        assert scope.merge_to_parent() == 2
    assert working.keys() == ("a", "b")
    with pytest.raises(LimitReached):
        working.set("c", 3)


@pytest.mark.req("W3")
def test_merging_into_a_parent_that_is_gone_is_an_error_and_brings_nothing_back(working: WorkingMemory) -> None:
    outer = working.create_scope("outer")
    inner = outer.create_scope("inner")
    inner.set("a", 1)
    outer.dispose()
    with pytest.raises(ScopeDisposed, match="'inner' was disposed, itself or with an enclosing scope"):
        inner.merge_to_parent()
    assert (len(working), working.stats().entries, working.active_scopes()) == (0, 0, ())


@pytest.mark.req("W3")
def test_disposing_clears_a_scope_and_those_within_it(working: WorkingMemory) -> None:
    working.set("a", 0)
    outer = working.create_scope("outer")
    inner = outer.create_scope("inner")
    innermost = inner.create_scope("innermost")
    other = working.create_scope("other")
    for number, scope in enumerate((outer, inner, innermost, other)):
        for key in range(number + 1):
            scope.set(f"k{key}", number)
    assert outer.dispose() == 1 + 2 + 3
    assert (outer.dispose(), inner.dispose()) == (0, 0)
    assert [scope.is_disposed for scope in (outer, inner, innermost, other)] == [True, True, True, False]
    assert (working.active_scopes(), working.keys()) == ((other,), ("a",))
    assert (working.stats().entries, working.stats().scopes) == (5, 1)


@pytest.mark.req("W3")
def test_a_scope_ends_with_its_block_even_if_that_fails(working: WorkingMemory) -> None:
    scope = working.create_scope("task")
    scope.set("a", 1)
    with pytest.raises(ZeroDivisionError), scope:
        scope.get_or_set("b", lambda: 1 / 0)
    assert (scope.is_disposed, working.active_scopes(), working.stats().entries) == (True, (), 0)
    with working.create_scope("task") as scope:
        assert scope.dispose() == 0


@pytest.mark.req("W3")
def test_use_after_disposal_is_an_error(working: WorkingMemory) -> None:
    working.set("a", 0)
    outer = working.create_scope("outer")
    inner = outer.create_scope("inner")
    outer.dispose()
    with Cases() as cases:
        for (name, use), scope in product(USES.items(), (outer, inner)):
            with cases.case(name, scope.name):
                with pytest.raises(ScopeDisposed, match=f"'{scope.name}' was disposed") as caught:
                    use(scope)
                assert caught.value.details == {"scope_id": scope.id, "scope_name": scope.name}
                assert (working.stats().entries, working.stats().scopes, working.get("a")) == (1, 0, 0)


@pytest.mark.req("W3")
def test_a_scope_that_ends_while_its_factory_runs_keeps_nothing(working: WorkingMemory) -> None:
    scope = working.create_scope("task")
    with pytest.raises(ScopeDisposed):
        scope.get_or_set("key", scope.dispose)
    assert working.stats().entries == 0


@pytest.mark.req("W3")
def test_clearing_leaves_scopes_unless_asked(working: WorkingMemory) -> None:
    working.set("a", 1)
    scope = working.create_scope("task")
    scope.set("b", 1)
    assert working.clear() == 1
    assert (scope.get("a"), scope.get("b")) == (None, 1)
    working.set("a", 1)
    scope.create_scope("inner").set("c", 1)
    assert working.clear(scopes=True) == 3
    assert (scope.is_disposed, working.active_scopes(), working.stats().entries) == (True, (), 0)


@pytest.mark.req("W6")
def test_the_scope_over_the_limit_is_refused_until_one_ends(working: WorkingMemory) -> None:
    scopes = [working.create_scope("first")]
    scopes += [scopes[0].create_scope(f"s{number}") for number in range(99)]
    for level in (working, scopes[0]):
        with pytest.raises(LimitReached, match="scope 'more': the agent has 100 scopes, the limit is 100") as caught:
            level.create_scope("more")
        assert caught.value.details == {"field": "name", "name": "more", "scopes": 100, "limit": 100}
    scopes[7].dispose()
    working.create_scope("more")
    assert working.stats().scopes == 100


BAD_NAMES: tuple[Any, ...] = (
    "",
    "a\nb",
    None,
    3,
    "x" * 1_001,
)


@pytest.mark.req("W6")
def test_bad_names_are_refused(working: WorkingMemory) -> None:
    scope = working.create_scope("task")
    with Cases() as cases:
        for name in BAD_NAMES:
            for level in (working, scope):
                with cases.case(name, level), pytest.raises(InvalidInput, match="name "):
                    level.create_scope(name)
    assert working.stats().scopes == 1
