"""The port for documents that owners keep beside their memories, and for leases."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from wellkept.errors import StoreCorrupt, Unsupported
from wellkept.types import Owner, Owners

_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


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


class DamagedRecord(Record):
    """A record that is not what was written. Where it stands is known; reading its body raises ``StoreCorrupt``.

    So a damaged record can be listed, named, replaced and dropped, and stops only what needs to know what it said.

    >>> from wellkept.types import Layer
    >>> damaged = DamagedRecord(owner=Owner(Layer.USER, ("ada",)), kind="session", name="monday")
    >>> damaged.name, damaged.version
    ('monday', 0)
    >>> damaged.body
    Traceback (most recent call last):
    ...
    wellkept.errors.StoreCorrupt: the session 'monday' is damaged (run doctor with repair=True: ...)
    """

    __slots__ = ()
    __eq__, __hash__ = object.__eq__, object.__hash__  # what it said cannot be compared

    def __init__(self, *, owner: Owner, kind: str, name: str, version: int = 0) -> None:
        fields = {"owner": owner, "kind": kind, "name": name, "version": version, "updated_at": _UNKNOWN}
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<DamagedRecord {self.kind} {self.name!r}>"

    @property
    def body(self) -> bytes:
        """Nobody knows it."""
        raise self.error()

    def error(self) -> StoreCorrupt:
        """What is raised where somebody needs to know what it said."""
        return StoreCorrupt(
            f"the {self.kind} {self.name[:64]!r} is damaged",
            details={"kind": self.kind, "name": self.name[:64]},
            hint="run doctor with repair=True: it sets the damaged record aside, and its memories stay",
        )


def guarded_version(record: Record) -> int:
    """The version that a guard compares; ``StoreCorrupt`` for a damaged record: no condition can be on it."""
    if isinstance(record, DamagedRecord):
        raise record.error()
    return record.version


def sound(records: Iterable[Record]) -> list[Record]:
    """The records that are what was written; doctor names the others."""
    return [one for one in records if not isinstance(one, DamagedRecord)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to do something alone until it ends. ``token`` rises with every holder: see ``Guard``."""

    name: str
    holder: str
    token: int


class Records(ABC):
    """Documents with optimistic concurrency, as durable as memories. They are the truth: no rebuild touches them.

    A store that keeps them where they can be damaged has a checksum of each, and reads one that does not fit it as a
    ``DamagedRecord``.
    """

    @abstractmethod
    def get(self, owner: Owner, kind: str, name: str) -> Record | None:
        """One record; ``None`` if the owner has none of that kind and name, a ``DamagedRecord`` if it is damaged."""

    @abstractmethod
    def put(self, record: Record) -> None:
        """Keep a record; ``Conflict`` if the version stored now is not one less than its own."""

    @abstractmethod
    def restore(self, record: Record) -> None:
        """Keep a record of another store with the version that it has; ``Conflict`` if the one stored now has that
        version or a later one.
        """

    @abstractmethod
    def drop(self, owner: Owner, kind: str, name: str) -> bool:
        """Remove a record; whether there was one."""

    @abstractmethod
    def list(
        self, owners: Owners | None, kind: str | None = None, *, after: str = "", limit: int | None = None
    ) -> Sequence[Record]:
        """The records of some owners (``None``: of everybody, for copies of a whole store) and of a kind (``None``: of
        every kind), ordered by name, behind a name.
        """

    def lease(self, name: str, holder: str, ttl_ms: int) -> Lease | None:  # noqa: ARG002  # not every store has leases
        """Take a lease, or prolong one's own, by the store's clock; ``None`` if somebody else holds it."""
        raise Unsupported("the store keeps no leases", details={"capability": "leases"}, hint="use another store")

    def release(self, lease: Lease) -> None:  # noqa: ARG002  # as above
        """Give a lease back before it ends."""
        raise Unsupported("the store keeps no leases", details={"capability": "leases"}, hint="use another store")
