"""Converting between stores: nothing is lost, whatever interrupts it."""

import tempfile
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import wellkept
from tests.support.converted import ADA, BOB, CONVERSION, KINDS, fill, for_all_stores, record, seen, store_of, told
from tests.unit.histories import Life, Step, picture, steps
from wellkept import codec
from wellkept.errors import Conflict, NotACopy, StoreCorrupt
from wellkept.ports import Store
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.testing.builders import START, START_US, Writer, put, vector
from wellkept.testing.subject import GENERATED
from wellkept.transfer import comparison
from wellkept.types import Access, Embedded, Operation, Vector

pytestmark = pytest.mark.req("P3")
LATER = START + timedelta(days=2)


# -- nothing is lost ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.req("N11")
@settings(GENERATED, max_examples=40)
@pytest.mark.parametrize("kind", KINDS)
@given(steps=steps())
def test_any_history_is_the_same_there_and_back(kind: str, steps: list[Step]) -> None:
    life = Life(RamStore())
    for step in steps:
        step(life)
    with tempfile.TemporaryDirectory() as folder, closing(store_of(kind, Path(folder), "there")) as there:
        back = RamStore()
        first = wellkept.convert(life.store, there)
        second = wellkept.convert(there, back)
        assert first == second
        assert there.check().healthy
        known = picture(life.store)
        assert picture(there) == known
        assert picture(back) == known


