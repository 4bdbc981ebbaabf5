"""Appending to the journal and keeping its projections in step, inside one transaction.

A batch is planned first, which is where it can be refused, and written second: a refused batch has changed nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from recollect import codec, statistics
from recollect.errors import Conflict
from recollect.ports import check_quota, check_vector
from recollect.stores.sqlite import rows, usage
from recollect.stores.sqlite.usage import Figure, Figures
from recollect.types import Operation, Owner, Vector

if TYPE_CHECKING:
    from recollect.ports import Quota, Write

# Sequences set aside as damaged are not given again: whoever follows the journal has passed them.
_STATE = (
    "SELECT max(coalesce((SELECT max(sequence) FROM journal), 0), coalesce((SELECT max(sequence) FROM damaged), 0)),"
    " (SELECT value FROM settings WHERE name = 'embedder'),"
    " (SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'dimension')"
)
_PRESENT = "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM journal WHERE id = value)"
_HEAD = f"SELECT {rows.CHECKED} FROM journal WHERE id = ? ORDER BY version DESC LIMIT 1"
_SIZE = (
    "SELECT bytes, coalesce((SELECT length(data) FROM vectors v WHERE v.number = h.number), 0)"
    " FROM heads h WHERE owner = ? AND number = ?"
)
_MANY = 16  # writes: from here on, one statement for all ids is faster than one each
_FLUSH = 200  # rows: enough to save statements, few enough to stay in the processor's cache

Holders = dict[tuple[Owner, str], str | None]
"""Who has a key; nobody any more, if none."""


class Head(NamedTuple):
    """What the file holds of a memory before a write: where it is, and what its projections were made from.

    An erased memory is only a number and a version.
    """

    number: int
    version: int
    owner: int
    erased: bool = False
    key: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Step:
    """One write with its place in the journal and what it replaces. The owner's number comes when it is written."""

    write: Write
    sequence: int
    number: int
    before: Head | None
    owner: int = 0

    def journal_row(self, body: bytes) -> tuple[object, ...]:
        """The version."""
        return rows.journal_row(self.write, body, self.number, self.sequence, self.owner)

    def head_row(self, size: int) -> tuple[object, ...]:
        """Its head."""
        return rows.head_row(self.write.memory, self.number, self.sequence, self.owner, size)


class Append:
    """The work of appending some writes. Whoever leads a group can see which ids it will ask for."""

    __slots__ = ("quota", "writes")

    def __init__(self, writes: Sequence[Write], quota: Quota | None) -> None:
        self.writes = writes
        self.quota = quota

    def __call__(self, transaction: Transaction) -> list[int]:
        """Append them."""
        return transaction.append(self.writes, self.quota)


