"""Stores to convert, and all that can be seen of them."""

import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from inspect import signature
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from wellkept.ports import Journal, Record, Store
from wellkept.stores.jsonl import JsonlStore
from wellkept.stores.ram import RamStore
from wellkept.stores.sqlite import SqliteStore
from wellkept.testing.builders import START, START_US, Writer, owner, vector
from wellkept.testing.cases import Cases
from wellkept.types import Access, Write

ADA = owner("ada")
BOB = owner("bob")
KINDS = ("ram", "sqlite", "jsonl")
DAY_US = 86_400_000_000

CONVERSION = "conversion"
"""The setting in which a target remembers how far it is."""

_OWN = frozenset({CONVERSION, "durability", "origin", "epoch"})


def store_of(kind: str, folder: Path, name: str) -> Store:
    """A store of a kind; how durable it is, other tests find out."""
    if kind == "ram":
        return RamStore()
    path = folder / f"{name}.db"
    store = SqliteStore if kind == "sqlite" else JsonlStore
    return store.from_url(f"{kind}:{path}", durability=None if path.exists() else "relaxed")


def for_all_stores(**values: Iterable[object]) -> Callable[[Callable[..., None]], Callable[[Path], None]]:
    """Make one test of a check that wants a ``source``, a ``target`` or both: it is done with each kind of store, the
    source filled and the target empty, and with each of the other values.
    """

    def decorate(check: Callable[..., None]) -> Callable[[Path], None]:
        wanted = signature(check).parameters
        stores = [name for name in ("source", "target") if name in wanted]
        choices: dict[str, Iterable[Any]] = {**dict.fromkeys(stores, KINDS), **values}

        def test(tmp_path: Path) -> None:
            with Cases() as cases:
                for chosen in product(*choices.values()):
                    given = dict(zip(choices, chosen, strict=True))
                    with cases.case(f"{given}"), ExitStack() as opened:
                        folder = Path(mkdtemp(dir=tmp_path))
                        for name in stores:
                            store = store_of(given[name], folder, name)
                            given[name] = opened.enter_context(closing(store))
                        if "source" in stores:
                            fill(given["source"])
                        if "tmp_path" in wanted:
                            given["tmp_path"] = folder
                        check(**given)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate


def record(name: str, whose: object = ADA, body: bytes = b"{}", version: int = 1) -> Record:
    """A record of a session."""
    assert whose in (ADA, BOB)
    return Record(owner=whose, kind="session", name=name, body=body, version=version, updated_at=START)


def fill(store: Store) -> None:
    """Something of everything: two memories with a whole life, a tombstone, one forgotten, one expired, accesses."""
    make = Writer()
    one = lived(make, make.add(ADA, "one", write={"vector": vector(1, 0)}))
    two = lived(make, make.add(BOB, "two", key="k"))
    store.journal.append([write for pair in zip(one, two, strict=True) for write in pair])
    gone, bare = make.add(ADA, "gone"), make.add(ADA, "no vector")
    hidden = make.add(BOB, "hidden", write={"vector": vector(0, 1)})
    store.journal.append([gone, hidden, bare, make.add(ADA, "expired", expires_at=START_US)])
    store.journal.append([make.erase(gone, reason="asked for"), make.forget(hidden)])
    store.journal.count_accesses([Access(ADA, one[0].id, 3, START_US + DAY_US)])
    store.journal.set_settings({"calibration": "0.1 0.9 kit", "behind": "yes"})


def lived(make: Writer, first: Write) -> list[Write]:
    """A memory that was added, updated, forgotten and restored."""
    second = make.update(first, "changed", importance=0.9)
    third = make.forget(second, reason="no longer true")
    return [first, second, third, make.restore(third)]


def told(journal: Journal) -> dict[str, list[tuple[object, ...]]]:
    """Every version by owner, to the last byte, but for its place: that is its store's own."""
    by_owner: dict[str, list[tuple[object, ...]]] = {}
    for one in journal.feed():
        said = (one.id, one.version, one.operation, one.recorded_at, one.stamp, one.replaced, one.write_id, one.reason)
        facets = json.dumps(dict(one.facets), sort_keys=True)
        by_owner.setdefault(str(one.owner), []).append((*said, facets, one.payload))
    return by_owner


def heads(store: Store) -> list[object]:
    """All memories with their accesses and vectors, in the order of recording, without their places."""
    whose = set(store.journal.owners())
    return [one._replace(seq=0, born=0) for one in store.journal.scan(whose, vectors=True)]


def seen(store: Store) -> object:
    """All that a store holds."""
    journal = store.journal
    whose = frozenset(journal.owners())
    kept = {name: value for name, value in journal.settings().items() if name not in _OWN}
    records = sorted(store.records.list(None), key=str)
    counted = journal.usage(whose), journal.stats(whose, START)
    return told(journal), heads(store), kept, counted, records, store.check().healthy
