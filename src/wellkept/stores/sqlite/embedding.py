"""Vectors that come after their memories: those of texts that could not be embedded at once, and those of another
embedder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw

from wellkept.ports import check_vector
from wellkept.stores.sqlite import rows
from wellkept.stores.sqlite.transaction import Transaction
from wellkept.types import Embedded

_INTO_RENEWED = rows.Insert("renewed (number, embedder, data, spans, pieces, digest)", 6)
_NEWEST = "SELECT number, version, operation FROM journal WHERE id = ? AND owner = ? ORDER BY version DESC LIMIT 1"
_COUNTED = "AND state <> 'archived'"
_MISSING = (
    "SELECT EXISTS (SELECT 1 FROM heads h WHERE h.state <> 'moved'"
    " AND h.number NOT IN (SELECT number FROM renewed WHERE embedder = ?))"
)


class _Target(NamedTuple):
    """A vector whose memory is still at its version, and where that memory is in the file."""

    one: Embedded
    owner: int
    number: int


def embed(work: Transaction, vectors: Sequence[Embedded]) -> None:
    """Store vectors of versions that are still the newest: in use, if they are the file's embedder's, else beside."""
    connection = work.connection
    settings = rows.settings(connection)
    fitting = [target for one in vectors if (target := _target(work, connection, one)) is not None]
    if not fitting:
        return
    known = settings.get("embedder", fitting[0].one.vector.embedder)
    used = [target for target in fitting if target.one.vector.embedder == known]
    if used:
        # All of them before anything is written: an error ends the job, and undoes none of its statements.
        dimension = int(settings.get("dimension") or used[0].one.vector.dimension)
        for target in used:
            check_vector(target.one.vector, known, dimension)
        if "embedder" not in settings or "dimension" not in settings:
            rows.set_settings(connection, {"embedder": known, "dimension": str(dimension)})
    for target in fitting:
        row = rows.vector_row(target.number, target.one.vector, target.one.digest)
        if target.one.vector.embedder == known:
            _replace(connection, target, row)
        else:
            connection.execute("DELETE FROM renewed WHERE number = ?", (target.number,))
            _INTO_RENEWED.rows(connection, [row])
    for owner in {target.owner for target in used}:
        rows.revise(connection, owner)


def _target(work: Transaction, connection: apsw.Connection, one: Embedded) -> _Target | None:
    owner = work.find_owner(one.owner)
    row = connection.execute(_NEWEST, (one.id, owner)).fetchone()
    if row is None or row[1] != one.version or row[2] == rows.ERASED:
        return None
    return _Target(one, owner, row[0])


def _replace(connection: apsw.Connection, target: _Target, row: tuple[object, ...]) -> None:
    number, owner = target.number, target.owner
    before = connection.execute("SELECT length(data) FROM vectors WHERE number = ?", (number,)).get or 0
    connection.execute("DELETE FROM vectors WHERE number = ?", (number,))
    rows.INTO_VECTORS.rows(connection, [row])
    grown = len(target.one.vector.data) - int(before)
    connection.execute(
        f"UPDATE heads SET bytes = bytes + ? WHERE owner = ? AND number = ? {_COUNTED}", (grown, owner, number)
    )
    if connection.changes():
        connection.execute("UPDATE owners SET bytes = bytes + ? WHERE owner = ?", (grown, owner))


def adopt(connection: apsw.Connection, embedder: str, dimension: int) -> bool:
    """Put the vectors of another embedder in the place of those in use, unless a memory lacks one."""
    if rows.settings(connection).get("embedder") == embedder:
        return True
    if connection.execute(_MISSING, (embedder,)).get:
        return False
    connection.execute("DELETE FROM renewed WHERE embedder <> ?", (embedder,))
    for table, sign in (("vectors", "-"), ("renewed", "+")):
        connection.execute(
            f"UPDATE heads SET bytes = bytes {sign} (SELECT length(data) FROM {table} t WHERE t.number = heads.number)"
            f" WHERE number IN (SELECT number FROM {table}) {_COUNTED}"
        )
    connection.execute("DELETE FROM vectors")
    connection.execute(
        "INSERT INTO vectors (number, embedder, data, spans, pieces, digest)"
        " SELECT number, embedder, data, spans, pieces, digest FROM renewed WHERE number IN (SELECT number FROM heads)"
    )
    connection.execute("DELETE FROM renewed")
    connection.execute(
        "UPDATE owners SET bytes = (SELECT coalesce(sum(bytes), 0) FROM heads h WHERE h.owner = owners.owner)"
    )
    rows.set_settings(connection, {"embedder": embedder, "dimension": str(dimension)})
    connection.execute("DELETE FROM settings WHERE name = 'calibration'")
    rows.revise(connection)
    return True
