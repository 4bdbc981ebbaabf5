"""The port for what is derived from the journal to find memories: nearest vectors, and words under given weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from wellkept.errors import ConfigurationError
from wellkept.filters import Where
from wellkept.types import Component, Mark, Owner, Owners, Stored, Vector

if TYPE_CHECKING:
    from wellkept.recall.candidates import Candidates  # numpy takes 100 ms, and only a search needs it

Key = tuple[Owner, str]
"""A memory: its owner and its id."""


class Near(NamedTuple):
    """A memory that an index found, and the raw number it was found by: a cosine, or a BM25 score."""

    owner: Owner
    id: str
    score: float


class Nearest(NamedTuple):
    """The memories whose vectors are nearest. ``exact`` says whether they were compared exactly; otherwise the engine
    compares those that it shows with the stored vectors.
    """

    found: Sequence[Near]
    exact: bool


class Corpus(NamedTuple):
    """What the weights of words are made of: how many memories there are, how many words they have, and how many
    memories have each term asked for. Corpora of several owners add up. ``first`` and ``last`` are the times between
    which everything occurred, in seconds since 1970.
    """

    memories: int = 0
    words: int = 0
    having: Mapping[int, int] = {}  # never changed
    first: float | None = None
    last: float | None = None


class Index(ABC):
    """Finds active memories by vectors and words; derived from the journal, and made anew from it at any time.

    Indexes of different owners never wait for each other. Nothing in a request is a callable. Of a ``Where`` an index
    heeds ``now``, ``ids``, ``without``, ``occurred_after`` and ``occurred_before``; the engine has the journal evaluate
    all other conditions, and passes ``ids``.

    One that is passed to ``open(index=...)`` serves one open database at a time: owners of two may have the same names.
    """

    _database: str | None = None
    _serving = False

    def serve(self, database: str) -> None:
        """Called when a database is opened with this index: its name, another one for each state of its numbering. What
        is held of another one is forgotten. An index that keeps what it holds when it is closed keeps the name with it.
        """
        if self._serving:
            raise ConfigurationError(
                "the index serves another open database", details={"field": "index"}, hint="make one for each database"
            )
        if self._database not in (None, database):
            self.drop()
        self._database, self._serving = database, True

    def close(self) -> None:
        """Called when the database is closed. Closing twice is allowed."""
        self._serving = False

    @abstractmethod
    def followed(self, owner: Owner) -> Mark | None:
        """How far the index shows the journal of an owner; ``None`` if it must be loaded from the start."""

    @abstractmethod
    def load(self, owner: Owner, stored: Iterable[Stored], dimension: int, upto: Mark) -> None:
        """Take in all active memories of an owner, with vectors, in the place of whatever was known. Loading one owner
        keeps nobody from searching another.
        """

    @abstractmethod
    def follow(self, owner: Owner, stored: Sequence[Stored], gone: Sequence[str], upto: Mark) -> None:
        """Take in changed memories, with vectors, and remove those that are no longer active. Idempotent."""

    def following(self, owner: Owner) -> AbstractContextManager[object]:  # noqa: ARG002  # nothing by default
        """Held while an owner is brought up to date, so that many searches at once load it once (single-flight)."""
        return nullcontext()

    @abstractmethod
    def nearest(self, owners: Owners, where: Where, vector: Vector, limit: int, *, exact: bool = False) -> Nearest:
        """The memories whose vectors agree best, by raw similarity, the best first. ``exact`` scores are wanted where
        they are at hand; otherwise only the memories matter.
        """

    @abstractmethod
    def corpus(self, owners: Owners, terms: Sequence[int]) -> Corpus:
        """What the engine makes weights of."""

    @abstractmethod
    def worded(
        self,
        owners: Owners,
        where: Where,
        weights: Mapping[int, float],
        mean_length: float,
        limit: int,
        *,
        required: Sequence[int] = (),
    ) -> Sequence[Near]:
        """The memories with the highest BM25 under the engine's weights, above 0; with required terms those that have
        every one of them, whatever their BM25.
        """

    @abstractmethod
    def dated(self, owners: Owners, where: Where, start: float, end: float, limit: int) -> Sequence[Key]:
        """The memories that occurred in a stretch of time or tell of it (``Entry.told``), in seconds since 1970."""

    @abstractmethod
    def candidates(self, *keys: Sequence[Key | Near], beside: Sequence[Key | Near] = ()) -> Candidates:
        """What ranking reads of memories, in arrays: those asked for that are there, then their neighbours in the same
        conversation. The neighbours of those ``beside`` are candidates as well. An answer of this index may be passed
        as it is.
        """

    @abstractmethod
    def drop(self, owners: Iterable[Owner] | None = None) -> None:
        """Forget what was loaded of some owners, or of all."""

    def health(self) -> Component:
        """Whether it can answer now, and as fast as it should."""
        self.corpus(frozenset(), ())
        return Component()


class Images(ABC):
    """Where an index may keep a copy of itself, so that a new process need not derive it again.

    An image is only ever a copy. The store drops it in the transaction that erases a memory of its owner, and does not
    keep one that is older than the last erasure.
    """

    @abstractmethod
    def read(self, owner: Owner) -> tuple[Mark, Mapping[str, bytes | memoryview]] | None:
        """The parts of an owner's image, and how far it shows the journal."""

    @abstractmethod
    def write(self, owner: Owner, mark: Mark, parts: Mapping[str, bytes | memoryview]) -> bool:
        """Keep an image, if the owner is still at that mark; whether it was kept."""
