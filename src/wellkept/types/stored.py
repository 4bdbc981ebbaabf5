"""The values that stores read and write. Stores understand facets; only the engine reads payloads."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, NewType, TypeVar

from wellkept.types.memory import Operation, Vector
from wellkept.types.orders import Sort
from wellkept.types.owners import Owner
from wellkept.types.representation import shown

Position = NewType("Position", str)
"""An opaque, resumable place in the journals of some owners, or in the feed of all owners."""

Stamp = NewType("Stamp", str)
"""When and where a version was made: a hybrid logical clock and the origin. Globally unique, sortable as text."""

Owners = AbstractSet[Owner]
"""The owners that an operation may access. Every read takes one; memories of other owners are invisible to it."""

Facets = Mapping[str, Any]
"""Everything that filters, orders and uniqueness rules read of a memory, as JSON values; times are microseconds since
1970.

Required: ``state``, ``type``, ``tier``, ``importance``, ``created_at``, ``occurred_at``, and ``bytes``, the size of the
memory without its vector. Optional: ``key``, ``tags`` (a list), ``expires_at``, ``author``, ``role``, ``session``,
``title``, ``source_type``, ``has_pointer``, ``access_policy``, ``decay_factor``, ``tier_set``, ``trust`` (0.8 where it
is missing), ``derived_from`` (a list), ``superseded_by``, ``fields`` (custom fields), and ``text``: the content, unless
the memory is sensitive. Stores preserve facets that they do not know.
"""

ACCESS_POLICY = "access_policy"
"""The facet that says who may read a memory; without it, the layer decides."""

ALWAYS_THERE = frozenset({"state", "type", "tier", "importance", "created_at", "occurred_at", "bytes"})
"""The facets that every memory has."""

T = TypeVar("T")


class Stored(NamedTuple):
    """One version in a journal. A tombstone (``operation`` is ``erased``) has neither facets nor payload.

    ``seq`` is the version's sequence number in the journal of its owner; ``born`` and ``born_at`` are sequence number
    and recording time of the memory's first version: the order of recording is ``(born_at, owner, born)``. Times are
    microseconds since 1970. ``replaced`` is the stamp of the previous version. ``write_id`` is the same for all
    versions that one call wrote: they are undone together. Access counts and the vector belong to the memory: only its
    newest version carries them.

    >>> import wellkept
    >>> from wellkept.stores.ram import RamStore
    >>> store = RamStore()
    >>> with wellkept.open(store=store, embedder=None) as memories:
    ...     _ = memories.view(user="ada").add("Likes tea", tags=["food"])
    ...     [stored] = store.journal.feed()
    >>> stored.seq, stored.version, stored.facets["text"], stored.facets["tags"]
    (1, 1, 'Likes tea', ['food'])
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
    write_id: str = ""

    def __repr__(self) -> str:
        return shown(self, "reason", "facets", "payload")


class Write(NamedTuple):
    """One version to append.

    Optimistic concurrency: accepted if the stored version is ``expected`` (0: the memory does not exist).
    ``recorded_at`` is the writer's clock; the journal uses the owner's last time if that is later, so that times never
    decrease. For ``erased`` the journal deletes every version of the memory, its vector and its access counts, and
    keeps a tombstone. ``keeps_vector`` keeps the stored vector; otherwise ``vector`` replaces it (``None`` removes it).
    ``digest`` is a hash of the embedded text, where embedding is expensive. ``given``: the vector came from the caller
    and cannot be recomputed, so a store must not treat it as derived. ``write_id`` is the id of the call that writes
    it; without one, the version's stamp is.
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
    given: bool = False
    write_id: str = ""

    def __repr__(self) -> str:
        return shown(self, "reason", "facets", "payload", "digest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The limit on the combined ``Usage.bytes_used`` of some owners."""

    owners: Owners
    limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A condition that must hold when an append commits: a record's version, or a lease's token.

    The token is a fencing token: a worker that was paused past the end of its lease is refused.
    """

    owner: Owner | None = None
    kind: str = ""
    name: str = ""
    version: int = 0
    lease: str | None = None
    token: int = 0


class Usage(NamedTuple):
    """The usage of an owner: memories that are not erased, and the bytes of those that are not archived, vectors
    included.
    """

    memories: int = 0
    bytes_used: int = 0


class Mark(NamedTuple):
    """The progress of an owner: its last sequence number, and a counter of changes without a version (vectors added
    later, another embedder, a repair). An index with the same mark is up to date.
    """

    seq: int = 0
    revision: int = 0


class Place(NamedTuple):
    """The last memory of a page: its sort value, and its place in the order of recording."""

    value: float
    born_at: int
    owner: Owner
    born: int


class Embedded(NamedTuple):
    """A vector for a stored memory, applied only if the memory is still at that version."""

    owner: Owner
    id: str
    version: int
    vector: Vector
    digest: bytes | None = None

    def __repr__(self) -> str:
        return shown(self, "digest")


class Access(NamedTuple):
    """The number of reads of a memory since the last report, and the last time (microseconds since 1970)."""

    owner: Owner
    id: str
    times: int
    last_at: int


@dataclass(frozen=True, slots=True)
class JournalPage(Generic[T]):
    """A page of journal entries. ``next`` is the position after them, the only one to resume from.

    ``more`` tells whether further entries existed at the time of reading.

    >>> page = JournalPage(["a", "b"], Position("p"), more=True)
    >>> len(page), list(page), page.more
    (2, ['a', 'b'], True)
    """

    items: Sequence[T]
    next: Position
    more: bool = False

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


ORDERS_OF_STORES = tuple(sort for sort in Sort if sort is not Sort.RELEVANCE)
"""The orders that a journal supports. Relevance changes with time and is computed by the engine."""
