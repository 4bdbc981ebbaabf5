"""Records and leases: one row each, beside the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wellkept import codec
from wellkept.errors import StoreCorrupt
from wellkept.ports import DamagedRecord, Lease, Record, Records, check_record, guarded_version
from wellkept.stores.postgres import rows, tables
from wellkept.stores.postgres.server import Row, Server, Session, Statement
from wellkept.types import Guard, Owner, Owners

COLUMNS = "o.name, r.kind, r.name, r.version, r.updated_at, r.body, r.digest"
_SOURCE = "FROM records r JOIN owners o ON o.no = r.owner"
_ONE = "o.digest = %s AND r.kind = %s AND r.name = %s"
_PUT = (
    "INSERT INTO records (owner, kind, name, version, updated_at, body, digest) VALUES (%s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (owner, kind, name) DO UPDATE SET version = excluded.version, updated_at = excluded.updated_at,"
    " body = excluded.body, digest = excluded.digest"
)
_DROP = tuple(
    f"DELETE FROM {table} r USING owners o WHERE o.no = r.owner AND {_ONE}" for table in ("records", "damaged_records")
)
# Unless it was replaced meanwhile.
SET_ASIDE = (
    "WITH gone AS (DELETE FROM records WHERE owner = %s AND kind = %s AND name = %s AND digest = %s RETURNING *)"
    " INSERT INTO damaged_records SELECT * FROM gone"
)
_TAKE = (
    "INSERT INTO leases AS l (name, holder, token, until)"
    " VALUES (%(name)s, %(holder)s, 1, clock_timestamp() + %(ttl)s * interval '1 ms')"
    " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until,"
    " token = l.token + (l.until <= clock_timestamp())::integer"
    " WHERE l.until <= clock_timestamp() OR l.holder = excluded.holder RETURNING token"
)
_RELEASE = "UPDATE leases SET until = clock_timestamp() WHERE name = %s AND holder = %s AND token = %s"
_GUARDED = (
    f"SELECT {COLUMNS} FROM unnest(%s::bytea[], %s::text[], %s::text[]) w (digest, kind, name)"
    " JOIN owners o ON o.digest = w.digest"
    " JOIN records r ON r.owner = o.no AND r.kind = w.kind AND r.name = w.name"
)
# Locked until the append commits: nobody can take a lease over meanwhile.
_TOKENS = "SELECT name, token FROM leases WHERE name = ANY(%s) AND until > clock_timestamp() ORDER BY name FOR SHARE"

Place = tuple[Owner, str, str]


class PostgresRecords(Records):
    """Records with a checksum each, and leases by the clock of the server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def get(self, owner: Owner, kind: str, name: str) -> Record | None:
        """One look-up."""
        values = (rows.named(owner).digest, kind, name)
        found = self._server.read(lambda session: session.rows(f"SELECT {COLUMNS} {_SOURCE} WHERE {_ONE}", values))
        return to_record(found[0]) if found else None

    def put(self, record: Record) -> None:
        """Write a record under the lock of its owner."""
        self._keep(record, lambda _: record.version - 1)

    def restore(self, record: Record) -> None:
        """The same, whatever the version before was."""
        self._keep(record, lambda stored: min(stored, record.version - 1))

    def _keep(self, record: Record, expected: Callable[[int], int]) -> None:
        self._server.write(lambda session: _put(session, record, expected))

    def drop(self, owner: Owner, kind: str, name: str) -> bool:
        """Delete a record, and what a repair may have set aside of it, under the lock of its owner: a guard of an
        append holds until that commits.
        """
        _, digest, lock = rows.named(owner)

        def work(session: Session) -> int:
            with session.transaction():
                session.run(tables.LOCK_ALONE, (lock,))
                return sum(session.run(statement, (digest, kind, name)) for statement in _DROP)

        return self._server.write(work) > 0

    def list(
        self, owners: Owners | None, kind: str | None = None, *, after: str = "", limit: int | None = None
    ) -> Sequence[Record]:
        """Ordered by name, owner and kind."""
        clauses = ["r.name > %s"]
        values: list[object] = [after]
        if owners is not None:
            clauses.append("o.digest = ANY(%s)")
            values.append(rows.digests(owners))
        if kind is not None:
            clauses.append("r.kind = %s")
            values.append(kind)
        statement = f"SELECT {COLUMNS} {_SOURCE} WHERE {' AND '.join(clauses)} ORDER BY r.name, o.name, r.kind LIMIT %s"
        found = self._server.read(lambda session: session.rows(statement, (*values, limit)))
        return [to_record(row) for row in found]

    def lease(self, name: str, holder: str, ttl_ms: int) -> Lease | None:
        """Taken if it is free, or its time is over, or it is the holder's own."""
        values = {"name": name, "holder": holder, "ttl": ttl_ms}
        found = self._server.write(lambda session: session.rows(_TAKE, values), repeatable=True)
        return Lease(name=name, holder=holder, token=found[0][0]) if found else None

    def release(self, lease: Lease) -> None:
        """Its time is over; the token stays, so that the next one is higher."""
        values = (lease.name, lease.holder, lease.token)
        self._server.write(lambda session: session.run(_RELEASE, values), repeatable=True)


