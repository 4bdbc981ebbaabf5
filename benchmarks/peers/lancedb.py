"""LanceDB: one table, searched without an index of vectors, with a full-text index of the texts."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peers import Item, Peer

REQUIREMENTS = ("lancedb==0.40.0", "numpy==2.4.6")
NOTE = "Exact search, without an index. An add is not forced to the disk. Owner and text are indexed after the load."


class LancePeer(Peer):
    """One table."""

    def __init__(self, folder: Path, dimension: int) -> None:
        arrow = import_module("pyarrow")
        vector = arrow.list_(arrow.float32(), dimension)
        schema = arrow.schema([("text", arrow.string()), ("owner", arrow.string()), ("vector", vector)])
        self._table = import_module("lancedb").connect(folder).create_table("items", schema=schema, exist_ok=True)

    def add_many(self, items: Sequence[Item]) -> None:
        """One call."""
        self._table.add([{"text": item.text, "owner": item.owner, "vector": item.vector} for item in items])

    def settle(self) -> None:
        """Merge small fragments and index what is filtered or searched by words."""
        self._table.create_scalar_index("owner", index_type="BITMAP")
        self._table.create_fts_index("text")
        self._table.optimize()

    def search(self, question: Item, k: int) -> list[str]:
        """The whole table."""
        return self._texts(self._table.search(self._vector(question)).distance_type("cosine"), k)

    def filtered(self, question: Item, owner: str, k: int) -> list[str]:
        """The filter goes first, so that k are found."""
        query = self._table.search(self._vector(question)).distance_type("cosine")
        return self._texts(query.where(f"owner = '{owner}'", prefilter=True), k)

    def hybrid(self, question: Item, k: int) -> list[str]:
        """Ranks of both searches fused, as is its default."""
        query = self._table.search(query_type="hybrid").vector(self._vector(question)).text(question.text)
        return self._texts(query.distance_type("cosine"), k)

    def _vector(self, question: Item) -> list[float]:
        vector: list[float] = question.vector.tolist()
        return vector

    def _texts(self, query: Any, k: int) -> list[str]:
        return [row["text"] for row in query.limit(k).to_list()]

    def close(self) -> None:
        """Let go of the table."""
        del self._table


def open(folder: Path, dimension: int) -> Peer:
    """A table in a folder."""
    return LancePeer(folder, dimension)
