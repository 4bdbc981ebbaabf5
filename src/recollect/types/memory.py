"""The memory itself, and its parts."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from recollect.types.owners import Layer, Owner

DEFAULT_IMPORTANCE = 0.5
"""What a memory counts for when nobody says otherwise."""


class MemoryType(StrEnum):
    """What kind of thing is remembered.

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
    """Whether a memory takes part in recall: only active ones do. Erased memories leave a tombstone in the journal.

    >>> State.FORGOTTEN.value
    'forgotten'
    """

    ACTIVE = "active"
    ARCHIVED = "archived"
    FORGOTTEN = "forgotten"


class SourceType(StrEnum):
    """Where a memory came from.

    >>> SourceType("tool_result").name
    'TOOL_RESULT'
    """

    CONVERSATION = "conversation"
    TOOL_RESULT = "tool_result"
    KNOWLEDGE_SYNC = "knowledge_sync"
    MANUAL = "manual"
    IMPORT = "import"


class PointerType(StrEnum):
    """The kinds of documents a memory can point at.

    >>> PointerType("adr").value
    'adr'
    """

    ADR = "adr"
    POLICY = "policy"
    PATTERN = "pattern"
    SPEC = "spec"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a memory came from: a type and, if known, the message, call or file it came in.

    >>> Source(type=SourceType.CONVERSATION, reference="msg-7").reference
    'msg-7'
    """

    type: SourceType
    reference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgePointer:
    """The document that a memory summarises, and its state when it was read.

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


@dataclass(frozen=True, slots=True)
class Vector:
    """An embedding: the name of the embedder and little-endian 32-bit floats.

    A long text is embedded in passages, one row of numbers each: ``spans`` says where in the content they stand, from
    which character to which. A short text is one row and has no spans. ``pieces`` are two bytes for each word of the
    memory: the piece of the built-in vocabulary that says most of it, by which recall finds words of like meaning.

    >>> Vector.of("toy", [3.0, 4.0]).values
    (3.0, 4.0)
    >>> Vector.of("toy", [3.0, 4.0]).dimension
    2
    """

    embedder: str
    data: bytes
    spans: tuple[tuple[int, int], ...] = ()
    pieces: bytes = b""

    @classmethod
    def of(cls, embedder: str, values: Iterable[float]) -> "Vector":
        """A vector from numbers, such as a list, an ``array`` or a row of a numpy matrix."""
        numbers = tuple(values)
        return cls(embedder, struct.pack(f"<{len(numbers)}f", *numbers))

    @classmethod
    def joined(cls, parts: Sequence["Vector"], spans: Sequence[tuple[int, int]]) -> "Vector":
        """The vector of a text in passages, from theirs.

        >>> Vector.joined([Vector.of("toy", [1.0]), Vector.of("toy", [2.0])], [(0, 5), (6, 9)]).rows
        ((1.0,), (2.0,))
        """
        if len(parts) == 1:
            return parts[0]
        return cls(parts[0].embedder, b"".join(part.data for part in parts), tuple(spans))

    @property
    def dimension(self) -> int:
        """How many numbers a row has."""
        return len(self.data) // (4 * max(1, len(self.spans)))

    @property
    def values(self) -> tuple[float, ...]:
        """The numbers; of a text in passages, those of the first."""
        return self.rows[0]

    @property
    def rows(self) -> tuple[tuple[float, ...], ...]:
        """The numbers of every passage."""
        return tuple(struct.iter_unpack(f"<{self.dimension}f", self.data))


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One remembered thing, an immutable value.

    ``created_at`` is when it was recorded, ``occurred_at`` when it was said or happened. ``session`` is the
    conversation it was said in, ``author`` who said it and ``role`` as what (``user``, ``assistant``): recall uses all
    three. ``vector`` is filled only when asked for. ``access_count`` and ``last_accessed_at`` are bookkeeping, not part
    of the history.

    >>> import recollect
    >>> with recollect.open("ram:") as memories:
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
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
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
    references: tuple[str, ...] = ()
    key: str | None = None
    expires_at: datetime | None = None
    state: State = State.ACTIVE
    version: int = 1
    access_count: int = 0
    last_accessed_at: datetime | None = None
    vector: Vector | None = None

    def __repr__(self) -> str:
        """Never the content: values are written into logs."""
        return f"<Memory {self.id} {self.type.value}, {len(self.content)} characters>"

    @property
    def layer(self) -> Layer:
        """The layer of its owner."""
        return self.owner.layer


class Operation(StrEnum):
    """What a version did to its memory.

    >>> Operation.ADDED.value
    'added'
    """

    ADDED = "added"
    UPDATED = "updated"
    FORGOTTEN = "forgotten"
    ARCHIVED = "archived"
    RESTORED = "restored"
    ERASED = "erased"
