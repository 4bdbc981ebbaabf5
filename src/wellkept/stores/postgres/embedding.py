"""Vectors that come after their memories: those of texts that could not be embedded at once, and those of another
embedder.
"""

from __future__ import annotations

from collections.abc import Sequence

from wellkept.ports import check_vector
from wellkept.stores.postgres import rows, tables
from wellkept.stores.postgres.server import Row, Session
from wellkept.types import Embedded

_TARGETS = (
    "SELECT w.place, h.owner, h.born, octet_length(v.data)"
    " FROM unnest(%s::integer[], %s::bytea[], %s::text[], %s::bigint[]) w (place, digest, id, version)"
    f" JOIN owners o ON o.digest = w.digest{rows.HEAD_BY_ID}"
    " LEFT JOIN vectors v ON v.owner = h.owner AND v.born = h.born"
    f" WHERE h.version = w.version AND h.state <> '{rows.ERASED}' ORDER BY w.place"
)
_UPSERT = (
    "INSERT INTO {} (owner, born, embedder, data, spans, pieces, digest) VALUES (%s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (owner, born) DO UPDATE SET embedder = excluded.embedder, data = excluded.data,"
    " spans = excluded.spans, pieces = excluded.pieces, digest = excluded.digest"
)
_REVISE = "UPDATE owners SET revision = revision + 1"
_RECOUNT = (
    "UPDATE owners o SET bytes = (SELECT coalesce(sum(h.size + h.vector), 0) FROM heads h"
    f" WHERE h.owner = o.no AND {rows.COUNTED})"
)
_MISSING = (
    "SELECT EXISTS (SELECT 1 FROM heads h WHERE h.state NOT IN ('erased', 'moved') AND NOT EXISTS"
    " (SELECT 1 FROM renewed r WHERE r.owner = h.owner AND r.born = h.born AND r.embedder = %s))"
)


def embed(session: Session, vectors: Sequence[Embedded]) -> None:
    """Store vectors of versions that are still the newest: in use, if they are the store's embedder's, else beside."""
    if not _embed(session, vectors, alone=False):
        _embed(session, vectors, alone=True)


def _embed(session: Session, vectors: Sequence[Embedded], *, alone: bool) -> bool:
    """Whether it was done: the first vector of all needs to be alone."""
    with session.transaction():
        session.run(tables.LOCK_ALONE if alone else tables.LOCK_SHARED, (tables.EMBEDDER_LOCK,))
        session.run(tables.LOCK, (sorted({rows.named(one.owner).lock for one in vectors}),))
        settings = tables.settings(session)
        fitting = [(vectors[place], row) for place, *row in session.rows(_TARGETS, _asked(vectors))]
        if not fitting:
            return True
        known = settings.get("embedder", fitting[0][0].vector.embedder)
        used = [pair for pair in fitting if pair[0].vector.embedder == known]
        if used:
            first = "embedder" not in settings or "dimension" not in settings
            if first and not alone:
                return False
            dimension = int(settings.get("dimension") or used[0][0].vector.dimension)
            for one, _ in used:
                check_vector(one.vector, known, dimension)
            if first:
                tables.put_settings(session, {"embedder": known, "dimension": str(dimension)})
        _store(session, [pair for pair in fitting if pair[0].vector.embedder != known], "renewed")
        _store(session, used, "vectors")
        _count(session, used)
    return True


def _asked(vectors: Sequence[Embedded]) -> tuple[list[object], ...]:
    return (
        list(range(len(vectors))),
        [rows.named(one.owner).digest for one in vectors],
        [one.id for one in vectors],
        [one.version for one in vectors],
    )


def _store(session: Session, pairs: Sequence[tuple[Embedded, list[object]]], table: str) -> None:
    made = [rows.vector_row(int(owner), int(born), one.vector, one.digest) for one, (owner, born, _) in pairs]  # type: ignore[call-overload]  # columns of a row
    if made:
        session.connection.cursor().executemany(_UPSERT.format(table).encode(), made)


def _count(session: Session, pairs: Sequence[tuple[Embedded, list[object]]]) -> None:
    """Sizes of memories and owners, and the revisions of the owners."""
    if not pairs:
        return
    owners = sorted({row[0] for _, row in pairs})  # type: ignore[type-var]  # numbers
    sizes = [(row[0], one.id, len(one.vector.data)) for one, row in pairs]
    session.connection.cursor().executemany(
        "UPDATE heads SET vector = %s WHERE owner = %s AND id = %s", [(size, owner, id_) for owner, id_, size in sizes]
    )
    session.run(f"{_RECOUNT} WHERE o.no = ANY(%s)", (owners,))
    session.run(f"{_REVISE} WHERE no = ANY(%s)", (owners,))


def adopt(session: Session, embedder: str, dimension: int) -> bool:
    """Put the vectors of another embedder in the place of those in use, unless a memory lacks one."""
    with session.transaction(unhurried=True):
        session.run(tables.LOCK_ALONE, (tables.EMBEDDER_LOCK,))  # nobody writes meanwhile
        named = tables.settings(session)
        if named.get("embedder") == embedder:
            return True
        missing: list[Row] = session.rows(_MISSING, (embedder,))
        if missing[0][0]:
            return False
        session.run("DELETE FROM vectors")
        session.run("INSERT INTO vectors SELECT * FROM renewed WHERE embedder = %s", (embedder,))
        session.run("DELETE FROM renewed")
        session.run(
            "UPDATE heads h SET vector = coalesce((SELECT octet_length(v.data) FROM vectors v"
            " WHERE v.owner = h.owner AND v.born = h.born), 0) WHERE h.state <> 'erased'"
        )
        session.run(_RECOUNT)
        session.run(_REVISE)
        tables.put_settings(session, {"embedder": embedder, "dimension": str(dimension)})
        session.run("DELETE FROM settings WHERE name = 'calibration'")
    return True
