"""A journal in RAM and all that follows from it: what stores that hold everything in RAM are made of.

No locks and no files here. What changes something comes in two steps: ``stage`` checks and changes nothing, ``take``
changes and cannot fail; in between, a store may write to a disk.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from recollect import codec, statistics
from recollect.errors import Conflict
from recollect.ports import Embedded, Owners, Stored, Write, check_vector
from recollect.stores.fading import Fading
from recollect.stores.weights import Weights
from recollect.types import Memory, Operation, Owner, Vector, Version


class Entry(NamedTuple):  # takes a quarter of the time of a frozen dataclass, and there is one for every version
    """One version. ``number`` is the sequence of the memory's first one; ``memory`` is ``None`` in the mark that an
    erased memory leaves.
    """

    sequence: int
    number: int
    version: int
    operation: Operation
    recorded_at: datetime
    reason: str | None
    memory_id: str
    owner: Owner
    memory: Memory | None

    @classmethod
    def of(cls, write: Write, sequence: int, number: int) -> "Entry":
        """The entry of a write; a copy, so that nobody outside can change it."""
        memory = None
        if write.operation is not Operation.ERASED:
            memory = codec.decode_memory(
                codec.encode_body(write.memory),
                id=write.memory.id,
                content=write.memory.content,
                owner=write.memory.owner,
                version=write.memory.version,
                created_at=write.memory.created_at,
                updated_at=write.recorded_at,
            )
        return cls(
            sequence,
            number,
            write.memory.version,
            write.operation,
            write.recorded_at,
            write.reason,
            write.memory.id,
            write.memory.owner,
            memory,
        )

    @property
    def size(self) -> int:
        """What it counts for, its vector apart; nothing if it is erased."""
        if self.memory is None:
            return 0
        return statistics.footprint_of(self.memory.content, codec.encode_body(self.memory), 0)

    @property
    def key(self) -> str | None:
        """The key that the memory has."""
        return None if self.memory is None else self.memory.key


@dataclass(frozen=True, slots=True)
class Accesses:
    """How often a memory was read by its id, and when last."""

    count: int
    last_at: datetime

    def and_more(self, more: "Accesses | None") -> "Accesses":
        """Both together, the others first: what came last is the last access, whatever the clocks said."""
        return self if more is None else Accesses(self.count + more.count, self.last_at)


class Journal:
    """Versions, and the state, keys, vectors, accesses and settings that they leave."""

    def __init__(self) -> None:
        self.last = 0
        self.entries: list[Entry] = []  # by sequence
        self.heads: dict[str, Entry] = {}  # erased memories stay, as marks
        self.ids: dict[int, str] = {}  # by number
        self.owned: dict[Owner, list[str]] = {}
        self.keys: dict[tuple[Owner, str], str] = {}
        self.vectors: dict[str, Vector] = {}
        self.renewed: dict[str, Vector] = {}  # of the embedder that is to come
        self.accesses: dict[str, Accesses] = {}
        self.settings: dict[str, str] = {}
        self.fading = Fading()  # for whoever orders by relevance
        self._weights = Weights()

    # -- changing ---------------------------------------------------------------------------------------------

    def stage(self, writes: Sequence[Write]) -> "Batch":
        """Check a batch; nothing changes yet."""
        batch = Batch(self)
        for write in writes:
            batch.add(write)
        return batch

    def take(self, batch: "Batch") -> list[int]:
        """Make a batch visible."""
        self.restore(batch.entries)
        self.settings.update(batch.settings)
        for memory_id, vector in batch.vectors.items():
            self.place_vector(memory_id, vector, replaces=True)
        return [entry.sequence for entry in batch.entries]

    def restore(self, entries: Sequence[Entry]) -> None:
        """Take in versions that were accepted before, in the order of sequences."""
        for owner, written in groupby(entries, key=attrgetter("owner")):
            self._place(owner, list(written))
        self.entries += entries
        erased = {entry.memory_id for entry in entries if entry.memory is None}
        if erased:
            self.entries = [one for one in self.entries if one.memory is None or one.memory_id not in erased]
            for memory_id in erased:
                for kept in (self.vectors, self.renewed, self.accesses):
                    kept.pop(memory_id, None)

    def _place(self, owner: Owner, written: Sequence[Entry]) -> None:
        """Take in versions of one owner."""
        heads, keys, new = self.heads, self.keys, []
        for entry in written:
            memory_id, key = entry.memory_id, entry.key
            head = heads.get(memory_id)
            if head is None:
                self.ids[entry.number] = memory_id
                new.append(memory_id)
            elif head.key is not None and keys.get((head.owner, head.key)) == memory_id:
                del keys[head.owner, head.key]
            if key is not None:
                keys[owner, key] = memory_id
            heads[memory_id] = entry
        if new:
            self.owned.setdefault(owner, []).extend(new)
        self.last = max(self.last, written[-1].sequence)
        ids = [entry.memory_id for entry in written]
        self._weights.changed(owner, *ids)
        self.fading.changed(*ids)

    def place_vector(self, memory_id: str, vector: Vector | None, *, replaces: bool) -> None:
        """Keep a vector: in use, or waiting if it is of another embedder. One that ``replaces`` came with another text:
        what was made from the former goes.
        """
        head = self.heads.get(memory_id)
        if head is None or head.memory is None:
            return
        if replaces:
            self.vectors.pop(memory_id, None)
            self.renewed.pop(memory_id, None)
        if vector is not None:
            kept = self.vectors if vector.embedder == self.settings.get("embedder") else self.renewed
            kept[memory_id] = vector
        self._weights.changed(head.owner, memory_id)

    def fitting(self, vectors: Sequence[Embedded]) -> tuple[list[tuple[Entry, Vector]], dict[str, str]]:
        """The vectors whose versions are still the newest, and the settings that they bring."""
        settings = dict(self.settings)
        found = [(self.heads[self.ids[one.number]], one) for one in vectors if one.number in self.ids]
        fitting = [(head, one.vector) for head, one in found if head.memory and head.version == one.version]
        for _, vector in fitting:
            if settings.setdefault("embedder", vector.embedder) == vector.embedder:
                check_vector(vector, vector.embedder, int(settings.setdefault("dimension", str(vector.dimension))))
        return fitting, {name: value for name, value in settings.items() if name not in self.settings}

    def ready(self, embedder: str) -> bool:
        """Whether every memory has a waiting vector of the embedder."""
        return all(
            entry.memory is None or ((one := self.renewed.get(memory_id)) is not None and one.embedder == embedder)
            for memory_id, entry in self.heads.items()
        )

    def adopt(self, embedder: str, dimension: int) -> None:
        """Exchange all vectors; what the cosines of the former embedder meant goes with them."""
        self.vectors, self.renewed = self.renewed, {}
        self.settings |= {"embedder": embedder, "dimension": str(dimension)}
        self.settings.pop("calibration", None)
        for owner, ids in self.owned.items():
            self._weights.changed(owner, *ids)

    def touch(self, memory_id: str, accesses: Accesses) -> bool:
        """Count accesses to a memory, if it is there."""
        head = self.heads.get(memory_id)
        if head is None or head.memory is None:
            return False
        self.accesses[memory_id] = accesses.and_more(self.accesses.get(memory_id))
        self.fading.changed(memory_id)
        return True

    # -- asking -----------------------------------------------------------------------------------------------

    def get(self, owners: Owners, ids: Iterable[str], *, vectors: bool) -> dict[str, Memory]:
        """Memories by id."""
        found = [self.heads[one] for one in ids if one in self.heads]
        return {
            entry.memory_id: self.dressed(entry.memory, vectors=vectors)
            for entry in found
            if entry.owner in owners and entry.memory is not None
        }

    def current(self, owners: Owners, as_of: int | None = None) -> list[tuple[Entry, Memory]]:
        """The newest versions of the owners' memories, up to a sequence if given, in the order of recording.

        The memories in it are the journal's own: not to be given away.
        """
        return [(entry, entry.memory) for entry in self._newest(owners, as_of) if entry.memory is not None]

    def memories(self, owners: Owners, as_of: int | None = None) -> list[Memory]:
        """The same without the versions: nothing is made that the garbage collector would have to look at."""
        return [entry.memory for entry in self._newest(owners, as_of) if entry.memory is not None]

    def _newest(self, owners: Owners, as_of: int | None) -> list[Entry]:
        if as_of is not None:
            past = self.entries[: bisect_right(self.entries, as_of, key=attrgetter("sequence"))]
            return list({one.memory_id: one for one in past if one.owner in owners}.values())
        owned = (self.owned.get(owner, ()) for owner in owners)
        heads = [self.heads[memory_id] for ids in owned for memory_id in ids]
        if len(owners) > 1:
            heads.sort(key=attrgetter("number"))
        return heads

    def number(self, memory: Memory) -> int:
        """The place of a memory in the order of recording: the same for all its versions."""
        return self.heads[memory.id].number

    def scan(self, owners: Owners, *, as_of: int | None, vectors: bool) -> list[Stored]:
        """All memories of the owners."""
        return [
            Stored(entry.number, self.dressed(memory, vectors=vectors and self.heads[entry.memory_id] is entry))
            for entry, memory in self.current(owners, as_of)
        ]

    def dressed(self, memory: Memory, *, vectors: bool = False) -> Memory:
        """A memory to give away: a copy, with its accesses and, if wanted, its vector."""
        accesses = self.accesses.get(memory.id)
        if not (accesses or vectors or memory.metadata):
            return memory  # nothing in it that could be changed
        return codec.changed_memory(
            memory,
            metadata=codec.decode_json(codec.encode_json(memory.metadata)) if memory.metadata else {},
            access_count=accesses.count if accesses else 0,
            last_accessed_at=accesses.last_at if accesses else None,
            vector=self.vectors.get(memory.id) if vectors else None,
        )

    def versions(self, owners: Owners, *, memory_id: str | None, after: int, limit: int | None) -> list[Version]:
        """The journal behind a sequence. A version carries no accesses: they are not history."""
        found: list[Version] = []
        for entry in self.entries[bisect_right(self.entries, after, key=attrgetter("sequence")) :]:
            if limit is not None and len(found) >= limit:
                break
            if entry.owner in owners and memory_id in (None, entry.memory_id):
                found.append(_version(entry))
        return found

    def sequence(self, at: datetime | None) -> int:
        """The highest sequence. Clocks may have gone backwards, so times have no order: every entry is looked at."""
        if at is None:
            return self.last
        return max((entry.sequence for entry in self.entries if entry.recorded_at <= at), default=0)

    def unembedded(self, embedder: str) -> Iterator[tuple[Entry, Memory]]:
        """Memories without a vector of the embedder, neither in use nor waiting, oldest first."""
        for number in sorted(self.ids):
            entry = self.heads[self.ids[number]]
            having = (self.vectors.get(entry.memory_id), self.renewed.get(entry.memory_id))
            if entry.memory is not None and all(one is None or one.embedder != embedder for one in having):
                yield entry, entry.memory

    def used(self, owners: Owners) -> int:
        """The bytes that the memories of owners take."""
        return sum(self._weights.total(owner, self.weight) for owner in owners)

    def weight(self, memory_id: str) -> int:
        """The bytes that a memory takes with its vector; none if it is not there."""
        head, vector = self.heads.get(memory_id), self.vectors.get(memory_id)
        return 0 if head is None else head.size + (len(vector.data) if vector else 0)


def _version(entry: Entry) -> Version:
    memory = entry.memory
    if memory is not None and memory.metadata:
        memory = replace(memory, metadata=codec.decode_json(codec.encode_json(memory.metadata)))
    return Version(
        sequence=entry.sequence,
        memory_id=entry.memory_id,
        owner=entry.owner,
        version=entry.version,
        operation=entry.operation,
        recorded_at=entry.recorded_at,
        reason=entry.reason,
        memory=memory,
    )


class Batch:
    """What a batch of writes would change. Each write is checked against the ones before it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._heads: dict[str, Entry] = {}
        self._keys: dict[tuple[Owner, str], str | None] = {}
        self.writes: list[Write] = []
        self.entries: list[Entry] = []
        self.vectors: dict[str, Vector | None] = {}
        self.settings: dict[str, str] = {}  # new ones
        self.erased: set[str] = set()

    def add(self, write: Write) -> None:
        """Check one write and note what it changes."""
        memory, erases = write.memory, write.operation is Operation.ERASED
        head = self._heads.get(memory.id) or self._journal.heads.get(memory.id)
        _check_version(write, head)
        self._move_key(memory, head, None if erases else memory.key)
        if erases:
            self.erased.add(memory.id)
            self.vectors.pop(memory.id, None)
        elif not write.keeps_vector:
            self._check_vector(write.vector)
            self.vectors[memory.id] = write.vector
        sequence = self._journal.last + len(self.entries) + 1
        entry = Entry.of(write, sequence, head.number if head else sequence)
        self.writes.append(write)
        self.entries.append(entry)
        self._heads[memory.id] = entry

    def growth(self, owners: Owners) -> int:
        """By how many bytes the memories of owners would grow."""
        total = 0
        for memory_id, head in self._heads.items():
            if head.owner in owners:
                had = self._journal.vectors.get(memory_id)
                vector = self.vectors.get(memory_id, had if head.memory else None)
                total += head.size + (len(vector.data) if vector else 0) - self._journal.weight(memory_id)
        return total

    def _move_key(self, memory: Memory, head: Entry | None, key: str | None) -> None:
        if head is not None and head.key is not None:
            self._keys[head.owner, head.key] = None
        if key is None:
            return
        place = (memory.owner, key)
        holder = self._keys[place] if place in self._keys else self._journal.keys.get(place)
        if holder is not None:
            raise Conflict(
                f"the key of memory {memory.id!r} belongs to memory {holder!r}",
                details={"memory_id": memory.id, "holder": holder},
                hint="read the memory that has the key, then decide",
            )
        self._keys[place] = memory.id

    def _check_vector(self, vector: Vector | None) -> None:
        if vector is None:
            return
        known = self._journal.settings | self.settings
        if "embedder" not in known:
            self.settings |= {"embedder": vector.embedder, "dimension": str(vector.dimension)}
            known = self.settings
        check_vector(vector, known["embedder"], int(known["dimension"]))


def _check_version(write: Write, head: Entry | None) -> None:
    memory = write.memory
    # Before the versions: a foreign caller must not learn how far the memory is.
    if head is not None and (head.memory is None or head.owner != memory.owner):
        raise Conflict(
            f"the id {memory.id!r} is taken: by an erased memory or another owner's",
            details={"memory_id": memory.id},
            hint="add a new memory",
        )
    stored = head.version if head else 0
    if stored != write.expected:
        raise Conflict(
            f"memory {memory.id!r} is at version {stored}, not {write.expected}",
            details={"memory_id": memory.id, "stored": stored, "expected": write.expected},
            hint="read it again, then decide",
        )
