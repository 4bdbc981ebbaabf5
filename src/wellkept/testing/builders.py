"""Short ways to make owners, writes and queries. The clock is a counter; ids and stamps are never used twice."""

import itertools
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from wellkept import codec, ids
from wellkept.filters import Where
from wellkept.ports import Query, Store
from wellkept.types import Facets, Layer, MemoryType, Operation, Owner, State, Stored, Tier, Vector, Write

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""The first time of every clock here."""

START_US = codec.to_micros(START)
"""The same in microseconds since 1970."""

EMBEDDER = "kit"
"""The name of the embedder that the vectors here claim to come from."""

_UNCOUNTED = ("state", "type", "tier", "importance", "created_at", "occurred_at", "text")


def owner(*names: str, layer: Layer = Layer.USER) -> Owner:
    """An owner; a user unless told otherwise.

    >>> owner("ada").ids
    ('ada',)
    """
    return Owner(layer, names)


def vector(*values: float, embedder: str = EMBEDDER) -> Vector:
    """A vector of the kit's embedder, or of another one.

    >>> vector(1, 0).embedder
    'kit'
    """
    return Vector.of(embedder, values)


def make_facets(text: str | None, payload: bytes = b"", **named: Any) -> dict[str, Any]:
    """The facets of a memory: those that every memory has, and the given ones; ``None`` leaves one out.

    >>> make_facets("tea", tags=["food"])["bytes"]
    20
    """
    made = {
        "state": State.ACTIVE.value,
        "type": MemoryType.FACT.value,
        "tier": Tier.SEMANTIC.value,
        "importance": 0.5,
        "created_at": START_US,
        "occurred_at": START_US,
        "text": text,
    }
    made = {name: value for name, value in (made | named).items() if value is not None and name != "bytes"}
    counted = {name: value for name, value in made.items() if name not in _UNCOUNTED}
    return made | {"bytes": len((text or "").encode()) + len(codec.encode_json(counted)) + len(payload)}


class Writer:
    """Makes writes as one process would: its clock rises, every version has a stamp of its own.

    A write that follows another takes that one, or the version that was read, and leaves the vector in place.

    >>> writes = Writer()
    >>> first = writes.add(owner("ada"), "Likes tea", tags=["food"])
    >>> second = writes.update(first, "Likes coffee")
    >>> second.version, second.expected, second.replaced == first.stamp, second.facets["tags"]
    (2, 1, True, ['food'])
    """

    def __init__(self, start: datetime = START, origin: str = "0" * 12) -> None:
        self._clock = ids.StampClock(origin)
        self._micros = itertools.count(codec.to_micros(start), 1_000_000)

    def now(self) -> int:
        """The next time, in microseconds: a second after the last."""
        return next(self._micros)

    def new_id(self) -> str:
        """An id that nobody has."""
        return ids.uuid7(START_US // 1000, os.urandom(ids.ENTROPY))

    def add(
        self,
        whose: Owner,
        text: str | None = "a memory",
        *,
        id: str | None = None,
        write: dict[str, Any] | None = None,
        **facets: Any,
    ) -> Write:
        """The first version of a memory. ``write`` are fields of the write, all others are facets."""
        fields = write or {}
        now = self.now()
        made: dict[str, Any] = {
            "owner": whose,
            "id": id or self.new_id(),
            "version": 1,
            "expected": 0,
            "operation": Operation.ADDED,
            "stamp": self._clock.stamp(now),
            "recorded_at": now,
            "facets": make_facets(text, fields.get("payload", b""), **facets),
        }
        return Write(**(made | fields))

    def update(
        self, before: Write | Stored, text: str | None = None, *, write: dict[str, Any] | None = None, **facets: Any
    ) -> Write:
        """The next version of a memory, with some facets changed; ``None`` removes one."""
        return self._next(Operation.UPDATED, before, text, facets, write)

    def forget(self, before: Write | Stored, **write: Any) -> Write:
        """The version that forgets a memory."""
        return self._next(Operation.FORGOTTEN, before, None, {"state": State.FORGOTTEN.value}, write)

    def archive(self, before: Write | Stored, **write: Any) -> Write:
        """The version that archives a memory."""
        return self._next(Operation.ARCHIVED, before, None, {"state": State.ARCHIVED.value}, write)

    def restore(self, before: Write | Stored, **write: Any) -> Write:
        """The version that makes a memory active again."""
        return self._next(Operation.RESTORED, before, None, {"state": State.ACTIVE.value}, write)

    def erase(self, before: Write | Stored, **write: Any) -> Write:
        """The tombstone of a memory."""
        gone = self._next(Operation.ERASED, before, None, {}, write)
        return gone._replace(facets={}, payload=b"", keeps_vector=False)

    def _next(
        self,
        operation: Operation,
        before: Write | Stored,
        text: str | None,
        facets: Facets,
        write: dict[str, Any] | None,
    ) -> Write:
        now = self.now()
        made: dict[str, Any] = {
            "owner": before.owner,
            "id": before.id,
            "version": before.version + 1,
            "expected": before.version,
            "operation": operation,
            "stamp": self._clock.stamp(now),
            "replaced": before.stamp,
            "recorded_at": now,
            "payload": before.payload,
            "keeps_vector": True,
        } | (write or {})
        named = dict(before.facets) | dict(facets)
        text = text if text is not None else named.get("text")
        named.pop("text", None)
        return Write(**({"facets": make_facets(text, made["payload"], **named)} | made))


def put(store: Store, *writes: Write) -> None:
    """Append writes: in one batch, or owner by owner where the store cannot write to several at once."""
    if store.capabilities.batches:
        store.journal.append(writes)
        return
    for one in dict.fromkeys(write.owner for write in writes):
        store.journal.append([write for write in writes if write.owner == one])


def query(*owners: Owner, **fields: Any) -> Query:
    """A listing of the owners. The fields are those of a query; any other is a condition.

    >>> query(owner("ada"), limit=2, min_importance=0.5).where.min_importance
    0.5
    """
    own = {name: fields.pop(name) for name in tuple(fields) if name in Query.__dataclass_fields__}
    return Query(owners=frozenset(owners), where=where(**fields), **own)


def where(**conditions: Any) -> Where:
    """Conditions, as of the first time unless told otherwise.

    >>> where(tags=("food",)).now == START
    True
    """
    return Where(**({"now": START} | conditions))


def moment(seconds: float = 0, micros: int = 0) -> datetime:
    """A time so much later than the first.

    >>> moment(60).minute
    1
    """
    return START + timedelta(seconds=seconds, microseconds=micros)


def bare(one: Stored) -> Stored:
    """A version without what belongs to its memory: accesses and the vector."""
    return one._replace(access_count=0, last_accessed_at=None, vector=None)


def ids_of(found: Iterable[Stored | Write]) -> list[str]:
    """The ids, in order."""
    return [one.id for one in found]


def one_of(store: Store, whose: Owner, memory_id: str, **options: Any) -> Stored:
    """A memory that must be there."""
    (found,) = store.journal.get({whose}, [memory_id], **options)
    return found
