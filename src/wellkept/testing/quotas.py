"""Quotas and guards: what an append must find when it commits."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.errors import Conflict, QuotaExceeded
from wellkept.ports import Record, Store
from wellkept.testing.basics import check_usage, everything
from wellkept.testing.builders import START, Writer, one_of, owner, put, vector
from wellkept.testing.concurrency import THREADS, at_once
from wellkept.testing.subject import GENERATED, Subject
from wellkept.types import Embedded, Guard, Owner, Quota, Usage, Write

ADA, BOB, EVE = owner("ada"), owner("bob"), owner("eve")
TEXT = "x" * 100


def quota(limit: int, *owners: Owner) -> Quota:
    """At most so many bytes for these owners together; for ada if none is named."""
    return Quota(owners=frozenset(owners or {ADA}), limit_bytes=limit)


def size(write: Write) -> int:
    """What a write counts for."""
    return int(write.facets["bytes"]) + (len(write.vector.data) if write.vector else 0)


def fits(store: Store, writes: Sequence[Write], *quotas: Quota) -> bool:
    """Whether writes were accepted; refused ones leave no trace."""
    owners = {write.owner for write in writes}
    before = everything(store.journal, *owners)
    try:
        store.journal.append(writes, quotas=quotas)
    except QuotaExceeded:
        assert everything(store.journal, *owners) == before
        return False
    check_usage(store.journal, owners)
    return True


def used(store: Store, whose: Owner) -> int:
    """The bytes of an owner."""
    return store.journal.usage({whose}).get(whose, Usage()).bytes_used


@pytest.mark.req("L12", "H5")
class Quotas(Subject):
    """``append`` with quotas, and ``usage``."""

    def test_what_fits_to_the_byte_is_written(self, store: Store, writes: Writer) -> None:
        one, two = writes.add(ADA, TEXT), writes.add(ADA, TEXT, write={"vector": vector(1, 0)})
        limit = size(one) + size(two)
        assert not fits(store, [one, two], quota(limit - 1))
        assert fits(store, [one, two], quota(limit))
        assert used(store, ADA) == limit
        assert not fits(store, [writes.add(ADA, "y")], quota(limit))

    def test_each_of_several_quotas_must_hold(self, store: Store, writes: Writer) -> None:
        put(store, writes.add(BOB, TEXT), writes.add(EVE, TEXT * 50))
        held, one = used(store, BOB), writes.add(ADA, TEXT)
        together = held + size(one)
        assert not fits(store, [one], quota(1_000_000), quota(together - 1, ADA, BOB))
        assert not fits(store, [one], quota(size(one) - 1), quota(together, ADA, BOB))
        assert fits(store, [one], quota(size(one)), quota(together, ADA, BOB), quota(1, EVE))

    def test_batches_of_several_owners_count_together(self, store: Store, writes: Writer) -> None:
        if not store.capabilities.batches:
            pytest.skip("the store writes to one owner at a time")
        batch = [writes.add(ADA, TEXT), writes.add(BOB, TEXT)]
        total = sum(map(size, batch))
        assert not fits(store, batch, quota(total - 1, ADA, BOB))
        assert not fits(store, batch, quota(1_000), quota(1, BOB))
        assert fits(store, batch, quota(total, ADA, BOB))

    def test_what_does_not_grow_passes_above_the_limit(self, store: Store, writes: Writer) -> None:
        one, two = writes.add(ADA, TEXT), writes.add(ADA, TEXT)
        store.journal.append([one, two])
        assert fits(store, [writes.forget(one)], quota(1)) is (size(writes.forget(one)) <= size(one))
        assert fits(store, [writes.update(two, "short")], quota(1))
        assert fits(store, [writes.erase(one_of(store, ADA, one.id))], quota(1))
        assert not fits(store, [writes.add(ADA, "y")], quota(1))

    def test_erasing_makes_room_also_within_the_batch(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA, TEXT, write={"vector": vector(1, 0)})
        store.journal.append([one])
        limit = size(one)
        new = writes.add(ADA, TEXT, write={"vector": vector(0, 1)})
        forgotten = writes.forget(one)
        assert not fits(store, [forgotten, new], quota(limit))
        assert fits(store, [writes.erase(one), new], quota(limit))
        longer = writes.update(new, TEXT * 3)
        assert fits(store, [longer, writes.update(longer, TEXT)], quota(limit))

    def test_vectors_that_came_later_are_counted(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA, TEXT)
        store.journal.append([one])
        store.journal.embed([Embedded(ADA, one.id, 1, vector(1, 2, 3, 4))])
        assert used(store, ADA) == size(one) + 16
        new = writes.add(ADA, "new")
        assert not fits(store, [new], quota(size(one) + 16 + size(new) - 1))
        kept = writes.update(one, TEXT)
        assert fits(store, [kept, new], quota(size(one) + 16 + size(new)))

    def test_what_is_archived_counts_for_nothing(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA, TEXT, write={"vector": vector(1, 0, 0, 0)})
        store.journal.append([one])
        archived = writes.archive(one)
        new = writes.add(ADA, TEXT)
        assert fits(store, [archived, new], quota(size(one)))
        assert used(store, ADA) == size(new)
        store.journal.embed([Embedded(ADA, one.id, 2, vector(1, 2, 3, 4))])
        assert used(store, ADA) == size(new)
        back = writes.restore(archived)
        assert not fits(store, [back], quota(size(one)))
        assert fits(store, [back], quota(size(one) + size(back) + 16))
        assert used(store, ADA) == size(new) + size(back) + 16

    @given(
        steps=st.lists(
            st.tuples(
                st.sampled_from(["add", "update", "forget", "archive", "erase", "embed"]),
                st.integers(0, 5),
                st.integers(0, 60),
                st.booleans(),
            ),
            max_size=15,
        )
    )
    @GENERATED
    def test_usage_is_the_sum_of_footprints(
        self, store: Store, writes: Writer, steps: list[tuple[str, int, int, bool]]
    ) -> None:
        whose = owner(writes.new_id())
        for what, which, length, embedded in steps:
            known = list(store.journal.scan({whose}))
            brought: dict[str, Any] = {"vector": vector(*[0.5] * 4) if embedded else None, "keeps_vector": False}
            if what == "add" or not known:
                store.journal.append([writes.add(whose, "x" * length, write=brought)])
            else:
                one, kept = known[which % len(known)], brought if length % 2 else None
                if what == "embed":
                    store.journal.embed([Embedded(whose, one.id, one.version, vector(*[0.25] * 4))])
                elif what == "update":
                    store.journal.append([writes.update(one, "y" * length, write=kept)])
                else:
                    step = {"forget": writes.forget, "archive": writes.archive, "erase": writes.erase}[what]
                    store.journal.append([step(one)])
            check_usage(store.journal, [whose])

    def test_threads_cannot_overrun_it_together(self, store: Store, writes: Writer) -> None:
        batches = [[writes.add(ADA, TEXT) for _ in range(10)] for _ in range(THREADS)]
        limit = 25 * size(batches[0][0])

        def add(batch: list[Write]) -> int:
            return sum(self._accepted(store, one, limit) for one in batch)

        assert sum(at_once([partial(add, batch) for batch in batches])) == 25
        assert used(store, ADA) == limit
        check_usage(store.journal, [ADA])

    def _accepted(self, store: Store, write: Write, limit: int) -> bool:
        try:
            store.journal.append([write], quotas=[quota(limit)])
        except QuotaExceeded:
            return False
        return True


@pytest.mark.req("H11")
class Guards(Subject):
    """``append`` under the condition that a record or a lease did not change."""

    def test_a_record_must_be_at_its_version(self, store: Store, writes: Writer) -> None:
        record = Record(owner=BOB, kind="session", name="s", body=b"{}", version=1, updated_at=START)
        none, first = (Guard(owner=BOB, kind="session", name="s", version=version) for version in (0, 1))
        store.journal.append([writes.add(ADA)], guards=[none])
        store.records.put(record)
        before = everything(store.journal, ADA)
        for guards in ([none], [first, none], [Guard(owner=ADA, kind="session", name="s", version=1)]):
            with pytest.raises(Conflict):
                store.journal.append([writes.add(ADA)], guards=guards)
        assert everything(store.journal, ADA) == before
        guarded = writes.add(ADA)
        store.journal.append([guarded], guards=[first])
        store.records.drop(BOB, "session", "s")
        store.journal.append([guarded], guards=[first])  # a retry after a lost answer: it is written already
        with pytest.raises(Conflict):
            store.journal.append([writes.add(ADA)], guards=[first])
        assert store.journal.marks({ADA})[ADA].seq == 2

    def test_a_lease_must_hold(self, store: Store, writes: Writer) -> None:
        """A worker that lost its lease while it slept cannot write (fencing)."""
        if not store.capabilities.leases:
            pytest.skip("the store has no leases")
        lease = store.records.lease("upkeep", "worker 1", 60_000)
        assert lease is not None
        mine = Guard(lease="upkeep", token=lease.token)
        store.journal.append([writes.add(ADA)], guards=[mine])
        store.records.release(lease)
        for wrong in (mine, Guard(lease="upkeep", token=lease.token + 1), Guard(lease="never taken", token=1)):
            with pytest.raises(Conflict):
                store.journal.append([writes.add(ADA)], guards=[wrong])
        after = store.records.lease("upkeep", "worker 2", 60_000)
        assert after is not None
        with pytest.raises(Conflict):
            store.journal.append([writes.add(ADA)], guards=[mine])
        store.journal.append([writes.add(ADA)], guards=[Guard(lease="upkeep", token=after.token)])
        assert store.journal.marks({ADA})[ADA].seq == 2