def _put(session: Session, record: Record, expected: Callable[[int], int]) -> None:
    name, digest, lock = rows.named(record.owner)
    with session.transaction():
        session.run(tables.LOCK_ALONE, (lock,))
        before = session.rows(f"SELECT r.version {_SOURCE} WHERE {_ONE}", (digest, record.kind, record.name))
        stored = before[0][0] if before else 0
        check_record(record.kind, record.name, stored, expected(stored))
        updated_at = codec.to_micros(record.updated_at)
        values = (record.kind, record.name, record.version, updated_at, record.body)
        session.run(_PUT, (tables.make_owner(session, record.owner), *values, _checksum(name, values)))


def guarding(guards: Sequence[Guard]) -> list[Statement]:
    """The statements that read what guards name: records, then leases; none if there are none."""
    if not guards:
        return []
    places = [(rows.named(one.owner).digest, one.kind, one.name) for one in guards if one.owner is not None]
    columns = tuple(map(list, zip(*places, strict=True))) if places else ([], [], [])
    leases = sorted({one.lease for one in guards if one.lease is not None})
    return [(_GUARDED, columns), (_TOKENS, (leases,))]


def guarded(guards: Sequence[Guard], found: Sequence[Sequence[Row]]) -> tuple[dict[Place, Record], dict[str, int]]:
    """The records and the tokens of leases, from the rows of ``guarding``."""
    if not guards:
        return {}, {}
    records, leases = found
    kept = [to_record(row) for row in records]
    return {(one.owner, one.kind, one.name): one for one in kept}, {name: token for name, token in leases}  # noqa: C416  # rows have no length that a type checker knows


def versions(kept: Mapping[Place, Record], guards: Sequence[Guard]) -> dict[Place, int]:
    """The versions of the records that some guards name; ``StoreCorrupt`` if one is damaged."""
    found = {}
    for guard in guards:
        if guard.owner is not None and (record := kept.get(place := (guard.owner, guard.kind, guard.name))):
            found[place] = guarded_version(record)
    return found


def is_sound(row: Row) -> bool:
    """Whether the row of ``COLUMNS`` is what was written."""
    owner, *values, digest = row
    return bool(_checksum(owner, values) == digest)


def to_record(row: Row) -> Record:
    """The record of the row of ``COLUMNS``."""
    name_of_owner, kind, name, version, updated_at, body, _ = row
    try:
        owner = rows.owner_of(name_of_owner)
    except codec.UNREADABLE as error:
        raise StoreCorrupt(
            f"the name of the owner of the {kind} {name[:64]!r} is damaged",
            details={"kind": kind, "name": name[:64]},
            hint="restore the database from a backup of the server",
        ) from error
    if not is_sound(row):
        return DamagedRecord(owner=owner, kind=kind, name=name, version=version)
    return Record(
        owner=owner,
        kind=kind,
        name=name,
        body=body,
        version=version,
        updated_at=codec.from_micros(updated_at),
    )


def _checksum(owner: str, values: Sequence[Any]) -> bytes:
    """The checksum over every other column; the lengths keep the texts apart."""
    kind, name, version, updated_at, body = values
    return codec.checksum(f"{owner},{version},{updated_at},{len(kind)}:{kind},{len(name)}:{name},{body.hex()}")
