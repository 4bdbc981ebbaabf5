"""The figures of usage in one transaction of the embedded store, which many jobs may share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import QuotaExceeded
from recollect.ports import Quota
from recollect.stores.sqlite import SqliteStore, embedding
from recollect.stores.sqlite.journal import Transaction
from recollect.testing.builders import added, erased, forgotten, later, memory, owner, put, updated, vector
from recollect.testing.quotas import size
from recollect.types import Memory

ADA, BOB = owner("ada"), owner("bob")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "memory.db", durability="relaxed")
    yield store
    store.close()


def within(limit_bytes: int) -> Quota:
    return Quota(owners={ADA}, limit_bytes=limit_bytes)


def stored(store: SqliteStore) -> int:
    return size(*(one.memory for one in store.scan({ADA}, vectors=True)))


@pytest.mark.req("L12")
def test_jobs_that_share_a_transaction_see_each_other(store: SqliteStore) -> None:
    first, second, third = memory("x" * 50), memory("x" * 50), memory("x" * 50)
    put(store, old := memory("old"))
    room = within(size(old, first, second))

    def jobs(work: Transaction) -> None:
        work.append([added(first)])  # nobody asked for a figure yet
        work.append([added(second)], room)
        with pytest.raises(QuotaExceeded):
            work.append([added(memory("x", BOB)), added(third)], room)
        work.append([erased(old)])  # without a quota, and it makes room all the same
        with pytest.raises(QuotaExceeded):
            work.append([added(third)], room)
        work.append([updated(second, content="")])
        work.append([added(third)], room)

    store._write(jobs)
    assert store.usage({ADA}) == stored(store)
    assert [one.memory.id for one in store.scan({ADA})] == [first.id, second.id, third.id]
    assert list(store.scan({BOB})) == []


def test_a_vector_that_comes_in_the_middle_of_a_transaction_counts(store: SqliteStore) -> None:
    put(store, one := memory("one"))
    late = later(store, one, vector(1, 0, 0, 0))
    room = within(size(one) + 50)

    def jobs(work: Transaction) -> None:
        work.append([added(memory("two"))], room)
        embedding.embed(work.connection, [late])
        with pytest.raises(QuotaExceeded):
            work.append([added(memory("x" * 40))], room)

    store._write(jobs)
    assert store.usage({ADA}) == stored(store)


def test_figures_of_a_transaction_that_was_rolled_back_are_dropped(store: SqliteStore) -> None:
    put(store, one := memory("one"))
    store.apply([added(memory("two"))], quota=within(1_000))

    def fails(work: Transaction) -> None:
        work.append([added(memory("x" * 500)), forgotten(one)], within(10_000))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store._write(fails)
    assert store.usage({ADA}) == stored(store) < 100
    store.apply([added(memory("x" * 500))], quota=within(700))


def sums(store: SqliteStore, job: Any) -> bool:
    """Whether a job made the store add up everything again: then what it knew is of no use to it."""
    known = store._figures[ADA]
    store._figures[ADA] = known._replace(used=known.used + 1_000_000)
    try:
        job()
        return store._figures[ADA].used < 1_000_000
    finally:
        store._figures.pop(ADA, None)


@pytest.mark.parametrize("elsewhere", ["nothing", "add", "update"])
def test_only_changes_that_others_made_to_old_memories_need_everything_added_up(
    store: SqliteStore, elsewhere: str
) -> None:
    old = memory("old")
    store.apply([added(old)], quota=within(10**9))
    other = SqliteStore(store.path)
    changes: dict[str, list[Memory]] = {"add": [memory("new")], "update": [old]}
    for one in changes.get(elsewhere, []):
        other.apply([updated(one, content="changed")] if elsewhere == "update" else [added(one)])
    other.close()
    assert sums(store, lambda: store.apply([added(memory())], quota=within(10**9))) is (elsewhere == "update")


def test_what_this_process_changes_without_a_quota_is_followed(store: SqliteStore) -> None:
    old = memory("old")
    store.apply([added(old)], quota=within(10**9))
    gone = forgotten(old)

    def change() -> None:
        store.apply([gone])
        store.apply([erased(gone.memory)])
        store.apply([added(memory())], quota=within(10**9))

    assert not sums(store, change)
    assert store.usage({ADA}) == stored(store)


def test_who_has_no_quota_keeps_no_figures(store: SqliteStore) -> None:
    put(store, memory("one"))
    assert store._figures == {}
