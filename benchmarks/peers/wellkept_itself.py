"""Wellkept, through its public API, with vectors that are known beforehand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import wellkept
from benchmarks.peers import FEW, MANY, Item, LookUp, Peer

REQUIREMENTS: tuple[str, ...] = ()
NOTE = "Every add is forced to the disk. Search is exact for the caller: see recall."


class Known:
    """An embedder as Wellkept wants one, that looks vectors up."""

    def __init__(self, dimension: int, known: LookUp) -> None:
        self.name = f"known-{dimension}"
        self.dimension = dimension
        self._known = known

    def embed(self, texts: Sequence[str]) -> list[Any]:
        """The vector of each text."""
        return [self._known.vectors[text] for text in texts]


class WellkeptPeer(Peer):
    """One database, a view per owner."""

    scoped = True

    def __init__(self, folder: Path, dimension: int) -> None:
        self._known = LookUp()
        self._memories = wellkept.open(folder / "memory.db", embedder=Known(dimension, self._known))
        self._views = {owner: self._memories.view(user=owner) for owner in (MANY, FEW)}

    def add_many(self, items: Sequence[Item]) -> None:
        """One transaction for each owner that occurs."""
        for owner, view in self._views.items():
            news = [wellkept.NewMemory(content=i.text, vector=i.vector) for i in items if i.owner == owner]
            if news:
                view.add_many(news)

    def search(self, question: Item, k: int) -> list[str]:
        """By vector alone."""
        return self.filtered(question, MANY, k)

    def filtered(self, question: Item, owner: str, k: int) -> list[str]:
        """By vector alone, in the view of the owner."""
        self._known.learn([question])
        results = self._views[owner].search(question.text, limit=k, ranking="similarity", min_score=0)
        return [hit.memory.content for hit in results]

    def hybrid(self, question: Item, k: int) -> list[str]:
        """As search ranks if nothing else is said."""
        self._known.learn([question])
        return [hit.memory.content for hit in self._views[MANY].search(question.text, limit=k, min_score=0)]

    def close(self) -> None:
        """Close the database."""
        self._memories.close()


def open(folder: Path, dimension: int) -> Peer:
    """A database in a folder."""
    return WellkeptPeer(folder, dimension)
