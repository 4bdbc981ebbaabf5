"""langgraph's InMemoryStore: dictionaries in the process, gone with it."""

from importlib import import_module
from pathlib import Path

from benchmarks.peers import LookUp, Peer, langgraph_sqlite

REQUIREMENTS = langgraph_sqlite.REQUIREMENTS
NOTE = "Embeds texts itself: a look-up stands in for the model. Nothing is durable."


class InMemoryPeer(langgraph_sqlite.LanggraphPeer):
    """There is no file that another process could open."""

    persistent = False


def open(folder: Path, dimension: int) -> Peer:  # noqa: ARG001 (nothing goes into the folder)
    """An empty store."""
    known = LookUp()
    store_type = import_module("langgraph.store.memory").InMemoryStore
    return InMemoryPeer(known, store_type(index=langgraph_sqlite.index(known, dimension)))
