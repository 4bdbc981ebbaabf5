"""The reading half of the embedded store: every statement that answers a question."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from recollect import codec, statistics, types
from recollect.errors import RecollectError
from recollect.ports import Owners, Store, Stored
from recollect.stores.sqlite import connections, queries, records, rows, usage
from recollect.stores.sqlite.usage import Figure
from recollect.types import Layer, Memory, MemoryType, Operation, Owner, Sort

if TYPE_CHECKING:  # numpy takes 100 ms, and only searching needs it
    from recollect.ports import Query, Record
    from recollect.recall.probes import Candidates, Probe
    from recollect.stores.sqlite.indexes import Indexes
    from recollect.types import Vector, Version


class SqliteReads(Store):
    """What can be asked of the file. Each answer comes from one state of it."""

    path: Path

    def __init__(self, readers: connections.Readers) -> None:
        self._readers = readers
        # Owners are never deleted and their numbers never given twice, so what was read once stays true.
        self._numbers_of: dict[Owner, int] = {}
        self._owner_of: dict[int, Owner] = {}
        # The owners that were asked for last, and which numbers were found to be theirs. One view asks again and again.
        self._asked: tuple[Owners, dict[int, Owner]] = (frozenset(), {})
        self._figures: dict[Owner, Figure] = {}
        self._pending: dict[str, rows.Accesses] = {}
        self._pending_lock = threading.Lock()

    @cached_property
    def _indexes(self) -> Indexes:
        from recollect.stores.sqlite.indexes import Indexes  # lazy: as in candidates

        return Indexes()

    @abstractmethod
    def _save_indexes(self) -> None:
        """Store the indexes that were worth the making; the writing half knows how."""

    @abstractmethod
    def _flush_accesses(self) -> None:
        """Write the accesses counted in RAM; the writing half knows how."""

    def get(self, owners: Owners, ids: Iterable[str], *, vectors: bool = False) -> dict[str, Memory]:
        """Memories by id: one look-up in the journal's index each."""
        found: dict[str, Memory] = {}
        statement = _GET_WITH_VECTOR if vectors else _GET
        wanted = list(ids)
        asked, theirs = self._asked
        if asked is not owners:
            theirs = {}
            if isinstance(owners, frozenset):  # any other set may become another one
                self._asked = owners, theirs
        connection = self._readers.take()
        try:
            if len(wanted) > 1:  # a single statement sees one state of the file by itself
                connection.execute("BEGIN")
            for memory_id in wanted:
                row = connection.execute(statement, (memory_id,)).fetchone()
                if row is None or row[4] == _ERASED:
                    continue
                owner = theirs.get(row[3])
                if owner is None:
                    owner = self._owner(connection, row[3])
                    if owner not in owners:
                        continue
                    theirs[row[3]] = owner
                found[memory_id] = rows.to_memory(row, owner, self._pending.get(memory_id))
        except RecollectError:
            raise
        except connections.UNREADABLE as error:
            raise connections.translate(error, self.path) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._readers.give(connection)
        return found

    def scan(self, owners: Owners, *, as_of: int | None = None, vectors: bool = False) -> Iterator[Stored]:
        """All memories of the owners, from one state of the file."""
        with self._snapshot(owners) as (connection, numbers):
            values = list(numbers)
            if as_of is None:
                statement = _scan(len(numbers), vectors=vectors)
            else:
                statement, values = _scan_as_of(len(numbers), vectors=vectors), [*values, as_of, as_of]
            for row in connection.execute(statement, values):
                yield self._stored(row, numbers)

    def versions(
        self, owners: Owners, *, memory_id: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[Version]:
        """The journal behind a sequence."""
        with self._snapshot(owners) as (connection, numbers):
            one = [] if memory_id is None else [memory_id]
            values = [*numbers, after, *one, -1 if limit is None else limit]
            found = connection.execute(_versions(len(numbers), one=bool(one)), values)
            return [rows.to_version(row, numbers) for row in found]

    def journal(self, *, after: int = 0, limit: int | None = None) -> list[Version]:
        """Everybody's journal, in the order of its primary key; each version is checked against its checksum."""
        with self._snapshot(()) as (connection, _):
            found = rows.fetch(connection, _WHOLE_JOURNAL, (after, -1 if limit is None else limit))
            for row in found:
                rows.verify(row)
            return [rows.checked_version(row, self._owner(connection, row[4])) for row in found]

    def owners(self) -> list[Owner]:
        """All owners: each was made with its first version."""
        with self._snapshot(()) as (connection, _):
            return [codec.decode_owner(name) for (name,) in rows.fetch(connection, "SELECT name FROM owners")]

    def sequence(self, at: datetime | None = None) -> int:
        """The highest sequence, at a time if given. Times may run backwards; sequences do not."""
        with self._snapshot(()) as (connection, _):
            if at is None:
                return int(connection.execute("SELECT max(sequence) FROM journal").get or 0)
            found = connection.execute(
                "SELECT sequence FROM journal WHERE recorded_at <= ? ORDER BY sequence DESC LIMIT 1",
                (codec.to_micros(at),),
            ).get
            return int(found or 0)

    def settings(self) -> dict[str, str]:
        """What the file says about itself."""
        with self._snapshot(()) as (connection, _):
            kept = rows.settings(connection)
        kept.pop(rows.GENERATION, None)  # between the processes that use the file, and nobody else's business
        return kept

    def records(self, owners: Owners, kind: str) -> list[Record]:
        """The records of a kind, from one state of the file."""
        with self._snapshot(owners) as (connection, numbers):
            return records.of_kind(connection, numbers, kind)

    def all_records(self) -> list[Record]:
        """Everybody's, from one state of the file."""
        with self._snapshot(()) as (connection, _):
            return records.everybodys(connection)

    def record(self, owner: Owner, kind: str, name: str) -> Record | None:
        """One record: one look-up."""
        with self._snapshot({owner}) as (connection, numbers):
            for number in numbers:
                row = records.find(connection, number, kind, name)
                return None if row is None else records.to_record(row, owner)
        return None

    def keys(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """Ids by key: two look-ups each."""
        found: dict[str, str] = {}
        with self._snapshot({owner}) as (connection, numbers):
            for number in numbers:
                for key in keys:
                    memory_id = connection.execute(rows.ID_BY_KEY, (number, key)).get
                    if memory_id is not None:
                        found[key] = memory_id
        return found

    def select(self, query: Query) -> list[Stored]:
        """One page of a listing. The past is read by the default, from the journal."""
        if query.as_of is not None:
            return super().select(query)
        if query.sort in (Sort.MOST_ACCESSED, Sort.RECENTLY_ACCESSED):
            self._flush_accesses()
        with self._snapshot(query.owners) as (connection, numbers):
            found = connection.execute(*queries.selection(query, numbers))
            return [self._stored(row, numbers) for row in found]

    def count(self, query: Query) -> int:
        """How many match; without reading contents if no condition needs them."""
        if query.as_of is not None:
            return super().count(query)
        with self._snapshot(query.owners) as (connection, numbers):
            return int(connection.execute(*queries.counting(query, numbers)).get)

    def candidates(self, query: Query, probe: Probe) -> Candidates:
        """What may answer a search, by the indexes in RAM. The past and the forgotten are searched by the default."""
        if query.as_of is not None or query.where.include_forgotten:
            return super().candidates(query, probe)
        from recollect.stores.sqlite import searching  # lazy: numpy takes 100 ms, and most calls need none

        with self._indexes.locked():
            with self._snapshot(query.owners) as (connection, numbers):
                found = searching.candidates(connection, self._indexes, list(numbers), query, probe)
            self._save_indexes()
        return found

    def pick(self, query: Query, numbers: Iterable[int], *, vectors: bool = False) -> dict[int, Memory]:
        """Memories by number: their heads are found by the whole key."""
        if query.as_of is not None:
            return super().pick(query, numbers, vectors=vectors)
        with self._reading() as connection:  # a single statement sees one state of the file by itself
            owned = self._numbers(connection, query.owners)
            found = rows.fetch(connection, *queries.by_numbers(owned, numbers, vectors=vectors))
            pending = self._pending
            return {row[2]: rows.to_memory(row, owned[row[3]], pending.get(row[0])) for row in found}

    def embedded(self, digests: Iterable[bytes]) -> dict[bytes, Vector]:
        """Vectors of texts that were embedded before."""
        found: dict[bytes, Vector] = {}
        with self._snapshot(()) as (connection, _):
            for digest in digests:
                row = connection.execute(_BY_DIGEST, (digest,)).fetchone()
                if row is not None:
                    found[digest] = rows.to_vector(*row)
        return found

    def count_unembedded(self, embedder: str) -> int:
        """As many as ``unembedded`` would give, without reading them."""
        with self._snapshot(()) as (connection, _):
            return int(connection.execute(f"SELECT count(*) {_WITHOUT_VECTOR}", (embedder, embedder)).get)

    def unembedded(self, embedder: str, limit: int) -> list[Stored]:
        """Memories without a vector of the embedder, neither in use nor in the making."""
        with self._snapshot(()) as (connection, _):
            found = rows.fetch(connection, _UNEMBEDDED, (embedder, embedder, limit))
            return [Stored(row[2], rows.to_memory(row, self._owner(connection, row[3]))) for row in found]

    def usage(self, owners: Owners) -> int:
        """The sum that was known, and what came behind it."""
        with self._snapshot(owners) as (connection, numbers):
            found = usage.measure(connection, {owner: number for number, owner in numbers.items()}, self._figures)
        self._figures.update(found)
        return sum(figure.used for figure in found.values())

    def stats(self, owners: Owners, now: datetime) -> types.Stats:
        """Counts, from the heads alone."""
        moment = codec.to_micros(now)
        with self._snapshot(owners) as (connection, numbers):
            marks = queries.marks(numbers)
            kinds = rows.fetch(connection, _STATS.format(owners=marks), (moment, *numbers))
            tags = rows.fetch(connection, _TAGS.format(owners=marks), (*numbers, moment))
            active = [row for row in kinds if row[0]]
            return types.Stats(
                active=sum(row[2] for row in active),
                forgotten=sum(row[2] for row in kinds if not row[0]),
                bytes_used=sum(row[3] for row in kinds),
                by_type={MemoryType(row[1]): row[2] for row in active},
                top_tags=statistics.top(tags),
                oldest=codec.from_micros(min(row[4] for row in active)) if active else None,
                newest=codec.from_micros(max(row[5] for row in active)) if active else None,
            )

    def sizes(self, now: datetime) -> dict[Layer, types.LayerSize]:
        """Counts, from the heads alone."""
        found: dict[Layer, types.LayerSize] = {}
        with self._snapshot(()) as (connection, _):
            for owner, active, used in rows.fetch(connection, _SIZES, (codec.to_micros(now),)):
                layer = self._owner(connection, owner).layer
                before = found.get(layer, types.LayerSize(active=0, bytes_used=0))
                found[layer] = types.LayerSize(active=before.active + active, bytes_used=before.bytes_used + used)
        return found

    # -- pieces -----------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """A connection for one statement."""
        connection = self._readers.take()
        try:
            yield connection
        except RecollectError:
            raise
        except connections.UNREADABLE as error:
            raise connections.translate(error, self.path) from error
        finally:
            self._readers.give(connection)

    @contextmanager
    def _snapshot(self, owners: Iterable[Owner]) -> Iterator[tuple[apsw.Connection, dict[int, Owner]]]:
        """One state of the file, and the numbers of those owners that have something in it."""
        try:
            with self._readers.snapshot() as connection:
                yield connection, self._numbers(connection, owners)
        except RecollectError:
            raise
        except connections.UNREADABLE as error:
            raise connections.translate(error, self.path) from error

    def _numbers(self, connection: apsw.Connection, owners: Iterable[Owner]) -> dict[int, Owner]:
        numbers: dict[int, Owner] = {}
        for owner in owners:
            number = self._numbers_of.get(owner) or rows.owner_number(connection, owner)
            if number:
                self._numbers_of[owner] = number
                numbers[number] = owner
        return numbers

    def _owner(self, connection: apsw.Connection, number: int) -> Owner:
        owner = self._owner_of.get(number)
        if owner is None:
            name = connection.execute("SELECT name FROM owners WHERE owner = ?", (number,)).get
            owner = self._owner_of[number] = codec.decode_owner(name)
        return owner

    def _stored(self, row: tuple[Any, ...], numbers: dict[int, Owner]) -> Stored:
        return Stored(row[2], rows.to_memory(row, numbers[row[3]], self._pending.get(row[0])))


_ERASED = Operation.ERASED.value
_FROM_JOURNAL = "FROM journal j LEFT JOIN accesses a ON a.number = j.number"
_FROM_HEADS = "FROM heads h JOIN journal j ON j.sequence = h.sequence LEFT JOIN accesses a ON a.number = h.number"
_WHOLE_JOURNAL = f"SELECT {rows.CHECKED} FROM journal WHERE sequence > ? ORDER BY sequence LIMIT ?"
_NEWEST = "WHERE j.id = ? ORDER BY j.version DESC LIMIT 1"
_GET = f"SELECT {rows.JOURNAL}, {rows.ACCESSES}, {rows.NO_VECTOR} {_FROM_JOURNAL} {_NEWEST}"
_GET_WITH_VECTOR = (
    f"SELECT {rows.JOURNAL}, {rows.ACCESSES}, {rows.VECTOR} {_FROM_JOURNAL}"
    f" LEFT JOIN vectors v ON v.number = j.number {_NEWEST}"
)
_BY_DIGEST = "SELECT embedder, data, spans, pieces FROM vectors WHERE digest = ? LIMIT 1"
_WITHOUT_VECTOR = (
    "FROM heads h JOIN journal j ON j.sequence = h.sequence"
    " WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.number = h.number AND v.embedder = ?)"
    " AND NOT EXISTS (SELECT 1 FROM renewed r WHERE r.number = h.number AND r.embedder = ?)"
)
_UNEMBEDDED = f"SELECT {rows.JOURNAL}, 0, NULL, {rows.NO_VECTOR} {_WITHOUT_VECTOR} ORDER BY h.number LIMIT ?"
_STATS = (
    "SELECT state = 'active' AND (expires_at IS NULL OR expires_at > ?) AS active, type,"
    " count(*), sum(bytes), min(created_at), max(created_at)"
    " FROM heads WHERE owner IN ({owners}) GROUP BY 1, 2 ORDER BY type"
)
_SIZES = (
    "SELECT owner, sum(state = 'active' AND (expires_at IS NULL OR expires_at > ?)), sum(bytes)"
    " FROM heads GROUP BY owner"
)
_TAGS = (
    "SELECT t.tag, count(*) FROM tags t JOIN heads h ON h.owner = t.owner AND h.number = t.number"
    " WHERE t.owner IN ({owners}) AND h.state = 'active' AND (h.expires_at IS NULL OR h.expires_at > ?)"
    " GROUP BY t.tag"
)


def _scan(owners: int, *, vectors: bool) -> str:
    chosen = rows.VECTOR if vectors else rows.NO_VECTOR
    joined = "LEFT JOIN vectors v ON v.number = h.number" if vectors else ""
    return (
        f"SELECT {rows.JOURNAL}, {rows.ACCESSES}, {chosen} {_FROM_HEADS} {joined}"
        f" WHERE h.owner IN ({queries.marks(range(owners))}) ORDER BY h.number"
    )


def _scan_as_of(owners: int, *, vectors: bool) -> str:
    """The newest version of each memory up to a sequence. Erased memories left only a tombstone behind it."""
    chosen = rows.VECTOR if vectors else rows.NO_VECTOR
    joined = (
        "LEFT JOIN heads h ON h.owner = j.owner AND h.number = j.number AND h.sequence = j.sequence"
        " LEFT JOIN vectors v ON v.number = h.number"
        if vectors
        else ""
    )
    return (
        f"SELECT {rows.JOURNAL}, {rows.ACCESSES}, {chosen} {_FROM_JOURNAL} {joined}"
        f" WHERE j.owner IN ({queries.marks(range(owners))}) AND j.sequence <= ? AND j.operation <> 'erased'"
        " AND j.version = (SELECT max(k.version) FROM journal k WHERE k.id = j.id AND k.sequence <= ?)"
        " ORDER BY j.number"
    )


def _versions(owners: int, *, one: bool) -> str:
    return (
        f"SELECT {rows.JOURNAL}, j.sequence, j.reason FROM journal j"
        f" WHERE j.owner IN ({queries.marks(range(owners))}) AND j.sequence > ?"
        f" {'AND j.id = ?' if one else ''} ORDER BY j.sequence LIMIT ?"
    )
