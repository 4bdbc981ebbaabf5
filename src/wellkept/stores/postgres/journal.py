"""The journal on the server: what is written, and how each read is answered."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellkept import codec, filters, statistics
from wellkept.filters import Where
from wellkept.ports import Journal, Query, StoreSettings, positions
from wellkept.ports.positions import Reached
from wellkept.stores.durability import check_durability
from wellkept.stores.postgres import append, embedding, epochs, queries, rewriting, rows, statements, tables
from wellkept.stores.postgres.append import Append
from wellkept.stores.postgres.commit import GroupCommit
from wellkept.stores.postgres.server import Row, Server, Session, Statement
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

_AT_ONCE = 2_000
_FETCHED = 500  # rows that a scan fetches: the server keeps them in its work_mem, and what exceeds it on its disk
_SETTLE_S = 0.1  # how long a feed waits for short transactions of others that hold it back
_FIRST = (0, "0", 0, 0)


class PostgresJournal(Journal):
    """Versions in the tables of one schema. Each answer comes from one state of them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.commits: GroupCommit[Append] = GroupCommit(self._settle)

    # -- writing ----------------------------------------------------------------------------------------------

    def append(
        self, writes: Sequence[Write], *, quotas: Sequence[Quota] = (), guards: Sequence[Guard] = ()
    ) -> Position:
        """Append versions, in a transaction that may be shared with other threads."""
        job = Append(writes, quotas, guards)
        self.commits.run(job.locks, job)
        return job.position

    def _settle(self, jobs: Sequence[Append]) -> None:
        # A commit whose answer was lost is made again: the stamps tell what was written.
        self._server.write(lambda session: append.settle(session, jobs), repeatable=True)

    def rewrite(self, versions: Sequence[Stored]) -> None:
        """Rewrite versions; the rows that they were remain in the tables until ``scrub``."""
        self._server.write(lambda session: rewriting.rewrite(session, versions), repeatable=True)

    def embed(self, vectors: Sequence[Embedded]) -> None:
        """Store vectors of memories that are there already."""
        self._server.write(lambda session: embedding.embed(session, vectors), repeatable=True)

    def adopt(self, embedder: str, dimension: int) -> bool:
        """Go over to another embedder, if every memory has its vector."""
        return self._server.write(lambda session: embedding.adopt(session, embedder, dimension), repeatable=True)

    def count_accesses(self, accesses: Sequence[Access], *, wait_ms: int | None = None) -> None:
        """Add them up, with one statement. Its transaction tells whether the answer to a commit was lost."""
        added: dict[tuple[bytes, str], tuple[int, int]] = {}
        for one in accesses:
            place = (rows.named(one.owner).digest, one.id)
            times, last_at = added.get(place, (0, 0))
            added[place] = (times + one.times, max(last_at, one.last_at))
        if added:
            values = [list(column) for column in zip(*((*place, *one) for place, one in added.items()), strict=True)]

            def work(session: Session) -> None:
                with session.transaction():
                    if wait_ms is not None:
                        session.run(statements.LOCK_TIMEOUT, (f"{max(wait_ms, 1)}ms",))  # 0 would be for ever
                    session.run(statements.COUNT_ACCESSES, values)

            self._server.write(work, once=wait_ms is not None)

    def set_settings(self, values: Mapping[str, str]) -> None:
        """Change settings of the store. Another durability holds for connections opened from now on."""
        if "durability" in values:
            check_durability(values["durability"])

        def work(session: Session) -> None:
            with session.transaction():
                tables.put_settings(session, values)

        self._server.write(work, repeatable=True)

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
        """Memories by id."""
        wanted = list(dict.fromkeys(ids))
        if not wanted or not owners:
            return []
        if at is None:
            statement = statements.by_id(payload=payload, vectors=vectors)
            values: tuple[Any, ...] = (wanted, rows.digests(owners))
            found = self._server.read(lambda session: session.rows(statement, values))
        else:
            statement = statements.past(payload=payload, vectors=vectors, one=True)
            found = self._server.read(lambda session: self._past(session, statement, owners, at, (wanted,)))
        place = {memory_id: number for number, memory_id in enumerate(wanted)}
        found.sort(key=lambda row: place[row[rows.ID]])
        return [rows.checked(row) if payload else rows.to_stored(row) for row in found]

    def _past(
        self, session: Session, statement: str, owners: Owners, at: Position, values: tuple[Any, ...] = ()
    ) -> list[Row]:
        """The rows of a statement about a past state, once the position is known to hold."""
        reached = _decoded(at)
        epoch, now, found = session.snapshot(
            epochs.CURRENT, _reached(reached, owners), (statement, (*_places(owners, reached), *values))
        )
        _check_reached(at, epoch, now, owners)
        return found

    def keyed(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """Ids by key."""
        wanted = list(keys)
        values = ([rows.named(owner).digest] * len(wanted), wanted)
        found = self._server.read(lambda session: session.rows(append.KEYS, values))
        return {key: memory_id for _, key, memory_id in found}

    def scan(
        self, owners: Owners, *, at: Position | None = None, payload: bool = True, vectors: bool = False
    ) -> Iterator[Stored]:
        """All memories of the owners, from one state, so many rows in RAM at a time."""
        statement = statements.heads(payload=payload, vectors=vectors)
        in_order = len(owners) == 1 and at is None
        if in_order:
            statement = statements.all_of_one(payload=payload, vectors=vectors)
        values: tuple[Any, ...] = (rows.digests(owners),)
        if at is not None:
            statement = statements.past(payload=payload, vectors=vectors, one=False)
            values = _places(owners, self._checked(owners, at, "as_of"))
        with self._server.reading() as session, session.connection.transaction():
            if in_order:
                session.run(statements.IN_ORDER)
            cursor = session.connection.cursor(name="scan", binary=True)
            with cursor:
                cursor.itersize = _FETCHED
                cursor.execute(statement.encode(), values)
                for row in cursor:
                    yield rows.to_stored(row)

    def select(self, query: Query) -> Sequence[Stored]:
        """One page of a listing. The past is read by the default, from the journal."""
        if query.at is not None:
            return super().select(query)
        rest = queries.rest_of(query.where)
        if rest is not None:
            return self._filtered(query, rest)
        size = None if query.limit is None else query.offset + query.limit
        found = self._server.read(lambda session: session.rows(*queries.page(query, size=size)))
        return [rows.to_stored(row) for row in found[query.offset :]]

    def _filtered(self, query: Query, rest: Where) -> list[Stored]:
        """A page with conditions that the server cannot decide: memories are read, in the order of the page, until
        enough of them meet these as well.
        """
        wanted = None if query.limit is None else query.offset + query.limit
        fits, kept = filters.matching(rest), list[Stored]()
        size = _AT_ONCE if wanted is None else min(_AT_ONCE, max(100, 4 * wanted))
        while True:
            statement, values = queries.page(query, size=size)
            found = self._server.read(lambda session, one=statement, bound=values: session.rows(one, bound))  # type: ignore[misc]  # bound early: the loop goes on
            memories = [rows.to_stored(row) for row in found]
            kept += [one for one in memories if fits(one)]
            if len(found) < size or (wanted is not None and len(kept) >= wanted):
                return kept[query.offset : wanted]
            query = replace(query, after=filters.place_of(memories[-1], found[-1][-1]))

    def count(self, owners: Owners, where: Where, *, at: Position | None = None) -> int:
        """How many match; without reading contents if no condition needs them."""
        if at is not None or queries.rest_of(where) is not None:
            return len(self.ids(owners, where, at=at))
        [(count,)] = self._server.read(lambda session: session.rows(*queries.counting(owners, where)))
        return int(count)

    def ids(self, owners: Owners, where: Where, *, at: Position | None = None) -> Sequence[tuple[Owner, str]]:
        """All that match, by owner and id."""
        if at is not None:
            return super().ids(owners, where, at=at)
        if queries.rest_of(where) is not None:
            return [(one.owner, one.id) for one in self.select(Query(owners=owners, where=where))]
        found = self._server.read(lambda session: session.rows(*queries.matching_ids(owners, where)))
        return [(rows.owner_of(name), memory_id) for name, memory_id in found]

    # -- reading versions -------------------------------------------------------------------------------------

    def versions(
        self, owners: Owners, *, after: Position | None = None, limit: int | None = None
    ) -> JournalPage[Stored]:
        """The owners' versions behind a position, in the order of their times."""
        reached = {} if after is None else _decoded(after, "after")
        most = None if limit is None else limit + 1
        statement = (statements.BEHIND, (*_places(owners, reached), most, most))
        epoch, now, found = self._server.read(
            lambda session: session.snapshot(epochs.CURRENT, _reached(reached, owners), statement)
        )
        if after is not None:
            _check_reached(after, epoch, now, owners)
        page = [rows.checked(row) for row in found[:limit]]
        own = {owner: one for owner, one in reached.items() if owner in owners}
        last = own | {one.owner: positions.reached_by(one) for one in page}
        return JournalPage(page, positions.encode(epochs.read(epoch).name, last), more=len(found) > len(page))

    def changed(self, owners: Owners, *, after: Position) -> Sequence[tuple[Owner, str]]:
        """From the ids of the journal alone."""
        reached = _decoded(after, "after")
        statement = (statements.CHANGED, _places(owners, reached))
        epoch, now, found = self._server.read(
            lambda session: session.snapshot(epochs.CURRENT, _reached(reached, owners), statement)
        )
        _check_reached(after, epoch, now, owners)
        return [(rows.owner_of(name), memory_id) for name, memory_id in found]

    def history(self, owner: Owner, memory_id: str) -> list[Stored]:
        """Every version of a memory."""
        values = (rows.named(owner).digest, memory_id)
        found = self._server.read(lambda session: session.rows(statements.HISTORY, values))
        return [rows.checked(row) for row in found]

    def feed(self, *, after: Position | None = None, limit: int | None = None) -> JournalPage[Stored]:
        """The versions of all owners: by transactions, as far as no older transaction is going on.

        Short transactions of others are waited for; a long one holds the feed back, and ``health`` names it.
        """
        page, held_back = self._server.read(lambda session: self._feed(session, after, limit))
        deadline = time.monotonic() + _SETTLE_S
        while held_back and not page.items and time.monotonic() < deadline:
            time.sleep(_SETTLE_S / 10)
            page, held_back = self._server.read(lambda session: self._feed(session, after, limit))
        return page

    def _feed(self, session: Session, after: Position | None, limit: int | None) -> tuple[JournalPage[Stored], bool]:
        [current] = session.snapshot(epochs.CURRENT)
        epoch = epochs.read(current)
        token = None if after is None else positions.decode_feed(after, epoch.name)
        (number, xid, owner, seq), check = (_FIRST, "") if token is None else _token(token)
        most = None if limit is None else limit + 1
        values = {"epoch": number, "xid": xid, "owner": owner, "seq": seq, "now": epoch.number, "limit": most}
        found, held, stamp = session.snapshot(
            (statements.FEED, values), (statements.HELD_BACK, values), (statements.AT_PLACE, values)
        )
        if check and stamp and positions.check_of(stamp[0][0]) != check:
            raise positions.lost()
        page = found if limit is None else found[:limit]
        if page:
            *_, number, xid, owner = page[-1]
            token = f"{number}.{xid}.{owner}.{page[-1][rows.SEQ]}.{positions.check_of(page[-1][rows.STAMP])}"
        items = [rows.checked(row) for row in page]
        place = positions.encode_feed(epoch.name, token or ".".join(map(str, _FIRST)))
        return JournalPage(items, place, more=len(found) > len(page)), bool(held[0][0])

    def position(self, owners: Owners, at: datetime | None = None) -> Position:
        """The last version of each owner, up to a time if given."""
        statement: Statement = (statements.LAST, (rows.digests(owners),))
        if at is not None:
            statement = (statements.LAST_BEFORE, (codec.to_micros(at), rows.digests(owners)))
        epoch, found = self._server.read(lambda session: session.snapshot(epochs.CURRENT, statement))
        reached = {
            rows.owner_of(name): Reached(seq, positions.check_of(stamp) if stamp else "", recorded_at)
            for name, seq, recorded_at, stamp in found
        }
        return positions.encode(epochs.read(epoch).name, reached)

    def _checked(self, owners: Owners, position: Position, field: str) -> dict[Owner, Reached]:
        """How far a position is with these owners."""
        reached = _decoded(position, field)
        epoch, now = self._server.read(lambda session: session.snapshot(epochs.CURRENT, _reached(reached, owners)))
        _check_reached(position, epoch, now, owners)
        return reached

    # -- counters and settings --------------------------------------------------------------------------------

    def settings(self) -> StoreSettings:
        """The settings of the store."""
        return self._server.read(lambda one: epochs.read_with_settings(one, one.rows(*epochs.WITH_SETTINGS))[1])

    def marks(self, owners: Owners) -> dict[Owner, Mark]:
        """From the counters, with one statement."""
        found = self._server.read(lambda session: session.rows(statements.MARKS, (rows.digests(owners),)))
        return {rows.owner_of(name): Mark(seq, revision) for name, seq, revision in found}

    def usage(self, owners: Owners) -> dict[Owner, Usage]:
        """From the counters, with one statement."""
        found = self._server.read(lambda session: session.rows(statements.USAGE, (rows.digests(owners),)))
        return {rows.owner_of(name): Usage(memories, used) for name, memories, used in found}

    def owners(self, *, after: Owner | None = None, limit: int | None = None) -> list[Owner]:
        """In the order of their names."""
        name = "" if after is None else rows.named(after).name
        found = self._server.read(lambda session: session.rows(statements.OWNERS, (name, name, limit)))
        return [rows.owner_of(one) for (one,) in found]

    def stats(self, owners: Owners, now: datetime) -> Stats:
        """Counts, from the heads alone."""
        values = (codec.to_micros(now), rows.digests(owners))
        kinds, tags = self._server.read(
            lambda session: session.snapshot((statements.STATS, values), (statements.TAGS, values))
        )
        active = [row for row in kinds if row[0] == State.ACTIVE]
        return Stats(
            active=sum(row[2] for row in active),
            forgotten=sum(row[2] for row in kinds if row[0] == State.FORGOTTEN),
            archived=sum(row[2] for row in kinds if row[0] == State.ARCHIVED),
            superseded=sum(row[2] for row in kinds if row[0] == State.SUPERSEDED),
            quarantined=sum(row[2] for row in kinds if row[0] == State.QUARANTINED),
            bytes_used=sum(row[3] for row in kinds),
            by_type={MemoryType(row[1]): row[2] for row in active},
            top_tags=statistics.top((tag, count) for tag, count in tags),
            oldest=codec.from_micros(min(row[4] for row in active)) if active else None,
            newest=codec.from_micros(max(row[5] for row in active)) if active else None,
        )

    # -- vectors ----------------------------------------------------------------------------------------------

    def embedded(self, digests: Iterable[bytes]) -> dict[bytes, Vector]:
        """Vectors of texts that were embedded before."""
        found = self._server.read(lambda session: session.rows(statements.BY_DIGEST, (list(digests),)))
        return {digest: rows.to_vector(*vector) for digest, *vector in found}

    def count_unembedded(self, embedder: str) -> int:
        """As many as ``unembedded`` would give, without reading them."""
        statement = f"SELECT count(*) {statements.WITHOUT_VECTOR}"
        [(count,)] = self._server.read(lambda session: session.rows(statement, {"name": embedder}))
        return int(count)

    def unembedded(self, embedder: str, limit: int) -> list[Stored]:
        """Memories without a vector of the embedder, neither in use nor beside it."""
        values = {"name": embedder, "limit": limit}
        found = self._server.read(lambda session: session.rows(statements.UNEMBEDDED, values))
        return [rows.to_stored(row) for row in found]


def _decoded(position: Position, field: str = "as_of") -> dict[Owner, Reached]:
    """What a position says, before it is known whether it is of this epoch."""
    return positions.decode(position, positions.epoch_of(position, field), field)


def _places(owners: Owners, reached: Mapping[Owner, Reached]) -> tuple[list[bytes], list[int]]:
    chosen = list(owners)
    return rows.digests(chosen), [reached.get(owner, Reached(0)).seq for owner in chosen]


def _reached(reached: Mapping[Owner, Reached], owners: Owners) -> Statement:
    """Reads what the places of a position are now. What it says of other owners is not compared with anything."""
    return statements.REACHED, _places(reached.keys() & owners, reached)


def _check_reached(position: Position, epoch: Sequence[Row], now: Sequence[Row], owners: Owners) -> None:
    """``PositionLost`` if the journal is not the one that a position was made of."""
    reached = positions.decode(position, epochs.read(epoch).name)
    found = {rows.owner_of(name): (last, stamp) for name, last, stamp in now}
    for owner in reached.keys() & owners:
        one = reached[owner]
        last, stamp = found.get(owner, (0, None))
        if one.seq > last or (stamp is not None and one.check not in ("", positions.check_of(stamp))):
            raise positions.lost()


def _token(token: str) -> tuple[tuple[int, str, int, int], str]:
    """A place in the feed: epoch, transaction, owner and sequence; and a digest of the stamp there."""
    parts = token.split(".")
    numbers = parts[:4]
    if len(parts) not in (4, 5) or not all(one.isascii() and one.isdecimal() and len(one) <= 18 for one in numbers):
        raise positions.nonsense("after")
    number, xid, owner, seq = numbers
    if max(int(number), int(owner)) >= 2**31:
        raise positions.nonsense("after")
    return (int(number), xid, int(owner), int(seq)), parts[4] if len(parts) == 5 else ""
