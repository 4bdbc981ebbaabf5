"""What a complete copy of a store needs: going through everything, and writing it down elsewhere as it was."""

from dataclasses import replace
from pathlib import Path

import pytest

from recollect.errors import Conflict
from recollect.ports import Store, Write
from recollect.testing.basics import snapshot
from recollect.testing.builders import (
    START,
    added,
    erased,
    forgotten,
    later,
    memory,
    new_id,
    owner,
    put,
    query,
    updated,
    vector,
)
from recollect.testing.journal import lived
from recollect.testing.subject import Subject
from recollect.types import Layer, Memory, Operation

ADA = owner("ada")
BOB = owner("bob")
TEAM = owner("ada", layer=Layer.TEAM)


def copied(what: Memory, follows: int, operation: Operation = Operation.UPDATED) -> Write:
    """A version as it comes from another store."""
    return Write(operation=operation, memory=what, recorded_at=START, reason="copied", follows=follows)


@pytest.mark.req("H5", "J1")
class Copying(Subject):
    """``owners``, ``journal``, ``Write.follows``, and accesses by the number."""

    def test_owners_are_all_whom_the_journal_tells_of(self, store: Store, place: Path) -> None:
        assert store.owners() == []
        gone, hidden = memory("gone", BOB), memory("hidden", TEAM)
        put(store, memory("one"), gone, memory("two"), hidden)
        store.apply([erased(gone), forgotten(hidden)])
        with self.settled(store, place) as settled:
            found = settled.owners()
            assert len(found) == 3
            assert set(found) == {ADA, BOB, TEAM}

    def test_a_refused_write_makes_nobody_an_owner(self, store: Store) -> None:
        with pytest.raises(Conflict):
            store.apply([added(memory("one", BOB)), updated(memory("never added", TEAM))])
        assert store.owners() == []

    def test_the_journal_of_everybody_can_be_read_in_pieces(self, store: Store) -> None:
        assert store.journal() == []
        one, two = lived(memory("one")), lived(memory("two", BOB))
        store.apply([write for pair in zip(one, two, strict=True) for write in pair])
        store.apply([erased(one[-1].memory)])
        whole = store.versions({ADA, BOB})
        assert store.journal() == whole
        for place in range(len(whole)):
            assert store.journal(after=whole[place].sequence) == whole[place + 1 :]
            assert store.journal(after=whole[place].sequence, limit=2) == whole[place + 1 : place + 3]

    def test_versions_that_are_gone_leave_a_gap(self, store: Store, place: Path) -> None:
        one, two = memory("one", vector=vector(1, 0), key="k"), memory("two", version=3)
        put(store, one)
        fifth = replace(one, version=5, content="one, changed", vector=None)
        written = [added(two, follows=0), copied(fifth, 1), updated(fifth, content="and again"), updated(two)]
        store.apply(written)
        with self.settled(store, place) as settled:
            assert [(v.memory_id, v.version) for v in settled.journal()] == [
                (one.id, 1),
                (two.id, 3),
                (one.id, 5),
                (one.id, 6),
                (two.id, 4),
            ]
            assert [stored.memory.version for stored in settled.scan({ADA})] == [6, 4]
            assert [stored.memory.version for stored in settled.scan({ADA}, as_of=3)] == [5, 3]
            assert settled.keys(ADA, ["k"]) == {"k": one.id}
            settled.embed([later(settled, written[-1].memory, vector(0, 1))])
            assert settled.get({ADA}, [two.id], vectors=True)[two.id].vector == vector(0, 1)
            assert settled.check().healthy
            before = snapshot(settled, ADA)
            settled.rebuild()
            assert snapshot(settled, ADA) == before

    @pytest.mark.req("H11")
    def test_what_does_not_follow_leaves_no_trace(self, store: Store) -> None:
        one = memory("one")
        put(store, one)
        store.apply([updated(one)])
        before = snapshot(store, ADA, BOB)
        wrong = [
            copied(replace(one, version=5), 1),
            copied(replace(one, version=5), 3),
            copied(replace(one, version=5), 0),
            copied(replace(one, version=2), 2),
            copied(replace(one, version=1), 2),
            copied(replace(one, version=5, owner=BOB), 2),
            copied(replace(one, version=5, id=new_id()), 4),
            copied(replace(one, version=5), 1, Operation.ERASED),
        ]
        for write in wrong:
            with pytest.raises(Conflict):
                store.apply([added(memory("with it")), write])
        assert snapshot(store, ADA, BOB) == before

    @pytest.mark.req("H11")
    def test_the_mark_of_an_erased_memory_can_be_copied(self, store: Store, place: Path) -> None:
        """Whether the store had some of its versions or none: the id is used, and nothing else is there."""
        unknown, known = memory("unknown", version=7), memory("known", key="k")
        put(store, known)
        gone = [copied(unknown, 0, Operation.ERASED), copied(replace(known, version=4), 1, Operation.ERASED)]
        store.apply([*gone, added(memory("another", key="k"))])
        with self.settled(store, place) as settled:
            marks = settled.journal()[:2]
            assert [(v.memory_id, v.version, v.operation, v.reason, v.memory) for v in marks] == [
                (write.memory.id, write.memory.version, Operation.ERASED, "copied", None) for write in gone
            ]
            assert settled.get({ADA}, [unknown.id, known.id]) == {}
            assert settled.count(query(ADA, include_forgotten=True)) == settled.stats({ADA}, START).active == 1
            for one, version in ((unknown, 7), (known, 4)):
                for again in (added(replace(one, version=1)), copied(replace(one, version=version + 1), version)):
                    with pytest.raises(Conflict):
                        settled.apply([again])
            assert settled.check().healthy

    def test_an_id_given_often_counts_often(self, store: Store, place: Path) -> None:
        one, two = memory("one"), memory("two")
        put(store, one, two)
        store.touch((id for id in [one.id, two.id, one.id, one.id]), START)
        with self.settled(store, place) as settled:
            found = settled.get({ADA}, [one.id, two.id])
            assert [(found[m.id].access_count, found[m.id].last_accessed_at) for m in (one, two)] == [
                (3, START),
                (1, START),
            ]
