"""Images of indexes in the embedded file: never older than an erasure, and never worth waiting for."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from wellkept.stores.sqlite import SqliteStore
from wellkept.testing.builders import Writer, owner, put, vector
from wellkept.types import Embedded, Mark, Owner

ADA, BOB = owner("ada"), owner("bob")
PARTS = {"header": b"{}", "rows": bytes(10_000)}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "memory.db", durability="relaxed")) as store:
        yield store


def execute(store: SqliteStore, statement: str) -> None:
    """Change the file behind the store's back."""
    with closing(apsw.Connection(str(store.path))) as connection:
        connection.execute(statement)


def mark(store: SqliteStore, whose: Owner = ADA) -> Mark:
    return store.journal.marks({whose})[whose]


def test_another_opening_reads_it(store: SqliteStore) -> None:
    put(store, Writer().add(ADA))
    assert store.images.write(ADA, mark(store), PARTS)
    with closing(SqliteStore(store.path)) as second:
        assert second.images.read(ADA) == (mark(store), PARTS)
        assert second.images.read(BOB) is None
        assert second.images.write(ADA, mark(store), {"only": b"part"})
    assert store.images.read(ADA) == (mark(store), {"only": b"part"})


def test_none_is_kept_of_an_owner_that_nobody_knows(store: SqliteStore) -> None:
    assert not store.images.write(ADA, Mark(), PARTS)


@pytest.mark.req("L7")
@pytest.mark.parametrize("by_another", [False, True])
def test_none_is_written_when_the_owner_went_on(store: SqliteStore, by_another: bool) -> None:
    """Between the making of an image and its writing, another process may erase what is in it."""
    writes = Writer()
    one, two = writes.add(ADA), writes.add(ADA)
    put(store, one, two)
    with closing(SqliteStore(store.path)) as other:
        before = mark(store)
        put(other if by_another else store, writes.erase(one))
        assert not store.images.write(ADA, before, PARTS)
        before = mark(store)
        (other if by_another else store).journal.embed([Embedded(ADA, two.id, 1, vector(1, 0))])
        assert not store.images.write(ADA, before, PARTS)
    assert store.images.read(ADA) is None


def test_a_file_that_others_hold_is_not_waited_for(store: SqliteStore) -> None:
    put(store, Writer().add(ADA))
    with closing(apsw.Connection(str(store.path))) as other:
        other.execute("BEGIN IMMEDIATE")
        assert not store.images.write(ADA, mark(store), PARTS)
        other.execute("ROLLBACK")
    assert store.images.write(ADA, mark(store), PARTS)


def test_rebuilding_drops_them_and_a_repair_makes_indexes_anew(store: SqliteStore) -> None:
    put(store, Writer().add(ADA), Writer().add(BOB))
    before = mark(store), mark(store, BOB)
    for whose in (ADA, BOB):
        assert store.images.write(whose, mark(store, whose), PARTS)
    assert store.check(repair=True).healthy
    assert store.images.read(ADA) is not None, "a healthy file keeps them"
    store.rebuild()
    assert store.images.read(ADA) is store.images.read(BOB) is None
    assert (mark(store), mark(store, BOB)) == before
    execute(store, "UPDATE heads SET expires_at = 0 WHERE owner = 1")
    assert [finding.check for finding in store.check(repair=True).findings] == ["heads"]
    assert mark(store).revision > before[0].revision
    assert mark(store, BOB) == before[1]


DAMAGES = ("text = CAST(x'ff00' AS TEXT)", "facets = '{'", "facets = NULL", "facets = '[]'", "operation = 'none'")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_memory_does_not_keep_others_from_an_index(damage: str, store: SqliteStore) -> None:
    """An index is loaded by a scan: what cannot be read is passed over there, and told by every other read."""
    writes = Writer()
    put(store, *(writes.add(ADA, f"number {number}", id=str(number)) for number in range(9)), writes.add(BOB))
    execute(store, f"UPDATE journal SET {damage} WHERE id IN ('3', '8')")
    assert [one.id for one in store.journal.scan({ADA})] == ["0", "1", "2", "4", "5", "6", "7"]
    assert len(list(store.journal.scan({ADA, BOB}))) == 8
    [finding] = [one for one in store.check().findings if one.check == "checksums"]
    assert finding.message == "2 versions are damaged"
