"""The indexes of the embedded store among many: owners, threads, transactions, processes that fork."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from recollect.testing.recall import contents

from recollect.errors import EmbedderMismatch, StoreError
from recollect.ports import Embedded
from recollect.stores.sqlite import SqliteStore, connections, embedding, indexes
from recollect.stores.sqlite.journal import Transaction
from recollect.testing.builders import (
    added,
    by_words,
    erased,
    forgotten,
    later,
    memory,
    nearest,
    owner,
    put,
    query,
    updated,
    vector,
)
from recollect.testing.concurrency import at_once
from recollect.types import Owner, Vector
from tests.unit.index_files import ADA, ROWS, SEARCH, change, filled, search, table

PATIENCE_S = 60


@pytest.fixture(autouse=True)
def _small_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "IMAGE_ROWS", ROWS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, durability="relaxed")) as store:
        yield store


# --- many owners ----------------------------------------------------------------------------------


def test_the_index_not_used_for_longest_is_let_go(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "HELD_ROWS", 3 * ROWS)
    owners = [owner(f"user {n}") for n in range(5)]
    for whose in owners:
        filled(store, whose=whose)

    def held() -> list[int]:
        return list(store._indexes._held)

    for whose in owners[:3]:
        search(store, whose)
    assert held() == [1, 2, 3]
    search(store, owners[0])
    search(store, owners[3])
    assert held() == [3, 1, 4]
    search(store, owners[1], owners[2])
    assert sorted(held()) == [2, 3, 4]
    # What one search needs is held together, even if it is too much.
    assert len(search(store, *owners)) == 5 * ROWS
    assert len(held()) == 5
    search(store, owners[4])
    assert len(held()) == 3
    assert held()[-1] == 5
    for whose in owners:
        assert len(search(store, whose)) == ROWS


def test_a_search_of_nobody_holds_nothing(store: SqliteStore) -> None:
    filled(store)
    assert len(store.candidates(query(owner("nobody")), SEARCH)) == 0
    assert len(store.candidates(query(), SEARCH)) == 0
    assert not store._indexes._held


# --- at the same time -----------------------------------------------------------------------------


def test_searches_while_others_write_find_only_what_is_theirs(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "HELD_ROWS", ROWS)  # indexes come and go all the time
    owners = [owner(f"user {n}") for n in range(4)]
    for whose in owners:
        filled(store, whose=whose)
    done = threading.Event()

    def write(whose: Owner) -> Callable[[], int]:
        def work() -> int:
            try:
                for turn in range(15):
                    one = memory(f"number {turn} new", whose, vector=vector(turn, 1))
                    put(store, one)
                    store.apply([forgotten(one)] if turn % 2 else [erased(one)])
            finally:
                done.set()
            return 0

        return work

    def read(whose: Owner, reader: SqliteStore) -> Callable[[], int]:
        def work() -> int:
            searches = 0
            while not done.is_set() or not searches:
                found = reader.candidates(query(whose), SEARCH)
                picked = reader.pick(query(*owners), found.numbers.tolist())
                assert {one.owner for one in picked.values()} <= {whose}
                assert ROWS <= len(found) <= ROWS + 1
                searches += 1
            return searches

        return work

    with closing(SqliteStore(path)) as second:
        jobs = [write(owners[0]), write(owners[1])]
        jobs += [read(whose, reader) for whose in owners for reader in (store, second)]
        assert min(at_once(jobs)[2:]) >= 1
        for whose in owners:
            search(second, whose)
            search(store, whose)


def test_a_search_does_not_wait_for_a_file_that_others_hold(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image is written on behalf of a read, and reading works while somebody else writes."""
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 60_000)
    filled(store)
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        found: list[int] = []
        reader = threading.Thread(target=lambda: found.append(len(store.candidates(query(ADA), SEARCH))))
        reader.start()
        reader.join(timeout=5)
        waits = reader.is_alive()
        other.execute("ROLLBACK")
        reader.join(timeout=PATIENCE_S)
    assert found == [ROWS]
    assert not waits


def test_a_search_works_where_no_image_can_be_written(store: SqliteStore, path: Path) -> None:
    filled(store)
    change(path, "CREATE TRIGGER full BEFORE INSERT ON images BEGIN SELECT RAISE(ABORT, 'no room'); END")
    assert len(search(store)) == ROWS
    assert table(path) == []
    with pytest.raises(StoreError):  # the trigger does what it says
        store._write(lambda work: work.connection.execute("INSERT INTO images VALUES (1, 1, 'x', x'')"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_can_search_although_its_parent_was_searching(store: SqliteStore) -> None:
    filled(store)
    search(store)
    with store._indexes.locked():  # by a thread that does not exist in the child
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if len(by_words(store, query(ADA), "number", 99)) == ROWS else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(search(store)) == ROWS


# --- in one transaction ---------------------------------------------------------------------------


def test_a_file_cannot_get_two_embedders_in_one_transaction(store: SqliteStore) -> None:
    """Writes of several threads share one; whoever comes second in it must see what the first one settled."""
    one = memory("number one")
    put(store, one)
    vectors = [later(store, one, vector(1, 2))]

    def both(work: Transaction) -> None:
        embedding.embed(work.connection, vectors)
        work.append([added(memory("number two", vector=Vector.of("other", [1, 0, 0])))])

    with pytest.raises(EmbedderMismatch):
        store._write(both)
    assert len(store.unembedded("kit", 9)) == 0
    assert store.check().healthy


def test_a_memory_whose_first_version_is_damaged_can_be_embedded(store: SqliteStore, path: Path) -> None:
    """Else whoever embeds what has no vector would do so for ever."""
    one = memory("number one")
    put(store, one)
    changed = updated(one, content="number two")
    store.apply([changed])
    change(path, "UPDATE journal SET content = 'damaged' WHERE version = 1")
    assert all(finding.repaired for finding in store.check(repair=True).findings)
    [left] = store.unembedded("kit", 9)
    store.embed([Embedded(number=left.number, version=left.memory.version, vector=vector(1, 2))])
    assert store.unembedded("kit", 9) == []
    assert contents(nearest(store, query(ADA), vector(1, 2), 9)) == ["number two"]
