"""Chroma's persistent client: one collection, the owner in the metadata."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peers import Item, Peer

REQUIREMENTS = ("chromadb==1.5.9", "numpy==2.4.6")
NOTE = "One collection with cosine distance; the owner is a field of the metadata."
BATCH = 1_000


class ChromaPeer(Peer):
    """One collection."""

    def __init__(self, folder: Path) -> None:
        settings = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        self._client = import_module("chromadb").PersistentClient(path=str(folder), settings=settings)
        self._collection = self._client.get_or_create_collection(
            "items", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def add_many(self, items: Sequence[Item]) -> None:
        """One call; chroma limits how much fits into it."""
        for start in range(0, len(items), BATCH):
            some = items[start : start + BATCH]
            self._collection.add(
                ids=[item.text for item in some],
                embeddings=[item.vector.tolist() for item in some],
                documents=[item.text for item in some],
                metadatas=[{"owner": item.owner} for item in some],
            )

    def search(self, question: Item, k: int) -> list[str]:
        """The whole collection."""
        return self._query(question, k)

    def filtered(self, question: Item, owner: str, k: int) -> list[str]:
        """Where the metadata names the owner."""
        return self._query(question, k, where={"owner": owner})

    def _query(self, question: Item, k: int, **options: Any) -> list[str]:
        found = self._collection.query(
            query_embeddings=[question.vector.tolist()], n_results=k, include=["documents", "metadatas"], **options
        )
        return list(found["documents"][0])

    def close(self) -> None:
        """Let go of the collection; the client has nothing to close."""
        del self._collection, self._client


def open(folder: Path, dimension: int) -> Peer:  # noqa: ARG001 (the first vector says it)
    """A client on a folder."""
    return ChromaPeer(folder)
