"""The limit of a session is the one that its record says now, whoever changed it."""

from collections.abc import Callable
from functools import partial

import pytest

import wellkept
from tests.support.stand_ins import HandClock, Opener
from wellkept import Memories
from wellkept.errors import Conflict, QuotaExceeded, StoreBusy
from wellkept.memories import Session
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.testing.concurrency import at_once
from wellkept.types import State

LIMIT = 2_000
ATTEMPTS = 100
"""How often a write is tried when other writers are faster."""
Process = Callable[[], Memories]


@pytest.fixture
def process(opener: Opener, clock: HandClock) -> Process:
    """Opens one database again and again, as other processes do."""
    if opener.kind != "ram":
        return partial(opener, clock=clock)
    store = RamStore()
    return lambda: wellkept.open(store=store, clock=clock, embedder=None)


def monday(memories: Memories) -> Session:
    return memories.view(user="ada").sessions.load("monday")


@pytest.mark.req("J9")
def test_a_limit_that_another_process_set_holds_at_once(process: Process) -> None:
    here, there = process(), process()
    session = here.view(user="ada").sessions.create("monday")
    session.view.add("a" * LIMIT)
    view = here.view(user="ada", session="monday")
    monday(there).configure({"limit_bytes": LIMIT, "auto_compact": False})
    for write in (session.view.add, partial(view.add, layer="session")):
        with pytest.raises(QuotaExceeded) as caught:
            write("b" * LIMIT)
        assert caught.value.details["limit"] == LIMIT
    assert session.view.count() == 1
    monday(there).configure({"limit_bytes": None})
    session.view.add("b" * LIMIT)
    assert session.view.count() == 2


@pytest.mark.req("J9")
def test_a_session_that_another_process_made_has_its_limit(process: Process) -> None:
    here, there = process(), process()
    view = here.view(user="ada", session="monday")
    view.add("a" * LIMIT, layer="session")
    there.view(user="ada").sessions.create("monday", config={"limit_bytes": LIMIT})
    with pytest.raises(QuotaExceeded):
        view.add("b" * LIMIT, layer="session")
    there.view(user="ada").sessions.delete("monday", permanent=True)
    view.add("b" * 2 * LIMIT, layer="session")


@pytest.mark.req("J9", "N3")
def test_a_session_that_was_never_created_has_the_limit_of_the_others(opener: Opener, clock: HandClock) -> None:
    with opener(clock=clock, settings={"sessions": {"limit_bytes": LIMIT}}, name="limited") as memories:
        view = memories.view(user="ada", session="monday")
        faded = view.add("a" * 1_500, layer="session", importance=0)
        with pytest.raises(QuotaExceeded) as caught:
            view.add("b" * LIMIT, layer="session")
        assert caught.value.details["limit"] == LIMIT
        view.add("c" * 1_500, layer="session")
        kept = view.get(faded.id, include_forgotten=True)
        assert kept is not None
        assert kept.state is State.ARCHIVED


@pytest.mark.req("J9", "L12")
def test_a_session_does_not_outgrow_its_limit_by_updates(memories: Memories) -> None:
    session = memories.view(user="ada").sessions.create("monday", config={"limit_bytes": LIMIT})
    wide = memories.view(user="ada", session="monday")
    memory = session.view.add("a", importance=1)
    for view in (session.view, wide):
        with pytest.raises(QuotaExceeded) as caught:
            view.update(memory.id, content="a" * LIMIT)
        assert caught.value.details["limit"] == LIMIT

    def grow() -> None:
        for size in range(100, 1_700, 100):
            wide.update(memory.id, content="b" * size)

    with pytest.raises(QuotaExceeded, match="old versions count too"):
        grow()
    assert LIMIT / 2 < session.stats().bytes_used <= LIMIT


@pytest.mark.req("J9")
def test_a_session_made_anew_goes_by_its_new_limit(memories: Memories) -> None:
    """Its record begins at the version that the one before had."""
    sessions = memories.view(user="ada").sessions
    for limit in (LIMIT, 2 * LIMIT, LIMIT):
        session = sessions.create("monday", config={"limit_bytes": limit})
        session.view.add("a" * (limit - 500))
        with pytest.raises(QuotaExceeded) as caught:
            session.view.add("b" * limit)
        assert caught.value.details["limit"] == limit
        sessions.delete("monday", permanent=True)


@pytest.mark.req("J2", "J3", "J9")
def test_writers_do_not_hear_of_what_else_changes_in_the_session(process: Process) -> None:
    here, there = process(), process()
    session = here.view(user="ada").sessions.create("monday", config={"limit_bytes": 1_000_000})
    preferences = monday(there).preferences

    def add() -> None:
        for number in range(20):
            session.view.add(f"memory {number}", duplicates="keep")

    def change() -> None:
        for number in range(20):
            preferences.set("number", number)

    at_once([add, change, add])
    assert session.view.count() == 40
    assert session.preferences.all() == {"number": 19}


@pytest.mark.req("J9")
def test_a_record_that_keeps_changing_is_read_again_up_to_an_end() -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=None) as memories:
        session = memories.view(user="ada").sessions.create("monday")
        moved = Conflict("the session is at version 2, not 1", details={"kind": "session"})
        for call in (1, 2, 3):
            store.fail("append", moved, call=call)
        session.view.add("a memory")
        assert session.view.count() == 1
        for call in range(1, ATTEMPTS + 1):
            store.fail("append", moved, call=call)
        with pytest.raises(Conflict) as caught:
            session.view.add("another", duplicates="keep")
        assert caught.value.details == {"session_id": "monday"}
        assert session.view.count() == 1


@pytest.mark.req("J9")
def test_other_failures_are_told_as_they_are() -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=None) as memories:
        session = memories.view(user="ada").sessions.create("monday")
        store.fail("append", Conflict("the id is taken", details={"memory_id": "x"}))
        with pytest.raises(Conflict, match="id is taken"):
            session.view.add("a memory", duplicates="keep")
        store.fail("append", StoreBusy("locked"))
        with pytest.raises(StoreBusy):
            session.view.add("a memory", duplicates="keep")
        assert store.calls["append"] == 2


def test_the_record_is_not_read_for_each_write() -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=None) as memories:
        view = memories.view(user="ada").sessions.create("monday").view
        view.add("first")
        before = store.calls["records.get"]
        for number in range(10):
            view.add(f"memory {number}")
        assert store.calls["records.get"] == before
