"""The journal of the embedded file: what is written, and how each read is answered."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any

import apsw

from wellkept import codec, statistics
from wellkept.errors import StoreCorrupt, WellkeptError
from wellkept.filters import Where
from wellkept.ports import Journal, Query, StoreSettings, positions
from wellkept.ports.positions import Reached
from wellkept.stores.durability import check_durability
from wellkept.stores.sqlite import connections, embedding, queries, rewriting, rows, statements
from wellkept.stores.sqlite.file import SqliteFile, names
from wellkept.stores.sqlite.transaction import Append, Transaction, erases
from wellkept.types import (
    Access,
    Embedded,
    Guard,
    JournalPage,
    Mark,
    MemoryType,
    Owner,
    Owners,
    Position,
    Quota,
    State,
    Stats,
    Stored,
    Usage,
    Vector,
    Write,
)

_MANY_IDS = 4
_MANY_PLACES = 500


class SqliteJournal(Journal):
    """Versions in one file. Each answer comes from one state of it."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        # The owners that were asked for last, and which numbers were found to be theirs: a view asks again and again.
        self._asked: tuple[Owners, dict[int, Owner]] = (frozenset(), {})

    # -- writing ----------------------------------------------------------------------------------------------

    def append(
        self, writes: Sequence[Write], *, quotas: Sequence[Quota] = (), guards: Sequence[Guard] = ()
    ) -> Position:
        """Append versions, in a transaction that may be shared with other threads."""
        position: Position = self._file.write(Append(writes, quotas, guards))
        self._file.empty_log(erased=erases(writes))
        return position

    def rewrite(self, versions: Sequence[Stored]) -> None:
        """Rewrite versions in one transaction, and empty the log: what they were must not stay in it."""
        self._file.write(lambda work: rewriting.rewrite(work, versions))
        self._file.empty_log(erased=True)

    def embed(self, vectors: Sequence[Embedded]) -> None:
        """Store vectors of memories that are there already."""
        self._file.write(lambda work: embedding.embed(work, vectors))

    def adopt(self, embedder: str, dimension: int) -> bool:
        """Go over to another embedder, if every memory has its vector."""
        adopted: bool = self._file.write(lambda work: embedding.adopt(work.connection, embedder, dimension))
        return adopted

    def count_accesses(self, accesses: Sequence[Access], *, wait_ms: int | None = None) -> None:
        """Add them up, in a transaction of their own: in the queue of the others they would wait for those."""
        if accesses and self._file.read_only is None:
            with self._file.reading() as connection, connections.writing(connection, wait_ms):
                _count(self._file.begin(connection), accesses)

    def set_settings(self, values: Mapping[str, str]) -> None:
        """Change settings of the file. Another durability holds for connections opened from now on."""
        if "durability" in values:
            check_durability(values["durability"])
        self._file.write(lambda work: rows.set_settings(work.connection, values))

    # -- reading memories -------------------------------------------------------------------------------------

    def get(
        self,
        owners: Owners,
        ids: Iterable[str],
        *,
        at: Position | None = None,
        payload: bool = True,
        vectors: bool = False,
    ) -> list[Stored]:
        """Memories by id: one look-up in the journal's index each, whatever the number of owners."""
        wanted = list(dict.fromkeys(ids))
        if at is not None:
            return self._get_past(owners, wanted, at, payload=payload, vectors=vectors)
        if len(wanted) >= _MANY_IDS:
            return self._get_many(owners, wanted, payload=payload, vectors=vectors)
        theirs = self._known_numbers(owners)
        statement = statements.GET[payload, vectors]
        found: list[Stored] = []
        readers = self._file.readers
        connection = readers.take()
        try:
            if len(wanted) > 1:  # a single statement sees one state of the file by itself
                connection.execute("BEGIN")
            for memory_id in wanted:
                row: Any = connection.execute(statement, (memory_id, statements.ANY_OWNER)).fetchone()
                while row is not None:
                    owner = theirs.get(row[1]) or self._its_owner(connection, row[1], owners, theirs)
                    if owner is not None and row[9] != rows.ERASED:
                        found.append(rows.to_stored(row, owner, payload=payload))
                    # The last column tells whether another owner has a memory of the same id.
                    row = connection.execute(statement, (memory_id, row[1])).fetchone() if row[-1] else None
        except WellkeptError:
            raise
        except connections.UNREADABLE as error:
            raise connections.translate(error, self._file.path) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            readers.give(connection)
        return found

    def _get_many(self, owners: Owners, ids: Sequence[str], *, payload: bool, vectors: bool) -> list[Stored]:
        """One statement for all ids: a statement each takes 15 microseconds, most of which is not the reading."""
        found: list[Stored] = []
        statement = statements.GET_MANY[payload, vectors]
        with self._file.reading() as connection:
            numbers = self._file.numbers(connection, owners)  # which never change
            for row in rows.fetch(connection, statement, (codec.encode_json(ids).decode(),)):
                owner = numbers.get(row[1])
                if owner is not None and row[9] != rows.ERASED:
                    found.append(rows.to_stored(row, owner, payload=payload))
        return found

    def _known_numbers(self, owners: Owners) -> dict[int, Owner]:
        """Which numbers were found to be the owners', if the same set asked before."""
        asked, theirs = self._asked
        if asked is not owners:
            theirs = {}
            if isinstance(owners, frozenset):  # any other set may become another one
                self._asked = owners, theirs
        return theirs

    def _its_owner(
        self, connection: apsw.Connection, number: int, owners: Owners, theirs: dict[int, Owner]
    ) -> Owner | None:
        """The owner that has a number, if it is one of the owners asked for."""
        owner = self._file.owner(connection, number)
        if owner not in owners:
            return None
        theirs[number] = owner
        return owner

    def _get_past(
        self, owners: Owners, ids: Sequence[str], at: Position, *, payload: bool, vectors: bool
    ) -> list[Stored]:
        found: list[Stored] = []
        statement = statements.past(payload=payload, vectors=vectors, one=True)
        with self._file.snapshot() as connection:
            reached = self._reached(connection, at, owners, "as_of")
            for number, owner in self._file.numbers(connection, owners).items():
                seq = reached.get(owner, Reached(0)).seq
                for memory_id in ids:
                    row = connection.execute(statement, (number, seq, seq, memory_id)).fetchone()
                    if row is not None:
                        found.append(rows.to_stored(row, owner, payload=payload))
        return found

    def keyed(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """Ids by key: two look-ups each."""
        found: dict[str, str] = {}
        with self._file.snapshot() as connection:
            for number in self._file.numbers(connection, {owner}):
                for key in keys:
                    memory_id = connection.execute(rows.ID_BY_KEY, (number, key)).get
                    if memory_id is not None:
                        found[key] = memory_id
        return found

    def scan(
        self, owners: Owners, *, at: Position | None = None, payload: bool = True, vectors: bool = False
    ) -> Iterator[Stored]:
        """All memories of the owners, from one state of the file, a few rows in RAM at a time.

        Damaged memories are passed over, so that one of them does not keep an index from being loaded; ``get``,
        ``history``, ``versions`` and ``feed`` tell of them, and health and doctor.
        """
        with self._file.snapshot() as connection:
            numbers = self._file.numbers(connection, owners)
            if at is None:
                statement = statements.scan(payload=payload, vectors=vectors)
                bindings: dict[int, tuple[int, ...]] = {number: (number,) for number in numbers}
            else:
                statement = statements.past(payload=payload, vectors=vectors, one=False)
                reached = self._reached(connection, at, owners, "as_of")
                seqs = {number: reached.get(owner, Reached(0)).seq for number, owner in numbers.items()}
                bindings = {number: (number, seq, seq) for number, seq in seqs.items()}
            number_of = {owner: number for number, owner in numbers.items()}
            logs = [
                self._readable(connection, statement, bindings[number_of[owner]], owner, payload=payload)
                for _, owner in sorted(names(number_of).items())
            ]
            yield from logs[0] if len(logs) == 1 else merge(*logs, key=_born_at)

    def select(self, query: Query) -> Sequence[Stored]:
        """One page of a listing, without damaged memories. The past is read by the default, from the journal."""
        if query.at is not None:
            return super().select(query)
        with self._file.snapshot() as connection:
            numbers = self._file.numbers(connection, query.owners)
            wanted = query
            while True:
                places = queries.places(connection, wanted, numbers)
                found = self._sound_at(connection, places, numbers)
                # Others take the places of damaged ones, or a page would end too early.
                if wanted.limit is None or len(found) == len(places) or len(places) < wanted.limit:
                    return found
                if len(found) >= (query.limit or 0):
                    return found[: query.limit]
                wanted = replace(query, limit=wanted.limit + len(places) - len(found))

    def _sound_at(
        self, connection: apsw.Connection, places: Sequence[int], numbers: Mapping[int, Owner]
    ) -> list[Stored]:
        """The memories at some places, in their order, without those that are damaged."""
        found: dict[int, Stored] = {}
        for start in range(0, len(places), _MANY_PLACES):
            some = codec.encode_json(places[start : start + _MANY_PLACES]).decode()
            for row in self._fetchable(connection.execute(statements.MEMORIES_AT_PLACES, (some,))):
                try:
                    found[row[0]] = rows.to_stored(row, numbers[row[1]])
                except (StoreCorrupt, LookupError):
                    self._file.note_damage(row[2])
        return [found[place] for place in places if place in found]

    def _fetchable(self, cursor: apsw.Cursor) -> Iterator[tuple[Any, ...]]:
        """The rows of a cursor, without those whose texts are no texts any more."""
        while True:
            try:
                row: Any = next(cursor, None)
            except UnicodeDecodeError as error:
                self._file.note_damage(repr(error.object))
                continue
            if row is None:
                return
            yield row

    def _readable(
        self, connection: apsw.Connection, statement: str, bindings: tuple[int, ...], owner: Owner, *, payload: bool
    ) -> Iterator[Stored]:
        """The memories of a scan of one owner that can be decoded."""
        for row in self._fetchable(connection.execute(statement, bindings)):
            try:
                one = rows.to_stored(row, owner, payload=payload)
            except StoreCorrupt:
                self._file.note_damage(row[2])
                continue
            if "state" in one.facets:
                yield one

    def count(self, owners: Owners, where: Where, *, at: Position | None = None) -> int:
        """How many match; without reading contents if no condition needs them."""
        if at is not None:
            return super().count(owners, where, at=at)
        with self._file.snapshot() as connection:
            numbers = self._file.numbers(connection, owners)
            return int(connection.execute(*queries.counting(where, numbers)).get)

    def ids(self, owners: Owners, where: Where, *, at: Position | None = None) -> Sequence[tuple[Owner, str]]:
        """All that match, by owner and id."""
        if at is not None:
            return super().ids(owners, where, at=at)
        with self._file.snapshot() as connection:
            numbers = self._file.numbers(connection, owners)
            found = connection.execute(*queries.matching_ids(where, numbers))
            return [(numbers[number], memory_id) for number, memory_id in found]

    # -- reading versions -------------------------------------------------------------------------------------

    def versions(
        self, owners: Owners, *, after: Position | None = None, limit: int | None = None
    ) -> JournalPage[Stored]:
        """The owners' versions behind a position, in the order in which they were written."""
        with self._file.snapshot() as connection:
            reached = {} if after is None else self._reached(connection, after, owners, "after")
            numbers = self._file.numbers(connection, owners)
            most = -1 if limit is None else limit + 1
            behind = [
                rows.fetch(connection, statements.PLACES_BEHIND, (number, reached.get(owner, Reached(0)).seq, most))
                for number, owner in numbers.items()
            ]
            places = [place for (place,) in islice(merge(*behind), None if limit is None else limit + 1)]
            found = list(_at_places(connection, places[:limit], statements.VERSIONS_AT_PLACES))
            page = [rows.to_stored(row, numbers[row[1]]) for row in found]
            last = reached | {one.owner: positions.reached_by(one) for one in page}
            next_position = positions.encode(_epoch(connection), last)
            return JournalPage(page, next_position, more=len(places) > len(page))

    def changed(self, owners: Owners, *, after: Position) -> Sequence[tuple[Owner, str]]:
        """From the ids of the journal alone."""
        with self._file.snapshot() as connection:
            reached = self._reached(connection, after, owners, "after")
            return [
                (owner, memory_id)
                for number, owner in self._file.numbers(connection, owners).items()
                for (memory_id,) in rows.fetch(
                    connection, statements.CHANGED, (number, reached.get(owner, Reached(0)).seq)
                )
            ]

    def history(self, owner: Owner, memory_id: str) -> list[Stored]:
        """Every version of a memory."""
        with self._file.snapshot() as connection:
            for number in self._file.numbers(connection, {owner}):
                found = rows.fetch(connection, statements.HISTORY, (memory_id, number))
                return [rows.to_stored(row, owner) for row in found]
        return []

    def feed(self, *, after: Position | None = None, limit: int | None = None) -> JournalPage[Stored]:
        """The versions of all owners, in the order of the journal's primary key."""
        with self._file.snapshot() as connection:
            epoch = _epoch(connection)
            token = "0" if after is None else positions.decode_feed(after, epoch)
            since = _checked_token(connection, token)
            found = rows.fetch(connection, statements.FEED, (since, -1 if limit is None else limit + 1))
            page = found if limit is None else found[:limit]
            if page:
                token = f"{page[-1][0]}.{positions.check_of(page[-1][10])}"
            items = [rows.to_stored(row, self._file.owner(connection, row[1])) for row in page]
            return JournalPage(items, positions.encode_feed(epoch, token), more=len(found) > len(page))

    def position(self, owners: Owners, at: datetime | None = None) -> Position:
        """The last version of each owner, up to a time if given."""
        with self._file.snapshot() as connection:
            reached: dict[Owner, Reached] = {}
            for number, owner in self._file.numbers(connection, owners).items():
                [last] = rows.fetch(connection, statements.LAST, (number,))
                if at is not None:
                    last = _before(connection, number, last[0], codec.to_micros(at))
                if last is not None:
                    seq, stamp, recorded_at = last
                    reached[owner] = Reached(seq, positions.check_of(stamp) if stamp else "", recorded_at)
            return positions.encode(_epoch(connection), reached)

    def _reached(
        self, connection: apsw.Connection, position: Position, owners: Owners, field: str
    ) -> dict[Owner, Reached]:
        """How far a position is with these owners; ``PositionLost`` if a version here has another stamp.

        What it says of others is not compared with anything: the answer must not depend on what they have.
        """
        decoded = positions.decode(position, _epoch(connection), field)
        reached = {owner: one for owner, one in decoded.items() if owner in owners}
        numbers = {owner: number for number, owner in self._file.numbers(connection, reached.keys()).items()}
        for owner, one in reached.items():
            if owner not in numbers:
                raise positions.lost()
            [(last, stamp)] = rows.fetch(connection, statements.STAMP_AT, (one.seq, numbers[owner]))
            if one.seq > last or (stamp is not None and one.check not in ("", positions.check_of(stamp))):
                raise positions.lost()
        return reached

    # -- counters and settings --------------------------------------------------------------------------------

    def settings(self) -> StoreSettings:
        """The settings of the file."""
        with self._file.reading() as connection:
            return rows.settings(connection)

    def marks(self, owners: Owners) -> dict[Owner, Mark]:
        """From the counters, with one statement."""
        named = names(owners)
        chosen, values = rows.among(named)
        with self._file.reading() as connection:
            found = rows.fetch(connection, f"{statements.MARKS} {chosen}", values)
        return {named[name]: Mark(seq, revision) for name, seq, revision in found}

    def usage(self, owners: Owners) -> dict[Owner, Usage]:
        """From the counters, with one statement."""
        named = names(owners)
        chosen, values = rows.among(named)
        with self._file.reading() as connection:
            found = rows.fetch(connection, f"{statements.USAGE} {chosen}", values)
        return {named[name]: Usage(memories, used) for name, memories, used in found}

    def owners(self, *, after: Owner | None = None, limit: int | None = None) -> list[Owner]:
        """In the order of their names."""
        name = "" if after is None else codec.encode_owner(after)
        with self._file.reading() as connection:
            found = rows.fetch(connection, statements.OWNERS, (name, -1 if limit is None else limit))
            return [codec.decode_owner(one) for (one,) in found]

    def stats(self, owners: Owners, now: datetime) -> Stats:
        """Counts, from the heads alone."""
        moment = codec.to_micros(now)
        with self._file.snapshot() as connection:
            chosen, values = rows.among(self._file.numbers(connection, owners))
            kinds = rows.fetch(connection, statements.STATS.format(owners=chosen), (moment, *values))
            tags = rows.fetch(connection, statements.TAGS.format(owners=chosen), (*values, moment))
            active = [row for row in kinds if row[0] == State.ACTIVE]
            return Stats(
                active=sum(row[2] for row in active),
                forgotten=sum(row[2] for row in kinds if row[0] == State.FORGOTTEN),
                archived=sum(row[2] for row in kinds if row[0] == State.ARCHIVED),
                superseded=sum(row[2] for row in kinds if row[0] == State.SUPERSEDED),
                quarantined=sum(row[2] for row in kinds if row[0] == State.QUARANTINED),
                bytes_used=sum(row[3] for row in kinds),
                by_type={MemoryType(row[1]): row[2] for row in active},
                top_tags=statistics.top(tags),
                oldest=codec.from_micros(min(row[4] for row in active)) if active else None,
                newest=codec.from_micros(max(row[5] for row in active)) if active else None,
            )

    # -- vectors ----------------------------------------------------------------------------------------------

    def embedded(self, digests: Iterable[bytes]) -> dict[bytes, Vector]:
        """Vectors of texts that were embedded before."""
        found: dict[bytes, Vector] = {}
        with self._file.snapshot() as connection:
            for digest in digests:
                row = connection.execute(statements.BY_DIGEST, (digest,)).fetchone()
                if row is not None:
                    with suppress(struct.error, *codec.UNREADABLE):  # a damaged one is made anew
                        found[digest] = rows.to_vector(*row)
        return found

    def count_unembedded(self, embedder: str) -> int:
        """As many as ``unembedded`` would give, without reading them."""
        with self._file.reading() as connection:
            return int(connection.execute(f"SELECT count(*) {statements.WITHOUT_VECTOR}", (embedder, embedder)).get)

    def unembedded(self, embedder: str, limit: int) -> list[Stored]:
        """Memories without a vector of the embedder, neither in use nor beside it."""
        with self._file.snapshot() as connection:
            found = rows.fetch(connection, statements.UNEMBEDDED, (embedder, embedder, limit))
            return [rows.to_stored(row, self._file.owner(connection, row[1])) for row in found]


def _count(work: Transaction, accesses: Sequence[Access]) -> None:
    work.connection.executemany(
        statements.COUNT_ACCESS,
        [(one.times, one.last_at, one.id, work.find_owner(one.owner)) for one in accesses],
    )


def _born_at(stored: Stored) -> int:
    return stored.born_at


def _epoch(connection: apsw.Connection) -> str:
    return rows.settings(connection)["epoch"]


def _at_places(connection: apsw.Connection, places: Sequence[int], statement: str) -> Iterator[tuple[Any, ...]]:
    """The rows of the journal at some places: rising ones come in their order, others in groups."""
    for start in range(0, len(places), _MANY_PLACES):
        some = codec.encode_json(places[start : start + _MANY_PLACES]).decode()
        yield from connection.execute(statement, (some,))


def _before(connection: apsw.Connection, number: int, last: int, micros: int) -> tuple[Any, ...] | None:
    """Sequence, stamp and time of an owner's last version up to a time, by bisection: times rise with sequences."""
    found: tuple[Any, ...] | None = None
    low, high = 0, last
    while low < high:
        middle = (low + high + 1) // 2
        row: Any = connection.execute(statements.AT_OR_BEFORE, (number, middle)).fetchone()
        if row is not None:
            rows.verify(row)
        if row is None or row[8] <= micros:
            low, found = middle, row or found
        else:
            high = row[4] - 1
    return found and (found[4], found[10], found[8])


def _checked_token(connection: apsw.Connection, token: str) -> int:
    """The place that a position in the feed stands for; ``PositionLost`` if the file has another version there."""
    digits, _, check = token.partition(".")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
        raise positions.nonsense("after")
    place = int(digits)
    [(last, stamp)] = rows.fetch(connection, statements.LAST_PLACE, (place,))
    if place > last or (check and stamp is not None and check != positions.check_of(stamp)):
        raise positions.lost()
    return place
