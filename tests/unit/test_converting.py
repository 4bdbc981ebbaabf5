"""Converting between stores: nothing is lost, whatever interrupts it."""

import random
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from recollect.memories.converting import CONVERSION
from recollect.testing.journal import lived
from recollect.testing.records import record

import recollect
from recollect.errors import Conflict, NotACopy, StoreCorrupt
from recollect.memories import comparing
from recollect.ports import Store
from recollect.stores.ram import RamStore
from recollect.stores.sqlite import SqliteStore
from recollect.testing import FaultyStore
from recollect.testing.builders import START, erased, forgotten, later, memory, put, updated, vector
from recollect.testing.subject import GENERATED
from recollect.types import Vector, Version
from tests.unit.converted import ADA, BOB, file, fill, seen
from tests.unit.histories import Life, Step, picture, plain, steps

pytestmark = pytest.mark.req("P3")


# -- nothing is lost ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.req("N11")
@settings(GENERATED, max_examples=40)
@given(steps=steps())
def test_any_history_is_the_same_there_and_back(steps: list[Step]) -> None:
    life = Life(RamStore())
    for step in steps:
        step(life)
    with tempfile.TemporaryDirectory() as folder, closing(file(Path(folder), "there")) as there:
        back = RamStore()
        first = recollect.convert(life.store, there)
        second = recollect.convert(there, back)
        assert first == second
        assert there.check().healthy
        known = picture(life.store)
        assert picture(there) == known
        assert picture(back) == known


