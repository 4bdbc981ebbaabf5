"""Batches that are long enough for their ids to be looked up together."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from wellkept.errors import Conflict
from wellkept.stores.sqlite import SqliteStore, transaction
from wellkept.testing.builders import Writer, owner, put

ADA, BOB = owner("ada"), owner("bob")
COUNT = 2 * transaction._MANY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "memory.db")
    yield store
    store.close()


@pytest.mark.parametrize("id", ["plain", "größe", "nul\x00id", "line\nbreak", '"quoted"'])
@pytest.mark.parametrize("gone", [False, True], ids=["stored", "erased"])
def test_an_id_is_used_once_by_an_owner(store: SqliteStore, id: str, gone: bool) -> None:
    writes = Writer()
    first = writes.add(ADA, "first", id=id)
    put(store, first)
    if gone:
        put(store, writes.erase(first))
    before = store.journal.position({ADA, BOB})
    many = [writes.add(ADA, f"number {number}") for number in range(COUNT)]
    with pytest.raises(Conflict):
        put(store, *many, writes.add(ADA, "second", id=id))
    assert store.journal.position({ADA, BOB}) == before
    assert len(list(store.journal.scan({ADA}))) == (0 if gone else 1)
    put(store, *many, writes.add(BOB, "another owner's", id=id))
    assert [one.facets["text"] for one in store.journal.get({BOB}, [id])] == ["another owner's"]


def test_new_and_old_ids_mix(store: SqliteStore) -> None:
    writes = Writer()
    old = writes.add(ADA, "old")
    put(store, old)
    news = [writes.add(ADA, f"number {number}") for number in range(COUNT)]
    put(store, *news, writes.update(old, "changed"), writes.update(news[0], "twice"))
    contents = [one.facets["text"] for one in store.journal.scan({ADA})]
    assert contents == ["changed", "twice", *(f"number {number}" for number in range(1, COUNT))]
    assert store.check().findings == ()
