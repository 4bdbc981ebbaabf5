"""langgraph's SqliteStore: a namespace per owner below a common one."""

from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peers import SQLITE, Item, LookUp, Peer, loadable_sqlite

REQUIREMENTS = ("langgraph-checkpoint-sqlite==3.1.2", "numpy==2.4.6", SQLITE)
NOTE = "Embeds texts itself: a look-up stands in for the model. SQLite in WAL mode, durable."

ROOT = "bench"


class LanggraphPeer(Peer):
    """Any store of langgraph that was made with the look-up as its embedding."""

    def __init__(self, known: LookUp, store: Any) -> None:
        self._known = known
        self._store = store
        self._put = import_module("langgraph.store.base").PutOp
        self.closing = ExitStack()

    def add_many(self, items: Sequence[Item]) -> None:
        """One batch of puts."""
        self._known.learn(items)
        self._store.batch([self._put((ROOT, item.owner), item.text, {"text": item.text}) for item in items])

    def search(self, question: Item, k: int) -> list[str]:
        """Everything below the common namespace."""
        return self._search((ROOT,), question, k)

    def filtered(self, question: Item, owner: str, k: int) -> list[str]:
        """The owner's namespace."""
        return self._search((ROOT, owner), question, k)

    def _search(self, namespace: tuple[str, ...], question: Item, k: int) -> list[str]:
        self._known.learn([question])
        return [found.value["text"] for found in self._store.search(namespace, query=question.text, limit=k)]

    def close(self) -> None:
        """Close the connection."""
        self.closing.close()


def index(known: LookUp, dimension: int) -> dict[str, Any]:
    """How a store of langgraph is told to keep vectors; the two stores read the fields under different names."""
    return {"dims": dimension, "embed": known.lists, "fields": ["text"], "text_fields": ["text"]}


def open(folder: Path, dimension: int) -> Peer:
    """A database in a folder."""
    loadable_sqlite()  # before langgraph imports it
    known = LookUp()
    store_type = import_module("langgraph.store.sqlite").SqliteStore
    with ExitStack() as stack:
        path = str(folder / "store.db")
        store = stack.enter_context(store_type.from_conn_string(path, index=index(known, dimension)))
        store.setup()
        peer = LanggraphPeer(known, store)
        peer.closing = stack.pop_all()
    return peer
