"""The rules of a write, once for every journal: a pure function over the writes and what is stored.

A journal takes its lock, reads what the writes touch (``Standing``), calls :func:`plan`, and writes the steps. Where
the plan raises, nothing was written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wellkept import codec
from wellkept.errors import Conflict, EmbedderMismatch, InvalidInput, QuotaExceeded
from wellkept.types import Guard, Operation, Owner, Quota, Stamp, State, Vector, Write

Key = tuple[Owner, str]
"""An owner and an id, or an owner and a memory's key."""


class Head(NamedTuple):
    """What is stored of a memory before a write. ``size`` counts its facets and payload, ``vector`` its vector.

    What is ``archived`` is kept, but its bytes count for nothing.
    """

    version: int
    born: int
    born_at: int
    stamp: Stamp
    erased: bool = False
    key: str | None = None
    size: int = 0
    vector: int = 0
    archived: bool = False


class Counters(NamedTuple):
    """The counters of an owner: last sequence, memories that are not erased, the bytes of those that are not archived,
    the last time recorded.
    """

    seq: int = 0
    memories: int = 0
    bytes_used: int = 0
    last_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is stored, as far as some writes touch it.

    ``heads`` has the memories written to, ``holders`` the id behind each key that a write takes, ``counters`` every
    owner written to or under a quota, ``records`` and ``leases`` what the guards name. What is missing is not stored.
    """

    heads: Mapping[Key, Head]
    holders: Mapping[Key, str]
    counters: Mapping[Owner, Counters]
    embedder: str | None = None
    dimension: int | None = None
    records: Mapping[tuple[Owner, str, str], int] = field(default_factory=dict)
    leases: Mapping[str, int] = field(default_factory=dict)


class Step(NamedTuple):
    """One write with its place in the journal, and the memory as it was before and as it is afterwards."""

    write: Write
    seq: int
    born: int
    born_at: int
    recorded_at: int
    before: Head | None
    after: Head

    @property
    def write_id(self) -> str:
        """The id of the call that wrote it; a write that names none stands alone."""
        return self.write.write_id or self.write.stamp


@dataclass(slots=True)
class Plan:
    """The steps of an append, the counters that it leaves, and the embedder if its first vector decides that."""

    steps: list[Step] = field(default_factory=list)
    counters: dict[Owner, Counters] = field(default_factory=dict)
    embedder: str | None = None
    dimension: int | None = None


def plan(
    writes: Sequence[Write], standing: Standing, *, quotas: Sequence[Quota] = (), guards: Sequence[Guard] = ()
) -> Plan:
    """Check writes against what is stored, in their order, and give each its place; or raise, and nothing is written.

    A write whose stamp stands already at its version is a retry after a lost answer: it succeeds without a step, and so
    do the versions of the same memory before it in the batch.
    """
    if guards and not _written(writes, standing):
        for guard in guards:
            _check_guard(guard, standing)
    made = Plan(embedder=standing.embedder, dimension=standing.dimension)
    owned: dict[Owner, _Owned] = {}
    holders: dict[Key, str | None] = {}
    retried = _retried(writes, standing) if standing.heads else {}
    for number, write in enumerate(writes):
        place = (write.owner, write.id)
        if retried and number <= retried.get(place, -1):
            continue
        one = owned.get(write.owner)
        if one is None:
            one = owned[write.owner] = _Owned(standing.counters.get(write.owner, Counters()))
        before = one.heads.get(write.id)
        if before is None and standing.heads:
            before = standing.heads.get(place)
        _check_version(write, before)
        _move_key(write, before, holders, standing)
        if write.vector is not None and not write.keeps_vector and write.operation is not Operation.ERASED:
            _take_vector(write.vector, made)
        made.steps.append(one.append(write, before))
    made.counters = {owner: one.counters() for owner, one in owned.items()}
    for quota in sorted(quotas, key=lambda one: one.limit_bytes):  # where several refuse, the smallest limit is told
        _check_quota(quota, made, standing)
    return made


def _retried(writes: Sequence[Write], standing: Standing) -> dict[Key, int]:
    """For each memory whose newest version is one of the writes, the number of that write."""
    found = {}
    for number, write in enumerate(writes):
        head = standing.heads.get((write.owner, write.id))
        if head is not None and head.stamp == write.stamp and head.version == write.version:
            found[write.owner, write.id] = number
    return found


class _Owned:
    """How far the journal of one owner is while its writes are planned."""

    __slots__ = ("bytes_used", "heads", "last_at", "memories", "seq")

    def __init__(self, counters: Counters) -> None:
        self.seq, self.memories, self.bytes_used, self.last_at = counters
        self.heads: dict[str, Head] = {}  # of what the writes leave

    def append(self, write: Write, before: Head | None) -> Step:
        """Give a write its sequence, and count what it adds and takes away."""
        self.seq += 1
        recorded_at = self.last_at = max(write.recorded_at, self.last_at)
        born, born_at, vector = self.seq, recorded_at, 0
        if before is not None:
            born, born_at, vector = before.born, before.born_at, before.vector
            self.memories -= not before.erased
            if not before.archived:
                self.bytes_used -= before.size + before.vector
        # By position: naming the arguments would take as long as all the rest.
        if write.operation is Operation.ERASED:
            head = Head(write.version, born, born_at, write.stamp, True)
        else:
            if not write.keeps_vector:
                vector = 0 if write.vector is None else len(write.vector.data)
            size = int(write.facets["bytes"])
            kept_away = write.facets.get("state") == State.ARCHIVED
            key = write.facets.get("key")
            head = Head(write.version, born, born_at, write.stamp, False, key, size, vector, kept_away)
            self.memories += 1
            if not kept_away:
                self.bytes_used += size + vector
        self.heads[write.id] = head
        return Step(write, self.seq, born, born_at, recorded_at, before, head)

    def counters(self) -> Counters:
        """The counters that the writes leave."""
        return Counters(self.seq, self.memories, self.bytes_used, self.last_at)


def _take_vector(vector: Vector, made: Plan) -> None:
    """The first vector of a store decides on its embedder and dimension."""
    if made.embedder is None or made.dimension is None:
        made.embedder, made.dimension = vector.embedder, vector.dimension
    if vector.embedder == made.embedder and not vector.spans and len(vector.data) == 4 * made.dimension:
        return  # nearly every one, so it is asked without a call
    check_vector(vector, made.embedder, made.dimension)


def check_vector(vector: Vector, embedder: str, dimension: int) -> None:
    """A store holds the vectors of one embedder only: others cannot be compared with them."""
    if vector.embedder != embedder:
        raise EmbedderMismatch(
            f"the store holds vectors of {embedder!r}, not of {vector.embedder!r}",
            details={"stored": embedder, "given": vector.embedder},
            hint=f"open the store with the embedder {embedder!r}, or run memories.reembed() with the other one",
        )
    if vector.dimension != dimension:
        raise InvalidInput(
            f"vector has {vector.dimension} dimensions, the store's have {dimension}",
            details={"field": "vector", "given": vector.dimension, "expected": dimension},
            hint="use the embedder that the store was filled with",
        )


def _check_version(write: Write, before: Head | None) -> None:
    # A tombstone may take the place of an earlier one: its reason goes, and the memory stays erased.
    if before is not None and before.erased and write.operation is not Operation.ERASED:
        raise Conflict(
            f"memory {write.id!r} was erased; its id is not used again",
            details={"memory_id": write.id},
            hint="add a new memory",
        )
    stored = before.version if before else 0
    if stored != write.expected:
        raise Conflict(
            f"memory {write.id!r} is at version {stored}, not {write.expected}",
            details={"memory_id": write.id, "stored": stored, "expected": write.expected},
            hint="read it again, then decide",
        )
    if write.version <= stored:
        raise Conflict(
            f"memory {write.id!r} is at version {stored}; version {write.version} does not follow it",
            details={"memory_id": write.id, "stored": stored, "version": write.version},
            hint="read it again, then decide",
        )


def _move_key(write: Write, before: Head | None, holders: dict[Key, str | None], standing: Standing) -> None:
    """A key belongs to one memory of an owner; an erased memory frees it."""
    if before is not None and before.key is not None:
        holders[write.owner, before.key] = None
    key = write.facets.get("key")
    if key is None or write.operation is Operation.ERASED:
        return
    place = (write.owner, key)
    holder = holders[place] if place in holders else standing.holders.get(place)
    if holder not in (None, write.id):
        raise Conflict(
            f"the key of memory {write.id!r} belongs to memory {holder!r}",
            details={"memory_id": write.id, "holder": holder},
            hint="read the memory that has the key, then decide",
        )
    holders[place] = write.id


def _check_quota(quota: Quota, made: Plan, standing: Standing) -> None:
    """Refuse what would leave too much, unless it leaves no more than there was."""
    before = sum(standing.counters.get(owner, Counters()).bytes_used for owner in quota.owners)
    after = before
    for owner, counters in made.counters.items():
        if owner in quota.owners:
            after += counters.bytes_used - standing.counters.get(owner, Counters()).bytes_used
    if after > quota.limit_bytes and after > before:
        whose = {"owner": codec.encode_owner(*quota.owners)} if len(quota.owners) == 1 else {}
        raise QuotaExceeded(
            f"the memories would take {after} bytes, the limit is {quota.limit_bytes}",
            details={"usage": before, "needed": after - before, "limit": quota.limit_bytes, **whose},
            hint="nothing was written; erase what is not needed (forget with permanent=True), or raise the limit",
        )


def _written(writes: Sequence[Write], standing: Standing) -> bool:
    """Whether all writes are retries: they were written while the guards held."""
    retried = _retried(writes, standing)
    return all(number <= retried.get((write.owner, write.id), -1) for number, write in enumerate(writes))


def _check_guard(guard: Guard, standing: Standing) -> None:
    if guard.lease is not None:
        if standing.leases.get(guard.lease) != guard.token:
            raise Conflict(
                f"the lease {guard.lease[:64]!r} is held by somebody else",
                details={"lease": guard.lease[:64]},
                hint="take the lease again, then decide",
            )
    elif guard.owner is not None:
        stored = standing.records.get((guard.owner, guard.kind, guard.name), 0)
        check_record(guard.kind, guard.name, stored, guard.version)


def check_record(kind: str, name: str, stored: int, expected: int) -> None:
    """Whether a record is at the version that a writer expects (0: there is none)."""
    if stored != expected:
        raise Conflict(
            f"the {kind} {name[:64]!r} is at version {stored}, not {expected}",
            details={"kind": kind, "name": name[:64], "stored": stored, "expected": expected},
            hint="read it again, then decide",
        )
