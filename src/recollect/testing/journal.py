"""The journal: versions, the change feed, times past, and erasing."""

from dataclasses import replace
from datetime import timedelta

import pytest

from recollect.errors import Conflict
from recollect.ports import Store, Write
from recollect.testing.basics import snapshot
from recollect.testing.builders import (
    START,
    added,
    by_words,
    erased,
    forgotten,
    ids_of,
    memory,
    nearest,
    new_id,
    owner,
    plain,
    put,
    query,
    restored,
    updated,
    vector,
)
from recollect.testing.subject import Subject
from recollect.types import Memory, Operation, Sort, State, Version

ADA = owner("ada")
BOB = owner("bob")


def lived(start: Memory) -> list[Write]:
    """A life: added, changed, forgotten, restored."""
    first = added(start, reason="because")
    second = updated(start, content=f"{start.content}, changed", write={"reason": "a mistake"})
    third = forgotten(second.memory)
    return [first, second, third, restored(third.memory, reason="was right")]


def expected(write: Write, sequence: int) -> Version:
    """The entry that a write leaves in the journal."""
    return Version(
        sequence=sequence,
        memory_id=write.memory.id,
        owner=write.memory.owner,
        version=write.memory.version,
        operation=write.operation,
        recorded_at=write.recorded_at,
        reason=write.reason,
        memory=write.memory,
    )


