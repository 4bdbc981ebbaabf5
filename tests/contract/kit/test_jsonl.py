"""The store in plain files passes the kit."""

import base64
import re
from pathlib import Path

from wellkept.stores.jsonl import JsonlStore
from wellkept.testing import StoreConformance


class TestJsonlStore(StoreConformance):
    def open_store(self, place: Path) -> JsonlStore:
        return JsonlStore(place / "memory")

    def raw_bytes(self, place: Path) -> bytes:
        data = b"\n".join(path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file())
        return data + b"".join(base64.b64decode(one) for one in re.findall(rb'"(?:payload|data)":"([^"]*)"', data))

    def url(self, place: Path) -> str:
        return f"jsonl:{place / 'memory'}"
