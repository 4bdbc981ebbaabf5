"""The input of ``add_many``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recollect.types.memory import DEFAULT_IMPORTANCE, KnowledgePointer, MemoryType, Source, Vector
from recollect.types.owners import Layer
from recollect.types.words import LayerName, MemoryTypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to add: the fields that a caller may set.

    ``layer`` defaults to the most specific layer of the identity, ``occurred_at`` to the time of recording. ``session``
    defaults to that of the identity if the memory has an author or a role, or is a conversation. ``key`` makes the
    write idempotent: the same key and the same memory are stored once. ``vector`` is for callers with embeddings of
    their own: numbers, or a :class:`Vector`.

    >>> NewMemory(content="Use tabs", layer="project", type="decision").content
    'Use tabs'
    """

    content: str
    layer: Layer | LayerName | None = None
    type: MemoryType | MemoryTypeName = MemoryType.FACT
    importance: float = DEFAULT_IMPORTANCE
    tags: Iterable[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    title: str | None = None
    description: str | None = None
    language: str | None = None
    author: str | None = None
    role: str | None = None
    session: str | None = None
    type_name: str | None = None
    confidence: float | None = None
    relevance: float | None = None
    decay_factor: float | None = None
    source: Source | None = None
    pointer: KnowledgePointer | None = None
    references: Iterable[str] = ()
    key: str | None = None
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    vector: Vector | Iterable[float] | None = None