@pytest.mark.req("H5")
class Journal(Subject):
    """``versions``, ``sequence``, ``as_of`` and erasing."""

    def test_the_journal_tells_what_happened(self, store: Store) -> None:
        one, two = lived(memory("one")), lived(memory("two"))
        writes = [write for pair in zip(one, two, strict=True) for write in pair]
        wanted = []
        for write in writes:
            wanted.append(expected(write, store.apply([write])[0]))
        assert store.versions({ADA}) == wanted
        assert store.versions({ADA}, memory_id=one[0].memory.id) == wanted[::2]
        assert store.versions({ADA}, memory_id=new_id()) == []

    def test_the_change_feed_can_be_resumed_anywhere(self, store: Store) -> None:
        writes = [*lived(memory("one")), *lived(memory("two")), *lived(memory("theirs", BOB))]
        store.apply(writes)
        whole = store.versions({ADA, BOB})
        assert len(whole) == len(writes)
        positions = [0, *(version.sequence for version in whole)]
        for index, position in enumerate(positions):
            assert store.versions({ADA, BOB}, after=position) == whole[index:]
            assert store.versions({ADA, BOB}, after=position, limit=3) == whole[index : index + 3]
        assert store.versions({ADA}, after=positions[1], limit=4) == whole[1:5]
        one = whole[0].memory_id
        assert store.versions({ADA}, memory_id=one, after=positions[2], limit=1) == whole[2:3]

    def test_versions_keep_no_accesses(self, store: Store) -> None:
        one = memory()
        put(store, one)
        store.touch([one.id], START)
        assert store.versions({ADA})[0].memory == one

    def test_sequence_at_a_time(self, store: Store) -> None:
        """Of those recorded by then the highest sequence, also when the clock went backwards."""
        seconds = [10, 20, 15, 30]
        sequences = [store.apply([added(memory(), recorded_at=START + timedelta(seconds=at))])[0] for at in seconds]
        asked = {9: 0, 10: sequences[0], 15: sequences[2], 20: sequences[2], 30: sequences[3]}
        for at, wanted in asked.items():
            assert store.sequence(START + timedelta(seconds=at)) == wanted
        just_before = START + timedelta(seconds=30) - timedelta(microseconds=1)
        assert store.sequence(just_before) == sequences[2]
        assert store.sequence(START + timedelta(days=9)) == store.sequence() == sequences[3]

    def test_every_past_state_can_be_seen(self, store: Store) -> None:
        one, two = lived(memory("one")), lived(memory("two"))
        writes = [one[0], two[0], one[1], one[2], two[1], one[3], two[2], two[3]]
        states: dict[int, dict[str, Memory]] = {0: {}}
        for write in writes:
            past = states[max(states)]
            states[store.apply([write])[0]] = past | {write.memory.id: write.memory}
        numbers = {stored.memory.id: stored.number for stored in store.scan({ADA})}
        for sequence, wanted in states.items():
            found = list(store.scan({ADA}, as_of=sequence))
            assert {stored.memory.id: stored.memory for stored in found} == wanted
            assert ids_of(stored.memory for stored in found) == list(wanted)
            assert all(stored.number == numbers[stored.memory.id] for stored in found)
            listing = query(ADA, as_of=sequence, sort=Sort.OLDEST)
            active = [one for one in wanted.values() if one.state is State.ACTIVE]
            assert [stored.memory for stored in store.select(listing)] == active
            assert store.count(listing) == len(active)
            assert list(store.scan({BOB}, as_of=sequence)) == []

    def test_a_time_past_is_seen_as_it_was_by_content_and_fields(self, store: Store) -> None:
        one = memory("old words", tags=("old",), importance=0.1)
        then = put(store, one)[-1]
        store.apply([updated(one, content="new words", tags=("new",), importance=0.9)])
        for change in ({"tags": ("old",)}, {"content_contains": "old"}):
            assert store.count(query(ADA, as_of=then, **change)) == 1
            assert store.count(query(ADA, **change)) == 0
        assert store.count(query(ADA, as_of=then, min_importance=0.5)) == 0

    def test_erasing_leaves_only_that_it_was(self, store: Store) -> None:
        life = lived(memory("one", key="k", vector=vector(1, 0), tags=("t",)))
        other = memory("one, too", vector=vector(1, 0.5))
        store.apply(life)
        sequences = [store.sequence()]
        put(store, other)
        store.touch([life[0].memory.id], START)
        gone = erased(life[-1].memory, reason="asked for")
        sequences += store.apply([gone])
        marks = store.versions({ADA}, memory_id=gone.memory.id)
        assert marks == [replace(expected(gone, sequences[-1]), memory=None)]
        assert store.get({ADA}, [gone.memory.id], vectors=True) == {}
        left = [replace(other, vector=None)]
        assert [stored.memory for stored in store.scan({ADA})] == left
        assert list(store.scan({ADA}, as_of=sequences[0])) == []
        assert store.keys(ADA, ["k"]) == {}
        everything = query(ADA, include_forgotten=True)
        assert [plain(stored.memory) for stored in store.select(everything)] == left
        assert store.select(replace(everything, as_of=sequences[0])) == []
        assert store.count(everything) == 1
        for asked in (everything, query(ADA), replace(everything, as_of=sequences[-1])):
            assert ids_of(one.memory for one in nearest(store, asked, vector(1, 0), 5)) == [other.id]
            assert ids_of(one.memory for one in by_words(store, asked, "one changed", 5)) == [other.id]
        stats = store.stats({ADA}, START)
        assert (stats.active, stats.forgotten, stats.top_tags) == (1, 0, ())
        assert store.sequence() == sequences[-1]

    def test_the_change_feed_reports_an_erasure(self, store: Store) -> None:
        one, two = memory("one"), memory("two")
        put(store, one)
        seen = put(store, two)[-1]
        store.apply([erased(one)])
        feed = store.versions({ADA}, after=seen)
        assert [(v.memory_id, v.operation, v.memory) for v in feed] == [(one.id, Operation.ERASED, None)]
        assert [version.memory for version in store.versions({ADA})] == [two, None]

    @pytest.mark.req("H11")
    def test_an_erased_id_is_never_used_again(self, store: Store) -> None:
        one = memory("one")
        put(store, one)
        gone = erased(one)
        store.apply([gone])
        before = snapshot(store, ADA)
        for operation in Operation:
            for version in (1, 2, 3):
                again = replace(gone.memory, version=version)
                with pytest.raises(Conflict):
                    store.apply([Write(operation=operation, memory=again, recorded_at=START)])
        with pytest.raises(Conflict):
            put(store, replace(one, owner=BOB))
        assert snapshot(store, ADA, BOB) == before

    def test_a_memory_may_come_and_go_in_one_batch(self, store: Store) -> None:
        one, other = memory("one", key="k"), memory("other", key="k")
        sequences = store.apply([added(one), erased(one), added(other)])
        assert [stored.memory for stored in store.scan({ADA})] == [other]
        journal = store.versions({ADA})
        assert [version.sequence for version in journal] == sequences[1:]
        assert store.keys(ADA, ["k"]) == {"k": other.id}

    @pytest.mark.parametrize("work", [Store.rebuild.__name__, Store.compact.__name__, Store.accept.__name__])
    def test_upkeep_changes_nothing(self, store: Store, work: str) -> None:
        life = lived(memory("one", key="k", vector=vector(1, 0), tags=("t",)))
        store.apply([*life, *lived(memory("two", BOB))])
        gone = memory("gone")
        put(store, gone)
        store.apply([erased(gone)])
        before = snapshot(store, ADA, BOB), store.stats({ADA, BOB}, START)
        given = {"compact": ({ADA, BOB},), "accept": (START,)}.get(work, ())
        assert not getattr(store, work)(*given)
        assert (snapshot(store, ADA, BOB), store.stats({ADA, BOB}, START)) == before
        assert store.keys(ADA, ["k"]) == {"k": life[0].memory.id}
        assert len(by_words(store, query(ADA), "changed", 5)) == 1
        assert len(nearest(store, query(ADA), vector(1, 0), 5)) == 1
