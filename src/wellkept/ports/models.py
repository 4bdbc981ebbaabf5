"""What an embedder, a lexicon, a reranker and a clock must be."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

Clock = Callable[[], datetime]
"""Gives the time now, aware and in UTC."""


@runtime_checkable
class Embedder(Protocol):
    """Text to vectors.

    An embedder may have more: ``calibration`` (a ``wellkept.recall.calibration.Calibration``; estimated from stored
    vectors where it is missing), ``batch`` (how many texts it takes at once), ``slow = True`` (its vectors are then
    found again by the hash of their text), ``lexicon`` (a :class:`Lexicon`, or ``None`` for none; the built-in one
    where it is missing), ``embed_query(texts)`` (where questions are embedded differently from what is remembered),
    ``embed_soon(texts)`` (the same vectors as ``embed``, where a few can be made before all that it needs is loaded).

    >>> from wellkept.embedders.hashing import HashingEmbedder
    >>> isinstance(HashingEmbedder(), Embedder)
    True
    """

    @property
    def name(self) -> str:
        """Names the model and whatever else changes its vectors; kept with every vector."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""

    def embed(self, texts: Sequence[str]) -> Iterable[Any]:
        """One row of float32 per text, in order."""


@runtime_checkable
class Lexicon(Protocol):
    """Words and what they mean, so that recall finds "dark theme" by "colour scheme"."""

    def pieces(self, said: Sequence[str]) -> bytes:
        """Two bytes for each word: what the lexicon knows it by; zeros for words that say nothing by themselves."""

    def kin(self, asked: Sequence[str]) -> Callable[[Any], Any]:
        """How near words are to pieces: a function from an array of pieces to a matrix, a row for each word."""


@runtime_checkable
class Reranker(Protocol):
    """Looks at a question and a text together, and says how well the one answers the other. Slow, so the last to look.

    >>> class Lengths:
    ...     name = "lengths"
    ...     def score(self, query, texts):
    ...         return [float(len(text)) for text in texts]
    >>> isinstance(Lengths(), Reranker)
    True
    """

    @property
    def name(self) -> str:
        """Names the model."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One number per text, in log-odds: higher is better."""