class Transaction:
    """One open transaction: everything that writes goes through here.

    ``owners`` are the owners known to be committed; those that this transaction makes are kept apart until it is
    committed, since a number that was rolled back may be given to another owner. ``known`` are the figures of usage
    that were right at some commit; those of this transaction are kept apart as well.
    """

    def __init__(self, connection: apsw.Connection, owners: Mapping[Owner, int], known: Figures) -> None:
        self.new_owners: dict[Owner, int] = {}
        self.figures: dict[Owner, Figure] = {}
        self._known = known
        self.accesses: Mapping[str, rows.Accesses] = {}
        self._connection = connection
        self._owners = owners
        self._found: dict[Owner, int] = {}
        self._batch = _Batch(connection)
        self._latest: dict[str, Step] = {}
        self._holders: dict[tuple[Owner, str], str | None] = {}
        [(self._last, self._embedder, self._dimension)] = rows.fetch(connection, _STATE)
        self._settings_known = True  # until somebody writes tables directly
        self._absent: AbstractSet[str] = frozenset()

    @property
    def connection(self) -> apsw.Connection:
        """For whoever reads and writes tables directly: everything appended so far is in them."""
        self._batch.flush()
        self._settings_known = False
        self.figures.clear()
        return self._connection

    def append(self, writes: Sequence[Write], quota: Quota | None = None) -> list[int]:
        """Append versions, all or none, and return their sequences. They are in the tables after ``finish``."""
        steps, holders = self._plan(writes)
        figures = self._figures_after(steps, quota) if quota is not None or self._known or self.figures else {}
        self._check_vectors([one.vector for one in writes if one.vector is not None and not one.keeps_vector])
        for step in steps:
            step.owner = self.number_of(step.write.memory.owner)
            if step.write.operation is Operation.ERASED:
                self._batch.erase(step)
            else:
                self._batch.add(step)
        self._latest.update((step.write.memory.id, step) for step in steps)
        self._holders.update(holders)
        self._last += len(steps)
        self.figures |= figures
        return [step.sequence for step in steps]

    def finish(self) -> None:
        """Write what is still collected; to be called before the commit."""
        self._batch.flush()

    # -- planning ---------------------------------------------------------------------------------------------

    def _plan(self, writes: Sequence[Write]) -> tuple[list[Step], Holders]:
        """Each write with what it replaces and the keys that it moves, or the error of the first one that does not fit.

        One batch may hold several versions of a memory, and may free a key and take it again. What earlier jobs of the
        transaction wrote need not be in the tables yet, so it is remembered.
        """
        steps: list[Step] = []
        latest: dict[str, Step] = {}
        holders: Holders = {}
        for sequence, write in enumerate(writes, self._last + 1):
            memory = write.memory
            earlier = latest.get(memory.id) or self._latest.get(memory.id)
            before = self._after(earlier) if earlier else self._head(memory.id)
            self._check_version(write, before)
            self._check_key(write, before, holders)
            number = before.number if before else sequence
            latest[memory.id] = step = Step(write, sequence, number, before)
            steps.append(step)
        return steps, holders

    def _after(self, step: Step) -> Head:
        """What the file will hold of a memory behind an earlier step of the same batch."""
        memory, owner = step.write.memory, self._find_owner(step.write.memory.owner)
        if step.write.operation is Operation.ERASED:
            return Head(step.number, memory.version, owner, erased=True)
        return Head(step.number, memory.version, owner, key=memory.key, tags=memory.tags)

    def look_for(self, ids: Sequence[str]) -> None:
        """Find out with one statement which of many ids the tables do not have.

        A statement for each would let go of the interpreter's lock each time, and threads would fight for it. Odd ids
        are left for a look of their own.
        """
        if len(ids) < _MANY:
            return
        plain = frozenset(one for one in ids if one.isascii() and one.isprintable())
        found = rows.fetch(self._connection, _PRESENT, (codec.encode_json(list(plain)).decode(),))
        self._absent = plain.difference(one for (one,) in found)

    def _head(self, memory_id: str) -> Head | None:
        if memory_id in self._absent:
            return None
        found = rows.fetch(self._connection, _HEAD, (memory_id,))
        if not found:
            return None
        rows.verify(found[0])
        _, _, version, number, owner, _, _, _, _, _, body, _ = found[0]
        if body is None:
            return Head(number, version, owner, erased=True)
        kept: dict[str, Any] = codec.decode_json(body)
        return Head(number, version, owner, key=kept.get("key"), tags=tuple(kept.get("tags", ())))

    def _check_version(self, write: Write, before: Head | None) -> None:
        memory = write.memory
        stored = before.version if before else 0
        foreign = before is not None and before.owner not in (0, self._find_owner(memory.owner))
        if stored != write.expected or foreign or (before and before.erased):
            raise Conflict(
                f"memory {memory.id!r} is not at version {write.expected}",
                details={"memory_id": memory.id, "expected": write.expected},
                hint="read it again and repeat the change",
            )

    def _check_key(self, write: Write, before: Head | None, holders: Holders) -> None:
        memory = write.memory
        if before is not None and before.key is not None:
            holders[memory.owner, before.key] = None
        if memory.key is None or write.operation is Operation.ERASED:
            return
        place = (memory.owner, memory.key)
        holder = holders[place] if place in holders else self._holder(place)
        if holder is not None:
            raise Conflict(
                f"the key of memory {memory.id!r} belongs to another memory",
                details={"field": "key", "memory_id": memory.id, "holder": holder},
                hint="read the memory that has the key, then decide",
            )
        holders[place] = memory.id

    def _holder(self, place: tuple[Owner, str]) -> str | None:
        if place in self._holders:
            return self._holders[place]
        found: str | None = self._connection.execute(rows.ID_BY_KEY, (self._find_owner(place[0]), place[1])).get
        return found

    def _check_vectors(self, vectors: Sequence[Vector]) -> None:
        """The first vector of a file decides which embedder its vectors come from."""
        if not vectors:
            return
        if not self._settings_known:
            [(_, self._embedder, self._dimension)] = rows.fetch(self._connection, _STATE)
            self._settings_known = True
        name = vectors[0].embedder if self._embedder is None else self._embedder
        dimension = self._dimension or vectors[0].dimension
        for vector in vectors:
            check_vector(vector, name, dimension)
        if self._embedder is None or not self._dimension:
            rows.set_settings(self._connection, {"embedder": name, "dimension": str(dimension)})
            self._embedder, self._dimension = name, dimension

    # -- usage ------------------------------------------------------------------------------------------------

    def _figures_after(self, steps: Sequence[Step], quota: Quota | None) -> dict[Owner, Figure]:
        """What the steps will leave of the quota's owners and of those whose figures are kept, if it may be so much."""
        written = {step.write.memory.owner for step in steps}
        kept = {owner for owner in written if owner in self.figures or owner in self._known}
        figures = self._measured(kept if quota is None else kept | quota.owners)
        if not figures:
            return {}
        growth = self._growth(steps)
        if quota is not None:
            before = sum(figures[owner].used for owner in quota.owners)
            check_quota(quota, before, before + sum(growth[owner] for owner in quota.owners))
        last = self._last + len(steps)
        return {owner: Figure(one.used + growth[owner], last, one.generation) for owner, one in figures.items()}

    def _measured(self, owners: Iterable[Owner]) -> dict[Owner, Figure]:
        missing = {owner: self._find_owner(owner) for owner in owners if owner not in self.figures}
        if missing:
            self._batch.flush()
            self.figures |= usage.measure(self._connection, missing, self._known)
        return {owner: self.figures[owner] for owner in owners}

    def _growth(self, steps: Sequence[Step]) -> Counter[Owner]:
        """How much more each owner's memories will take; of several versions of one memory the last counts."""
        growth: Counter[Owner] = Counter()
        sizes: dict[str, tuple[int, int]] = {}
        for step in steps:
            write, memory = step.write, step.write.memory
            before, vector = sizes.get(memory.id) or self._stored_size(step)
            after = 0
            if write.operation is not Operation.ERASED:
                if not write.keeps_vector:
                    vector = len(write.vector.data) if write.vector else 0
                after = statistics.footprint_of(memory.content, codec.encode_body(memory), vector)
            growth[memory.owner] += after - before
            sizes[memory.id] = after, vector
        return growth

    def _stored_size(self, step: Step) -> tuple[int, int]:
        """What a memory takes before a step, and what of it is its vector."""
        if step.before is None:
            return 0, 0
        self._batch.flush()
        place = (self._find_owner(step.write.memory.owner), step.number)
        found = self._connection.execute(_SIZE, place).fetchone()
        return found or (0, 0)

    # -- owners -----------------------------------------------------------------------------------------------

    def _find_owner(self, owner: Owner) -> int:
        """The number of an owner; 0 if it has none yet. Nobody else makes one while the transaction is open."""
        known = self._owners.get(owner) or self._found.get(owner)
        if known is None:
            known = self._found[owner] = rows.owner_number(self._connection, owner)
        return known

    def number_of(self, owner: Owner) -> int:
        """The number of an owner, made if it has none yet."""
        number = self._find_owner(owner)
        if not number:
            self._connection.execute("INSERT INTO owners (name) VALUES (?)", (codec.encode_owner(owner),))
            number = self._found[owner] = self.new_owners[owner] = self._connection.last_insert_rowid()
        return number

    # -- bookkeeping ------------------------------------------------------------------------------------------

    def count_accesses(self, accesses: Mapping[str, rows.Accesses]) -> None:
        """Add up accesses that were kept in RAM until now."""
        self.accesses = accesses
        self._connection.executemany(
            "INSERT INTO accesses (number, count, last_at)"
            " SELECT number, ?, ? FROM journal WHERE id = ? AND operation <> 'erased' ORDER BY version LIMIT 1"
            " ON CONFLICT (number) DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at",
            [(count, codec.to_micros(at), memory_id) for memory_id, (count, at) in accesses.items()],
        )


