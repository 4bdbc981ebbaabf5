"""mem0 without a language model (infer=False), on faiss: a file that is written as a whole."""

from pathlib import Path

from benchmarks.peers import Peer, mem0_qdrant

REQUIREMENTS = mem0_qdrant.REQUIREMENTS
NOTE = (
    mem0_qdrant.NOTE
    + " Only its history is forced to the disk. Filters come after the search, so that fewer than k may come back."
)


def open(folder: Path, dimension: int) -> Peer:
    """A memory whose files are in a folder."""
    config = {"path": str(folder / "faiss"), "distance_strategy": "cosine"}
    return mem0_qdrant.Mem0Peer(folder, dimension, {"provider": "faiss", "config": config})
