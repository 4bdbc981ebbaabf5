"""Records in the file: one row each, with a checksum, beside the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import apsw

from recollect import codec
from recollect.errors import StoreCorrupt
from recollect.ports import check_record
from recollect.stores.sqlite import connections, queries, rows
from recollect.stores.sqlite.journal import Transaction
from recollect.types import Owner

if TYPE_CHECKING:
    from recollect.ports import Record

COLUMNS = "owner, kind, name, version, updated_at, body, checksum"
RAW = "owner, CAST(kind AS BLOB), CAST(name AS BLOB), version, updated_at, CAST(body AS BLOB), checksum"
"""The same with texts as bytes: what is damaged need not be a text any more."""

ONE_RAW = "owner = ? AND CAST(kind AS BLOB) = ? AND CAST(name AS BLOB) = ?"
_ONE = "owner = ? AND kind = ? AND name = ?"


def find(connection: apsw.Connection, owner: int, kind: str, name: str) -> tuple[Any, ...] | None:
    """The row of a record."""
    found = rows.fetch(connection, f"SELECT {COLUMNS} FROM records WHERE {_ONE}", (owner, kind, name))
    return found[0] if found else None


def of_kind(connection: apsw.Connection, owners: Mapping[int, Owner], kind: str) -> list[Record]:
    """The records of a kind, ordered by name."""
    found = rows.fetch(
        connection,
        f"SELECT {COLUMNS} FROM records WHERE owner IN ({queries.marks(owners)}) AND kind = ? ORDER BY name",
        (*owners, kind),
    )
    return [to_record(row, owners[row[0]]) for row in found]


def everybodys(connection: apsw.Connection) -> list[Record]:
    """All records there are."""
    names: dict[int, str] = dict(rows.fetch(connection, "SELECT owner, name FROM owners"))
    found = rows.fetch(connection, f"SELECT {COLUMNS} FROM records")
    return [to_record(row, codec.decode_owner(names[row[0]])) for row in found]


def put(work: Transaction, record: Record) -> None:
    """Write a record in the place of the version before it; check first, so that a refusal has changed nothing."""
    connection = work.connection
    before = find(connection, rows.owner_number(connection, record.owner), record.kind, record.name)
    check_record(record, before[3] if before else 0)
    updated_at = codec.to_micros(record.updated_at)
    values = (work.number_of(record.owner), record.kind, record.name, record.version, updated_at, record.body.decode())
    connection.execute(
        f"INSERT OR REPLACE INTO records ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, _sum(values))
    )


def drop(work: Transaction, owner: Owner, kind: str, name: str) -> bool:
    """Delete a record, and what a repair may have set aside of it; whether there was anything."""
    connection = work.connection
    place = (rows.owner_number(connection, owner), kind, name)
    dropped = 0
    for table in ("records", "damaged_records"):
        connection.execute(f"DELETE FROM {table} WHERE {_ONE}", place)
        dropped += connection.changes()
    return dropped > 0


def to_record(row: tuple[Any, ...], owner: Owner) -> Record:
    """The record of the columns ``COLUMNS``."""
    _, kind, name, version, updated_at, body, _ = row
    if not is_sound(row):
        raise StoreCorrupt(
            f"the {kind} {name[:64]!r} is damaged",
            details={"kind": kind, "name": name[:64]},
            hint="run doctor with repair=True: it sets the damaged record aside, and its memories stay",
        )
    from recollect.ports import Record  # lazy: only sessions are kept as records

    return Record(
        owner=owner,
        kind=kind,
        name=name,
        body=body.encode(),
        version=version,
        updated_at=codec.from_micros(updated_at),
    )


def is_sound(row: tuple[Any, ...]) -> bool:
    """Whether a row is what was written."""
    try:
        return bool(_sum(row[:-1]) == row[-1])
    except connections.UNREADABLE:
        return False


def _sum(values: tuple[Any, ...]) -> bytes:
    """The checksum over every other column; the lengths keep the texts apart."""
    owner, kind, name, version, updated_at, body = values
    return codec.checksum(f"{owner},{version},{updated_at},{len(kind)}:{kind},{len(name)}:{name},{body}")
