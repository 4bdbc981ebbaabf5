"""Appending to the journal: two round trips. The first takes the locks and reads what the writes touch; then the pure
plan decides; the second writes and commits. A group of appends shares both, and each is accepted or refused by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wellkept.errors import WellkeptError
from wellkept.ports import Counters, Head, Plan, SettingRow, Standing, Step, plan, positions
from wellkept.ports.positions import Reached
from wellkept.stores.postgres import epochs, records, rows, schema, search_schema, tables
from wellkept.stores.postgres.server import Row, Session, Statement
from wellkept.types import Guard, Owner, Position, Quota, Stamp, State, Write

COPY = 64
"""Writes: from here on, COPY takes less time than statements."""

_OWNERS = (
    "SELECT o.name, o.no, o.seq, o.memories, o.bytes, o.last_at, j.stamp FROM owners o"
    " LEFT JOIN journal j ON j.owner = o.no AND j.seq = o.seq WHERE o.digest = ANY(%s)"
)
HEADS = (
    "SELECT o.name, h.id, h.version, h.born, h.born_at, h.stamp, h.state, h.key, h.size, h.vector"
    " FROM unnest(%s::bytea[], %s::text[]) w (digest, id)"
    f" JOIN owners o ON o.digest = w.digest{rows.HEAD_BY_ID}"
)
_SAME_KEY = "hashtextextended(h.key, 0) = hashtextextended(w.key, 0)"
KEYS = (
    "SELECT o.name, h.key, h.id FROM unnest(%s::bytea[], %s::text[]) w (digest, key)"
    " JOIN owners o ON o.digest = w.digest"
    + rows.looked_up("heads", "h", f"h.owner = o.no AND {_SAME_KEY} AND h.key = w.key AND h.key IS NOT NULL")
)
_JOURNAL = f"owner, epoch, {rows.VERSION}"
_VECTORS = "owner, born, embedder, data, spans, pieces, digest"
_TYPES = {
    "journal": ["int4", "int4", "text", *["int8"] * 5, *["text"] * 7, "bytea", "bytea"],
    "heads": [
        *["int4", "text", *["int8"] * 4, *["text"] * 4, "float8", *["int8"] * 3, "text", "text"],
        *["bool", "text[]", "text", "int8", "int8"],
    ],
    "vectors": ["int4", "int8", "text", *["bytea"] * 4],
}
_COLUMNS = {"journal": _JOURNAL, "heads": rows.HEAD, "vectors": _VECTORS}


def _insert(table: str) -> str:
    values = ", ".join(["%s"] * len(_COLUMNS[table].split(", ")))
    return f"INSERT INTO {table} ({_COLUMNS[table]}) VALUES ({values})"


INSERT_VECTOR = _insert("vectors")
_CHANGED = ", ".join(f"{name} = excluded.{name}" for name in rows.HEAD.split(", ")[2:])
PUT_HEAD = f"{_insert('heads')} ON CONFLICT (owner, id) DO UPDATE SET {_CHANGED}"
_ERASE = (
    "DELETE FROM journal WHERE owner = %s AND id = %s",
    "DELETE FROM accesses WHERE owner = %s AND born = %s",
)
_COUNT = "UPDATE owners SET seq = %s, memories = %s, bytes = %s, last_at = %s WHERE no = %s"

Key = tuple[Owner, str]


class Append:
    """Some writes that are accepted or refused together."""

    __slots__ = ("error", "guards", "owners", "position", "quotas", "writes")

    def __init__(self, writes: Sequence[Write], quotas: Sequence[Quota], guards: Sequence[Guard]) -> None:
        self.writes = writes
        self.quotas = quotas
        self.guards = guards
        self.owners = {write.owner for write in writes}
        self.position = Position("")
        self.error: BaseException | None = None

    @property
    def locks(self) -> tuple[int, ...]:
        """The locks that it needs, in the order in which everybody takes them."""
        owners = self.owners.union(*(quota.owners for quota in self.quotas))
        owners |= {guard.owner for guard in self.guards if guard.owner is not None}
        return tuple(sorted({rows.named(owner).lock for owner in owners}))


class _Retry(Exception):
    """What was read does not hold: the first vector of all decides on the embedder, so nobody else may write one; or
    the tables were made anew.
    """

    def __init__(self, *, alone: bool) -> None:
        self.alone = alone


def settle(session: Session, jobs: Sequence[Append]) -> None:
    """Append them all in one transaction."""
    alone = False
    while True:
        try:
            _Transaction(session, jobs, alone=alone).run()
        except WellkeptError:
            session.run("ROLLBACK")
            raise
        except _Retry as retry:
            session.run("ROLLBACK")
            alone = retry.alone
            if not alone:
                epochs.begin(session)
        else:
            return


class _Transaction:
    """One transaction of a group. The state is read once, and kept in step with what the group appends."""

    def __init__(self, session: Session, jobs: Sequence[Append], *, alone: bool) -> None:
        self._session = session
        self._jobs = jobs
        self._alone = alone
        self._numbers: dict[Owner, int] = {}
        self._counters: dict[Owner, Counters] = {}
        self._stamps: dict[Owner, str] = {}
        self._heads: dict[Key, Head] = {}
        self._stored: frozenset[Key] = frozenset()
        self._holders: dict[Key, str] = {}
        self._steps: list[Step] = []
        self._counted: set[Owner] = set()

    def run(self) -> None:
        """Read, plan, write, commit."""
        self._read()
        named = (self._embedder, self._dimension)
        for job in self._jobs:
            job.error = None
            try:
                self._take(job)
            except WellkeptError as error:
                job.error = error
        if named != (self._embedder, self._dimension) and not self._alone:
            raise _Retry(alone=True)
        if not self._steps:
            self._session.run("ROLLBACK")
            return
        self._write(named_anew=named != (self._embedder, self._dimension))

    # -- the first trip ---------------------------------------------------------------------------------------

    def _read(self) -> None:
        writes = [write for job in self._jobs for write in job.writes]
        locks = sorted({lock for job in self._jobs for lock in job.locks})
        owners = {owner for job in self._jobs for owner in job.owners.union(*(one.owners for one in job.quotas))}
        guards = [guard for job in self._jobs for guard in job.guards]
        keys = [(rows.named(one.owner).digest, key) for one in writes if (key := one.facets.get("key")) is not None]
        # The locks are statements of their own: the next one sees what was committed while they waited.
        before: list[Statement] = [
            ("BEGIN", ()),
            (tables.LOCK_ALONE if self._alone else tables.LOCK_SHARED, (tables.EMBEDDER_LOCK,)),
            (tables.LOCK, (locks,)),
        ]
        statements: list[Statement] = [
            epochs.WITH_SETTINGS,
            (_OWNERS, (rows.digests(owners),)),
            (HEADS, ([rows.named(write.owner).digest for write in writes], [write.id for write in writes])),
        ]
        if keys:
            statements.append((KEYS, tuple(map(list, zip(*keys, strict=True)))))
        statements += records.guarding(guards)
        settings, counters, heads, *rest = self._session.together([*before, *statements])[len(before) :]
        self._epoch, named = epochs.read_with_settings(self._session, settings)
        schema.check_not_newer(self._epoch.schema, "the database")  # somebody migrated it since it was opened here
        if not self._epoch.valid:
            raise _Retry(alone=self._alone)
        self._embedder: str | None = named.get("embedder")
        self._dimension: int | None = int(named["dimension"]) if "dimension" in named else None
        self._know(counters, heads, rest.pop(0) if keys else [])
        self._guarded, self._leases = records.guarded(guards, rest)

    def _know(self, counters: Sequence[Row], heads: Sequence[Row], keys: Sequence[Row]) -> None:
        for name, number, seq, memories, used, last_at, stamp in counters:
            owner = rows.owner_of(name)
            self._numbers[owner] = number
            self._counters[owner] = Counters(seq, memories, used, last_at)
            if stamp is not None:
                self._stamps[owner] = stamp
        for name, memory_id, version, born, born_at, stamp, state, key, size, vector in heads:
            self._heads[rows.owner_of(name), memory_id] = Head(
                *(version, born, born_at, Stamp(stamp), state == rows.ERASED, key, size, vector),
                archived=state == State.ARCHIVED,
            )
        self._stored = frozenset(self._heads)
        for name, key, memory_id in keys:
            self._holders[rows.owner_of(name), key] = memory_id

    # -- deciding ---------------------------------------------------------------------------------------------

    def _take(self, job: Append) -> None:
        standing = Standing(
            heads=self._heads,
            holders=self._holders,
            counters=self._counters,
            embedder=self._embedder,
            dimension=self._dimension,
            records=records.versions(self._guarded, job.guards),
            leases=self._leases,
        )
        made: Plan = plan(job.writes, standing, quotas=job.quotas, guards=job.guards)
        self._embedder, self._dimension = made.embedder, made.dimension
        for step in made.steps:
            owner, old, new = step.write.owner, step.before, step.after
            if old is not None and old.key is not None and self._holders.get((owner, old.key)) == step.write.id:
                del self._holders[owner, old.key]
            if new.key is not None:
                self._holders[owner, new.key] = step.write.id
            self._heads[owner, step.write.id] = new
            self._stamps[owner] = step.write.stamp
        self._steps += made.steps
        self._counters.update(made.counters)
        self._counted.update(made.counters)
        reached = {}
        for owner in job.owners:
            counters, stamp = self._counters.get(owner, Counters()), self._stamps.get(owner)
            check = positions.check_of(Stamp(stamp)) if stamp else ""
            reached[owner] = Reached(counters.seq, check, counters.last_at)
        job.position = positions.encode(self._epoch.name, reached)

    # -- the second trip --------------------------------------------------------------------------------------

    def _write(self, *, named_anew: bool) -> None:
        session = self._session
        for owner in {step.write.owner for step in self._steps} - self._numbers.keys():
            self._numbers[owner] = tables.make_owner(session, owner)
        newest = {(step.write.owner, step.write.id): step for step in self._steps}
        erased = [step for step in newest.values() if step.after.erased]
        gone = {(step.write.owner, step.write.id) for step in erased}
        journal = [
            (self._numbers[step.write.owner], self._epoch.number, *rows.journal_row(step))
            for step in self._steps
            if (step.write.owner, step.write.id) not in gone or step is newest[step.write.owner, step.write.id]
        ]
        heads = [(key in self._stored, rows.head_row(self._numbers[key[0]], step)) for key, step in newest.items()]
        replaced, vectors = self._vectors()
        many = len(journal) >= COPY
        connection = session.connection
        with connection.pipeline():
            cursor = connection.cursor()
            if erased:
                places = [(self._numbers[step.write.owner], step.write.id, step.born) for step in erased]
                cursor.executemany(_ERASE[0], [(number, memory_id) for number, memory_id, _ in places])
                cursor.executemany(_ERASE[1], [(number, born) for number, _, born in places])
                indexed = [(rows.named(step.write.owner).digest, step.born) for step in erased]
                cursor.executemany(search_schema.ERASE.encode(), indexed)
            for table in ("vectors", "renewed") if replaced else ():
                cursor.executemany(f"DELETE FROM {table} WHERE owner = %s AND born = %s".encode(), replaced)
            if not many:
                cursor.executemany(_insert("journal").encode(), journal)
                if vectors:
                    cursor.executemany(INSERT_VECTOR.encode(), vectors)
            if again := [row for stored, row in heads if stored or not many]:
                cursor.executemany(PUT_HEAD.encode(), again)
            counted = [(*self._counters[owner], self._numbers[owner]) for owner in self._counted]
            cursor.executemany(_COUNT, counted)
            if named_anew:
                named = {"embedder": str(self._embedder), "dimension": str(self._dimension)}
                cursor.executemany(tables.PUT_SETTING, [SettingRow.sealed(*one) for one in named.items()])
            if not many:
                session.committing = True
                connection.execute("COMMIT")
        if many:
            self._copy("journal", journal)
            self._copy("heads", [row for stored, row in heads if not stored])
            self._copy("vectors", vectors)
            session.commit()
        session.committing = False

    def _copy(self, table: str, many: Iterable[tuple[object, ...]]) -> None:
        statement = f"COPY {table} ({_COLUMNS[table]}) FROM STDIN (FORMAT BINARY)"
        with self._session.connection.cursor().copy(statement.encode()) as copy:
            copy.set_types(_TYPES[table])
            for row in many:
                copy.write_row(row)

    def _vectors(self) -> tuple[list[tuple[int, int]], list[tuple[object, ...]]]:
        """The places whose vectors go, and the vectors that come: of each memory what the last step leaves."""
        left: dict[Key, tuple[object, ...] | None] = {}
        born: dict[Key, tuple[int, int]] = {}
        for step in self._steps:
            write, key = step.write, (step.write.owner, step.write.id)
            if write.keeps_vector and not step.after.erased:
                continue
            number = self._numbers[write.owner]
            born[key] = (number, step.born)
            left[key] = None
            if write.vector is not None and not step.after.erased:
                left[key] = rows.vector_row(number, step.born, write.vector, write.digest)
        replaced = [place for key, place in born.items() if key in self._stored]
        return replaced, [row for row in left.values() if row is not None]
