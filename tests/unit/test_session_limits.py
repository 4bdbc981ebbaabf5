"""The limit of a session is the one that its record says now, whoever changed it."""

from collections.abc import Callable
from functools import partial

import pytest

import wellkept
from tests.support.stand_ins import HandClock, Opener
from wellkept import Memories, codec
from wellkept.engine import quotas
from wellkept.engine.core import ATTEMPTS
from wellkept.errors import Conflict, QuotaExceeded, StoreBusy
from wellkept.memories import Session
from wellkept.sessions import limits
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.testing.builders import Writer
from wellkept.testing.concurrency import at_once
from wellkept.types import Layer, Owner, State

LIMIT = 2_000
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
@pytest.mark.parametrize("full", [0, 1])
def test_every_session_of_a_batch_is_held_to_its_own_limit(memories: Memories, full: int) -> None:
    sessions = memories.view(user="ada").sessions
    limits = {"monday": 3 * LIMIT, "tuesday": 2 * LIMIT, "sunday": None}
    owners = [Owner(Layer.SESSION, ("ada", name)) for name in limits]
    for name, limit in limits.items():
        sessions.create(name, config={"limit_bytes": limit, "auto_compact": False})
        sessions.load(name).view.add("a" * LIMIT)
    writes, engine = Writer(), memories._engine
    sizes = [100, 100, 5 * LIMIT]
    sizes[full] = 3 * LIMIT
    batch = [writes.add(one, "b" * size) for one, size in zip(owners, sizes, strict=True)]
    with pytest.raises(QuotaExceeded) as caught:
        quotas.append(engine, batch)
    assert caught.value.details["owner"] == codec.encode_owner(owners[full])
    assert [len(sessions.load(name).view.list()) for name in limits] == [1, 1, 1]
    fitting = [writes.add(one, "b" * 100) for one in owners]
    quotas.append(engine, fitting)
    assert len(engine.journal.get(frozenset(owners), [one.id for one in fitting])) == 3


@pytest.mark.req("J9")
def test_room_is_made_in_every_session_of_a_batch(memories: Memories) -> None:
    sessions, owners = memories.view(user="ada").sessions, []
    for name in ("monday", "tuesday"):
        session = sessions.create(name, config={"limit_bytes": LIMIT})
        session.view.add("a" * 1_200, importance=0)
        owners.append(Owner(Layer.SESSION, ("ada", name)))
    writes = Writer()
    quotas.append(memories._engine, [writes.add(one, "b" * 1_200) for one in owners])
    for name in ("monday", "tuesday"):
        assert [one.content[0] for one in sessions.load(name).view.list()] == ["b"]


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


def test_few_configurations_are_kept_in_ram(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_KNOWN", 3)
    for number in range(10):
        memories.view(user="ada", session=f"s{number}").add("a memory", layer="session")
    kept = memories._engine.session_limits
    assert isinstance(kept, limits.SessionLimits)
    assert len(kept._known) <= 3
