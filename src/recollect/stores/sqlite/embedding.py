"""Vectors that come after their memories: those of texts that could not be embedded at once, and those of another
embedder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw

from recollect.ports import check_vector
from recollect.stores.sqlite import rows

if TYPE_CHECKING:
    from recollect.ports import Embedded

_INTO_RENEWED = rows.Insert("renewed (number, embedder, data, spans, pieces, digest)", 6)
_NEWEST = (
    "SELECT owner, version FROM journal WHERE id ="
    # The first version has the number for its sequence. If it is set aside as damaged, a later one is looked for.
    " (SELECT id FROM journal WHERE sequence >= ?1 AND number = ?1 ORDER BY sequence LIMIT 1)"
    " ORDER BY version DESC LIMIT 1"
)
_MISSING = "SELECT EXISTS (SELECT 1 FROM heads h WHERE h.number NOT IN (SELECT number FROM renewed WHERE embedder = ?))"


def embed(connection: apsw.Connection, vectors: Sequence[Embedded]) -> None:
    """Store vectors of versions that are still the newest: in use, if they are the file's embedder's, else beside."""
    settings = rows.settings(connection)
    fitting = [(owner, one) for one in vectors if (owner := _owner(connection, one)) is not None]
    if not fitting:
        return
    known = settings.get("embedder", fitting[0][1].vector.embedder)
    dimension = int(settings.get("dimension") or fitting[0][1].vector.dimension)
    # All of them before anything is written: an error of ours ends the job, and undoes none of its statements.
    used = [one for _, one in fitting if one.vector.embedder == known]
    for one in used:
        check_vector(one.vector, known, dimension)
    if used and "embedder" not in settings:
        rows.set_settings(connection, {"embedder": known, "dimension": str(dimension)})
    for owner, one in fitting:
        row = rows.vector_row(one.number, one.vector, one.digest)
        if one.vector.embedder == known:
            _replace(connection, owner, one, row)
        else:
            connection.execute("DELETE FROM renewed WHERE number = ?", (one.number,))
            _INTO_RENEWED.rows(connection, [row])
    if used:
        rows.renew(connection)


def _owner(connection: apsw.Connection, one: Embedded) -> int | None:
    """Whose the memory is, if it is still at that version. Its number is the sequence of its first version."""
    row = connection.execute(_NEWEST, (one.number,)).fetchone()
    return int(row[0]) if row is not None and row[1] == one.version else None


def _replace(connection: apsw.Connection, owner: int, one: Embedded, row: tuple[object, ...]) -> None:
    before = connection.execute("SELECT length(data) FROM vectors WHERE number = ?", (one.number,)).get or 0
    connection.execute("DELETE FROM vectors WHERE number = ?", (one.number,))
    rows.INTO_VECTORS.rows(connection, [row])
    grown = len(one.vector.data) - int(before)
    connection.execute("UPDATE heads SET bytes = bytes + ? WHERE owner = ? AND number = ?", (grown, owner, one.number))
    rows.forget_images(connection, owner)


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
            f" WHERE number IN (SELECT number FROM {table})"
        )
    connection.execute("DELETE FROM vectors")
    connection.execute(
        "INSERT INTO vectors (number, embedder, data, spans, pieces, digest)"
        " SELECT number, embedder, data, spans, pieces, digest FROM renewed WHERE number IN (SELECT number FROM heads)"
    )
    connection.execute("DELETE FROM renewed")
    rows.set_settings(connection, {"embedder": embedder, "dimension": str(dimension)})
    connection.execute("DELETE FROM settings WHERE name = 'calibration'")
    rows.forget_images(connection)
    return True
