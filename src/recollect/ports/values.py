"""What a store is given and gives back, apart from memories."""

from dataclasses import dataclass
from datetime import datetime

from recollect.filters import Where
from recollect.ports.store import Owners
from recollect.types import Memory, Operation, Owner, Sort, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One version to append.

    ``memory`` is the state that the write leaves, with its version: the write is accepted only if the version stored
    now is one less (0: no such id). For ``ERASED`` the content is ignored: the store drops every version of the
    memory and keeps that it was erased. ``keeps_vector`` leaves the stored vector in place; otherwise
    ``vector`` replaces it, ``None`` removing it. ``digest`` is a hash of the text that the vector was made from, where
    making it again would cost something. ``follows`` is for copies from another store, where versions in between may
    be gone: the version that must be stored now, instead of one less.
    """

    operation: Operation
    memory: Memory
    recorded_at: datetime
    reason: str | None = None
    vector: Vector | None = None
    keeps_vector: bool = False
    digest: bytes | None = None
    follows: int | None = None

    @property
    def expected(self) -> int:
        """The version that must be stored now; 0 if none. It is always a lower one: versions rise."""
        before = self.memory.version - 1
        return before if self.follows is None else min(self.follows, before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much some owners' memories may take together, in bytes as ``Stats.bytes_used`` counts them."""

    owners: Owners
    limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A vector for a memory that is stored already, if it is still at that version."""

    number: int
    version: int
    vector: Vector
    digest: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A named JSON document that an owner keeps beside its memories, such as the description of a session.

    ``version`` is that of the state it leaves, as with a ``Write``: accepted only if the one stored now is one less
    (0: none of that owner, kind and name). Only the newest version is kept.
    """

    owner: Owner
    kind: str
    name: str
    body: bytes
    version: int
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A listing as a store sees it.

    ``after`` is the position behind which to go on: the value of ``filters.sort_value`` and the number of the last
    memory taken. ``as_of`` is a sequence: the store as it was when that version had just been written. ``sort`` is one
    of ``filters.STORED_ORDERS``.
    """

    owners: Owners
    where: Where
    sort: Sort = Sort.NEWEST
    limit: int | None = None
    offset: int = 0
    after: tuple[float, int] | None = None
    as_of: int | None = None
