"""Records and leases: documents with optimistic concurrency, and the right to do something alone."""

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.errors import Conflict, Unsupported
from wellkept.ports import Lease, Record, Store
from wellkept.testing import strategies
from wellkept.testing.basics import HOSTILE_TEXTS
from wellkept.testing.builders import Writer, moment, owner
from wellkept.testing.cases import Cases
from wellkept.testing.concurrency import THREADS, at_once, won
from wellkept.testing.subject import GENERATED, Subject
from wellkept.types import Guard, Layer, Owner

ADA, BOB = owner("ada"), owner("bob")
PATIENCE_S = 30.0


def record(
    name: str = "name", whose: Owner = ADA, *, kind: str = "kind", body: bytes = b"{}", version: int = 1
) -> Record:
    """A record in its first version, unless told otherwise."""
    return Record(owner=whose, kind=kind, name=name, body=body, version=version, updated_at=moment(micros=version))


@pytest.mark.req("H5")
class RecordsOfOwners(Subject):
    """``get``, ``put``, ``drop`` and ``list`` of ``store.records``."""

    def test_an_empty_store_has_none(self, store: Store) -> None:
        assert store.records.get(ADA, "kind", "name") is None
        assert not store.records.drop(ADA, "kind", "name")
        assert list(store.records.list({ADA})) == list(store.records.list(None)) == []

    def test_a_record_comes_back_as_it_was_put(self, store: Store) -> None:
        body = b'{"a": [1, 2.50, "\\u00e9", null], "b": {}}'
        with Cases() as cases:
            for text in HOSTILE_TEXTS:
                one = record(f"name {text}", owner(f"who {text}"), kind="a kind", body=body)
                with cases.case(text):
                    store.records.put(one)
                    assert store.records.get(one.owner, one.kind, one.name) == one
                    assert list(store.records.list({one.owner}, "a kind")) == list(store.records.list(None)) == [one]
                    assert store.records.drop(one.owner, one.kind, one.name)

    @pytest.mark.req("H11")
    def test_only_the_next_version_is_taken(self, store: Store) -> None:
        with pytest.raises(Conflict):
            store.records.put(record(version=2))
        store.records.put(record())
        store.records.put(record(version=2, body=b'{"n": 2}'))
        for version in (0, 1, 2, 4):
            with pytest.raises(Conflict):
                store.records.put(record(version=version, body=b'{"wrong": true}'))
        assert store.records.get(ADA, "kind", "name") == record(version=2, body=b'{"n": 2}')

    @pytest.mark.req("L14")
    def test_a_record_of_another_store_keeps_its_version(self, store: Store) -> None:
        store.records.restore(record(version=4_500))
        assert store.records.get(ADA, "kind", "name") == record(version=4_500)
        for version in (1, 4_499, 4_500):
            with pytest.raises(Conflict):
                store.records.restore(record(version=version, body=b'{"older": true}'))
        assert list(store.records.list({ADA})) == [record(version=4_500)]
        store.records.put(record(version=4_501))
        store.records.restore(record(version=9_000, body=b'{"n": 2}'))
        assert store.records.get(ADA, "kind", "name") == record(version=9_000, body=b'{"n": 2}')

    @pytest.mark.req("H5")
    def test_a_restored_record_guards_a_write_like_any_other(self, store: Store, writes: Writer) -> None:
        store.records.restore(record(version=7))
        guard = Guard(owner=ADA, kind="kind", name="name", version=6)
        with pytest.raises(Conflict):
            store.journal.append([writes.add(ADA)], guards=[guard])
        store.journal.append([writes.add(ADA)], guards=[replace(guard, version=7)])

    def test_a_dropped_record_is_gone_and_its_name_free(self, store: Store) -> None:
        store.records.put(record())
        store.records.put(record(version=2))
        assert store.records.drop(ADA, "kind", "name")
        assert not store.records.drop(ADA, "kind", "name")
        assert store.records.get(ADA, "kind", "name") is None
        store.records.put(record(body=b'{"new": 1}'))
        assert [one.version for one in store.records.list({ADA})] == [1]

    @pytest.mark.req("H6")
    def test_owners_and_kinds_are_kept_apart(self, store: Store) -> None:
        kept = [
            record(body=str(number).encode(), whose=whose, kind=kind)
            for number, (whose, kind) in enumerate(
                [(ADA, "kind"), (BOB, "kind"), (ADA, "Kind"), (ADA, "kin"), (owner("ada", layer=Layer.TEAM), "kind")]
            )
        ]
        for one in kept:
            store.records.put(one)
        for one in kept:
            assert store.records.get(one.owner, one.kind, one.name) == one
            assert list(store.records.list({one.owner}, one.kind)) == [one]
        assert len(store.records.list({ADA})) == 3
        assert len(store.records.list({ADA, BOB}, "kind")) == 2
        assert {one.body for one in store.records.list(None)} == {one.body for one in kept}
        assert len(store.records.list(None, "kind")) == 3
        assert store.records.drop(ADA, "kind", "name")
        assert len(store.records.list(None)) == 4

    @given(names=st.lists(strategies.texts(min_size=1, max_size=6), unique=True, max_size=8), limit=st.integers(1, 3))
    @GENERATED
    def test_names_are_literal_and_give_the_order_of_pages(
        self, store: Store, writes: Writer, names: list[str], limit: int
    ) -> None:
        whose = owner(writes.new_id())
        for name in names:
            store.records.put(record(name, whose))
        assert [one.name for one in store.records.list({whose})] == sorted(names)
        walked: list[str] = []
        while page := store.records.list({whose}, "kind", after=walked[-1] if walked else "", limit=limit):
            assert len(page) <= limit
            assert page[0].name not in walked, "a page brings back what another one had"
            walked += [one.name for one in page]
        assert walked == sorted(names)

    def test_records_are_no_versions(self, store: Store, writes: Writer) -> None:
        store.journal.append([writes.add(ADA)])
        marks, usage = store.journal.marks({ADA, BOB}), store.journal.usage({ADA})
        store.records.put(record())
        store.records.put(record(whose=BOB))
        assert (store.journal.marks({ADA, BOB}), store.journal.usage({ADA})) == (marks, usage)
        store.rebuild()
        assert list(store.journal.owners()) == [ADA]
        assert len(store.records.list(None)) == 2

    @pytest.mark.req("H11")
    def test_one_of_many_wins_a_version_of_a_record(self, store: Store) -> None:
        for version in range(1, 8):
            rivals = [record(version=version, body=b'{"n": %d}' % number) for number in range(THREADS)]
            results = at_once([partial(won, store.records.put, rival) for rival in rivals])
            assert results.count(True) == 1
            assert store.records.get(ADA, "kind", "name") == rivals[results.index(True)]

    def test_durable_records_are_there_again(self, store: Store, place: Path) -> None:
        store.records.put(record())
        store.close()
        again = self.open_store(place)
        kept = again.records.get(ADA, "kind", "name")
        again.close()
        assert kept == (record() if again.capabilities.durable else None)


