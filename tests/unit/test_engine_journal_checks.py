"""Every method of both ports, asked by every kind of caller: what is refused never comes to the store."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import HandClock
from tests.support.watched import watch
from wellkept.engine import run_log
from wellkept.engine.journal import ADMINISTRATOR, BOOKKEEPING, Caller, EngineJournal, EngineRecords, Shared
from wellkept.engine.memory_cipher import MemoryCipher
from wellkept.errors import Unauthorized
from wellkept.filters import Where
from wellkept.ports import Journal, Lease, Query, Record, Records
from wellkept.stores.ram import RamStore
from wellkept.testing.builders import START, Writer, owner
from wellkept.types import Access, Grant, Identity, Layer, Need, Owner
from wellkept.types.owners import DATABASE

ADA = owner("ada")
IDENTITY = Identity(user="ada")
SESSION = Owner(Layer.SESSION, ("ada", "monday"))
WHERE = Where(now=START)
FROM_THE_START: Any = None
WRITES = Writer()
ADDED = WRITES.add(ADA, "Likes tea", id="1")
ERASED = WRITES.erase(ADDED)
NOTE = Record(owner=ADA, kind="note", name="n", body=b"{}", version=1, updated_at=START)

Call = Callable[[Any], object]
READ, WRITE, ERASE, ADMIN = Need
NOBODY: Need | None = None  # no grant allows it to an identity
JOURNAL: dict[str, tuple[Need | None, Call]] = {
    "append": (WRITE, lambda journal: journal.append([WRITES.add(ADA, "Likes cake")])),
    "append an erasure": (ERASE, lambda journal: journal.append([ERASED])),
    "count_accesses": (READ, lambda journal: journal.count_accesses([Access(ADA, "1", 1, 1)])),
    "settings": (READ, lambda journal: journal.settings()),
    "get": (READ, lambda journal: journal.get({ADA}, ["1"])),
    "keyed": (READ, lambda journal: journal.keyed(ADA, ["key"])),
    "scan": (READ, lambda journal: list(journal.scan({ADA}))),
    "versions": (READ, lambda journal: journal.versions({ADA})),
    "history": (READ, lambda journal: journal.history(ADA, "1")),
    "position": (READ, lambda journal: journal.position({ADA})),
    "marks": (READ, lambda journal: journal.marks({ADA})),
    "usage": (READ, lambda journal: journal.usage({ADA})),
    "changed": (READ, lambda journal: journal.changed({ADA}, after=FROM_THE_START)),
    "select": (READ, lambda journal: journal.select(Query(owners={ADA}, where=WHERE))),
    "count": (READ, lambda journal: journal.count({ADA}, WHERE)),
    "ids": (READ, lambda journal: journal.ids({ADA}, WHERE)),
    "stats": (READ, lambda journal: journal.stats({ADA}, START)),
    "embed": (NOBODY, lambda journal: journal.embed([])),
    "adopt": (NOBODY, lambda journal: journal.adopt("kit", 2)),
    "set_settings": (NOBODY, lambda journal: journal.set_settings({"behind": ""})),
    "rewrite": (NOBODY, lambda journal: journal.rewrite([])),
    "feed": (NOBODY, lambda journal: journal.feed()),
    "owners": (NOBODY, lambda journal: journal.owners()),
    "unembedded": (NOBODY, lambda journal: journal.unembedded("kit", 1)),
    "count_unembedded": (NOBODY, lambda journal: journal.count_unembedded("kit")),
    "embedded": (NOBODY, lambda journal: journal.embedded([b"digest"])),
}
RECORDS: dict[str, tuple[Need | None, Call]] = {
    "get": (READ, lambda records: records.get(ADA, "note", "n")),
    "put": (WRITE, lambda records: records.put(NOTE)),
    "restore": (ADMIN, lambda records: records.restore(NOTE)),
    "drop": (ERASE, lambda records: records.drop(ADA, "note", "n")),
    "list": (READ, lambda records: records.list({ADA})),
    "list of everybody": (ADMIN, lambda records: records.list(None)),
    "lease": (ADMIN, lambda records: records.lease("upkeep", "me", 1_000)),
    "release": (ADMIN, lambda records: records.release(Lease(name="upkeep", holder="me", token=1))),
}
NAMES_NO_OWNER = {"settings", "list"}  # the store's own; records of others are left out, not refused
CASES = [(Journal, name) for name in JOURNAL] + [(Records, name) for name in RECORDS]


class World:
    """A store that notes what it is asked, and a journal and records for one caller."""

    def __init__(self) -> None:
        self.clock, self.asked = HandClock(), list[str]()
        self.store = watch(RamStore(), lambda call, _: self.asked.append(call))
        self.shared = Shared(
            journal=self.store.journal, records=self.store.records, cipher=MemoryCipher(None), clock=self.clock
        )

    def call(self, port: type, name: str, caller: Any) -> str:
        """What becomes of a call, and whether the store was asked: every call on a store of its own."""
        made = EngineJournal if port is Journal else EngineRecords
        _, call = (JOURNAL if port is Journal else RECORDS)[name]
        del self.asked[:]
        try:
            call(made(self.shared, caller))
        except Unauthorized:
            mine = [asked for asked in self.asked if asked.startswith(port.__name__)]
            return f"refused, after {mine}" if mine else "refused"
        return "allowed"


def worlds() -> Iterator[tuple[World, type, str, Need | None]]:
    """Each call of each port, on a store with one memory and one record."""
    for port, name in CASES:
        world = World()
        world.store.journal.append([ADDED])
        if name not in ("put", "restore"):
            world.store.records.put(NOTE)
        world.store.records.lease("upkeep", "me", 1_000)
        yield world, port, name, (JOURNAL if port is Journal else RECORDS)[name][0]


def test_every_method_is_among_the_cases() -> None:
    for port, calls in ((Journal, JOURNAL), (Records, RECORDS)):
        methods = {name for name in vars(port) if not name.startswith("_")}
        assert {name.partition(" ")[0] for name in calls} == methods


@pytest.mark.req("L11")
@pytest.mark.parametrize("granted", Need)
@pytest.mark.parametrize("owners", [None, (ADA,)], ids=["of everybody", "of ada"])
def test_a_grant_allows_what_a_method_needs_and_no_more(granted: Need, owners: tuple[Owner, ...] | None) -> None:
    wrong = {}
    for world, port, name, need in worlds():
        allowed = need is not None and granted.covers(need) and (need is not ADMIN or owners is None)
        outcome = world.call(port, name, Caller(Grant(need=granted, owners=owners), IDENTITY))
        if outcome != ("allowed" if allowed else "refused"):
            wrong[f"{port.__name__}.{name}"] = outcome
    assert wrong == {}


@pytest.mark.req("L11")
@pytest.mark.parametrize("owners", [(owner("bob"),), (owner("ada "),), (SESSION,), (Owner(Layer.TEAM, ("ada",)),)])
def test_a_grant_for_others_allows_nothing(owners: tuple[Owner, ...]) -> None:
    wrong = {}
    for world, port, name, _ in worlds():
        caller = Caller(Grant(need=ERASE, owners=owners), IDENTITY)
        outcome = world.call(port, name, caller)
        expected = "allowed" if name in NAMES_NO_OWNER else "refused"
        if outcome != expected:
            wrong[f"{port.__name__}.{name}"] = outcome
        if name == "list":
            assert EngineRecords(world.shared, caller).list({ADA}) == []
    assert wrong == {}


@pytest.mark.req("L11")
@pytest.mark.parametrize("ended", ["expired", "revoked", "of a key that is not there"])
def test_a_grant_that_has_ended_allows_nothing(ended: str) -> None:
    wrong = {}
    for world, port, name, _ in worlds():
        grant = Grant(need=ADMIN, expires_at=world.clock() + timedelta(hours=1))
        if ended == "expired":
            world.clock.forward(hours=1)
        elif ended == "revoked":
            memories = wellkept.open(store=world.store, embedder=None, clock=world.clock)
            key = memories.keys.create("ci", owners=None, need="admin")
            grant = memories.keys.grant_of(key.token)
            memories.keys.revoke(key.key.id)
        else:
            grant = Grant(need=ADMIN, key="0" * 16)
        outcome = world.call(port, name, Caller(grant, IDENTITY))
        if not outcome.startswith("refused") or "Journal" in outcome:  # a key is looked up in the records
            wrong[f"{port.__name__}.{name}"] = outcome
    assert wrong == {}


@pytest.mark.req("L11")
@pytest.mark.parametrize("caller", [ADMINISTRATOR, BOOKKEEPING], ids=["administrator", "bookkeeping"])
def test_who_runs_the_database_may_do_everything(caller: Any) -> None:
    assert {world.call(port, name, caller) for world, port, name, _ in worlds()} == {"allowed"}


@pytest.mark.req("L11")
def test_the_record_of_a_session_is_about_the_session() -> None:
    """It is kept by the user; a grant for the session alone reaches that one, and no other record of the user."""
    world = World()
    bodies = {"friday": "session", "monday": "session", "tuesday": "session", "ours": "note"}
    for name, kind in bodies.items():
        world.store.records.put(Record(owner=ADA, kind=kind, name=name, body=b"{}", version=1, updated_at=START))
    world.store.records.put(Record(owner=DATABASE, kind="note", name="n", body=b"{}", version=1, updated_at=START))
    records = EngineRecords(world.shared, Caller(Grant(need=ERASE, owners=(SESSION,)), IDENTITY))
    assert [record.name for record in records.list({ADA, DATABASE})] == ["monday"]
    assert [record.name for record in records.list({ADA}, limit=1)] == ["monday"]
    assert records.get(ADA, "session", "monday") is not None
    for kind, name in (("session", "tuesday"), ("note", "ours")):
        for call in (records.get, records.drop):
            with pytest.raises(Unauthorized):
                call(ADA, kind, name)
    assert records.drop(ADA, "session", "monday")


@pytest.mark.req("L11")
def test_a_run_of_upkeep_begins_only_where_the_caller_may_do_as_much() -> None:
    """From there on it acts as the engine itself."""
    grant = Grant(need=WRITE, owners=(ADA,))
    with wellkept.open("ram:", embedder=None) as memories:
        engine = memories.view(user="ada", grant=grant)._engine
        assert run_log.running(engine, WRITE, {ADA, SESSION}).caller is BOOKKEEPING
        for need, owners in ((ERASE, {ADA}), (WRITE, {ADA, owner("bob")}), (ADMIN, set[Owner]())):
            with pytest.raises(Unauthorized):
                run_log.running(engine, need, owners)
        assert engine.caller == Caller(grant, IDENTITY)
