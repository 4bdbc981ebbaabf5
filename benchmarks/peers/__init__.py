"""Other libraries that an agent could keep its memory in, behind one small interface, so that one clock times them all.

Each module names what to install (``REQUIREMENTS``, pinned), what to know when reading its figures (``NOTE``), and how
to ``open`` a store in a folder, new or existing. It runs in a virtual environment of its own: packages are imported
when a store is opened, never before.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

PEERS = {
    "wellkept": "wellkept_itself",
    "sqlite-vec": "sqlite_vec",
    "langgraph SqliteStore": "langgraph_sqlite",
    "langgraph InMemoryStore": "langgraph_memory",
    "chroma": "chroma",
    "lancedb": "lancedb",
    "qdrant-edge": "qdrant_edge",
    "mem0 + qdrant": "mem0_qdrant",
    "mem0 + faiss": "mem0_faiss",
}
"""The module of each peer, by the name that the report gives it."""

MANY, FEW = "many", "few"
"""The two owners: nearly everything belongs to the first, one per cent to the second."""


@dataclass(frozen=True, slots=True)
class Item:
    """A text with its vector: an array of 32-bit floats that has ``tolist``. Texts are unique and serve as ids."""

    text: str
    vector: Any
    owner: str = MANY


SQLITE = "pysqlite3-binary==0.5.4.post2; sys_platform == 'linux'"
"""An SQLite that can load extensions, for Pythons whose own cannot."""


class Unsupported(Exception):
    """The peer has no such operation."""


class Peer(ABC):
    """A store that is open. Searches return texts, the best first."""

    scoped = False
    """Whether ``search`` looks at what belongs to ``MANY`` only; otherwise it looks at everything."""
    persistent = True
    """Whether another process can open what was stored."""
    batch_measured: int | None = None
    """How many are added to learn the batch rate, where all would take hours; the others go through ``fill``."""

    def add(self, item: Item) -> None:
        """Store one; when it returns, it is as durable as the peer makes it."""
        self.add_many([item])

    @abstractmethod
    def add_many(self, items: Sequence[Item]) -> None:
        """Store many, in the way that the peer is fastest at."""

    def fill(self, items: Sequence[Item]) -> None:
        """Store many whose time is not measured."""
        self.add_many(items)

    def settle(self) -> None:
        """What the peer wants done after a bulk load, before it is searched."""
        return

    @abstractmethod
    def search(self, question: Item, k: int) -> list[str]:
        """The nearest in one scope, without any other condition."""

    @abstractmethod
    def filtered(self, question: Item, owner: str, k: int) -> list[str]:
        """The nearest of what belongs to an owner."""

    def hybrid(self, question: Item, k: int) -> list[str]:  # noqa: ARG002 (most have no such search)
        """The best by words and by vector together."""
        raise Unsupported

    @abstractmethod
    def close(self) -> None:
        """Let go of files."""


def loadable_sqlite() -> Any:
    """The module sqlite3 if it can load extensions; in builds of Python where it cannot, pysqlite3 takes its place."""
    sqlite3 = import_module("sqlite3")
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        sqlite3 = import_module("pysqlite3")
        sys.modules["sqlite3"] = sqlite3
    return sqlite3


class LookUp:
    """Stands in for a model where a peer insists on embedding texts itself: it knows the vectors beforehand."""

    def __init__(self) -> None:
        self.vectors: dict[str, Any] = {}

    def learn(self, items: Sequence[Item]) -> None:
        """Know the vectors of these texts, and forget all others."""
        self.vectors = {item.text: item.vector for item in items}

    def lists(self, texts: Sequence[str]) -> list[list[float]]:
        """Their vectors as lists of numbers."""
        return [self.vectors[text].tolist() for text in texts]
