"""One open transaction of the file: appending to the journal and keeping its projections in step.

An append is planned first, which is where it can be refused, and written second: a refused append has changed nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import apsw

from wellkept import codec
from wellkept.errors import StoreCorrupt
from wellkept.ports import Counters, Head, Plan, Standing, Step, guarded_version, plan, positions
from wellkept.ports.positions import Reached
from wellkept.stores.sqlite import records, rows
from wellkept.types import Guard, Operation, Owner, Owners, Position, Quota, Stamp, State, Write

# Places of versions set aside as damaged are not given again: followers of the feed have passed them.
_LAST = (
    "SELECT max(coalesce((SELECT max(place) FROM journal), 0),"
    f" coalesce((SELECT max(place) FROM damaged WHERE place < {rows.BOUND}), 0))"
)
_PRESENT = "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM journal WHERE id = value)"
_HEAD = (
    f"SELECT {rows.JOURNAL}, (SELECT length(data) FROM vectors v WHERE v.number = j.number)"
    " FROM journal j WHERE j.id = ? AND j.owner = ? ORDER BY j.version DESC LIMIT 1"
)
_DAMAGED = "SELECT place, number FROM journal WHERE id = ? AND owner = ? ORDER BY version DESC LIMIT 1"
_HEAD_AT = "SELECT number, bytes FROM heads WHERE owner = ? AND place = ?"
_TAGS = "SELECT tag FROM tags WHERE owner = ? AND number = ?"
_KEY = "SELECT key FROM keys WHERE owner = ? AND number = ?"
_COUNTERS = "SELECT seq, memories, bytes, last_at FROM owners WHERE owner = ?"
_COUNT = "UPDATE owners SET seq = ?, memories = ?, bytes = ?, last_at = ? WHERE owner = ?"
_STAMP = "SELECT stamp FROM journal WHERE owner = ? AND seq = ?"
_MANY = 16  # writes: from here on, one statement for all ids is faster than one each
_FLUSH = 200  # rows: enough to save statements, few enough to stay in the processor's cache

Key = tuple[Owner, str]


class Kept(NamedTuple):
    """A memory as the file has it: its head, its number in the file, and its tags."""

    head: Head
    number: int
    tags: Sequence[str]


class Row(NamedTuple):
    """A step of a plan with its place in the file, and what the step replaces."""

    step: Step
    owner: int
    number: int
    place: int
    before: Kept | Row | None

    @property
    def head(self) -> Head:
        """The memory as the step leaves it."""
        return self.step.after

    @property
    def tags(self) -> Sequence[str]:
        """Its tags."""
        found: Sequence[str] = self.step.write.facets.get("tags", ())
        return found


class Append:
    """The work of appending some writes. The leader of a group can see which ids it will ask for."""

    __slots__ = ("guards", "quotas", "writes")

    def __init__(self, writes: Sequence[Write], quotas: Sequence[Quota], guards: Sequence[Guard]) -> None:
        self.writes = writes
        self.quotas = quotas
        self.guards = guards

    def __call__(self, transaction: Transaction) -> Position:
        """Append them."""
        return transaction.append(self.writes, self.quotas, self.guards)


class Transaction:
    """One open transaction: everything that writes goes through here.

    ``owners`` are the owners known to be committed; those that this transaction makes are kept apart until it is
    committed, since a number that was rolled back may be given to another owner. What earlier appends of the
    transaction wrote need not be in the tables yet, so it is remembered.
    """

    def __init__(self, connection: apsw.Connection, owners: Mapping[Owner, int]) -> None:
        self.new_owners: dict[Owner, int] = {}
        self._connection = connection
        self._owners = owners
        self._found: dict[Owner, int] = {}
        self._batch = _Batch(connection)
        self._kept: dict[Owner, dict[str, Kept | Row]] = {}  # by owner and id
        self._holders: dict[Key, str | None] = {}
        self._counters: dict[Owner, Counters] = {}
        self._counted: set[Owner] = set()  # whose counters are not in the table yet
        self._stamps: dict[Owner, Stamp] = {}  # of each owner's last version
        self._absent: AbstractSet[str] = frozenset()
        self._read_state()

    def _read_state(self) -> None:
        self._last: int = self._connection.execute(_LAST).get
        settings = rows.settings(self._connection)
        self._embedder, dimension = settings.get("embedder"), settings.get("dimension")
        self._dimension = None if dimension is None else int(dimension)
        self._epoch = settings["epoch"]
        self._stale = False

    @property
    def connection(self) -> apsw.Connection:
        """For work that reads and writes tables directly: everything appended so far is in them."""
        self.finish()
        for known in (self._kept, self._holders, self._counters, self._stamps):
            known.clear()
        self._absent = frozenset()
        self._stale = True
        return self._connection

    def append(self, writes: Sequence[Write], quotas: Sequence[Quota], guards: Sequence[Guard]) -> Position:
        """Append versions, all or none. They are in the tables after ``finish``."""
        if self._stale:
            self._read_state()
        if self._last >= rows.BOUND:
            raise StoreCorrupt(
                "a place in the journal is out of range", hint="run doctor with repair=True: it sets the version aside"
            )
        planned = plan(writes, self._standing(writes, quotas, guards), quotas=quotas, guards=guards)
        if (planned.embedder, planned.dimension) != (self._embedder, self._dimension):
            self._embedder, self._dimension = planned.embedder, planned.dimension
            rows.set_settings(
                self._connection, {"embedder": str(planned.embedder), "dimension": str(planned.dimension)}
            )
        self._take(planned.steps)
        self._counters.update(planned.counters)
        self._counted.update(planned.counters)
        self._stamps.update(_last_stamps(planned))
        return self._position({write.owner for write in writes})

    def _take(self, steps: Sequence[Step]) -> None:
        """Hand the steps to the batch, each with its place in the file."""
        owner: Owner | None = None
        number_of_owner = 0
        kept: dict[str, Kept | Row] = {}
        for place, step in enumerate(steps, self._last + 1):
            write, old, new = step.write, step.before, step.after
            if write.owner is not owner:  # mostly one owner writes much
                owner, number_of_owner = write.owner, self.number_of(write.owner)
                kept = self._kept.setdefault(owner, {})
            if old is not None and old.key is not None:
                self._holders[owner, old.key] = None
            if new.key is not None:
                self._holders[owner, new.key] = write.id
            before = None if old is None else kept[write.id]
            row = Row(step, number_of_owner, place if before is None else before.number, place, before)
            kept[write.id] = row
            if new.erased:
                self._batch.erase(row)
            else:
                self._batch.add(row)
        self._last += len(steps)

    def finish(self) -> None:
        """Write what is still collected; to be called before the commit."""
        self._batch.flush()
        for owner in self._counted:
            seq, memories, used, last_at = self._counters[owner]
            self._connection.execute(_COUNT, (seq, memories, used, last_at, self.number_of(owner)))
        self._counted.clear()

    def _position(self, owners: Owners) -> Position:
        reached: dict[Owner, Reached] = {}
        for owner in owners:
            counters = self._counters_of(owner)
            stamp = self._stamps.get(owner)
            if stamp is None:
                stamp = self._connection.execute(_STAMP, (self.find_owner(owner), counters.seq)).get
            reached[owner] = Reached(counters.seq, positions.check_of(stamp) if stamp else "", counters.last_at)
        return positions.encode(self._epoch, reached)

    # -- what stands before an append -------------------------------------------------------------------------

    def look_for(self, ids: Sequence[str]) -> None:
        """Find out with one statement which of many ids the tables do not have.

        A statement for each would let go of the interpreter's lock each time, and threads would fight for it. Ids with
        characters that JSON escapes are left for a look of their own.
        """
        if len(ids) < _MANY:
            return
        plain = frozenset(one for one in ids if one.isascii() and one.isprintable())
        found = rows.fetch(self._connection, _PRESENT, (codec.encode_json(list(plain)).decode(),))
        self._absent = plain.difference(one for (one,) in found)

    def _standing(self, writes: Sequence[Write], quotas: Sequence[Quota], guards: Sequence[Guard]) -> Standing:
        heads: dict[Key, Head] = {}
        holders: dict[Key, str] = {}
        owners: set[Owner] = set()
        absent, known = self._absent, self._kept
        for write in writes:
            owners.add(write.owner)
            kept = known[write.owner].get(write.id) if write.owner in known else None
            if kept is None and write.id not in absent:
                kept = self._look_up(write)
            if kept is not None:
                heads[write.owner, write.id] = kept.head
            if (key := write.facets.get("key")) is not None and (holder := self._holder(write.owner, key)) is not None:
                holders[write.owner, key] = holder
        for quota in quotas:
            owners |= quota.owners
        return Standing(
            heads=heads,
            holders=holders,
            counters={owner: self._counters_of(owner) for owner in owners},
            embedder=self._embedder,
            dimension=self._dimension,
            records=self._versions_of_guards(guards) if guards else {},
            leases=records.tokens(self._connection, guards) if guards else {},
        )

    def _look_up(self, write: Write) -> Kept | None:
        """The newest version of a memory. A damaged one can only be erased: building on it would hide the damage."""
        number = self.find_owner(write.owner)
        if not number:
            return None
        try:
            found = rows.fetch(self._connection, _HEAD, (write.id, number))
            kept = _sound(found[0]) if found else None
        except (StoreCorrupt, struct.error, *codec.UNREADABLE):
            if write.operation is not Operation.ERASED:
                raise
            kept = self._damaged(write, number)
        if kept is not None:
            self._kept.setdefault(write.owner, {})[write.id] = kept
        return kept

    def _damaged(self, write: Write, owner: int) -> Kept:
        """A damaged memory as far as its erasure needs it: where its projections are, and what they count."""
        [(place, number)] = rows.fetch(self._connection, _DAMAGED, (write.id, owner))
        size = 0
        for number, size in rows.fetch(self._connection, _HEAD_AT, (owner, place)):  # noqa: B007  # at most one
            pass
        tags = [tag for (tag,) in rows.fetch(self._connection, _TAGS, (owner, number))]
        key = self._connection.execute(_KEY, (owner, number)).get
        stamp = Stamp("")
        return Kept(Head(write.expected, 0, 0, stamp, False, key, size), number, tags)

    def _holder(self, owner: Owner, key: str) -> str | None:
        place = (owner, key)
        if place in self._holders:
            return self._holders[place]
        number = self.find_owner(owner)
        found: str | None = self._connection.execute(rows.ID_BY_KEY, (number, key)).get if number else None
        return found

    def _counters_of(self, owner: Owner) -> Counters:
        known = self._counters.get(owner)
        if known is None:
            number = self.find_owner(owner)
            found = rows.fetch(self._connection, _COUNTERS, (number,)) if number else ()
            if found and not all(isinstance(one, int) and one < rows.BOUND for one in found[0]):
                raise StoreCorrupt(
                    "the counters of an owner are damaged",
                    details={"layer": owner.layer.value},
                    hint="run doctor with repair=True: it counts again",
                )
            known = self._counters[owner] = Counters(*found[0]) if found else Counters()
        return known

    def _versions_of_guards(self, guards: Iterable[Guard]) -> dict[tuple[Owner, str, str], int]:
        found: dict[tuple[Owner, str, str], int] = {}
        for guard in guards:
            if guard.owner is not None:
                row = records.find(self._connection, self.find_owner(guard.owner), guard.kind, guard.name)
                if row is not None:
                    record = records.to_record(row, guard.owner)
                    found[guard.owner, guard.kind, guard.name] = guarded_version(record)
        return found

    # -- owners -----------------------------------------------------------------------------------------------

    def find_owner(self, owner: Owner) -> int:
        """The number of an owner; 0 if it has none yet. No other process adds one while the transaction is open."""
        known = self._owners.get(owner) or self._found.get(owner)
        if known is None:
            known = self._found[owner] = rows.owner_number(self._connection, owner)
        return known

    def number_of(self, owner: Owner) -> int:
        """The number of an owner, made if it has none yet."""
        number = self.find_owner(owner)
        if not number:
            self._connection.execute("INSERT INTO owners (name) VALUES (?)", (codec.encode_owner(owner),))
            number = self._found[owner] = self.new_owners[owner] = self._connection.last_insert_rowid()
        return number


class _Batch:
    """Rows collected until they are written, table by table: many new memories cost few statements, and making all
    rows of a table in one go takes half the time that it takes to make all rows of a memory in turn.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._rows: list[Row] = []

    def add(self, row: Row) -> None:
        """A version and its projections, instead of those of the version before."""
        if row.before is not None:
            self._remove(row, row.before, keeps_vector=row.step.write.keeps_vector)
        self._rows.append(row)
        if len(self._rows) >= _FLUSH:
            self.flush()

    def erase(self, row: Row) -> None:
        """Every version of a memory and all that was made from them; a tombstone stays."""
        connection = self._connection
        if row.before is not None:
            self._remove(row, row.before, keeps_vector=False)
            connection.execute("DELETE FROM accesses WHERE number = ?", (row.number,))
            place = (row.step.write.id, row.owner)
            connection.execute("DELETE FROM journal WHERE id = ? AND owner = ?", place)
            connection.execute("DELETE FROM damaged WHERE id = ? AND owner = ?", place)
            connection.execute("DELETE FROM images WHERE owner = ?", (row.owner,))
        rows.INTO_JOURNAL.rows(connection, [_journal_row(row)])

    def _remove(self, row: Row, before: Kept | Row, *, keeps_vector: bool) -> None:
        """Take a memory's projections away, by their full keys: no table is searched."""
        self.flush()
        owner, number = row.owner, row.number
        self._connection.execute("DELETE FROM heads WHERE owner = ? AND number = ?", (owner, number))
        for tag in before.tags:
            self._connection.execute(
                "DELETE FROM tags WHERE owner = ? AND tag = ? AND number = ?", (owner, tag, number)
            )
        if before.head.key is not None:
            self._connection.execute("DELETE FROM keys WHERE owner = ? AND key = ?", (owner, before.head.key))
        if not keeps_vector:
            self._connection.execute("DELETE FROM vectors WHERE number = ?", (number,))
            self._connection.execute("DELETE FROM renewed WHERE number = ?", (number,))

    def flush(self) -> None:
        """Write what was collected."""
        collected, self._rows = self._rows, []
        if not collected:
            return
        connection = self._connection
        rows.INTO_JOURNAL.rows(connection, [_journal_row(row) for row in collected])
        rows.INTO_HEADS.rows(connection, [_head_row(row) for row in collected])
        facets = [(row.owner, row.number, row.step.write.facets) for row in collected]
        rows.INTO_TAGS.rows(
            connection, [(owner, tag, number) for owner, number, one in facets for tag in one.get("tags", ())]
        )
        rows.INTO_KEYS.rows(
            connection,
            [(owner, key, number) for owner, number, one in facets if (key := one.get("key")) is not None],
        )
        rows.INTO_VECTORS.rows(
            connection,
            [
                rows.vector_row(row.number, write.vector, write.digest)
                for row in collected
                if (write := row.step.write).vector is not None and not write.keeps_vector
            ],
        )