@pytest.mark.slow
@settings(GENERATED, max_examples=15)
@given(before=steps(), after=steps())
def test_what_happens_after_a_conversion_is_followed(before: list[Step], after: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(file(Path(folder), "copy")) as copy:
        life = Life(RamStore())
        for step in before:
            step(life)
        recollect.convert(life.store, copy)
        for step in after:
            step(life)
        lacking = life.store.count_unembedded(life.store.settings().get("embedder", "none"))
        if lacking:  # it may have gone over to another embedder, which the copy then cannot follow
            with suppress(NotACopy):
                recollect.convert(life.store, copy)
            assert plain(copy.journal()) == plain(life.store.journal())
        else:
            recollect.convert(life.store, copy)
            assert picture(copy) == picture(life.store)


def test_everything_arrives(source: Store, target: Store) -> None:
    report = recollect.convert(source, target)
    assert seen(target) == seen(source)
    assert (report.copied, report.versions, report.memories, report.owners) == (13, 13, 5, 2)


def test_batches_need_not_end_where_memories_do(source: Store, target: Store, small_batches: None) -> None:
    recollect.convert(source, target)
    assert seen(target) == seen(source)


def test_a_key_is_taken_in_the_copy_as_well(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "one.db", embedder=None) as memories:
        tea = memories.view(user="ada").add("Likes tea", key="drink")
    recollect.convert(tmp_path / "one.db", f"sqlite:{tmp_path / 'two.db'}")
    with recollect.open(tmp_path / "two.db", embedder=None) as memories:
        view = memories.view(user="ada")
        assert view.add("Likes tea", key="drink").id == tea.id
        with pytest.raises(Conflict):
            view.add("Likes coffee", key="drink")


def test_an_erased_id_stays_used(source: Store, target: Store) -> None:
    recollect.convert(source, target)
    [mark] = [version for version in target.journal() if version.memory is None]
    with pytest.raises(Conflict):
        put(target, memory("again", id=mark.memory_id))


def test_how_durable_the_target_is_stays_its_own(tmp_path: Path) -> None:
    with closing(file(tmp_path, "relaxed")) as source, closing(SqliteStore(tmp_path / "full.db")) as target:
        fill(source)
        recollect.convert(source, target)
        assert (source.settings()["durability"], target.settings()["durability"]) == ("relaxed", "full")


def test_an_empty_database_can_be_converted(tmp_path: Path) -> None:
    recollect.open(tmp_path / "empty.db").close()
    told: list[tuple[int, int]] = []
    report = recollect.convert(tmp_path / "empty.db", tmp_path / "copy.db", progress=lambda *done: told.append(done))
    assert (report.copied, report.versions, report.owners) == (0, 0, 0)
    assert told == [(0, 0)]


@pytest.mark.req("J11")
def test_versions_set_aside_as_damaged_leave_the_same_gap_in_the_copy(tmp_path: Path) -> None:
    with closing(file(tmp_path, "source")) as source:
        life = lived(memory("one"))
        source.apply(life)
        put(source, memory("two"))
        _damage(source, 2)
        with pytest.raises(StoreCorrupt) as caught:
            recollect.convert(source, RamStore())
        assert (caught.value.details["version"], caught.value.operation) == (2, "convert")
        source.check(repair=True)
        with closing(file(tmp_path, "copy")) as copy:
            recollect.convert(source, copy)
            assert [version.version for version in copy.versions({ADA}, memory_id=life[0].memory.id)] == [1, 3, 4]
            assert seen(copy) == seen(source)


def _damage(store: SqliteStore, sequence: int) -> None:
    change = "UPDATE journal SET content = content || '!' WHERE sequence = ?"
    store._write(lambda work: work.connection.execute(change, (sequence,)))


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
def test_large_memories_come_in_small_batches(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "BATCH_BYTES", 1_000)
    source = FaultyStore(RamStore() if kind == "ram" else file(tmp_path, "source"))
    with closing(source):
        put(source, *(memory("x" * 500) for _ in range(comparing.BATCH)), *(memory("y" * 500) for _ in range(9)))
        sizes = [len(batch) for batch in comparing.batches(source)]
    assert sizes == [comparing.BATCH, *[2] * 4, 1]


def test_records_are_followed(source: Store, target: Store) -> None:
    third = record("monday", BOB, version=1)
    for version in (1, 2, 3):
        source.put_record(replace(third, version=version))
    source.put_record(record("gone"))
    recollect.convert(source, target)
    assert sorted(target.all_records(), key=str) == sorted(source.all_records(), key=str)
    source.drop_record(ADA, "session", "gone")
    source.drop_record(BOB, "session", "monday")
    source.put_record(record("monday", BOB, {"begun": "anew"}))
    source.put_record(record("tuesday"))
    recollect.convert(source, target)
    assert sorted(target.all_records(), key=str) == sorted(source.all_records(), key=str)


# -- interrupted, continued, repeated -------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("method", ["apply", "set_settings", "touch", "adopt"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", ["ram", "sqlite"])
def test_stopped_at_any_call_it_goes_on(method: str, after: bool, kind: str, tmp_path: Path) -> None:
    """Before the call and behind it, where only its answer is lost."""
    source = RamStore()
    fill(source)
    for call in range(1, 100):
        with closing(RamStore() if kind == "ram" else file(tmp_path, f"target {call}")) as target:
            faulty = FaultyStore(target)
            faulty.fail(method, KeyboardInterrupt(), call=call, after=after)
            stopped = _interrupted(source, faulty)
            recollect.convert(source, target)
            assert seen(target) == seen(source)
            assert recollect.convert(source, target).copied == 0
        if not stopped:
            break
    assert call > {"apply": 7, "set_settings": 9, "touch": 1, "adopt": 2}[method]


def _interrupted(source: Store, target: Store) -> bool:
    try:
        recollect.convert(source, target)
    except KeyboardInterrupt:
        return True
    return False


def test_interrupted_by_its_own_progress(source: Store, target: Store, small_batches: None) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recollect.convert(source, target, progress=stop)
    assert len(target.journal()) == 2
    assert target.settings()[CONVERSION].startswith("copying")
    assert recollect.convert(source, target).copied == 11
    assert target.settings()[CONVERSION].startswith("finished")
    assert seen(target) == seen(source)


def test_progress_rises_to_its_end(source: Store, target: Store, small_batches: None) -> None:
    told: list[tuple[int, int]] = []
    recollect.convert(source, target, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert len(told) > 7
    assert {total for _, total in told} == {2 * source.sequence()}
    assert told[-1][0] == told[-1][1]


def test_again_is_nothing_new_and_then_only_what_is_new(source: Store, target: Store) -> None:
    first = recollect.convert(source, target)
    again = recollect.convert(source, target)
    assert again == replace(first, copied=0)
    lost, kept = memory("lost"), memory("kept", BOB)
    put(source, lost, kept)
    recollect.convert(source, target)
    # Changed and then erased: the version in between is gone before it could be copied.
    store_changes = updated(lost)
    source.apply([store_changes, updated(kept)])
    source.apply([erased(store_changes.memory)])
    source.touch([kept.id], START)
    assert recollect.convert(source, target).copied == 2
    assert seen(target) == seen(source)


def test_a_source_erased_behind_the_last_copied_version_is_known_again(target: Store) -> None:
    source, last = RamStore(), memory("last")
    put(source, memory("first"), last)
    recollect.convert(source, target)
    source.apply([erased(last)])
    assert recollect.convert(source, target).copied == 1
    assert seen(target) == seen(source)


def test_accesses_are_not_counted_twice(source: Store, target: Store) -> None:
    for _ in range(3):
        recollect.convert(source, target)
    counts = [stored.memory.access_count for stored in target.scan({ADA})]
    assert counts == [3, 0, 0]


# -- vectors ----------------------------------------------------------------------------------------------------------


def test_vectors_that_came_later_are_followed(source: Store, target: Store) -> None:
    recollect.convert(source, target)
    bare = next(stored.memory for stored in source.scan({ADA}) if stored.memory.content == "no vector")
    source.embed([later(source, bare, vector(0.5, 0.5))])
    assert recollect.convert(source, target).copied == 0
    assert seen(target) == seen(source)


def test_another_embedder_is_followed_if_no_memory_lacks_its_vector(source: Store, target: Store) -> None:
    recollect.convert(source, target)
    everything = [stored.memory for stored in source.scan({ADA, BOB})]
    source.embed([later(source, one, Vector.of("other", [1, 0, place])) for place, one in enumerate(everything)])
    assert source.adopt("other", 3)
    recollect.convert(source, target)
    assert target.settings()["embedder"] == "other"
    put(source, memory("embedded", vector=Vector.of("other", [0, 0, 1])))
    recollect.convert(source, target)
    source.set_settings({"calibration": ""})
    target.set_settings({"calibration": ""})
    assert seen(target) == seen(source)


# -- a source in use --------------------------------------------------------------------------------------------------


class Busy(FaultyStore):
    """A source that others write to whenever its journal is read."""

    def __init__(self, store: Store, work: Callable[[int], None], times: int) -> None:
        super().__init__(store)
        self.work, self.times, self.done = work, times, 0

    def journal(self, *, after: int = 0, limit: int | None = None) -> list[Version]:
        if self.done < self.times:
            self.done += 1
            self.work(self.done)
        return super().journal(after=after, limit=limit)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("times", [1, 3, 5, 8, 12])
def test_what_others_write_meanwhile_is_followed(source: Store, target: Store, times: int) -> None:
    chosen = random.Random(times)

    def write(number: int) -> None:
        put(source, memory(f"meanwhile {number}"))
        heads = [stored.memory for stored in source.scan({ADA, BOB})]
        changed = chosen.choice(heads)
        source.apply([chosen.choice([updated, erased, forgotten])(changed)])

    recollect.convert(Busy(source, write, times), target)
    assert recollect.convert(source, target).versions == len(source.journal())
    assert seen(target) == seen(source)


@pytest.mark.usefixtures("small_batches")
def test_a_source_that_never_rests_is_not_chased_for_ever(source: Store, target: Store) -> None:
    before = len(source.journal())

    def write(done: int, total: int) -> None:
        put(source, memory("meanwhile"))

    report = recollect.convert(source, target, progress=write)
    assert before <= report.versions < len(source.journal())
    recollect.convert(source, target)
    assert seen(target) == seen(source)


@pytest.mark.usefixtures("small_batches")
def test_what_is_erased_while_the_two_are_compared_is_erased_in_the_copy(source: Store, target: Store) -> None:
    before, last = len(source.journal()), source.sequence()
    ends = [stored.memory for stored in source.scan({ADA})][-1:]

    def write(done: int, total: int) -> None:
        if done > last and ends:
            source.apply([erased(ends.pop())])

    assert recollect.convert(source, target, progress=write).versions == before
    assert not ends
    assert seen(target) == seen(source)


def test_what_was_erased_since_a_kill_is_erased_in_the_copy(target: Store) -> None:
    """The batch is there and the note of it is not; then the source loses what the batch brought."""
    source, one = RamStore(), memory("one")
    put(source, one, memory("two"))
    faulty = FaultyStore(target)
    faulty.fail("set_settings", KeyboardInterrupt(), call=2)
    assert _interrupted(source, faulty)
    source.apply([erased(one)])
    recollect.convert(source, target)
    assert seen(target) == seen(source)
