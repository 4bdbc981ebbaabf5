"""What working memory tells: each change once, after it was made, with no lock held."""

import threading
from typing import Any

import pytest

from tests.support.stand_ins import HandClock
from wellkept.errors import InvalidInput
from wellkept.events import (
    Event,
    EventBus,
    WorkingMemoryCleared,
    WorkingMemoryRemoved,
    WorkingMemorySet,
    WorkingScopeCreated,
    WorkingScopeDisposed,
)
from wellkept.testing.builders import START
from wellkept.working import WorkingMemory


@pytest.fixture
def bus() -> EventBus:
    return EventBus()


@pytest.fixture
def working(clock: HandClock, bus: EventBus) -> WorkingMemory:
    return WorkingMemory("debugger", user_id="ada", clock=clock, bus=bus)


@pytest.fixture
def heard(bus: EventBus) -> list[Event]:
    heard: list[Event] = []
    bus.on(Event, heard.append)
    return heard


@pytest.mark.req("W5")
def test_sets_removals_and_clearing_are_told(working: WorkingMemory, heard: list[Event], clock: HandClock) -> None:
    working.set("key", 1)
    later = clock.forward(minutes=1)
    working.set("key", [])
    working.remove("key")
    working.remove("key")
    working.get_or_set("made", lambda: "x")
    working.get_or_set("made", lambda: "y")
    working.clear()
    first = WorkingMemorySet(at=START, agent_id="debugger", user_id="ada", key="key", type_name="int", is_update=False)
    assert heard == [
        first,
        WorkingMemorySet(at=later, agent_id="debugger", user_id="ada", key="key", type_name="list", is_update=True),
        WorkingMemoryRemoved(at=later, agent_id="debugger", user_id="ada", key="key"),
        WorkingMemorySet(at=later, agent_id="debugger", user_id="ada", key="made", type_name="str", is_update=False),
        WorkingMemoryCleared(at=later, agent_id="debugger", user_id="ada", entries_cleared=1),
    ]


@pytest.mark.req("W5")
def test_scopes_are_told_from_their_beginning_to_their_end(working: WorkingMemory, heard: list[Event]) -> None:
    outer = working.create_scope("outer")
    inner = outer.create_scope("inner")
    inner.set("key", 1)
    inner.remove("key")
    inner.set("a", 1)
    inner.set("b", 1)
    outer.set("c", 1)
    outer.dispose()
    outer.dispose()
    who: dict[str, Any] = {"at": START, "agent_id": "debugger", "user_id": "ada"}
    at_inner: dict[str, Any] = {"scope_id": inner.id, "scope_name": "inner"}
    at_outer: dict[str, Any] = {"scope_id": outer.id, "scope_name": "outer"}
    new: dict[str, Any] = {"type_name": "int", "is_update": False}
    assert heard == [
        WorkingScopeCreated(**who, **at_outer, parent_id=None),
        WorkingScopeCreated(**who, **at_inner, parent_id=outer.id),
        WorkingMemorySet(**who, **at_inner, **new, key="key"),
        WorkingMemoryRemoved(**who, **at_inner, key="key"),
        WorkingMemorySet(**who, **at_inner, **new, key="a"),
        WorkingMemorySet(**who, **at_inner, **new, key="b"),
        WorkingMemorySet(**who, **at_outer, **new, key="c"),
        WorkingScopeDisposed(**who, **at_inner, entries_cleared=2),
        WorkingScopeDisposed(**who, **at_outer, entries_cleared=1),
    ]


@pytest.mark.req("W5")
def test_merging_tells_what_left_and_what_came(working: WorkingMemory, heard: list[Event], clock: HandClock) -> None:
    working.set("both", 1)
    scope = working.create_scope("task")
    scope.set("both", 2)
    scope.set("own", "x")
    heard.clear()
    now = clock.forward(minutes=1)
    scope.merge_to_parent()
    gone: dict[str, Any] = {
        "at": now,
        "agent_id": "debugger",
        "user_id": "ada",
        "scope_id": scope.id,
        "scope_name": "task",
    }
    assert heard == [
        WorkingMemoryRemoved(**gone, key="both"),
        WorkingMemorySet(at=now, agent_id="debugger", user_id="ada", key="both", type_name="int", is_update=True),
        WorkingMemoryRemoved(**gone, key="own"),
        WorkingMemorySet(at=now, agent_id="debugger", user_id="ada", key="own", type_name="str", is_update=False),
    ]


@pytest.mark.req("W5")
def test_refusals_and_restoring_are_not_told(working: WorkingMemory, heard: list[Event]) -> None:
    working.set("key", 1)
    snapshot = working.snapshot()
    heard.clear()
    with pytest.raises(InvalidInput):
        working.set("key", object())
    with pytest.raises(ZeroDivisionError):
        working.get_or_set("other", lambda: 1 / 0)
    working.restore(snapshot)
    assert heard == []


@pytest.mark.req("W5", "W7")
def test_a_handler_may_use_the_memory_and_other_threads_may_too(working: WorkingMemory, bus: EventBus) -> None:
    def react(event: WorkingMemorySet) -> None:
        if event.key == "key":
            working.set("reaction", working.get("key"))
            other = threading.Thread(target=working.set, args=("from another thread", 1))
            other.start()
            other.join(timeout=30)  # would hang if the lock were held while handlers run
            assert not other.is_alive()

    bus.on(WorkingMemorySet, react)
    working.set("key", 7)
    working.get_or_set("made", lambda: 1)
    assert bus.failures == 0
    assert (working.get("reaction"), working.get("from another thread")) == (7, 1)


@pytest.mark.req("W5")
def test_no_event_is_built_for_nobody(clock: HandClock) -> None:
    class Silent(EventBus):
        def emit(self, event: Event) -> None:
            raise AssertionError(event)

    bus = Silent()
    bus.on(WorkingScopeCreated, lambda event: None)
    working = WorkingMemory("a", clock=clock, bus=bus)
    working.set("key", 1)
    working.remove("key")
    working.clear()
