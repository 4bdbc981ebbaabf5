"""Batches that are long enough for their ids to be looked up together."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.errors import Conflict
from recollect.stores.sqlite import SqliteStore, journal
from recollect.testing.builders import added, erased, memory, put, updated

ADA = memory().owner
COUNT = 2 * journal._MANY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "memory.db")
    yield store
    store.close()


@pytest.mark.parametrize("id", ["plain", "größe", "nul\x00id", "line\nbreak", '"quoted"'])
@pytest.mark.parametrize("gone", [False, True], ids=["stored", "erased"])
def test_an_id_is_used_once(store: SqliteStore, id: str, gone: bool) -> None:
    first = memory("first", id=id)
    put(store, first)
    if gone:
        store.apply([erased(first)])
    before = store.sequence()
    with pytest.raises(Conflict):
        put(store, *(memory(f"number {number}") for number in range(COUNT)), memory("second", id=id))
    assert store.sequence() == before
    assert len(list(store.scan({ADA}))) == (0 if gone else 1)


def test_new_and_old_ids_mix(store: SqliteStore) -> None:
    old = memory("old")
    put(store, old)
    news = [memory(f"number {number}") for number in range(COUNT)]
    store.apply([*map(added, news), updated(old, content="changed"), updated(news[0], content="twice")])
    contents = [stored.memory.content for stored in store.scan({ADA})]
    assert contents == ["changed", "twice", *(f"number {number}" for number in range(1, COUNT))]
