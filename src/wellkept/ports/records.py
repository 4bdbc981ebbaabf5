"""The port for documents that owners keep beside their memories, and for leases."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from wellkept.errors import Unsupported
from wellkept.types import Owner, Owners


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A named JSON document of an owner, such as the description of a session. Only its newest version is kept.

    ``version`` is that of the state it leaves: ``put`` accepts it if the one stored now is one less (0: none).
    """

    owner: Owner
    kind: str
    name: str
    body: bytes
    version: int
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to do something alone until it ends. ``token`` rises with every holder: see ``Guard``."""

    name: str
    holder: str
    token: int


class Records(ABC):
    """Documents with optimistic concurrency, as durable as memories. They are the truth: no rebuild touches them."""

    @abstractmethod
    def get(self, owner: Owner, kind: str, name: str) -> Record | None:
        """One record; ``None`` if the owner has none of that kind and name."""

    @abstractmethod
    def put(self, record: Record) -> None:
        """Keep a record; ``Conflict`` if the version stored now is not one less than its own."""

    @abstractmethod
    def drop(self, owner: Owner, kind: str, name: str) -> bool:
        """Remove a record; whether there was one."""

    @abstractmethod
    def list(
        self, owners: Owners | None, kind: str | None = None, *, after: str = "", limit: int | None = None
    ) -> Sequence[Record]:
        """The records of some owners (``None``: of everybody, for copies of a whole store) and of a kind (``None``: of
        every kind), ordered by name, behind a name; ``StoreCorrupt`` if one cannot be read.
        """

    def lease(self, name: str, holder: str, ttl_ms: int) -> Lease | None:  # noqa: ARG002  # not every store has leases
        """Take a lease, or prolong one's own, by the store's clock; ``None`` if somebody else holds it."""
        raise Unsupported("the store keeps no leases", details={"capability": "leases"}, hint="use another store")

    def release(self, lease: Lease) -> None:  # noqa: ARG002  # as above
        """Give a lease back before it ends."""
        raise Unsupported("the store keeps no leases", details={"capability": "leases"}, hint="use another store")
