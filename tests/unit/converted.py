"""Stores to convert, and all that can be seen of them."""

from datetime import timedelta
from pathlib import Path

from recollect.memories.converting import CONVERSION
from recollect.testing.journal import lived

from recollect.ports import Store
from recollect.stores.sqlite import SqliteStore
from recollect.testing.builders import START, erased, forgotten, memory, owner, put, vector
from tests.unit.histories import plain

ADA = owner("ada")
BOB = owner("bob")


def file(folder: Path, name: str) -> SqliteStore:
    """A store in a file; how durable it is, other tests find out."""
    path = folder / f"{name}.db"
    return SqliteStore(path, durability=None if path.exists() else "relaxed")


def fill(store: Store) -> None:
    one, two = lived(memory("one", vector=vector(1, 0))), lived(memory("two", BOB, key="k"))
    store.apply([write for pair in zip(one, two, strict=True) for write in pair])
    gone, hidden, bare = memory("gone"), memory("hidden", BOB, vector=vector(0, 1)), memory("no vector")
    put(store, gone, hidden, bare, memory("expired", expires_at=START))
    store.apply([erased(gone, reason="asked for"), forgotten(hidden)])
    store.touch([one[0].memory.id] * 3, START + timedelta(days=1))
    store.set_settings({"calibration": "0.1 0.9 kit", "behind": "yes"})


def seen(store: Store) -> object:
    """All that a store holds, whatever its sequences."""
    whose = frozenset(store.owners())
    kept = {name: value for name, value in store.settings().items() if name not in ("durability", CONVERSION)}
    heads = [one.memory for one in store.scan(whose, vectors=True)]
    return plain(store.journal()), heads, kept, store.stats(whose, START), store.check().healthy
