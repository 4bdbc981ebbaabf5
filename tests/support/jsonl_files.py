"""What the tests of the store in plain files share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from wellkept.ports import Store
from wellkept.stores.jsonl import JsonlStore
from wellkept.testing.builders import Writer, owner
from wellkept.types import Layer, Owner

ADA = owner("ada")
MONDAY = Owner(Layer.SESSION, ("ada", "monday"))
MEMORY = "users/ada/memory.jsonl"


@contextmanager
def opened(root: Path, **options: Any) -> Iterator[JsonlStore]:
    with closing(JsonlStore(root, **options)) as store:
        yield store


def filled(root: Path, count: int = 5) -> list[str]:
    """A store with some memories of ada's, one append each; returns their texts."""
    texts, writes = [f"number {number}" for number in range(count)], Writer()
    with opened(root) as store:
        for number, text in enumerate(texts):
            store.journal.append([writes.add(ADA, text, id=f"m{number}", tags=["tag"])])
    return texts


def contents(store: Store, whose: Owner = ADA) -> list[str]:
    return [one.facets["text"] for one in store.journal.scan({whose})]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def edit(path: Path, change: Callable[[list[bytes]], object]) -> None:
    """Change the lines of a file by hand."""
    found = path.read_bytes().splitlines(keepends=True)
    change(found)
    path.write_bytes(b"".join(found))


def every_file(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
