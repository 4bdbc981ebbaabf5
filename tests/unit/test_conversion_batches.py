"""Converting in several batches: stopped between two, and while others write to the source and erase from it."""

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.contract.converting.test_conversion import LATER, embed, interrupted
from tests.contract.converting.test_refusals import refused
from tests.support.converted import ADA, BOB, CONVERSION, KINDS, fill, for_all_stores, record, seen, store_of
from wellkept import codec
from wellkept.errors import NotACopy, StoreFull
from wellkept.ports import Store
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.testing.builders import Writer, put, vector
from wellkept.transfer import comparison

pytestmark = pytest.mark.req("P3")


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "BATCH", 2)


def length(store: Store) -> int:
    """How many versions were ever written."""
    return sum(mark.seq for mark in store.journal.marks(set(store.journal.owners())).values())


class Busy(FaultyStore):
    """A source that others write to whenever its journal is read by a method."""

    def __init__(self, store: Store, work: Callable[[int], None], times: int, method: str = "feed") -> None:
        super().__init__(store)
        self.work, self.times, self.done = work, times, 0
        read = getattr(self.journal, method)

        def busy(*args: Any, **place: Any) -> Any:
            if self.done < self.times:
                self.done += 1
                self.work(self.done)
            return read(*args, **place)

        setattr(self.journal, method, busy)


@pytest.mark.usefixtures("small_batches")
@for_all_stores(method=["feed", "versions"])
def test_what_others_add_while_the_two_are_compared_is_late_and_no_difference(
    source: Store, target: Store, method: str
) -> None:
    make, before = Writer(LATER), len(source.journal.feed())
    busy = Busy(source, lambda number: put(source, make.add((ADA, BOB)[number % 2])), 60, method)
    report = wellkept.convert(busy, target)
    assert busy.done > 8
    assert before <= report.versions < len(source.journal.feed())
    wellkept.convert(source, target)
    assert seen(target) == seen(source)


@pytest.mark.usefixtures("small_batches")
@for_all_stores(times=[1, 3, 5, 8, 12])
def test_what_others_write_meanwhile_is_followed(source: Store, target: Store, times: int) -> None:
    chosen, make = random.Random(times), Writer(LATER)

    def write(number: int) -> None:
        put(source, make.add(ADA, f"meanwhile {number}"))
        changed = chosen.choice(list(source.journal.scan({ADA, BOB})))
        put(source, chosen.choice([make.update, make.erase, make.forget])(changed))

    wellkept.convert(Busy(source, write, times), target)
    assert wellkept.convert(source, target).versions == len(source.journal.feed())
    assert seen(target) == seen(source)


@pytest.mark.usefixtures("small_batches")
@for_all_stores()
def test_a_source_that_never_rests_is_not_followed_for_ever(source: Store, target: Store) -> None:
    before, make = len(source.journal.feed()), Writer(LATER)

    def write(done: int, total: int) -> None:
        put(source, make.add(ADA, "meanwhile"))

    report = wellkept.convert(source, target, progress=write)
    assert before <= report.versions < len(source.journal.feed())
    wellkept.convert(source, target)
    assert seen(target) == seen(source)


@pytest.mark.usefixtures("small_batches")
@for_all_stores()
def test_what_is_erased_while_the_two_are_compared_is_erased_in_the_copy(source: Store, target: Store) -> None:
    before, last, make = len(source.journal.feed()), length(source), Writer(LATER)
    ends = list(source.journal.scan({ADA}))[-1:]

    def write(done: int, total: int) -> None:
        if done >= last and ends:
            put(source, make.erase(ends.pop()))

    assert wellkept.convert(source, target, progress=write).versions == before
    assert not ends
    assert seen(target) == seen(source)


@pytest.mark.usefixtures("small_batches")
@for_all_stores()
def test_batches_need_not_end_where_memories_do(source: Store, target: Store) -> None:
    wellkept.convert(source, target)
    assert seen(target) == seen(source)


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
    embed(source, "no vector", vector(0.5, 0.5))
    for name, version in (("monday", 1), ("monday", 2), ("tuesday", 1)):
        source.records.put(record(name, version=version))
    for call in range(1, 100):
        with closing(store_of(kind, tmp_path, f"target {call}")) as target:
            if method == "embed":  # else the versions bring their vectors
                wellkept.convert(source, target)
                embed(source, "no vector", vector(0.5, call))
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


@pytest.mark.usefixtures("small_batches")
@for_all_stores()
def test_a_copy_that_others_write_to_meanwhile_is_refused(source: Store, target: Store) -> None:
    mine = iter([Writer().add(ADA, "mine")])

    def write(done: int, total: int) -> None:
        put(target, *mine)

    with pytest.raises(NotACopy) as caught:
        wellkept.convert(source, target, progress=write)
    assert caught.value.details["memory_id"]


@pytest.mark.usefixtures("small_batches")
@for_all_stores()
def test_errors_of_the_target_leave_it_to_be_continued(source: Store, target: Store) -> None:
    full = FaultyStore(target)
    full.fail("append", StoreFull("no space left", hint="free space"), call=3)
    refused(source, full, StoreFull)
    assert wellkept.convert(source, full).copied == 9
    assert seen(target) == seen(source)
