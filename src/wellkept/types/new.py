"""The input of ``add_many``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from wellkept.types.grants import AccessPolicy
from wellkept.types.memory import DEFAULT_IMPORTANCE, Fact, KnowledgePointer, Memory, MemoryType, Source, Tier, Vector
from wellkept.types.owners import Layer
from wellkept.types.representation import hiding
from wellkept.types.words import AccessPolicyName, LayerName, MemoryTypeName, TierName


class Duplicates(StrEnum):
    """What happens to a new memory that its owner has word for word: merged, kept as another one, or refused.

    >>> Duplicates("merge").name
    'MERGE'
    """

    MERGE = "merge"
    KEEP = "keep"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What ``add_messages`` stored: the turns, and the memories that were made from them, now or before.

    ``added`` counts the turns that were new.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     found = memories.view(user="ada").add_messages([{"role": "user", "content": "I prefer tea."}])
    >>> found.added, [(one.content, one.type.value) for one in found.memories]
    (1, [('I prefer tea.', 'preference')])
    """

    turns: tuple[Memory, ...]
    memories: tuple[Memory, ...]
    added: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to add: the fields that a caller may set.

    ``content`` is a text or a JSON object, which is kept as ``Memory.data`` and searched by its text.
    ``layer`` defaults to the most specific layer of the identity, ``occurred_at`` to the time of recording. ``session``
    defaults to that of the identity if the memory has an author or a role, or is a conversation. ``key`` makes the
    write idempotent: the same key and the same memory are stored once. A ``fact`` supersedes the one that its owner
    has for the same subject and predicate, ``supersedes`` names other memories that this one replaces, ``derived_from``
    those that it was made from. ``trust`` follows from source, role and what it is derived from; a value given here can
    only lower it, unless nothing of that is known. What is ``sensitive`` is encrypted; unless a caller says so, its
    text decides. ``tier`` says how it is kept, if not as type, layer and state say. ``vector`` is for callers with
    embeddings of their own: numbers, or a :class:`Vector`.

    >>> NewMemory(content="Use tabs", layer="project", type="decision").content
    'Use tabs'
    """

    content: str | Mapping[str, Any]
    layer: Layer | LayerName | None = None
    type: MemoryType | MemoryTypeName = MemoryType.FACT
    tier: Tier | TierName | None = None
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
    sensitive: bool | None = None
    source: Source | None = None
    pointer: KnowledgePointer | None = None
    access_policy: AccessPolicy | AccessPolicyName | None = None
    references: Iterable[str] = ()
    key: str | None = None
    fact: Fact | None = None
    supersedes: Iterable[str] = ()
    derived_from: Iterable[str] = ()
    trust: float | None = None
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    vector: Vector | Iterable[float] | None = None

    __repr__ = hiding(
        "content", "tags", "metadata", "title", "description", "author", "pointer", "source", "key", "vector"
    )
