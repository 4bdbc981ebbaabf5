"""The keyword arguments that ``add`` and ``update`` pass through, for editors and type checkers."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

from recollect.types.memory import KnowledgePointer, MemoryType, Source, Vector


class NewFields(TypedDict, total=False):
    """The fields of a new memory that ``add`` does not name itself; see :class:`recollect.NewMemory`."""

    title: str | None
    description: str | None
    language: str | None
    author: str | None
    role: str | None
    session: str | None
    type_name: str | None
    confidence: float | None
    relevance: float | None
    decay_factor: float | None
    source: Source | None
    pointer: KnowledgePointer | None
    references: Iterable[str]
    occurred_at: datetime | None
    expires_at: datetime | None
    vector: Vector | Iterable[float] | None


class ChangedFields(TypedDict, total=False):
    """What ``update`` can change. What is left out stays; ``None`` clears a field that may be empty."""

    content: str
    type: MemoryType | str
    importance: float
    tags: Iterable[str]
    add_tags: Iterable[str]
    remove_tags: Iterable[str]
    metadata: Mapping[str, Any]
    remove_metadata: Iterable[str]
    title: str | None
    description: str | None
    language: str | None
    author: str | None
    role: str | None
    session: str | None
    type_name: str | None
    confidence: float | None
    relevance: float | None
    decay_factor: float | None
    source: Source | None
    pointer: KnowledgePointer | None
    references: Iterable[str]
    occurred_at: datetime
    expires_at: datetime | None
