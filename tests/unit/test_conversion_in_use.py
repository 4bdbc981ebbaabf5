"""Converting a source that others write to, and erase from, meanwhile."""

import random
from collections.abc import Callable
from typing import Any

import pytest

import wellkept
from tests.support.converted import ADA, BOB, for_all_stores, seen
from tests.unit.test_conversion import LATER, interrupted, length
from wellkept.ports import Store
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.testing.builders import Writer, put

pytestmark = pytest.mark.req("P3")


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
