"""The embedded store passes the kit."""

from pathlib import Path

from wellkept.stores.sqlite import SqliteStore
from wellkept.testing import StoreConformance


class TestSqliteStore(StoreConformance):
    def open_store(self, place: Path) -> SqliteStore:
        return SqliteStore(place / "memory.db")

    def raw_bytes(self, place: Path) -> bytes:
        return b"".join(path.read_bytes() for path in sorted(place.iterdir()))

    def url(self, place: Path) -> str:
        return f"sqlite:{place / 'memory.db'}"
