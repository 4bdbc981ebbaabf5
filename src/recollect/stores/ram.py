"""The store that keeps everything in this process: the simplest correct one.

Other stores are compared with it, so it is written to be read, not to be fast.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Self, TypeVar

from recollect import codec, tally
from recollect.errors import (
    ConfigurationError,
    Conflict,
    StoreClosed,
)
from recollect.ports import (
    Capabilities,
    Embedded,
    Owners,
    Quota,
    Record,
    Store,
    Stored,
    Write,
    check_quota,
    check_record,
    check_vector,
)
from recollect.types import Memory, Operation, Owner, Vector, Version

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One version as the journal keeps it; encoded, so that nobody outside can change it.

    ``number`` is the sequence of the memory's first version. ``body`` is ``None`` in the mark that
    an erased memory leaves.
    """

    sequence: int
    number: int
    memory_id: str
    owner: Owner
    version: int
    operation: Operation
    recorded_at: datetime
    created_at: datetime
    reason: str | None
    key: str | None
    content: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class _Accesses:
    count: int
    last_at: datetime


class RamStore(Store):
    """Keeps memories in this process until it is closed.

    >>> store = RamStore.from_url("ram:")
    >>> store.sequence()
    0
    """

    name = "ram"
    capabilities = Capabilities(durable=False, shared=False, erases=True)

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._last = 0
        self._journal: list[_Entry] = []
        self._heads: dict[str, _Entry] = {}  # erased memories stay, as marks
        self._owned: dict[Owner, list[str]] = {}
        self._keys: dict[tuple[Owner, str], str] = {}
        self._vectors: dict[str, Vector] = {}
        self._renewed: dict[str, Vector] = {}  # of the embedder that is to come
        self._accesses: dict[str, _Accesses] = {}
        self._settings: dict[str, str] = {}
        self._records: dict[tuple[Owner, str, str], Record] = {}
        self._used: dict[Owner, int] = {}  # bytes, of owners whom somebody asked about

    @classmethod
    def from_url(cls, url: str, *, durability: str | None = None) -> Self:
        """A new, empty store: what is kept in a process has no name to find it by."""
        if url != "ram:" or durability is not None:
            raise ConfigurationError(
                "a store in RAM has neither a name nor a durability",
                hint="use 'ram:' alone, or a path for what shall last",
            )
        return cls()

    def apply(self, writes: Sequence[Write], *, quota: Quota | None = None) -> list[int]:
        """Check the whole batch first, and only then change anything."""
        with self._opened():
            batch = _Batch(self._last, self._heads.get, self._keys.get, self._settings)
            for write in writes:
                batch.add(write)
            growth = self._growth(batch) if quota is not None or self._used else Counter()
            if quota is not None:
                before = self.usage(quota.owners)
                check_quota(quota, before, before + sum(growth[owner] for owner in quota.owners))
            for owner in growth.keys() & self._used.keys():
                self._used[owner] += growth[owner]
            self._last += len(batch.entries)
            self._journal += batch.entries
            if batch.erased:
                self._journal = [
                    entry for entry in self._journal if entry.body is None or entry.memory_id not in batch.erased
                ]
            for entry in batch.entries:
                if entry.sequence == entry.number:
                    self._owned.setdefault(entry.owner, []).append(entry.memory_id)
            self._heads.update(batch.heads)
            self._settings.update(batch.settings)
            _merge(self._keys, batch.keys)
            _merge(self._vectors, batch.vectors)
            for memory_id in batch.vectors:
                self._renewed.pop(memory_id, None)
            for memory_id in batch.erased:
                self._accesses.pop(memory_id, None)
            return [entry.sequence for entry in batch.entries]

    def _growth(self, batch: "_Batch") -> Counter[Owner]:
        """How much more the memories of each owner will take."""
        growth: Counter[Owner] = Counter()
        for memory_id, head in batch.heads.items():
            stored, kept = self._heads.get(memory_id), self._vectors.get(memory_id)
            growth[head.owner] += _size(head, batch.vectors.get(memory_id, kept))
            growth[head.owner] -= _size(stored, kept) if stored else 0
        return growth

    def usage(self, owners: Owners) -> int:
        """Add up an owner's memories once; ``apply`` keeps the sum."""
        with self._opened():
            for owner in owners:
                if owner not in self._used:
                    ids = self._owned.get(owner, ())
                    self._used[owner] = sum(_size(self._heads[one], self._vectors.get(one)) for one in ids)
            return sum(self._used[owner] for owner in owners)

    def get(self, owners: Owners, ids: Iterable[str], *, vectors: bool = False) -> dict[str, Memory]:
        """Look each id up among the heads."""
        wanted = list(ids)
        with self._opened():
            entries = [self._heads[one] for one in wanted if one in self._heads]
            return {
                entry.memory_id: self._decode(entry, entry.body, vectors)
                for entry in entries
                if entry.owner in owners and entry.body is not None
            }

    def scan(self, owners: Owners, *, as_of: int | None = None, vectors: bool = False) -> Iterator[Stored]:
        """Decode everything under the lock, so that the answer is one state and not a mixture."""
        with self._opened():
            if as_of is None:
                owned = (self._owned.get(owner, ()) for owner in owners)
                heads = [self._heads[memory_id] for ids in owned for memory_id in ids]
                heads.sort(key=lambda entry: entry.number)
            else:
                past = (one for one in self._journal if one.sequence <= as_of)
                heads = list({one.memory_id: one for one in past if one.owner in owners}.values())
            found = [
                Stored(entry.number, self._decode(entry, entry.body, vectors and self._heads[entry.memory_id] is entry))
                for entry in heads
                if entry.body is not None
            ]
        return iter(found)

    def _decode(self, entry: _Entry, body: bytes, vectors: bool) -> Memory:
        accesses = self._accesses.get(entry.memory_id)
        return _decode(entry, body, accesses, self._vectors.get(entry.memory_id) if vectors else None)

    def versions(
        self,
        owners: Owners,
        *,
        memory_id: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> list[Version]:
        """Walk the journal. A version carries no accesses: they are not history."""
        with self._opened():
            entries = [
                entry
                for entry in self._journal
                if entry.sequence > after and entry.owner in owners and memory_id in (None, entry.memory_id)
            ]
        return [
            Version(
                sequence=entry.sequence,
                memory_id=entry.memory_id,
                owner=entry.owner,
                version=entry.version,
                operation=entry.operation,
                recorded_at=entry.recorded_at,
                reason=entry.reason,
                memory=None if entry.body is None else _decode(entry, entry.body, None, None),
            )
            for entry in entries[:limit]
        ]

    def sequence(self, at: datetime | None = None) -> int:
        """Look at every entry: clocks may have gone backwards, so their times have no order."""
        with self._opened():
            if at is None:
                return self._last
            known = (entry.sequence for entry in self._journal if entry.recorded_at <= at)
            return max(known, default=0)

    def touch(self, ids: Iterable[str], at: datetime) -> None:
        """Count at once; ids that are not there are passed over."""
        with self._opened():
            for memory_id in ids:
                head = self._heads.get(memory_id)
                if head is not None and head.body is not None:
                    before = self._accesses.get(memory_id)
                    self._accesses[memory_id] = _Accesses(before.count + 1 if before else 1, at)

    def unembedded(self, embedder: str, limit: int) -> list[Stored]:
        """Look at every head; the vectors of another embedder wait beside those in use."""
        with self._opened():
            have = {one for kept in (self._vectors, self._renewed) for one in kept if kept[one].embedder == embedder}
            heads = sorted(self._heads.values(), key=lambda entry: entry.number)
            found = [
                Stored(entry.number, self._decode(entry, entry.body, False))
                for entry in heads
                if entry.body is not None and entry.memory_id not in have
            ]
            return found[:limit]

    def embed(self, vectors: Sequence[Embedded]) -> None:
        """Check everything first, as ``apply`` does."""
        with self._opened():
            settings = dict(self._settings)
            heads = {entry.number: entry for entry in self._heads.values() if entry.body is not None}
            fitting = [
                (heads[one.number].memory_id, one.vector)
                for one in vectors
                if one.number in heads and heads[one.number].version == one.version
            ]
            for _, vector in fitting:
                if settings.setdefault("embedder", vector.embedder) == vector.embedder:
                    check_vector(vector, vector.embedder, int(settings.setdefault("dimension", str(vector.dimension))))
            self._settings = settings
            self._used.clear()
            for memory_id, vector in fitting:
                kept = self._vectors if vector.embedder == settings["embedder"] else self._renewed
                kept[memory_id] = vector

    def adopt(self, embedder: str, dimension: int) -> bool:
        """Exchange all vectors at once, or none."""
        with self._opened():
            if self._settings.get("embedder") == embedder:
                return True
            renewed = {one: vector for one, vector in self._renewed.items() if vector.embedder == embedder}
            if any(entry.body is not None and entry.memory_id not in renewed for entry in self._heads.values()):
                return False
            self._vectors, self._renewed = renewed, {}
            self._used.clear()
            self._settings |= {"embedder": embedder, "dimension": str(dimension)}
            self._settings.pop("calibration", None)  # what the cosines of the former one meant
            return True

    def settings(self) -> dict[str, str]:
        """A copy."""
        with self._opened():
            return dict(self._settings)

    def set_settings(self, values: Mapping[str, str]) -> None:
        """Change the given ones and leave the others."""
        with self._opened():
            self._settings |= values

    def records(self, owners: Owners, kind: str) -> list[Record]:
        """Look at every record."""
        with self._opened():
            found = [one for one in self._records.values() if one.kind == kind and one.owner in owners]
        return sorted(found, key=lambda one: one.name)

    def record(self, owner: Owner, kind: str, name: str) -> Record | None:
        """Look it up."""
        with self._opened():
            return self._records.get((owner, kind, name))

    def put_record(self, record: Record) -> None:
        """Take the place of the version before."""
        place = (record.owner, record.kind, record.name)
        with self._opened():
            known = self._records.get(place)
            check_record(record, known.version if known else 0)
            self._records[place] = record

    def drop_record(self, owner: Owner, kind: str, name: str) -> bool:
        """Forget it."""
        with self._opened():
            return self._records.pop((owner, kind, name), None) is not None

    def keys(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """Look each key up."""
        wanted = list(keys)
        with self._opened():
            return {key: self._keys[owner, key] for key in wanted if (owner, key) in self._keys}

    def close(self) -> None:
        """Drop everything."""
        with self._lock:
            self._closed = True
            for kept in (
                *(self._journal, self._heads, self._owned, self._keys),
                *(self._vectors, self._renewed, self._records),
            ):
                kept.clear()

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """Hold the lock; the check is inside it, so that no write lands behind a close."""
        with self._lock:
            if self._closed:
                raise StoreClosed("the store is closed", hint="open a new one")
            yield


class _Batch:
    """What a batch of writes would change. Each write is checked against the ones before it."""

    def __init__(
        self,
        last: int,
        head: Callable[[str], _Entry | None],
        key: Callable[[tuple[Owner, str]], str | None],
        settings: Mapping[str, str],
    ) -> None:
        self._last = last
        self._stored_head = head
        self._stored_key = key
        self.entries: list[_Entry] = []
        self.heads: dict[str, _Entry] = {}
        self.keys: dict[tuple[Owner, str], str | None] = {}
        self.vectors: dict[str, Vector | None] = {}
        self.settings = dict(settings)
        self.erased: set[str] = set()

    def add(self, write: Write) -> None:
        """Check one write and note what it changes."""
        memory, erases = write.memory, write.operation is Operation.ERASED
        head = self.heads.get(memory.id) or self._stored_head(memory.id)
        _check_version(memory, head)
        self._move_key(memory, head, None if erases else memory.key)
        if erases:
            self.erased.add(memory.id)
            self.vectors[memory.id] = None
        elif not write.keeps_vector:
            self._check_vector(write.vector)
            self.vectors[memory.id] = write.vector
        sequence = self._last + len(self.entries) + 1
        entry = _Entry(
            sequence=sequence,
            number=head.number if head else sequence,
            memory_id=memory.id,
            owner=memory.owner,
            version=memory.version,
            operation=write.operation,
            recorded_at=write.recorded_at,
            created_at=memory.created_at,
            reason=write.reason,
            key=None if erases else memory.key,
            content="" if erases else memory.content,
            body=None if erases else codec.encode_body(memory),
        )
        self.entries.append(entry)
        self.heads[memory.id] = entry

    def _move_key(self, memory: Memory, head: _Entry | None, key: str | None) -> None:
        if head is not None and head.key is not None:
            self.keys[head.owner, head.key] = None
        if key is None:
            return
        place = (memory.owner, key)
        holder = self.keys[place] if place in self.keys else self._stored_key(place)
        if holder is not None:
            raise Conflict(
                f"the key of memory {memory.id!r} belongs to memory {holder!r}",
                details={"memory_id": memory.id, "holder": holder},
                hint="read the memory that has the key, then decide",
            )
        self.keys[place] = memory.id

    def _check_vector(self, vector: Vector | None) -> None:
        if vector is None:
            return
        embedder = self.settings.setdefault("embedder", vector.embedder)
        dimension = int(self.settings.setdefault("dimension", str(vector.dimension)))
        check_vector(vector, embedder, dimension)


def _check_version(memory: Memory, head: _Entry | None) -> None:
    # Before the versions: a foreign caller must not learn how far the memory is.
    if head is not None and (head.body is None or head.owner != memory.owner):
        raise Conflict(
            f"the id {memory.id!r} is taken: by an erased memory or another owner's",
            details={"memory_id": memory.id},
            hint="add a new memory",
        )
    stored = head.version if head else 0
    if memory.version != stored + 1:
        raise Conflict(
            f"memory {memory.id!r} is at version {stored}, not {memory.version - 1}",
            details={"memory_id": memory.id, "stored": stored, "expected": memory.version - 1},
            hint="read it again, then decide",
        )


def _decode(entry: _Entry, body: bytes, accesses: _Accesses | None, vector: Vector | None) -> Memory:
    return codec.decode_memory(
        body,
        id=entry.memory_id,
        content=entry.content,
        owner=entry.owner,
        version=entry.version,
        created_at=entry.created_at,
        updated_at=entry.recorded_at,
        access_count=accesses.count if accesses else 0,
        last_accessed_at=accesses.last_at if accesses else None,
        vector=vector,
    )


def _size(entry: _Entry, vector: Vector | None) -> int:
    """The bytes that a memory counts for; an erased one for none."""
    return 0 if entry.body is None else tally.footprint_of(entry.content, entry.body, len(vector.data) if vector else 0)


def _merge(kept: dict[K, V], changes: Mapping[K, V | None]) -> None:
    for name, value in changes.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = value
