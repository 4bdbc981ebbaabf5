"""One transaction of the embedded file, which the jobs of many threads may share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from wellkept.errors import Conflict, EmbedderMismatch, QuotaExceeded
from wellkept.stores.sqlite import SqliteStore, embedding
from wellkept.stores.sqlite.transaction import Transaction
from wellkept.testing.builders import Writer, ids_of, owner, put, vector
from wellkept.types import Embedded, Quota, Write

ADA, BOB = owner("ada"), owner("bob")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "memory.db", durability="relaxed")
    yield store
    store.close()


def within(*writes: Write, more: int = 0) -> list[Quota]:
    """A quota that these memories fill, but for some bytes."""
    return [Quota(owners={ADA}, limit_bytes=sum(int(write.facets["bytes"]) for write in writes) + more)]


def assert_counted(store: SqliteStore) -> None:
    """The counters are what the memories count for, and the file agrees with itself."""
    found = list(store.journal.scan({ADA}, vectors=True))
    used = sum(one.facets["bytes"] + (len(one.vector.data) if one.vector else 0) for one in found)
    assert store.journal.usage({ADA})[ADA] == (len(found), used)
    assert store.check().findings == ()


@pytest.mark.req("L12")
def test_jobs_that_share_a_transaction_see_each_other(store: SqliteStore) -> None:
    writes = Writer()
    first, second, third = (writes.add(ADA, "x" * 50) for _ in range(3))
    put(store, old := writes.add(ADA, "old"))
    room = within(old, first, second)

    def jobs(work: Transaction) -> None:
        work.append([first], [], [])
        work.append([second], room, [])
        with pytest.raises(QuotaExceeded):
            work.append([writes.add(BOB, "x"), third], room, [])
        work.append([writes.erase(old)], [], [])  # without a quota, and it makes room all the same
        with pytest.raises(QuotaExceeded):
            work.append([third], room, [])
        work.append([writes.update(second, "")], [], [])
        work.append([third], room, [])

    store._file.write(jobs)
    assert ids_of(store.journal.scan({ADA})) == [first.id, second.id, third.id]
    assert list(store.journal.scan({BOB})) == []
    assert_counted(store)


def test_keys_move_within_a_transaction(store: SqliteStore) -> None:
    writes = Writer()
    first, second = writes.add(ADA, "one", key="k"), writes.add(ADA, "two", key="k")

    def jobs(work: Transaction) -> None:
        work.append([first], [], [])
        with pytest.raises(Conflict):
            work.append([second], [], [])
        work.append([writes.update(first, "free", key=None)], [], [])
        work.append([second], [], [])

    store._file.write(jobs)
    assert store.journal.keyed(ADA, ["k"]) == {"k": second.id}
    assert_counted(store)


def test_a_vector_that_comes_in_the_middle_of_a_transaction_counts(store: SqliteStore) -> None:
    writes = Writer()
    put(store, one := writes.add(ADA, "one"))
    two = writes.add(ADA, "two")
    late = Embedded(ADA, one.id, 1, vector(1, 0, 0, 0))

    def jobs(work: Transaction) -> None:
        work.append([two], within(one, two), [])
        embedding.embed(work, [late])
        with pytest.raises(QuotaExceeded):
            work.append([writes.add(ADA, "three")], within(one, two, two, more=10), [])

    store._file.write(jobs)
    assert_counted(store)


class GivenUp(Exception):
    """The end of a transaction for a reason of the caller's own."""


def test_a_transaction_that_was_rolled_back_leaves_nothing(store: SqliteStore) -> None:
    writes = Writer()
    put(store, one := writes.add(ADA, "one"))

    def fails(work: Transaction) -> None:
        work.append([writes.add(ADA, "x" * 500), writes.forget(one), writes.add(BOB)], [], [])
        raise GivenUp

    with pytest.raises(GivenUp):
        store._file.write(fails)
    assert store.journal.owners() == [ADA]
    assert_counted(store)
    put(store, writes.update(one, "again"))
    put(store, writes.add(BOB))  # its number was given before, and rolled back
    assert store.journal.owners() == [ADA, BOB]


def test_a_file_cannot_get_two_embedders_in_one_transaction(store: SqliteStore) -> None:
    """Writes of several threads share one: the second in it must see what the first one settled."""
    writes = Writer()
    put(store, one := writes.add(ADA, "number one"))

    def both(work: Transaction) -> None:
        embedding.embed(work, [Embedded(ADA, one.id, 1, vector(1, 2))])
        work.append([writes.add(ADA, "two", write={"vector": vector(1, 0, embedder="other")})], [], [])

    with pytest.raises(EmbedderMismatch):
        store._file.write(both)
    assert store.journal.unembedded("kit", 9) == []
    assert_counted(store)


def test_a_memory_whose_first_version_is_damaged_can_be_changed_and_embedded(store: SqliteStore) -> None:
    """Otherwise a worker that embeds what has no vector would never come to an end."""
    writes = Writer()
    put(store, one := writes.add(ADA, "number one"))
    put(store, two := writes.update(one, "number two"))
    store._file.write(lambda work: work.connection.execute("UPDATE journal SET text = 'damaged' WHERE version = 1"))
    assert all(finding.repaired for finding in store.check(repair=True).findings)
    [left] = store.journal.unembedded("kit", 9)
    store.journal.embed([Embedded(ADA, left.id, left.version, vector(1, 2))])
    assert store.journal.unembedded("kit", 9) == []
    put(store, writes.update(two, "number three"))
    assert_counted(store)


def test_where_there_is_no_room_no_image_is_written(store: SqliteStore) -> None:
    put(store, Writer().add(ADA))
    connection = store._file.readers.take()
    connection.execute("PRAGMA max_page_count = 1")  # the size that it has: the file cannot grow
    store._file.readers.give(connection)
    mark = store.journal.marks({ADA})[ADA]
    assert not store.images.write(ADA, mark, {"header": b"{}", "rows": bytes(1_000_000)})
    assert store.images.read(ADA) is None
