"""What can be asked of a view: filters, and the pages and hits that answer."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from recollect.types.memory import Memory, MemoryType, SourceType
from recollect.types.owners import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories to take; every condition given must hold.

    Tags are hierarchical: ``security`` also finds ``security.authentication``. ``within`` is relative to now:
    a ``timedelta`` or a text such as ``"7d"``, ``"12h"``, ``"last week"``. ``text`` takes contents that have all of
    its words, in any order and whatever the case; ``*`` in a word stands for any letters. ``references`` takes the
    memories that are reached from the given ids by following references, up to ``max_depth`` steps.

    >>> Filter(types=["decision"], tags=["security"], within="7d").within
    '7d'
    """

    types: Iterable[MemoryType | str] | None = None
    tags: Iterable[str] | None = None
    any_tags: Iterable[str] | None = None
    no_tags: Iterable[str] | None = None
    min_importance: float | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    occurred_after: datetime | None = None
    occurred_before: datetime | None = None
    within: timedelta | str | None = None
    content_contains: str | None = None
    text: str | None = None
    authors: Iterable[str] | None = None
    source_type: SourceType | str | None = None
    has_pointer: bool | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    references: Iterable[str] | None = None
    max_depth: int = 1
    include_forgotten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a listing: iterate it, then ask for the next with ``cursor=page.next_cursor``.

    In the order ``relevance``, ``reasons`` has the factors of each memory's relevance, in the order of ``memories``.

    >>> import recollect
    >>> with recollect.open("ram:") as memories:
    ...     view = memories.view(user="ada")
    ...     _ = view.add_many(["one", "two", "three"])
    ...     page = view.list(limit=2)
    ...     rest = view.list(limit=2, cursor=page.next_cursor)
    >>> [m.content for m in page], [m.content for m in rest], page.total, rest.next_cursor
    (['three', 'two'], ['one'], 3, None)
    """

    memories: tuple[Memory, ...]
    next_cursor: str | None
    total: int
    reasons: tuple[Mapping[str, float], ...] = ()

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory that search found. ``score`` is between 0 and 1, ``rank`` counts from 1.

    ``reasons`` are filled when asked for (``explain=True``): what each signal added to the score or took from it.
    With the ranking ``best`` they are in log-odds and their sum gives the score, ``1 / (1 + exp(-sum))``; with
    ``relevance`` they are the factors of the score. ``passage`` is the part of a long content that came nearest, from
    which character to which. ``overrides`` names the memories of less specific layers that this one stands before,
    ``duplicates`` those that say the same and were left out.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a search answers: iterable over its hits, the best first.

    ``total`` counts the candidates that passed the threshold, before the limit was applied. ``semantic`` tells whether
    meaning took part, or words alone: there is no embedder, or it did not answer.

    >>> import recollect
    >>> with recollect.open("ram:") as memories:
    ...     results = memories.view(user="ada").search("anything")
    >>> len(results), results.total, [layer.value for layer in results.layers]
    (0, 0, ['user'])
    """

    hits: tuple[Hit, ...]
    total: int
    layers: tuple[Layer, ...]
    semantic: bool = True

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)
