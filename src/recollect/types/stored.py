"""What stores keep and are given. Stores understand facets; only the engine reads payloads."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, NewType, TypeVar

from recollect.types.memory import Operation, Vector
from recollect.types.orders import Sort
from recollect.types.owners import Owner

Position = NewType("Position", str)
"""An opaque, resumable place in the journals of some owners, or in the feed of all owners."""

Stamp = NewType("Stamp", str)
"""When and where a version was made: a hybrid logical clock and the origin. Unique everywhere, sortable as text."""

Owners = AbstractSet[Owner]
"""Whose memories an operation may touch. Every read passes one; what is not in it does not exist."""

Facets = Mapping[str, Any]
"""All that a filter, an order or a uniqueness rule reads of a memory, as JSON values; times are microseconds of 1970.

Always there: ``state``, ``type``, ``importance``, ``created_at``, ``occurred_at``, and ``bytes``: what the memory
counts for without its vector. There where they are known: ``key``, ``tags`` (a list), ``expires_at``, ``author``,
``role``, ``session``, ``title``, ``source_type``, ``has_pointer``, ``decay_factor``, ``tier``, ``trust``,
``superseded_by``, ``fields`` (the caller's own), and ``text``: the content, unless the memory is sensitive. A facet
that a store does not know is kept and given back like any other.
"""

T = TypeVar("T")


class Stored(NamedTuple):
    """One version as a journal keeps it. A tombstone (``operation`` is ``erased``) has neither facets nor payload.

    ``seq`` is its place in the journal of its owner, ``born`` that of the memory's first version and ``born_at`` the
    time of recording of that one: the order of recording is ``(born_at, owner, born)``. Times are microseconds since
    1970. ``replaced`` is the stamp of the version before. Accesses and the vector belong to the memory, not to the
    version: they come with versions that are the newest.
    """

    owner: Owner
    id: str
    version: int
    seq: int
    born: int
    born_at: int
    recorded_at: int
    operation: Operation
    stamp: Stamp
    replaced: Stamp | None
    reason: str | None
    facets: Facets
    payload: bytes
    access_count: int = 0
    last_accessed_at: int | None = None
    vector: Vector | None = None


class Write(NamedTuple):
    """One version to append.

    Accepted if the version stored now is ``expected`` (0: no memory of that id and owner). ``recorded_at`` is the
    writer's clock; the journal records the owner's last time if that is later, so that times rise. For ``erased`` the
    journal drops every version of the memory, its vector and its accesses, and keeps a tombstone. ``keeps_vector``
    leaves the stored vector in place; otherwise ``vector`` replaces it, ``None`` removing it. ``digest`` is a hash of
    the text that the vector was made from, where making it again would cost something. ``terms`` are the packed terms
    of the text, for indexes that are written by the append itself. ``given`` says that the caller brought the vector: it
    cannot be made again, so a store must not count it among what is derived.
    """

    owner: Owner
    id: str
    version: int
    expected: int
    operation: Operation
    stamp: Stamp
    recorded_at: int
    replaced: Stamp | None = None
    reason: str | None = None
    facets: Facets = {}  # noqa: RUF012  # a tombstone has none; never changed
    payload: bytes = b""
    vector: Vector | None = None
    keeps_vector: bool = False
    digest: bytes | None = None
    terms: bytes | None = None
    given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much the memories of some owners may take together, in bytes: see ``Usage.bytes_used``."""

    owners: Owners
    limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A record's version that must still be stored, or a lease's token that must still hold, when an append commits.

    A worker that was paused past the end of its lease is refused by the token (fencing).
    """

    owner: Owner | None = None
    kind: str = ""
    name: str = ""
    version: int = 0
    lease: str | None = None
    token: int = 0


class Usage(NamedTuple):
    """What an owner holds: memories that are not erased, and the bytes they count for, vectors included."""

    memories: int = 0
    bytes_used: int = 0


class Mark(NamedTuple):
    """How far an owner is: its last sequence, and a count of the changes that no version tells of (vectors that came
    later, another embedder, a repair). An index that shows the same mark shows everything.
    """

    seq: int = 0
    revision: int = 0


class Place(NamedTuple):
    """The last memory of a page: the value it was ordered by, and its place in the order of recording."""

    value: float
    born_at: int
    owner: Owner
    born: int


class Embedded(NamedTuple):
    """A vector for a memory that is stored already, if it is still at that version."""

    owner: Owner
    id: str
    version: int
    vector: Vector
    digest: bytes | None = None


class Access(NamedTuple):
    """How often a memory was read since the last report, and when last (microseconds since 1970)."""

    owner: Owner
    id: str
    times: int
    last_at: int


@dataclass(frozen=True, slots=True)
class JournalPage(Generic[T]):
    """Some entries of a journal, and the position behind them: the only one from which to resume.

    ``more`` tells whether there were further entries when it was read.
    """

    items: Sequence[T]
    next: Position
    more: bool = False

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


ORDERS_OF_STORES = tuple(sort for sort in Sort if sort is not Sort.RELEVANCE)
"""The orders that a journal knows. Relevance changes with time: the engine computes it."""
