"""Snapshots of working memory: values that come back whole or not at all."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.stand_ins import HandClock
from tests.support.working_memory import counted
from wellkept.errors import ContentTooLong, InvalidInput, LimitReached, ScopeDisposed, WellkeptError
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases
from wellkept.working import Limits, WorkingMemory, WorkingSnapshot

SECRET = "the-secret-value"


@pytest.fixture
def working(clock: HandClock) -> WorkingMemory:
    """Two scopes, one in the other, and something on each level."""
    working = WorkingMemory("debugger", clock=clock)
    working.set("a", {"x": [1]}, type="decision", importance=0.9, tags=["t"], metadata={"m": 1})
    working.get("a")
    outer = working.create_scope("outer")
    outer.set("a", "outer", ttl=timedelta(hours=1))
    outer.create_scope("inner").set("b", None)
    return working


@pytest.mark.req("W1")
def test_a_snapshot_comes_back_in_another_process(working: WorkingMemory, clock: HandClock) -> None:
    text = working.snapshot().to_json()
    assert json.loads(text)["version"] == 1
    again = WorkingMemory("debugger", clock=clock)
    again.restore(WorkingSnapshot.from_json(text))
    assert again.snapshot() == working.snapshot() == WorkingSnapshot.from_json(text)
    assert again.stats() == working.stats()
    outer, inner = again.active_scopes()
    assert (outer.name, inner.name, inner.parent, inner.get("a"), inner.get("b", default=1)) == (
        *("outer", "inner", outer, "outer"),
        None,
    )
    clock.forward(hours=1)
    assert outer.local_count == 0
    assert inner.get("a") == {"x": [1]}


@pytest.mark.req("W1")
def test_a_snapshot_is_not_changed_by_what_follows(working: WorkingMemory) -> None:
    snapshot = working.snapshot()
    text = snapshot.to_json()
    working.get("a")
    working.clear(scopes=True)
    assert snapshot.to_json() == text


@pytest.mark.req("W1")
def test_restoring_keeps_active_handles_revives_ended_scopes_and_ends_new_ones(working: WorkingMemory) -> None:
    outer, inner = working.active_scopes()
    snapshot = working.snapshot()
    inner.dispose()
    later = outer.create_scope("later")
    later.set("c", 1)
    outer.set("a", "changed")
    working.set("d", 1)
    working.restore(snapshot)
    assert working.snapshot() == snapshot
    assert outer.get("a") == "outer"
    assert not outer.is_disposed
    for ended in (inner, later):
        with pytest.raises(ScopeDisposed):
            ended.get("a")
    assert [scope.id for scope in working.active_scopes()] == [outer.id, inner.id]
    assert working.keys() == ("a",)
    assert outer.dispose() == 2
    assert working.stats().entries == 1


@pytest.mark.req("W1")
def test_what_has_expired_is_neither_taken_nor_restored(working: WorkingMemory, clock: HandClock) -> None:
    snapshot = working.snapshot()
    clock.forward(hours=1)
    assert working.snapshot().scopes[0].entries == ()
    tight = WorkingMemory("debugger", clock=clock, limits=Limits(entries=2))
    tight.restore(snapshot)
    assert tight.stats().entries == counted(tight) == 2


def _entry(**changes: Any) -> Callable[[WorkingSnapshot], Any]:
    return lambda snapshot: replace(snapshot, entries=(replace(snapshot.entries[0], **changes),))


def _scope(number: int, **changes: Any) -> Callable[[WorkingSnapshot], Any]:
    def change(snapshot: WorkingSnapshot) -> WorkingSnapshot:
        scopes = list(snapshot.scopes)
        scopes[number] = replace(scopes[number], **changes)
        return replace(snapshot, scopes=tuple(scopes))

    return change


BAD: dict[str, tuple[type[WellkeptError], Callable[[WorkingSnapshot], Any]]] = {
    "nothing": (InvalidInput, lambda _: None),
    "a dict": (InvalidInput, lambda snapshot: json.loads(snapshot.to_json())),
    "a later version": (InvalidInput, lambda snapshot: replace(snapshot, version=3)),
    "another agent": (InvalidInput, lambda snapshot: replace(snapshot, agent_id="other")),
    "another user": (InvalidInput, lambda snapshot: replace(snapshot, user_id="other")),
    "one key twice": (InvalidInput, lambda snapshot: replace(snapshot, entries=snapshot.entries * 2)),
    "one scope twice": (InvalidInput, lambda snapshot: replace(snapshot, scopes=snapshot.scopes * 2)),
    "a child first": (InvalidInput, lambda snapshot: replace(snapshot, scopes=snapshot.scopes[::-1])),
    "an orphan": (InvalidInput, _scope(1, parent_id="gone")),
    "its own parent": (InvalidInput, lambda snapshot: _scope(0, parent_id=snapshot.scopes[0].id)(snapshot)),
    "a scope without a name": (InvalidInput, _scope(1, name="")),
    "a scope without an id": (InvalidInput, _scope(1, id=None)),
    "a bad key": (InvalidInput, _entry(key="a\n")),
    "no JSON": (InvalidInput, _entry(content=SECRET)),
    "NaN": (InvalidInput, _entry(content="NaN")),
    "no content": (InvalidInput, _entry(content=None)),
    "a surrogate": (InvalidInput, _entry(content='"\ud800"')),
    "deep JSON": (InvalidInput, _entry(content="[" * 100_000 + "]" * 100_000)),
    "large content": (ContentTooLong, _entry(content=f'"{"x" * 1_000}"')),
    "a bad type": (InvalidInput, _entry(type="planet")),
    "a bad importance": (InvalidInput, _entry(importance=2)),
    "bad tags": (InvalidInput, _entry(tags=["\n"])),
    "bad metadata": (InvalidInput, _entry(metadata=[1])),
    "a bad time": (InvalidInput, _entry(timestamp=START.replace(tzinfo=None))),
    "a bad expiry": (InvalidInput, _entry(expires_at="soon")),
    "a bad count": (InvalidInput, _entry(access_count=-1)),
    "a bad access": (InvalidInput, _entry(last_accessed_at=3)),
    "a bad id": (InvalidInput, _entry(id=3)),
    "entries": (
        LimitReached,
        lambda snapshot: replace(
            snapshot, entries=tuple(replace(snapshot.entries[0], key=f"k{number}") for number in range(9))
        ),
    ),
    "scopes": (
        LimitReached,
        lambda snapshot: replace(
            snapshot, scopes=tuple(replace(snapshot.scopes[0], id=f"s{number}", entries=()) for number in range(4))
        ),
    ),
}


@pytest.mark.req("W1", "W6")
def test_a_bad_snapshot_changes_nothing(working: WorkingMemory, clock: HandClock) -> None:
    tight = WorkingMemory("debugger", clock=clock, limits=Limits(entries=10, entry_bytes=500, scopes=3))
    good = working.snapshot()
    tight.restore(good)
    handles = tight.active_scopes()
    with Cases() as cases:
        for name, (error, spoil) in BAD.items():
            with cases.case(name):
                with pytest.raises(WellkeptError) as caught:
                    tight.restore(spoil(good))
                assert type(caught.value) is error
                assert SECRET not in repr((str(caught.value), caught.value.details, caught.value.__cause__))
                assert tight.snapshot() == good
                assert tight.active_scopes() == handles
                tight.set("still", "works")
                assert tight.remove("still")


NO_SNAPSHOTS: tuple[Any, ...] = (
    "",
    "{}",
    "[]",
    "null",
    '{"agent_id": 3}',
    b"\xff",
    "[" * 5_000,
    None,
    3,
)


@pytest.mark.req("W1")
def test_other_texts_are_no_snapshots() -> None:
    with Cases() as cases:
        for text in NO_SNAPSHOTS:
            with cases.case(text), pytest.raises(InvalidInput, match="the snapshot is not the JSON form of a snapshot"):
                WorkingSnapshot.from_json(text)