def _sound(found: tuple[Any, ...]) -> Kept:
    """The head of a memory by the columns of ``_HEAD``, compared with its checksum."""
    *row, vector = found
    rows.verify(row)
    facets: dict[str, Any] = {} if row[14] is None else codec.decode_json(row[14])
    head = Head(
        version=row[3],
        born=row[6],
        born_at=row[7],
        stamp=Stamp(row[10]),
        erased=row[9] == rows.ERASED,
        key=facets.get("key"),
        size=int(facets.get("bytes", 0)),
        vector=vector or 0,
        archived=facets.get("state") == State.ARCHIVED,
    )
    return Kept(head, row[5], facets.get("tags", ()))


def _journal_row(row: Row) -> tuple[object, ...]:
    return rows.journal_row(row.step, row.owner, row.number, row.place)


def _head_row(row: Row) -> tuple[object, ...]:
    after = row.step.after
    head = rows.head_columns(row.step.write.facets, after.size + after.vector)
    return (row.owner, row.number, row.place, *head, after.born_at)


def _last_stamps(planned: Plan) -> dict[Owner, Stamp]:
    """The stamp of the last version of each owner written to."""
    found: dict[Owner, Stamp] = {}
    for step in reversed(planned.steps):
        if len(found) == len(planned.counters):
            break
        found.setdefault(step.write.owner, step.write.stamp)
    return found


def erases(writes: Iterable[Write]) -> bool:
    """Whether some write erases a memory."""
    return any(write.operation is Operation.ERASED for write in writes)
