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
from tests.support.converted import ADA, BOB, KINDS, fill, for_all_stores, record, seen, store_of, told
from tests.support.histories import Life, Step, picture, steps
from tests.support.memory_disk import IN_MEMORY
from wellkept.errors import Conflict, NotACopy, StoreCorrupt
from wellkept.ports import Store
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.testing.builders import START, START_US, Writer, put, vector
from wellkept.testing.subject import GENERATED
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
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder, closing(store_of(kind, Path(folder), "there")) as there:
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
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder, closing(store_of(kind, Path(folder), "copy")) as copy:
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


def embed(store: Store, text: str, found: Vector) -> None:
    [one] = [one for one in store.journal.scan({ADA}) if one.facets["text"] == text]
    store.journal.embed([Embedded(ADA, one.id, one.version, found)])


def interrupted(source: Store, target: Store) -> bool:
    try:
        wellkept.convert(source, target)
    except KeyboardInterrupt:
        return True
    return False


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


# -- vectors ----------------------------------------------------------------------------------------------------------


@for_all_stores()
def test_vectors_that_came_later_are_followed(source: Store, target: Store) -> None:
    wellkept.convert(source, target)
    embed(source, "no vector", vector(0.5, 0.5))
    assert wellkept.convert(source, target).copied == 0
    assert seen(target) == seen(source)


@for_all_stores()
def test_the_vectors_of_passages_arrive_whole(source: Store, target: Store) -> None:
    parts = Vector.joined([vector(1, 0), vector(0, 1)], [(0, 4), (5, 9)])
    for found in (replace(parts, pieces=b"\1\2\3\4"), parts):
        embed(source, "no vector", found)
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
    embed(source, "without", vector(0, 1, 0, embedder="other"))
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


@for_all_stores()
def test_what_was_erased_since_a_kill_is_erased_in_the_copy(target: Store) -> None:
    """The batch is there and the note of it is not; then the source loses what the batch brought."""
    source, make = RamStore(), Writer()
    one = make.add(ADA, "one")
    put(source, one, make.add(ADA, "two"))
    faulty = FaultyStore(target)
    faulty.fail("set_settings", KeyboardInterrupt(), call=2)
    assert interrupted(source, faulty)
    put(source, make.erase(one))
    wellkept.convert(source, target)
    assert seen(target) == seen(source)
