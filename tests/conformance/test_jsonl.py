"""The store in plain files passes the kit."""

from pathlib import Path

from recollect.stores.jsonl import JsonlStore
from recollect.testing import StoreConformance


class TestJsonlStore(StoreConformance):
    def open_store(self, place: Path) -> JsonlStore:
        return JsonlStore(place / "memory")

    def raw_bytes(self, place: Path) -> bytes:
        return b"".join(path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file())

    def url(self, place: Path) -> str:
        return f"jsonl:{place / 'memory'}"
