"""The journal of the file answers every read as the one in RAM does that was given the same writes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wellkept import codec, ids
from wellkept.errors import Conflict, PositionLost, QuotaExceeded, StoreCorrupt, WellkeptError
from wellkept.filters import Where, place_of, sort_value
from wellkept.ports import Journal, Query
from wellkept.stores.ram import RamStore
from wellkept.stores.sqlite import SqliteStore
from wellkept.types import (
    ORDERS_OF_STORES,
    Access,
    Embedded,
    Layer,
    MemoryType,
    Operation,
    Owner,
    Position,
    Quota,
    Sort,
    SourceType,
    State,
    Stored,
    Tier,
    Vector,
    Write,
)

OWNERS = tuple(Owner(Layer.USER, (name,)) for name in ("ada", "bob", "ö'\"x"))
EVERYBODY = frozenset(OWNERS)
START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("amber", "birch", "cedar", "delta", "Straße", "fjord")
TAGS = ("food", "food.tea", "food.cake", "work", "work/x")
EMBEDDER, OTHER = "hashing", "other"


def vector(chosen: random.Random, embedder: str = EMBEDDER) -> Vector:
    """Four numbers, or those of two chunks."""
    chunks = chosen.choice((1, 1, 2))
    spans = ((0, 5), (5, 9)) if chunks == 2 else ()
    return Vector(embedder, chosen.randbytes(16 * chunks), spans, chosen.choice((b"", b"pieces")))


def facets(chosen: random.Random, key: str | None = None) -> dict[str, Any]:
    """Facets such as the engine makes, now and then sealed, with one that no store knows."""
    found: dict[str, Any] = {
        "state": chosen.choice(tuple(State)).value,
        "type": chosen.choice(tuple(MemoryType)).value,
        "tier": chosen.choice(tuple(Tier)).value,
        "importance": chosen.choice((0.1, 0.5, 0.9)),
        "created_at": codec.to_micros(START) + chosen.randrange(1_000),
        "occurred_at": codec.to_micros(START) + chosen.randrange(1_000),
        "bytes": chosen.randrange(1, 200),
    }
    if chosen.random() < 0.8:
        found["text"] = " ".join(chosen.choices(WORDS, k=4))
    optional: dict[str, Any] = {
        "tags": chosen.sample(TAGS, chosen.randrange(1, 4)),
        "fields": {"room": chosen.choice((1, True, "1"))},
        "expires_at": codec.to_micros(START) + chosen.randrange(1_000),
        "author": chosen.choice(WORDS),
        "source_type": chosen.choice(tuple(SourceType)).value,
        "has_pointer": True,
        "session": "monday",
        "of a newer release": {"deep": [1, None]},
    }
    found |= {name: value for name, value in optional.items() if chosen.random() < 0.4}
    return found if key is None else {**found, "key": key}


class Script:
    """Random writes, given to both journals."""

    def __init__(self, seed: int, journals: Iterable[Journal]) -> None:
        self.chosen = random.Random(seed)
        self.journals = tuple(journals)
        self.clock = ids.StampClock("9d2e8b7a6c5d", bytes)
        self.at = codec.to_micros(START)
        self.versions: dict[tuple[Owner, str], int] = {}
        self.sent: list[Write] = []

    def write(self) -> Write:
        """A write that fits, nearly always."""
        chosen = self.chosen
        owner, memory_id = chosen.choice(OWNERS), f"m{chosen.randrange(60)}"
        self.at += chosen.randrange(-3, 5)
        stored = self.versions.get((owner, memory_id), 0)
        operation = Operation.ADDED if not stored else chosen.choice(tuple(Operation))
        expected = stored if chosen.random() < 0.97 else stored + 1
        key = chosen.choice((None, None, "editor", "home", memory_id))
        one = vector(chosen) if chosen.random() < 0.6 else None
        return Write(
            owner=owner,
            id=memory_id,
            version=expected + chosen.choice((1, 1, 1, 2)),
            expected=expected,
            operation=operation,
            stamp=self.clock.stamp(self.at),
            recorded_at=self.at,
            replaced=None,
            reason=chosen.choice((None, "because")),
            facets={} if operation is Operation.ERASED else facets(chosen, key),
            payload=b"" if operation is Operation.ERASED else chosen.choice((b"", b'{"language":"en"}', b"\x00\xff")),
            vector=one,
            keeps_vector=chosen.random() < 0.3,
            digest=chosen.choice((None, b"digest")),
            write_id=chosen.choice(("", "call")),
        )

    def step(self) -> None:
        """One call of a method that writes."""
        chosen = self.chosen
        kind = chosen.random()
        if kind < 0.8:
            self.append()
        elif kind < 0.9:
            times = [Access(*self.place(), chosen.randrange(1, 4), self.at) for _ in range(3)]
            for journal in self.journals:
                journal.count_accesses(times)
        else:
            vectors = [self.embedded(chosen.choice((EMBEDDER, EMBEDDER, OTHER))) for _ in range(3)]
            for journal in self.journals:
                journal.embed(vectors)

    def append(self) -> None:
        """A batch, or the retry of an earlier one."""
        chosen = self.chosen
        writes = [self.write() for _ in range(chosen.choice((1, 1, 2, 20)))]
        if self.sent and chosen.random() < 0.1:
            writes = [chosen.choice(self.sent[-20:])]
        quotas = [Quota(owners={OWNERS[0], OWNERS[1]}, limit_bytes=chosen.choice((2_000, 10**9)))]
        answers = [attempt(journal, writes, quotas) for journal in self.journals]
        assert answers[0] == answers[1]
        if answers[0] is None:
            self.sent += writes
            for one in writes:
                self.versions[one.owner, one.id] = max(one.version, self.versions.get((one.owner, one.id), 0))

    def place(self) -> tuple[Owner, str]:
        """A memory, or none."""
        return self.chosen.choice([*self.versions, (OWNERS[0], "nobody")])

    def embedded(self, embedder: str) -> Embedded:
        """A vector for a memory, perhaps for a version that is not the newest."""
        owner, memory_id = self.place()
        version = self.versions.get((owner, memory_id), 0) - self.chosen.choice((0, 0, 1))
        return Embedded(owner, memory_id, version, vector(self.chosen, embedder), None)


def attempt(journal: Journal, writes: list[Write], quotas: list[Quota]) -> tuple[type, str] | None:
    """Append, or the error."""
    try:
        journal.append(writes, quotas=quotas)
    except WellkeptError as error:
        return type(error), str(error)
    return None


def by_id(found: Iterable[Stored]) -> list[Stored]:
    """In an order that both share."""
    return sorted(found, key=lambda one: (one.owner.ids, one.id, one.version))


def without_text(found: Iterable[Stored]) -> list[Stored]:
    """What is read without payloads."""
    bare = (one._replace(payload=b"", facets={k: v for k, v in one.facets.items() if k != "text"}) for one in found)
    return by_id(bare)


def filters_of(chosen: random.Random) -> Where:
    """A filter with a few conditions."""
    now = START + timedelta(microseconds=chosen.randrange(1_000))
    optional: dict[str, Any] = {
        "types": frozenset(chosen.sample(tuple(MemoryType), 3)),
        "tags": ("food",),
        "any_tags": ("food.tea", "work"),
        "no_tags": ("food.cake",),
        "min_importance": 0.5,
        "min_trust": 0.5,
        "created_after": START + timedelta(microseconds=300),
        "created_before": START + timedelta(microseconds=700),
        "occurred_after": START + timedelta(microseconds=300),
        "occurred_before": START + timedelta(microseconds=700),
        "content_contains": "strasse",
        "text": ("am*",),
        "authors": frozenset(chosen.sample(WORDS, 3)),
        "source_type": chosen.choice(tuple(SourceType)),
        "has_pointer": chosen.choice((True, False)),
        "metadata": {"room": chosen.choice((1, True))},
        "ids": frozenset(f"m{number}" for number in range(40)),
        "without": frozenset(f"m{number}" for number in range(20)),
    }
    names = chosen.sample(sorted(optional), chosen.randrange(4))
    states = chosen.choice((None, frozenset({State.ACTIVE}), frozenset({State.ACTIVE, State.ARCHIVED})))
    return Where(now=now, states=states, **{name: optional[name] for name in names})


def pages(journal: Journal, query: Query) -> Iterator[list[Stored]]:
    """All pages of a listing."""
    after = query.after
    while True:
        page = list(
            journal.select(Query(owners=query.owners, where=query.where, sort=query.sort, limit=7, after=after))
        )
        yield page
        if not page:
            return
        after = place_of(page[-1], sort_value(page[-1], query.sort))


def followed(journal: Journal, owners: frozenset[Owner], limit: int | None) -> dict[Owner, list[Stored]]:
    """All versions, page by page, per owner."""
    found: dict[Owner, list[Stored]] = {}
    after: Position | None = None
    while True:
        page = journal.versions(owners, after=after, limit=limit)
        for one in page:
            found.setdefault(one.owner, []).append(one)
        after = page.next
        if not page.more:
            return found


def feed_of(journal: Journal, limit: int | None) -> dict[Owner, list[Stored]]:
    """The whole feed, page by page, per owner: stores may mix owners as they like."""
    found: dict[Owner, list[Stored]] = {}
    after: Position | None = None
    while True:
        page = journal.feed(after=after, limit=limit)
        for one in page:
            found.setdefault(one.owner, []).append(one)
        after = page.next
        if not page.more:
            return found


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[RamStore, SqliteStore]]:
    ram, sqlite = RamStore(), SqliteStore(tmp_path / "memory.db", durability="relaxed")
    yield ram, sqlite
    sqlite.close()
    ram.close()


def owner_sets(chosen: random.Random) -> Iterator[frozenset[Owner]]:
    """All, one, two, and one that nobody knows."""
    stranger = Owner(Layer.USER, ("nobody",))
    yield from (EVERYBODY, frozenset({chosen.choice(OWNERS)}), frozenset({*OWNERS[:2], stranger}))


def assert_alike(ram: Journal, sqlite: Journal, chosen: random.Random, past: list[tuple[Position, Position]]) -> None:
    everything = [f"m{number}" for number in range(60)]
    for owners in owner_sets(chosen):
        for vectors in (False, True):
            assert list(sqlite.scan(owners, vectors=vectors)) == list(ram.scan(owners, vectors=vectors))
            assert by_id(sqlite.get(owners, everything, vectors=vectors)) == by_id(
                ram.get(owners, everything, vectors=vectors)
            )
        for memory_id in everything[:10]:
            assert by_id(sqlite.get(owners, [memory_id])) == by_id(ram.get(owners, [memory_id]))
        assert without_text(sqlite.scan(owners, payload=False)) == without_text(ram.scan(owners, payload=False))
        assert without_text(sqlite.get(owners, everything, payload=False)) == without_text(
            ram.get(owners, everything, payload=False)
        )
        assert sqlite.usage(owners) == ram.usage(owners)
        assert {owner: mark.seq for owner, mark in sqlite.marks(owners).items()} == {
            owner: mark.seq for owner, mark in ram.marks(owners).items()
        }
        now = START + timedelta(microseconds=500)
        assert sqlite.stats(owners, now) == ram.stats(owners, now)
        for limit in (None, 5):
            assert followed(sqlite, owners, limit) == followed(ram, owners, limit)
        for in_ram, in_file in past:
            for vectors in (False, True):
                assert list(sqlite.scan(owners, at=in_file, vectors=vectors)) == list(
                    ram.scan(owners, at=in_ram, vectors=vectors)
                )
            assert by_id(sqlite.get(owners, everything, at=in_file)) == by_id(ram.get(owners, everything, at=in_ram))
        assert_listings(ram, sqlite, owners, chosen, past)
    for limit in (None, 7):
        assert feed_of(sqlite, limit) == feed_of(ram, limit)
    assert_singles(ram, sqlite, everything)


def assert_listings(
    ram: Journal,
    sqlite: Journal,
    owners: frozenset[Owner],
    chosen: random.Random,
    past: list[tuple[Position, Position]],
) -> None:
    for sort in ORDERS_OF_STORES:
        where = filters_of(chosen)
        query = Query(owners=owners, where=where, sort=sort)
        assert list(pages(sqlite, query)) == list(pages(ram, query))
        skipping = Query(owners=owners, where=where, sort=sort, offset=3, limit=5)
        assert list(sqlite.select(skipping)) == list(ram.select(skipping))
        assert sqlite.count(owners, where) == ram.count(owners, where)
        assert set(sqlite.ids(owners, where)) == set(ram.ids(owners, where))
        for in_ram, in_file in past[-1:]:
            assert sqlite.count(owners, where, at=in_file) == ram.count(owners, where, at=in_ram)
            assert list(sqlite.select(Query(owners=owners, where=where, sort=sort, at=in_file))) == list(
                ram.select(Query(owners=owners, where=where, sort=sort, at=in_ram))
            )


def assert_singles(ram: Journal, sqlite: Journal, everything: list[str]) -> None:
    for owner in OWNERS:
        keys = ["editor", "home", "none", *everything]
        assert sqlite.keyed(owner, keys) == ram.keyed(owner, keys)
        for memory_id in everything:
            assert sqlite.history(owner, memory_id) == ram.history(owner, memory_id)
    assert sqlite.owners() == ram.owners()
    assert sqlite.owners(after=OWNERS[0], limit=1) == ram.owners(after=OWNERS[0], limit=1)
    for embedder in (EMBEDDER, OTHER):
        assert by_id(sqlite.unembedded(embedder, 10**6)) == by_id(ram.unembedded(embedder, 10**6))
        assert sqlite.count_unembedded(embedder) == ram.count_unembedded(embedder)
    assert {name: sqlite.settings().get(name) for name in ("embedder", "dimension")} == {
        name: ram.settings().get(name) for name in ("embedder", "dimension")
    }


@pytest.mark.req("L7")
@pytest.mark.parametrize("seed", range(8))
def test_it_answers_like_the_journal_in_ram(seed: int, stores: tuple[RamStore, SqliteStore]) -> None:
    ram, sqlite = stores
    script = Script(seed, (ram.journal, sqlite.journal))
    past: list[tuple[Position, Position]] = []
    for round_ in range(4):
        for _ in range(25):
            script.step()
        assert_alike(ram.journal, sqlite.journal, script.chosen, past)
        past.append((ram.journal.position(EVERYBODY), sqlite.journal.position(EVERYBODY)))
        at = codec.from_micros(script.at - script.chosen.randrange(60))
        past.append((ram.journal.position(EVERYBODY, at), sqlite.journal.position(EVERYBODY, at)))
        assert sqlite.check().findings == (), round_
    assert_alike(ram.journal, sqlite.journal, script.chosen, past)
    sqlite.rebuild()
    assert_alike(ram.journal, sqlite.journal, script.chosen, past)


@pytest.mark.req("L7")
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_another_embedder_takes_over_alike(seed: int, stores: tuple[RamStore, SqliteStore]) -> None:
    ram, sqlite = stores
    script = Script(seed, (ram.journal, sqlite.journal))
    for _ in range(30):
        script.step()
    for journal in script.journals:
        journal.set_settings({"calibration": "old"})
        assert not journal.adopt(OTHER, 4)
    vectors = [
        Embedded(one.owner, one.id, one.version, vector(script.chosen, OTHER))
        for one in ram.journal.unembedded(OTHER, 10**6)
    ]
    before = sqlite.journal.marks(EVERYBODY)
    for journal in script.journals:
        journal.embed(vectors)
        assert journal.adopt(OTHER, 4)
        assert journal.adopt(OTHER, 4)
        assert "calibration" not in journal.settings()
    assert_alike(ram.journal, sqlite.journal, script.chosen, [])
    after = sqlite.journal.marks(EVERYBODY)
    assert all(after[owner].revision > before[owner].revision for owner in before)
    assert sqlite.check().findings == ()


def added(owner: Owner, memory_id: str, text: str = "Likes tea", **more: Any) -> Write:
    """A first version."""
    made = facets(random.Random(memory_id)) | {"text": text, "state": "active"} | more
    return Write(
        owner=owner,
        id=memory_id,
        version=1,
        expected=0,
        operation=Operation.ADDED,
        stamp=ids.StampClock("9d2e8b7a6c5d", bytes).stamp(codec.to_micros(START) + hash(memory_id) % 10**9),
        recorded_at=codec.to_micros(START),
        facets=made,
    )


@pytest.mark.req("L7")
def test_two_owners_may_have_the_same_id(stores: tuple[RamStore, SqliteStore]) -> None:
    journal = stores[1].journal
    journal.append([added(owner, "same", text=owner.ids[0]) for owner in OWNERS])
    assert {one.owner: one.facets["text"] for one in journal.get(EVERYBODY, ["same"])} == {
        owner: owner.ids[0] for owner in OWNERS
    }
    assert [one.owner for one in journal.get({OWNERS[1]}, ["same"])] == [OWNERS[1]]
    with pytest.raises(Conflict):
        journal.append([added(OWNERS[0], "same")._replace(stamp=ids.StampClock("aa", bytes).stamp(5))])


@pytest.mark.req("L7")
def test_a_position_of_another_file_is_lost(stores: tuple[RamStore, SqliteStore], tmp_path: Path) -> None:
    """One of another epoch, and one of this file as it was before a restore."""
    journal = stores[1].journal
    journal.append([added(OWNERS[0], "a")])
    other = SqliteStore(tmp_path / "other.db")
    theirs = other.journal.append([added(OWNERS[0], "a")])
    with pytest.raises(PositionLost):
        journal.versions(EVERYBODY, after=theirs)
    with pytest.raises(PositionLost):
        journal.feed(after=other.journal.feed().next)
    other.journal.set_settings({"epoch": journal.settings()["epoch"]})
    other.journal.append([added(OWNERS[0], "b")])
    ahead, feed_ahead = other.journal.position({OWNERS[0]}), other.journal.feed().next
    for _ in range(2):
        with pytest.raises(PositionLost):
            journal.versions(EVERYBODY, after=ahead)
        with pytest.raises(PositionLost):
            journal.feed(after=feed_ahead)
        journal.append([added(OWNERS[0], f"c{random.random()}")])  # as far, but another version
    other.close()


@pytest.mark.req("L7")
def test_a_damaged_version_is_not_given_out(stores: tuple[RamStore, SqliteStore]) -> None:
    store = stores[1]
    store.journal.append([added(OWNERS[0], "a"), added(OWNERS[0], "b")])
    with store._file.snapshot() as connection:
        connection.execute("ROLLBACK")
        connection.execute("UPDATE journal SET text = 'Likes rum' WHERE id = 'a'")
    for read in (
        lambda: store.journal.get(EVERYBODY, ["a"]),
        lambda: store.journal.history(OWNERS[0], "a"),
        lambda: store.journal.versions(EVERYBODY),
        store.journal.feed,
    ):
        with pytest.raises(StoreCorrupt, match="damaged"):
            read()
    assert [one.id for one in store.journal.get(EVERYBODY, ["b"])] == ["b"]
    assert [finding.repaired for finding in store.check(repair=True).findings] == [True]
    assert store.check().findings == ()
    assert [one.id for one in store.journal.scan(EVERYBODY)] == ["b"]
    assert store.journal.usage(EVERYBODY)[OWNERS[0]].memories == 1
    store.journal.append([added(OWNERS[0], "c")])
    assert [one.seq for one in store.journal.versions(EVERYBODY)] == [
        2,
        3,
    ]  # that of the damaged one is not given again


@pytest.mark.req("L7")
def test_a_quota_is_kept_by_counters(stores: tuple[RamStore, SqliteStore]) -> None:
    journal = stores[1].journal
    one = added(OWNERS[0], "a", bytes=100)
    journal.append([one], quotas=[Quota(owners=EVERYBODY, limit_bytes=100)])
    with pytest.raises(QuotaExceeded):
        journal.append([added(OWNERS[1], "b", bytes=1)], quotas=[Quota(owners=EVERYBODY, limit_bytes=100)])
    assert journal.usage(EVERYBODY) == {OWNERS[0]: (1, 100)}
    assert journal.append([one]) == journal.position({OWNERS[0]})  # a retry


def test_orders_are_those_of_the_port() -> None:
    assert Sort.RELEVANCE not in ORDERS_OF_STORES
