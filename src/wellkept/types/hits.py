"""The results of a search."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from wellkept.types.memory import Memory
from wellkept.types.owners import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory found by a search. ``score`` is between 0 and 1, ``rank`` counts from 1.

    ``reasons`` (with ``explain=True``) are the contributions of the signals to the score. With the ranking ``best``
    they are in log-odds: the score is ``1 / (1 + exp(-sum))``; with ``relevance`` they are the factors of the score.
    ``passage`` is the character span of the best-matching part of a long content. ``overrides`` has the ids of
    memories of less specific layers that this one takes precedence over, ``duplicates`` those of near-identical
    memories that were left out. ``stale`` tells, of a memory that points to a local file, whether that has changed
    since or is gone.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     view = memories.view(user="ada")
    ...     _ = view.add("Prefers dark mode")
    ...     hit = view.search("dark mode", explain=True).hits[0]
    >>> hit.rank, hit.memory.content, "words" in hit.reasons
    (1, 'Prefers dark mode', True)
    """

    memory: Memory
    score: float
    rank: int
    reasons: Mapping[str, float] = field(default_factory=dict)
    passage: tuple[int, int] | None = None
    overrides: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    stale: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The hits of a search, best first; iterable.

    ``total`` counts the candidates above the threshold, before the limit was applied. ``semantic`` is false if the
    search used keywords alone, because there is no embedder or it failed. ``known`` says how likely it is, from 0 to 1,
    that the memories hold an answer at all; it is also given where nothing was shown.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     results = memories.view(user="ada").search("anything")
    >>> len(results), results.total, [layer.value for layer in results.layers]
    (0, 0, ['user'])
    """

    hits: tuple[Hit, ...]
    total: int
    layers: tuple[Layer, ...]
    semantic: bool = True
    known: float = 1.0

    def __repr__(self) -> str:
        best = f": {self.hits[0].score:.2f}" if self.hits else ""
        return f"<Results {len(self.hits)} of {self.total}{best}>"

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)
