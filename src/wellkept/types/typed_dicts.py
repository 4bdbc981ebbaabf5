"""The keyword arguments that ``add`` and ``update`` pass through, for editors and type checkers."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

from wellkept.types.grants import AccessPolicy
from wellkept.types.memory import Fact, KnowledgePointer, MemoryType, Source, Tier, Vector
from wellkept.types.words import AccessPolicyName, MemoryTypeName, TierName


class NewFields(TypedDict, total=False):
    """The fields of a new memory that ``add`` does not name itself; see :class:`wellkept.NewMemory`.

    >>> fields: NewFields = {"author": "ada", "role": "user"}
    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     memories.view(user="ada").add("I like tea", **fields).role
    'user'
    """

    tier: Tier | TierName | None
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
    sensitive: bool | None
    source: Source | None
    pointer: KnowledgePointer | None
    access_policy: AccessPolicy | AccessPolicyName | None
    references: Iterable[str]
    fact: Fact | None
    supersedes: Iterable[str]
    derived_from: Iterable[str]
    trust: float | None
    occurred_at: datetime | None
    expires_at: datetime | None
    vector: Vector | Iterable[float] | None


class ChangedFields(TypedDict, total=False):
    """The fields that ``update`` can change. Omitted fields stay unchanged; ``None`` clears an optional field.

    >>> fields: ChangedFields = {"title": "Drinks", "add_tags": ["tea"]}
    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     view = memories.view(user="ada")
    ...     view.update(view.add("Likes tea").id, **fields).title
    'Drinks'
    """

    content: str | Mapping[str, Any]
    type: MemoryType | MemoryTypeName
    tier: Tier | TierName | None
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
    sensitive: bool | None
    source: Source | None
    pointer: KnowledgePointer | None
    access_policy: AccessPolicy | AccessPolicyName | None
    references: Iterable[str]
    derived_from: Iterable[str]
    trust: float
    occurred_at: datetime
    expires_at: datetime | None