@pytest.mark.slow
@settings(GENERATED, max_examples=15)
@pytest.mark.parametrize("kind", KINDS)
@given(before=steps(), after=steps())
def test_what_happens_after_a_conversion_is_followed(kind: str, before: list[Step], after: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(store_of(kind, Path(folder), "copy")) as copy:
        life = Life(RamStore())
        for step in before:
            step(life)
        wellkept.convert(life.store, copy)
        for step in after:
            step(life)
        journal = life.store.journal
        lacking = journal.count_unembedded(journal.settings().get("embedder", "none"))
        if lacking:  # it may have gone over to another embedder, which the copy then cannot follow
            with suppress(NotACopy):
                wellkept.convert(life.store, copy)
            assert told(copy.journal) == told(journal)
        else:
            wellkept.convert(life.store, copy)
            assert picture(copy) == picture(life.store)


@for_all_stores()
def test_everything_arrives(source: Store, target: Store) -> None:
    report = wellkept.convert(source, target)
    assert seen(target) == seen(source)
    assert (report.copied, report.versions, report.memories, report.owners) == (13, 13, 5, 2)


@pytest.mark.usefixtures("small_batches")
@for_all_stores()
def test_batches_need_not_end_where_memories_do(source: Store, target: Store) -> None:
    wellkept.convert(source, target)
    assert seen(target) == seen(source)


def test_a_key_is_taken_in_the_copy_as_well(tmp_path: Path) -> None:
    with wellkept.open(tmp_path / "one.db", embedder=None) as memories:
        tea = memories.view(user="ada").add("Likes tea", key="drink")
    wellkept.convert(tmp_path / "one.db", f"sqlite:{tmp_path / 'two.db'}")
    with wellkept.open(tmp_path / "two.db", embedder=None) as memories:
        view = memories.view(user="ada")
        assert view.add("Likes tea", key="drink").id == tea.id
        with pytest.raises(Conflict):
            view.add("Likes coffee", key="drink")


@for_all_stores()
def test_an_erased_id_stays_used(source: Store, target: Store) -> None:
    wellkept.convert(source, target)
    [mark] = [version for version in target.journal.feed() if version.operation is Operation.ERASED]
    with pytest.raises(Conflict):
        put(target, Writer().add(mark.owner, "again", id=mark.id))


@for_all_stores()
def test_every_version_keeps_its_stamp_and_the_one_it_replaced(source: Store, target: Store) -> None:
    wellkept.convert(source, target)
    stamps = [{one.stamp: one.replaced for one in store.journal.feed()} for store in (source, target)]
    assert stamps[0] == stamps[1]
    assert len(stamps[0]) == 13


@for_all_stores()
def test_a_store_keeps_its_own_origin_and_epoch(source: Store, target: Store) -> None:
    before = target.journal.settings()
    wellkept.convert(source, target)
    kept, theirs = target.journal.settings(), source.journal.settings()
    for name in ("origin", "epoch"):
        assert kept[name] == before[name] != theirs[name]


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_how_durable_the_target_is_stays_its_own(kind: str, tmp_path: Path) -> None:
    with closing(store_of(kind, tmp_path, "relaxed")) as source:
        fill(source)
        wellkept.convert(source, f"{kind}:{tmp_path / 'full.db'}")
        assert source.journal.settings()["durability"] == "relaxed"
    with wellkept.open(f"{kind}:{tmp_path / 'full.db'}", embedder=None) as memories:
        assert memories.settings()["durability"] == "full"


def test_an_empty_database_can_be_converted(tmp_path: Path) -> None:
    wellkept.open(tmp_path / "empty.db").close()
    told: list[tuple[int, int]] = []
    report = wellkept.convert(tmp_path / "empty.db", tmp_path / "copy.db", progress=lambda *done: told.append(done))
    assert (report.copied, report.versions, report.owners) == (0, 0, 0)
    assert told == [(0, 0)]


@pytest.mark.req("J11")
@for_all_stores()
def test_a_source_with_damage_is_named_and_not_copied(source: Store, target: Store) -> None:
    damaged = FaultyStore(source)
    damaged.fail("feed", StoreCorrupt("version 2 cannot be read", details={"version": 2}, hint="run doctor"))
    with pytest.raises(StoreCorrupt) as caught:
        wellkept.convert(damaged, target)
    assert (caught.value.details["version"], caught.value.operation) == (2, "convert")
    wellkept.convert(source, target)
    assert seen(target) == seen(source)


@pytest.mark.req("J11")
@for_all_stores()
def test_versions_set_aside_as_damaged_leave_the_same_gap_in_the_copy(source: Store, target: Store) -> None:
    """What a repair takes out of a journal is missing there for good: the copy takes the versions that are left."""
    one = source.journal.versions({ADA}).items[0]
    wellkept.convert(Gapped(source, one.id, 2), target)
    assert [version.version for version in target.journal.history(ADA, one.id)] == [1, 3, 4]
    whole, gapped = told(source.journal), told(target.journal)
    lost = {owner: [version for version in whole[owner] if version not in gapped[owner]] for owner in whole}
    assert {owner: len(versions) for owner, versions in lost.items()} == {str(ADA): 1, str(BOB): 0}
    assert gapped[str(ADA)] == [version for version in whole[str(ADA)] if version not in lost[str(ADA)]]


class Gapped(FaultyStore):
    """A source that lost one version of a memory."""

    def __init__(self, store: Store, memory_id: str, version: int) -> None:
        super().__init__(store)
        self.journal: Any = _GappedJournal(store.journal, memory_id, version)


class _GappedJournal:
    def __init__(self, journal: Any, *lost: object) -> None:
        self._journal, self._lost = journal, lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def _left(self, page: Any) -> Any:
        return replace(page, items=[one for one in page if (one.id, one.version) != self._lost])

    def feed(self, **place: Any) -> Any:
        return self._left(self._journal.feed(**place))

    def versions(self, owners: Any, **place: Any) -> Any:
        return self._left(self._journal.versions(owners, **place))


@pytest.mark.parametrize("kind", KINDS)
def test_large_memories_come_in_small_batches(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "BATCH_BYTES", 1_100)
    make = Writer()
    with closing(store_of(kind, tmp_path, "source")) as source:
        put(source, *(make.add(ADA, "x" * 500) for _ in range(comparison.BATCH + 9)))
        for found in (comparison.pages(source.journal), comparison.pages_of(source.journal, ADA)):
            assert [len(page) for page in found] == [comparison.BATCH, *[2] * 4, 1]


def test_the_owners_of_a_copy_may_come_in_another_order() -> None:
    """Only the order of each owner's versions is the same in every store."""
    make, source, turned = Writer(), RamStore(), RamStore()
    writes = [make.add(owner, f"number {number}") for number in range(5) for owner in (ADA, BOB)]
    put(source, *writes)
    put(turned, *sorted(writes, key=lambda write: write.owner == ADA))
    there, back = (wellkept.convert(store, RamStore()) for store in (source, turned))
    assert there == back
    same = comparison.compare(source.journal, turned.journal, None, lambda: None)
    assert (same.versions, same.owners, same.checksum) == (10, 2, there.checksum)
    put(turned, make.add(ADA, "one more"))
    with pytest.raises(NotACopy):
        comparison.compare(source.journal, turned.journal, None, lambda: None)


def _records(store: Store) -> list[str]:
    return sorted(map(str, store.records.list(None)))


@for_all_stores()
def test_records_are_followed(source: Store, target: Store) -> None:
    for version in (1, 2, 3):
        source.records.put(record("monday", BOB, version=version))
    source.records.put(record("gone"))
    wellkept.convert(source, target)
    assert _records(target) == _records(source)
    source.records.drop(ADA, "session", "gone")
    source.records.drop(BOB, "session", "monday")
    source.records.put(record("monday", BOB, b'{"begun":"anew"}'))
    source.records.put(record("tuesday"))
    wellkept.convert(source, target)
    assert _records(target) == _records(source)


@for_all_stores()
def test_a_record_begun_anew_is_followed_whatever_its_version(source: Store, target: Store) -> None:
    """As far as the one before was, so that the version alone does not tell that it is another one."""
    for body in (b'{"first":1}', b'{"second":2}', b'{"third":3}'):
        source.records.drop(BOB, "session", "monday")
        for version in (1, 2):
            source.records.put(record("monday", BOB, body, version))
        wellkept.convert(source, target)
        assert _records(target) == _records(source)
        [kept] = target.records.list(None)
        assert (kept.body, kept.version) == (body, 2)


# -- interrupted, continued, repeated -------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_batches")
@for_all_stores(
    method=["append", "set_settings", "count_accesses", "adopt", "embed", "records.restore", "records.drop"],
    after=[False, True],
    kind=KINDS,
)
def test_stopped_at_any_call_it_goes_on(method: str, after: bool, kind: str, tmp_path: Path) -> None:
    """Before the call and behind it, where only its answer is lost."""
    source = RamStore()
    fill(source)
    _embed(source, "no vector", vector(0.5, 0.5))
    for name, version in (("monday", 1), ("monday", 2), ("tuesday", 1)):
        source.records.put(record(name, version=version))
    for call in range(1, 100):
        with closing(store_of(kind, tmp_path, f"target {call}")) as target:
            if method == "embed":  # else the versions bring their vectors
                wellkept.convert(source, target)
                _embed(source, "no vector", vector(0.5, call))
            if method == "records.drop":
                wellkept.convert(source, target)
                _renew_records(source, call)
            faulty = FaultyStore(target)
            faulty.fail(method, KeyboardInterrupt(), call=call, after=after)
            stopped = interrupted(source, faulty)
            wellkept.convert(source, target)
            assert seen(target) == seen(source)
            assert wellkept.convert(source, target).copied == 0
        if not stopped:
            break
    least = {"append": 7, "set_settings": 9, "count_accesses": 1, "adopt": 2}
    least |= {"embed": 1, "records.restore": 2, "records.drop": 2}
    assert call > least[method]


def _renew_records(store: Store, number: int) -> None:
    """Other records, but for one that is dropped and begun anew."""
    for one in list(store.records.list(None)):
        store.records.drop(one.owner, one.kind, one.name)
    for name in ("monday", f"{number}a", f"{number}b"):
        store.records.put(record(name, body=f'{{"begun":{number}}}'.encode()))


def _begin(source: Store, target: Store) -> None:
    """Copy only the first batch."""

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wellkept.convert(source, target, progress=stop)


def _embed(store: Store, text: str, found: Vector) -> None:
    [one] = [one for one in store.journal.scan({ADA}) if one.facets["text"] == text]
    store.journal.embed([Embedded(ADA, one.id, one.version, found)])


def interrupted(source: Store, target: Store) -> bool:
    try:
        wellkept.convert(source, target)
    except KeyboardInterrupt:
        return True
    return False


@pytest.mark.usefixtures("small_batches")
@for_all_stores()
def test_interrupted_by_its_own_progress(source: Store, target: Store) -> None:
    _begin(source, target)
    assert len(target.journal.feed()) == 2
    assert codec.decode_json(target.journal.settings()[CONVERSION])["finished"] is False
    assert wellkept.convert(source, target).copied == 11
    assert codec.decode_json(target.journal.settings()[CONVERSION])["finished"] is True
    assert seen(target) == seen(source)


@pytest.mark.usefixtures("small_batches")
@for_all_stores()
def test_progress_rises_to_its_end(source: Store, target: Store) -> None:
    told: list[tuple[int, int]] = []
    wellkept.convert(source, target, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert len(told) > 7
    assert {total for _, total in told} == {2 * length(source)}
    assert told[-1][0] == told[-1][1]


def length(store: Store) -> int:
    """How many versions were ever written."""
    return sum(mark.seq for mark in store.journal.marks(set(store.journal.owners())).values())


@for_all_stores()
def test_again_is_nothing_new_and_then_only_what_is_new(source: Store, target: Store) -> None:
    first = wellkept.convert(source, target)
    again = wellkept.convert(source, target)
    assert again == replace(first, copied=0)
    make = Writer(LATER)
    lost, kept = make.add(ADA, "lost"), make.add(BOB, "kept")
    put(source, lost, kept)
    wellkept.convert(source, target)
    # Changed and then erased: the version in between is gone before it could be copied.
    changed = make.update(lost, "changed")
    put(source, changed, make.update(kept, "changed"))
    put(source, make.erase(changed))
    source.journal.count_accesses([Access(BOB, kept.id, 1, START_US)])
    assert wellkept.convert(source, target).copied == 2
    assert seen(target) == seen(source)


@for_all_stores()
def test_a_source_erased_behind_the_last_copied_version_is_known_again(target: Store) -> None:
    source, make = RamStore(), Writer()
    last = make.add(ADA, "last")
    put(source, make.add(ADA, "first"), last)
    wellkept.convert(source, target)
    put(source, make.erase(last))
    assert wellkept.convert(source, target).copied == 1
    assert seen(target) == seen(source)


@for_all_stores()
def test_a_key_that_an_erasure_freed_is_taken_in_the_copy(target: Store) -> None:
    source, make = RamStore(), Writer()
    first = make.add(ADA, "first", key="k")
    put(source, first)
    wellkept.convert(source, target)
    second = make.add(ADA, "second", key="k")
    put(source, make.erase(first), second)
    wellkept.convert(source, target)
    assert target.journal.keyed(ADA, ["k"]) == {"k": second.id}
    assert seen(target) == seen(source)


@for_all_stores()
def test_accesses_are_not_counted_twice(source: Store, target: Store) -> None:
    for _ in range(3):
        wellkept.convert(source, target)
    counts = [stored.access_count for stored in target.journal.scan({ADA})]
    assert counts == [3, 0, 0]


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_how_far_a_copy_is_lasts_when_it_is_closed(kind: str, tmp_path: Path, small_batches: None) -> None:
    """The note is a setting like any other: whatever it says, it is read again as it was written."""
    source, make = RamStore(), Writer(LATER)
    fill(source)
    with closing(store_of(kind, tmp_path, "target")) as target:
        _begin(source, target)
        before = target.journal.settings()
    with closing(store_of(kind, tmp_path, "target")) as target:
        assert target.journal.settings() == before
        assert wellkept.convert(source, target).copied == 11
    put(source, make.add(BOB, "more"))
    with closing(store_of(kind, tmp_path, "target")) as target:
        assert wellkept.convert(source, target).copied == 1
        assert seen(target) == seen(source)


# -- vectors ----------------------------------------------------------------------------------------------------------


@for_all_stores()
def test_vectors_that_came_later_are_followed(source: Store, target: Store) -> None:
    wellkept.convert(source, target)
    _embed(source, "no vector", vector(0.5, 0.5))
    assert wellkept.convert(source, target).copied == 0
    assert seen(target) == seen(source)


@for_all_stores()
def test_the_vectors_of_passages_arrive_whole(source: Store, target: Store) -> None:
    parts = Vector.joined([vector(1, 0), vector(0, 1)], [(0, 4), (5, 9)])
    for found in (replace(parts, pieces=b"\1\2\3\4"), parts):
        _embed(source, "no vector", found)
        wellkept.convert(source, target)
        [copy] = [one for one in target.journal.scan({ADA}, vectors=True) if one.facets["text"] == "no vector"]
        assert copy.vector == found
        assert seen(target) == seen(source)


@for_all_stores()
def test_another_embedder_is_followed_if_no_memory_lacks_its_vector(source: Store, target: Store) -> None:
    wellkept.convert(source, target)
    everything = list(source.journal.scan({ADA, BOB}))
    source.journal.embed(
        [
            Embedded(one.owner, one.id, one.version, Vector.of("other", [1, 0, place]))
            for place, one in enumerate(everything)
        ]
    )
    assert source.journal.adopt("other", 3)
    wellkept.convert(source, target)
    assert target.journal.settings()["embedder"] == "other"
    put(source, Writer(LATER).add(ADA, "embedded", write={"vector": Vector.of("other", [0, 0, 1])}))
    wellkept.convert(source, target)
    assert seen(target) == seen(source)
    assert "calibration" not in target.journal.settings()


@for_all_stores()
def test_another_embedder_that_some_memories_lack_is_told_with_what_to_do(target: Store) -> None:
    """Opened with the new embedder the copy would compare its vectors with the old ones."""
    source, make = RamStore(), Writer()
    first = make.add(ADA, "first", write={"vector": vector(1, 0)})
    put(source, first)
    wellkept.convert(source, target)
    source.journal.embed([Embedded(ADA, first.id, 1, vector(1, 0, 0, embedder="other"))])
    assert source.journal.adopt("other", 3)
    put(source, make.add(ADA, "without"))
    with pytest.raises(NotACopy) as caught:
        wellkept.convert(source, target)
    assert "reembed" in caught.value.hint
    assert target.journal.settings()["embedder"] == "kit"
    _embed(source, "without", vector(0, 1, 0, embedder="other"))
    wellkept.convert(source, target)
    assert seen(target) == seen(source)


@pytest.mark.req("J4", "N1")
def test_what_a_folder_cannot_read_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        memories.view(project="api").add_many(["One", "Two", "Three"])
    [file] = folder.glob("projects/*/memory.jsonl")
    file.write_text("{{" + file.read_text())
    report = wellkept.convert(f"jsonl:{folder}", tmp_path / "copy.db")
    assert (report.memories, report.damaged) == (2, 1)
