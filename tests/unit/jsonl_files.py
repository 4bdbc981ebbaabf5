"""What the tests of the store in plain files share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from recollect.ports import Store
from recollect.stores.jsonl import JsonlStore
from recollect.testing.builders import memory, owner, put
from recollect.types import Layer, Owner

ADA = owner("ada")
MONDAY = Owner(Layer.SESSION, ("ada", "monday"))
MEMORY = "users/ada/memory.jsonl"


@contextmanager
def opened(root: Path, **options: Any) -> Iterator[JsonlStore]:
    with closing(JsonlStore(root, **options)) as store:
        yield store


def filled(root: Path, count: int = 5) -> list[str]:
    """A store with some memories of ada's; returns their contents."""
    contents = [f"number {number}" for number in range(count)]
    with opened(root) as store:
        put(store, *(memory(content, tags=("tag",)) for content in contents))
    return contents


def contents(store: Store) -> list[str]:
    return [stored.memory.content for stored in store.scan({ADA})]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def edit(path: Path, change: Callable[[list[bytes]], object]) -> None:
    """Change the lines of a file by hand."""
    found = path.read_bytes().splitlines(keepends=True)
    change(found)
    path.write_bytes(b"".join(found))
