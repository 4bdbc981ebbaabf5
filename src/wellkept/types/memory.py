"""The memory and its parts."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from wellkept.types.grants import AccessPolicy
from wellkept.types.owners import Layer, Owner
from wellkept.types.representation import hiding

DEFAULT_IMPORTANCE = 0.5
"""The importance of a memory unless given."""

DEFAULT_TRUST = 0.8
"""The trust of a memory that the application added without naming a source."""


class MemoryType(StrEnum):
    """The type of a memory; it determines the half-life.

    >>> MemoryType("decision") is MemoryType.DECISION
    True
    """

    FACT = "fact"
    EVENT = "event"
    INSIGHT = "insight"
    PREFERENCE = "preference"
    CORRECTION = "correction"
    CONVERSATION = "conversation"
    DECISION = "decision"
    FINDING = "finding"


class State(StrEnum):
    """The state of a memory; only active ones are recalled. Erased memories leave a tombstone in the journal.

    >>> State.FORGOTTEN.value
    'forgotten'
    """

    ACTIVE = "active"
    ARCHIVED = "archived"
    FORGOTTEN = "forgotten"
    SUPERSEDED = "superseded"
    QUARANTINED = "quarantined"
    MOVED = "moved"


class Tier(StrEnum):
    """How a memory is kept. It follows from its type, layer and state unless a caller sets it; ``working`` is that of
    working memory, which is never stored.

    >>> Tier("episodic").name
    'EPISODIC'
    """

    WORKING = "working"
    SESSION = "session"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    PERSONAL = "personal"
    ARCHIVAL = "archival"


class SourceType(StrEnum):
    """The kind of source that a memory came from.

    >>> SourceType("tool_result").name
    'TOOL_RESULT'
    """

    CONVERSATION = "conversation"
    TOOL_RESULT = "tool_result"
    KNOWLEDGE_SYNC = "knowledge_sync"
    MANUAL = "manual"
    IMPORT = "import"
    WEB = "web"
    EXTRACTED = "extracted"
    UNKNOWN = "unknown"


class PointerType(StrEnum):
    """The kinds of documents that a memory can point to.

    >>> PointerType("adr").value
    'adr'
    """

    ADR = "adr"
    POLICY = "policy"
    PATTERN = "pattern"
    SPEC = "spec"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a memory came from: a type and, if known, a reference to the message, call or file.

    >>> Source(type=SourceType.CONVERSATION, reference="msg-7").reference
    'msg-7'
    """

    type: SourceType
    reference: str | None = None

    __repr__ = hiding("reference")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgePointer:
    """The document that a memory summarises, with its hash at the time of reading.

    >>> from datetime import UTC
    >>> KnowledgePointer(
    ...     source_type=PointerType.ADR,
    ...     source_id="adr-042",
    ...     content_hash="sha256:abc",
    ...     synced_at=datetime(2026, 1, 7, tzinfo=UTC),
    ... ).source_id
    'adr-042'
    """

    source_type: PointerType
    source_id: str
    content_hash: str
    synced_at: datetime

    __repr__ = hiding("source_id", "content_hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What a memory states: an object for a subject and a predicate, and from when until when it holds.

    Without ``valid_from`` it holds from ``occurred_at`` of its memory on. A subject and a predicate have one object at
    a time, unless the fact says that there are ``multiple``.

    >>> Fact(subject="Ada", predicate="lives in", object="Rome").object
    'Rome'
    """

    subject: str
    predicate: str
    object: str
    kind: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    multiple: bool = False

    __repr__ = hiding("subject", "predicate", "object")


@dataclass(frozen=True, slots=True)
class Vector:
    """An embedding: the name of the embedder and little-endian 32-bit floats.

    A long text is embedded in passages, one row each; ``spans`` are their character ranges in the content. A short text
    is one row without spans. ``pieces`` has two bytes for each word of the memory: the number of its longest piece in
    the built-in vocabulary, by which recall finds synonyms.

    >>> Vector.of("toy", [3.0, 4.0]).values
    (3.0, 4.0)
    >>> Vector.of("toy", [3.0, 4.0]).dimension
    2
    """

    embedder: str
    data: bytes
    spans: tuple[tuple[int, int], ...] = ()
    pieces: bytes = b""

    __repr__ = hiding("data", "spans", "pieces")

    @classmethod
    def of(cls, embedder: str, values: Iterable[float]) -> "Vector":
        """A vector from numbers, such as a list, an ``array`` or a row of a numpy matrix."""
        numbers = tuple(values)
        return cls(embedder, struct.pack(f"<{len(numbers)}f", *numbers))

    @classmethod
    def joined(cls, parts: Sequence["Vector"], spans: Sequence[tuple[int, int]]) -> "Vector":
        """One vector from the vectors of a text's passages.

        >>> Vector.joined([Vector.of("toy", [1.0]), Vector.of("toy", [2.0])], [(0, 5), (6, 9)]).rows
        ((1.0,), (2.0,))
        """
        if len(parts) == 1:
            return parts[0]
        return cls(parts[0].embedder, b"".join(part.data for part in parts), tuple(spans))

    @property
    def dimension(self) -> int:
        """The length of a row."""
        return len(self.data) // (4 * max(1, len(self.spans)))

    @property
    def values(self) -> tuple[float, ...]:
        """The first row."""
        return self.rows[0]

    @property
    def rows(self) -> tuple[tuple[float, ...], ...]:
        """One row for each passage."""
        return tuple(struct.iter_unpack(f"<{self.dimension}f", self.data))


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory: one immutable version.

    ``data`` is the JSON object that was given as content, if it was one; ``content`` is then its text.
    ``created_at`` is when it was recorded, ``occurred_at`` when it was said or happened. ``session`` is the
    conversation, ``author`` the speaker and ``role`` the speaker's role (``user``, ``assistant``): recall uses all
    three. ``forgotten_at`` is set as long as it is forgotten, ``vector`` only on request. ``access_count`` and
    ``last_accessed_at`` are bookkeeping, not part of the history. ``supersedes`` names the memories that it replaced,
    ``superseded_by`` the one that replaced it, ``derived_from`` those that it was made from. ``trust`` says how far its
    source can be trusted; what is derived is trusted no more than its sources. ``sources`` are all that were named, if
    the same was added more than once. What is ``sensitive`` is encrypted by a key of its owner. ``tier`` follows from
    type, layer and state; with ``tier_set`` a caller chose it, and it stays. ``embedded`` and
    ``merged`` are told by the answers of writes alone: whether the call made an embedding or was given one, and
    whether the same was stored already.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     memory = memories.view(user="ada").add("Prefers dark mode", type="preference", tags=["ui"])
    >>> memory.content, memory.type.value, memory.tags, memory.version
    ('Prefers dark mode', 'preference', ('ui',), 1)
    """

    id: str
    content: str
    owner: Owner
    created_at: datetime
    updated_at: datetime
    occurred_at: datetime
    type: MemoryType = MemoryType.FACT
    tier: Tier = Tier.SEMANTIC
    tier_set: bool = False
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] | None = None
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
    sources: tuple[Source, ...] = ()
    pointer: KnowledgePointer | None = None
    access_policy: AccessPolicy | None = None
    references: tuple[str, ...] = ()
    key: str | None = None
    fact: Fact | None = None
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    derived_from: tuple[str, ...] = ()
    trust: float = DEFAULT_TRUST
    expires_at: datetime | None = None
    state: State = State.ACTIVE
    forgotten_at: datetime | None = None
    version: int = 1
    access_count: int = 0
    last_accessed_at: datetime | None = None
    vector: Vector | None = None
    embedded: bool | None = field(default=None, compare=False)
    merged: bool | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        """Without the content, because values end up in logs."""
        return f"<Memory {self.id} {self.type.value}, {len(self.content)} characters>"

    @property
    def layer(self) -> Layer:
        """The layer of its owner."""
        return self.owner.layer


class Operation(StrEnum):
    """The operation that created a version.

    >>> Operation.ADDED.value
    'added'
    """

    ADDED = "added"
    UPDATED = "updated"
    FORGOTTEN = "forgotten"
    ARCHIVED = "archived"
    RESTORED = "restored"
    QUARANTINED = "quarantined"
    MOVED = "moved"
    ERASED = "erased"
