"""What else a store is given: limits, vectors that come later, and records."""

from dataclasses import dataclass
from datetime import datetime

from recollect.ports.store import Owners
from recollect.types import Owner, Vector


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