@pytest.mark.req("H5")
class Leases(Subject):
    """``lease`` and ``release`` of ``store.records``, where the store declares them."""

    @pytest.fixture
    def leasing(self, store: Store) -> Store:
        """A store with leases."""
        if not store.capabilities.leases:
            pytest.skip("the store has no leases")
        return store

    def test_leases_are_declared(self, store: Store) -> None:
        if store.capabilities.leases:
            assert store.records.lease("job", "me", 1_000) is not None
            return
        with pytest.raises(Unsupported):
            store.records.lease("job", "me", 1_000)
        with pytest.raises(Unsupported):
            store.records.release(Lease(name="job", holder="me", token=1))

    def test_a_lease_is_exclusive_and_its_holder_prolongs_it(self, leasing: Store) -> None:
        records = leasing.records
        mine = records.lease("job", "me", 60_000)
        assert mine is not None
        assert (mine.name, mine.holder) == ("job", "me")
        assert records.lease("job", "you", 60_000) is None
        assert records.lease("job", "me", 60_000) == mine
        other = records.lease("another job", "you", 60_000)
        assert other is not None

    def test_tokens_rise_with_every_holder(self, leasing: Store) -> None:
        last = 0
        for turn in range(4):
            lease = leasing.records.lease("job", f"holder {turn}", 60_000)
            assert lease is not None
            assert lease.token > last
            last = lease.token
            leasing.records.release(lease)
            leasing.records.release(lease)

    def test_releasing_what_is_no_longer_ones_own_changes_nothing(self, leasing: Store) -> None:
        mine = leasing.records.lease("job", "me", 60_000)
        assert mine is not None
        leasing.records.release(replace(mine, token=mine.token + 1))
        leasing.records.release(replace(mine, holder="you"))
        leasing.records.release(replace(mine, name="unknown"))
        assert leasing.records.lease("job", "you", 60_000) is None

    def test_a_lease_ends_by_the_stores_clock(self, leasing: Store) -> None:
        short = leasing.records.lease("job", "me", 1)
        assert short is not None
        limit = time.monotonic() + PATIENCE_S
        taken = leasing.records.lease("job", "you", 60_000)
        while taken is None and time.monotonic() < limit:
            taken = leasing.records.lease("job", "you", 60_000)
        assert taken is not None
        assert taken.token > short.token
        assert leasing.records.lease("job", "me", 60_000) is None

    def test_one_of_many_takes_a_lease(self, leasing: Store) -> None:
        takes = [partial(leasing.records.lease, "job", f"holder {number}", 60_000) for number in range(THREADS)]
        assert sum(lease is not None for lease in at_once(takes)) == 1
