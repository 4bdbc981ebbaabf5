"""Other facets, payloads and reasons in the place of those of stored versions."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from wellkept import codec
from wellkept.stores.sqlite import rows
from wellkept.stores.sqlite.transaction import Transaction
from wellkept.types import Operation, Stored

_VERSION = f"SELECT {rows.CHECKED} FROM journal WHERE id = ? AND owner = ? AND version = ?"
_UPDATE = "UPDATE journal SET reason = ?, facets = ?, text = ?, payload = ?, checksum = ? WHERE place = ?"
_HEAD = "UPDATE heads SET author = ?, source_type = ?, has_pointer = ? WHERE owner = ? AND number = ? AND place = ?"


def rewrite(work: Transaction, versions: Sequence[Stored]) -> None:
    """Rewrite the versions that are there, and what is derived from them. A damaged one is left for doctor."""
    connection = work.connection
    touched = set[int]()
    for one in versions:
        owner = work.find_owner(one.owner)
        for row in rows.fetch(connection, _VERSION, (one.id, owner, one.version)) if owner else ():
            if row[10] == one.stamp and rows.is_sound(row):
                _rewrite(connection, row, one)
                touched.add(owner)
    for owner in touched:
        rows.revise(connection, owner)


def _rewrite(connection: apsw.Connection, row: Sequence[object], one: Stored) -> None:
    place, owner, number = row[0], row[1], row[5]
    erased = one.operation is Operation.ERASED
    rest = dict(one.facets)
    text = rest.pop("text", None)
    facets = None if erased else codec.encode_json(rest).decode()
    payload = None if erased else one.payload
    values = (*row[:12], one.reason, row[13], facets, text, payload)
    connection.execute(_UPDATE, (one.reason, facets, text, payload, rows.checksum(values), place))
    columns = one.facets.get("author"), one.facets.get("source_type"), one.facets.get("has_pointer", False)
    connection.execute(_HEAD, (*columns, owner, number, place))
    if not connection.changes():
        return  # not the newest
    before = codec.decode_json(str(row[14]).encode())
    for tag in before.get("tags", ()):
        connection.execute("DELETE FROM tags WHERE owner = ? AND tag = ? AND number = ?", (owner, tag, number))
    rows.INTO_TAGS.rows(connection, [(owner, tag, number) for tag in one.facets.get("tags", ())])
    connection.execute("DELETE FROM keys WHERE owner = ? AND key = ?", (owner, before.get("key")))
    if (key := one.facets.get("key")) is not None:
        rows.INTO_KEYS.rows(connection, [(owner, key, number)])
    if one.vector is not None:
        for table in ("vectors", "renewed"):
            connection.execute(f"DELETE FROM {table} WHERE number = ?", (number,))
        rows.INTO_VECTORS.rows(connection, [rows.vector_row(int(str(number)), one.vector, None)])
