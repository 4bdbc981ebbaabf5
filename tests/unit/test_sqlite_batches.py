"""Batches that are long enough for their ids to be looked up together."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from wellkept.errors import Conflict
from wellkept.stores.sqlite import SqliteStore, transaction
from wellkept.testing.builders import Writer, owner, put
from wellkept.testing.cases import Cases

ADA, BOB = owner("ada"), owner("bob")
IDS = ("plain", "größe", "nul\x00id", "line\nbreak", '"quoted"')
COUNT = 2 * transaction._MANY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "memory.db")
    yield store
    store.close()


def test_an_id_is_used_once_by_an_owner(store: SqliteStore) -> None:
    writes = Writer()
    with Cases() as cases:
        for id, gone in product(IDS, (False, True)):
            with cases.case(f"{id!r}, erased: {gone}"):
                _used_once(store, writes, id, gone=gone)


def _used_once(store: SqliteStore, writes: Writer, id: str, *, gone: bool) -> None:
    one, another = owner(writes.new_id()), owner(writes.new_id())
    first = writes.add(one, "first", id=id)
    put(store, first)
    if gone:
        put(store, writes.erase(first))
    before = store.journal.position({one, another})
    many = [writes.add(one, f"number {number}") for number in range(COUNT)]
    with pytest.raises(Conflict):
        put(store, *many, writes.add(one, "second", id=id))
    assert store.journal.position({one, another}) == before
    assert len(list(store.journal.scan({one}))) == (0 if gone else 1)
    put(store, *many, writes.add(another, "another owner's", id=id))
    assert [stored.facets["text"] for stored in store.journal.get({another}, [id])] == ["another owner's"]


def test_new_and_old_ids_mix(store: SqliteStore) -> None:
    writes = Writer()
    old = writes.add(ADA, "old")
    put(store, old)
    news = [writes.add(ADA, f"number {number}") for number in range(COUNT)]
    put(store, *news, writes.update(old, "changed"), writes.update(news[0], "twice"))
    contents = [one.facets["text"] for one in store.journal.scan({ADA})]
    assert contents == ["changed", "twice", *(f"number {number}" for number in range(1, COUNT))]
    assert store.check().findings == ()
