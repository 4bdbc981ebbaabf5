"""Records and leases in the file: one row each, beside the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import apsw

from wellkept import codec
from wellkept.ports import DamagedRecord, Lease, Record, Records, check_record
from wellkept.stores.sqlite import connections, rows
from wellkept.types import Guard, Owner, Owners

if TYPE_CHECKING:
    from wellkept.stores.sqlite.file import SqliteFile
    from wellkept.stores.sqlite.transaction import Transaction

COLUMNS = "owner, kind, name, version, updated_at, body, checksum"
RAW = "r.owner, CAST(r.kind AS BLOB), CAST(r.name AS BLOB), version, updated_at, CAST(body AS BLOB), checksum"
"""The same with texts as bytes: what is damaged need not be a text any more."""

ONE_RAW = "owner = ? AND CAST(kind AS BLOB) = ? AND CAST(name AS BLOB) = ?"
_ONE = "owner = ? AND kind = ? AND name = ?"
_NOW_MS = "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
_TAKE = (
    f"INSERT INTO leases (name, holder, token, until_ms) VALUES (?1, ?2, 1, {_NOW_MS} + ?3)"
    " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms,"
    f" token = token + (until_ms <= {_NOW_MS})"
    f" WHERE until_ms <= {_NOW_MS} OR holder = excluded.holder RETURNING token"
)
_RELEASE = f"UPDATE leases SET until_ms = {_NOW_MS} WHERE name = ? AND holder = ? AND token = ?"
_TOKEN = f"SELECT token FROM leases WHERE name = ? AND until_ms > {_NOW_MS}"


class SqliteRecords(Records):
    """Records with a checksum each, and leases by the clock of SQLite, which is the machine's."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def get(self, owner: Owner, kind: str, name: str) -> Record | None:
        """One look-up."""
        with self._file.snapshot() as connection:
            for number in self._file.numbers(connection, {owner}):
                row = find(connection, number, kind, name)
                return None if row is None else to_record(row, owner)
        return None

    def put(self, record: Record) -> None:
        """Write a record, in a transaction that may be shared with other threads."""
        self._file.write(lambda work: _put(work, record, lambda _: record.version - 1))

    def restore(self, record: Record) -> None:
        """The same, whatever the version before was."""
        self._file.write(lambda work: _put(work, record, lambda stored: min(stored, record.version - 1)))

    def drop(self, owner: Owner, kind: str, name: str) -> bool:
        """Delete a record; like an erased memory, it must not stay in the write-ahead log."""
        dropped: bool = self._file.write(lambda work: _drop(work, owner, kind, name))
        self._file.empty_log(erased=dropped)
        return dropped

    def list(
        self, owners: Owners | None, kind: str | None = None, *, after: str = "", limit: int | None = None
    ) -> Sequence[Record]:
        """Ordered by name, owner and kind, from one state of the file."""
        clauses, values = ["r.name > ?"], [after]
        with self._file.snapshot() as connection:
            if owners is not None:
                chosen, bound = rows.among(self._file.numbers(connection, owners))
                clauses.append(f"r.owner IN {chosen}")
                values += bound
            if kind is not None:
                clauses.append("r.kind = ?")
                values.append(kind)
            found = rows.fetch(
                connection,
                f"SELECT {RAW} FROM records r JOIN owners o ON o.owner = r.owner"
                f" WHERE {' AND '.join(clauses)} ORDER BY r.name, o.name, r.kind LIMIT ?",
                (*values, -1 if limit is None else limit),
            )
            return [to_record(row, self._file.owner(connection, row[0])) for row in found]

    def lease(self, name: str, holder: str, ttl_ms: int) -> Lease | None:
        """Taken if it is free, or its time is over, or it is the holder's own."""
        token = self._file.write(lambda work: work.connection.execute(_TAKE, (name, holder, ttl_ms)).get)
        return None if token is None else Lease(name=name, holder=holder, token=token)

    def release(self, lease: Lease) -> None:
        """Its time is over; the token stays, so that the next one is higher."""
        place = (lease.name, lease.holder, lease.token)
        self._file.write(lambda work: work.connection.execute(_RELEASE, place).get)


def tokens(connection: apsw.Connection, guards: Iterable[Guard]) -> dict[str, int]:
    """The tokens of the leases that guards name and that still hold."""
    found: dict[str, int] = {}
    for guard in guards:
        if guard.lease is not None:
            token = connection.execute(_TOKEN, (guard.lease,)).get
            if token is not None:
                found[guard.lease] = token
    return found


def find(connection: apsw.Connection, owner: int, kind: str, name: str) -> tuple[Any, ...] | None:
    """The row of a record: the columns ``RAW``."""
    found = rows.fetch(connection, f"SELECT {RAW} FROM records r WHERE {_ONE}", (owner, kind, name))
    return found[0] if found else None


def _put(work: Transaction, record: Record, expected: Callable[[int], int]) -> None:
    """Write a record in the place of the version before it; check first, so that a refusal has changed nothing."""
    connection = work.connection
    before = find(connection, work.find_owner(record.owner), record.kind, record.name)
    stored = to_record(before, record.owner).version if before else 0
    check_record(record.kind, record.name, stored, expected(stored))
    updated_at = codec.to_micros(record.updated_at)
    values = (work.number_of(record.owner), record.kind, record.name, record.version, updated_at, record.body.decode())
    connection.execute(
        f"INSERT OR REPLACE INTO records ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, _checksum(values))
    )


def _drop(work: Transaction, owner: Owner, kind: str, name: str) -> bool:
    """Delete a record, and what a repair may have set aside of it; whether there was anything."""
    connection = work.connection
    place = (work.find_owner(owner), kind, name)
    dropped = 0
    for table in ("records", "damaged_records"):
        connection.execute(f"DELETE FROM {table} WHERE {_ONE}", place)
        dropped += connection.changes()
    return dropped > 0


def to_record(row: tuple[Any, ...], owner: Owner) -> Record:
    """The record of the columns ``RAW``."""
    _, kind, name, version, updated_at, body, _ = row
    if not is_sound(row):
        known = version if isinstance(version, int) else 0
        return DamagedRecord(owner=owner, kind=rows.readable(kind), name=rows.readable(name), version=known)
    return Record(
        owner=owner,
        kind=kind.decode(),
        name=name.decode(),
        body=body,
        version=version,
        updated_at=codec.from_micros(updated_at),
    )


def is_sound(row: tuple[Any, ...]) -> bool:
    """Whether a row of the columns ``RAW`` is what was written."""
    owner, kind, name, version, updated_at, body, checksum = row
    try:
        texts = kind.decode(), name.decode(), body.decode()
        return bool(_checksum((owner, *texts[:2], version, updated_at, texts[2])) == checksum)
    except connections.UNREADABLE:
        return False


def _checksum(values: tuple[Any, ...]) -> bytes:
    """The checksum over every other column; the lengths keep the texts apart."""
    owner, kind, name, version, updated_at, body = values
    return codec.checksum(f"{owner},{version},{updated_at},{len(kind)}:{kind},{len(name)}:{name},{body}")