class _Batch:
    """Steps collected until they are written, table by table: many new memories cost few statements, and making all
    rows of a table in one go takes half the time that it takes to make all rows of a memory in turn.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._steps: list[Step] = []

    def add(self, step: Step) -> None:
        """A version and its projections, instead of those of the version before."""
        if step.before is not None:
            self._remove(step.before, step.owner, keeps_vector=step.write.keeps_vector)
        self._steps.append(step)
        if len(self._steps) >= _FLUSH:
            self.flush()

    def erase(self, step: Step) -> None:
        """Every version of a memory and all that was made from them; what stays is that it was erased."""
        memory_id, owner = step.write.memory.id, step.owner
        if step.before is not None:
            self._remove(step.before, owner, keeps_vector=False)
            self._connection.execute("DELETE FROM accesses WHERE number = ?", (step.number,))
            self._connection.execute("DELETE FROM journal WHERE id = ?", (memory_id,))
            self._connection.execute("DELETE FROM damaged WHERE id = ?", (memory_id,))
            rows.forget_images(self._connection, owner)
        tombstone = rows.tombstone(step.write, step.number, step.sequence, owner)
        rows.INTO_JOURNAL.rows(self._connection, [tombstone])

    def _vector_bytes(self, write: Write, number: int) -> int:
        if not write.keeps_vector:
            return len(write.vector.data) if write.vector else 0
        found = self._connection.execute("SELECT length(data) FROM vectors WHERE number = ?", (number,)).get
        return int(found or 0)

    def _remove(self, before: Head, owner: int, *, keeps_vector: bool) -> None:
        """Take a memory's projections away, by their full keys: no table is searched."""
        self.flush()
        number = before.number
        self._connection.execute("DELETE FROM heads WHERE owner = ? AND number = ?", (owner, number))
        for tag in before.tags:
            self._connection.execute(
                "DELETE FROM tags WHERE owner = ? AND tag = ? AND number = ?", (owner, tag, number)
            )
        if before.key is not None:
            self._connection.execute("DELETE FROM keys WHERE owner = ? AND key = ?", (owner, before.key))
        if not keeps_vector:
            self._connection.execute("DELETE FROM vectors WHERE number = ?", (number,))
            self._connection.execute("DELETE FROM renewed WHERE number = ?", (number,))

    def flush(self) -> None:
        """Write what was collected."""
        steps, self._steps = self._steps, []
        if not steps:
            return
        connection = self._connection
        bodies = [codec.encode_body(step.write.memory) for step in steps]
        rows.INTO_JOURNAL.rows(connection, [step.journal_row(body) for step, body in zip(steps, bodies, strict=True)])
        sizes = [self._size(step, body) for step, body in zip(steps, bodies, strict=True)]
        rows.INTO_HEADS.rows(connection, [step.head_row(size) for step, size in zip(steps, sizes, strict=True)])
        memories = [(step.owner, step.number, step.write.memory) for step in steps]
        rows.INTO_TAGS.rows(connection, [(owner, tag, number) for owner, number, one in memories for tag in one.tags])
        rows.INTO_KEYS.rows(
            connection, [(owner, one.key, number) for owner, number, one in memories if one.key is not None]
        )
        rows.INTO_VECTORS.rows(
            connection,
            [
                rows.vector_row(step.number, step.write.vector, step.write.digest)
                for step in steps
                if step.write.vector is not None and not step.write.keeps_vector
            ],
        )

    def _size(self, step: Step, body: bytes) -> int:
        return statistics.footprint_of(step.write.memory.content, body, self._vector_bytes(step.write, step.number))
