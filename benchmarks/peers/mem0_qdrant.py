"""mem0 without a language model (infer=False), on qdrant's local mode, which is its own default."""

import os
import uuid
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peers import Item, LookUp, Peer

REQUIREMENTS = ("mem0ai==2.2.1", "faiss-cpu==1.15.1", "numpy==2.4.6")
NOTE = (
    "Adds one at a time, also in a batch; the batch rate is of the first 500, the rest was put into its vector store "
    "directly. A look-up stands in for the model; without a model of its own for words, its search goes by vector."
)
APP = "bench"


class Mem0Peer(Peer):
    """Everything belongs to one agent; the owner is the user."""

    batch_measured = 500

    def __init__(self, folder: Path, dimension: int, store: dict[str, Any]) -> None:
        # Read when mem0 is imported: no reports to anybody, and nothing outside the folder.
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder / "settings"))
        # Models that are made but never called; the embedder is replaced right away.
        unused = {"provider": "openai", "config": {"api_key": "none"}}
        self._known = LookUp()
        store["config"] |= {"collection_name": "items", "embedding_model_dims": dimension}
        config = {
            "llm": unused,
            "embedder": unused,
            "vector_store": store,
            "history_db_path": str(folder / "history.db"),
        }
        self._memory = import_module("mem0").Memory.from_config(config)
        self._memory.embedding_model = self

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002 (mem0 passes it)
        """What mem0 asks of an embedder."""
        return self._known.lists([text])[0]

    def add_many(self, items: Sequence[Item]) -> None:
        """There is no call for many memories of several users."""
        self._known.learn(items)
        for item in items:
            self._memory.add(item.text, user_id=item.owner, agent_id=APP, infer=False)

    def fill(self, items: Sequence[Item]) -> None:
        """With the fields that mem0 would have written."""
        payloads = [
            {"data": i.text, "user_id": i.owner, "agent_id": APP, "text_lemmatized": i.text, "role": "user"}
            for i in items
        ]
        ids = [str(uuid.uuid5(uuid.NAMESPACE_OID, item.text)) for item in items]
        vectors = [item.vector.tolist() for item in items]
        self._memory.vector_store.insert(vectors=vectors, ids=ids, payloads=payloads)

    def search(self, question: Item, k: int) -> list[str]:
        """All memories of the agent."""
        return self._search(question, k, {"agent_id": APP})

    def filtered(self, question: Item, owner: str, k: int) -> list[str]:
        """The memories of one user."""
        return self._search(question, k, {"user_id": owner})

    def _search(self, question: Item, k: int, filters: dict[str, str]) -> list[str]:
        self._known.learn([question])
        found = self._memory.search(question.text, top_k=k, filters=filters, threshold=0.0)
        return [one["memory"] for one in found["results"]]

    def close(self) -> None:
        """Close the history; the vector store has nothing to close."""
        self._memory.close()


def open(folder: Path, dimension: int) -> Peer:
    """A memory whose files are in a folder."""
    config = {"path": str(folder / "qdrant"), "on_disk": True}
    return Mem0Peer(folder, dimension, {"provider": "qdrant", "config": config})
