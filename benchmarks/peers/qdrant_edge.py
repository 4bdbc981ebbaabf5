"""Qdrant Edge: Qdrant's engine inside the process; one shard, the owner and the text in the payload."""

import uuid
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peers import Item, Peer

REQUIREMENTS = ("qdrant-edge-py==0.9.0", "numpy==2.4.6")
NOTE = "Approximate: a graph (HNSW), built after the load. Each add is flushed, which is when it is durable."


class QdrantEdgePeer(Peer):
    """One shard with an index of owners and one of words."""

    def __init__(self, folder: Path, dimension: int) -> None:
        self._edge: Any = import_module("qdrant_edge")
        path = folder / "shard"
        if path.exists():
            self._shard = self._edge.EdgeShard.load(str(path))
            return
        path.mkdir()
        vectors = self._edge.EdgeVectorParams(size=dimension, distance=self._edge.Distance.Cosine)
        self._shard = self._edge.EdgeShard.create(str(path), self._edge.EdgeConfig(vectors=vectors))
        update = self._edge.UpdateOperation
        self._shard.update(update.create_field_index("owner", self._edge.PayloadSchemaType.Keyword))
        self._shard.update(update.create_field_index("text", self._edge.TextIndexParams(scoring=True)))

    def add_many(self, items: Sequence[Item]) -> None:
        """One upsert, then a flush."""
        points = [
            self._edge.Point(
                id=str(uuid.uuid5(uuid.NAMESPACE_OID, item.text)),
                vector=item.vector.tolist(),
                payload={"owner": item.owner, "text": item.text},
            )
            for item in items
        ]
        self._shard.update(self._edge.UpdateOperation.upsert_points(points))
        self._shard.flush()

    def settle(self) -> None:
        """Build the graph."""
        self._shard.optimize()
        self._shard.flush()

    def search(self, question: Item, k: int) -> list[str]:
        """The whole shard."""
        return self._query(question, k)

    def filtered(self, question: Item, owner: str, k: int) -> list[str]:
        """Where the payload names the owner."""
        edge = self._edge
        condition = edge.FieldCondition(key="owner", match=edge.MatchValue(owner))
        return self._query(question, k, filter=edge.Filter(must=[condition]))

    def hybrid(self, question: Item, k: int) -> list[str]:
        """Ranks of both searches fused."""
        edge = self._edge
        nearest = edge.Prefetch(limit=100, query=edge.Query.Nearest(question.vector.tolist()))
        by_words = edge.Prefetch(limit=100, query=edge.TextQuery("text", question.text))
        request = edge.QueryRequest(
            limit=k, query=edge.Fusion.Rrf(k=60), prefetches=[nearest, by_words], with_payload=True
        )
        return [point.payload["text"] for point in self._shard.query(request)]

    def _query(self, question: Item, k: int, **options: Any) -> list[str]:
        query = self._edge.Query.Nearest(question.vector.tolist())
        request = self._edge.QueryRequest(limit=k, query=query, with_payload=True, **options)
        return [point.payload["text"] for point in self._shard.query(request)]

    def close(self) -> None:
        """Close the shard."""
        self._shard.close()


def open(folder: Path, dimension: int) -> Peer:
    """A shard in a folder."""
    return QdrantEdgePeer(folder, dimension)
