"""sqlite-vec: a virtual table of vectors in SQLite, with the owner as partition key."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.peers import SQLITE, Item, Peer, loadable_sqlite

REQUIREMENTS = ("sqlite-vec==0.1.9", "numpy==2.4.6", SQLITE)
NOTE = "A vector table only. WAL with synchronous=FULL, so that an add is durable; the owner is the partition key."


class SqliteVecPeer(Peer):
    """One virtual table that also carries the texts."""

    def __init__(self, folder: Path, dimension: int) -> None:
        self._connection = loadable_sqlite().connect(folder / "vectors.db", isolation_level=None)
        self._connection.enable_load_extension(True)
        import_module("sqlite_vec").load(self._connection)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS items USING vec0("
            f"owner text partition key, vector float[{dimension}] distance_metric=cosine, +content text)"
        )

    def add_many(self, items: Sequence[Item]) -> None:
        """One transaction."""
        rows = [(item.owner, item.vector.tobytes(), item.text) for item in items]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO items (owner, vector, content) VALUES (?, ?, ?)", rows)
        self._connection.execute("COMMIT")

    def search(self, question: Item, k: int) -> list[str]:
        """All partitions."""
        found = self._connection.execute(
            "SELECT content FROM items WHERE vector MATCH ? AND k = ? ORDER BY distance",
            (question.vector.tobytes(), k),
        )
        return [content for (content,) in found]

    def filtered(self, question: Item, owner: str, k: int) -> list[str]:
        """One partition."""
        found = self._connection.execute(
            "SELECT content FROM items WHERE owner = ? AND vector MATCH ? AND k = ? ORDER BY distance",
            (owner, question.vector.tobytes(), k),
        )
        return [content for (content,) in found]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def open(folder: Path, dimension: int) -> Peer:
    """A database in a folder."""
    return SqliteVecPeer(folder, dimension)
