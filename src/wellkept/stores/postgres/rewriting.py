"""Other facets, payloads and reasons in the place of those of stored versions."""

from __future__ import annotations

from collections.abc import Sequence

from wellkept import codec
from wellkept.stores.postgres import rows, tables
from wellkept.stores.postgres.server import Session
from wellkept.types import Operation, Stored

_NUMBERS = "SELECT digest, no FROM owners WHERE digest = ANY(%s)"
_VERSION = (
    "SELECT id, version, seq, born, born_at, recorded_at, operation, stamp, replaced, write_id FROM journal"
    " WHERE owner = %s AND id = %s AND version = %s AND stamp = %s FOR UPDATE"
)
_UPDATE = (
    "UPDATE journal SET reason = %s, facets = %s, content = %s, payload = %s, digest = %s WHERE owner = %s AND seq = %s"
)
_HEAD = (
    "UPDATE heads SET author = %s, source_type = %s, has_pointer = %s, tags = %s, key = %s"
    f" WHERE owner = %s AND id = %s AND version = %s AND state <> '{rows.ERASED}' RETURNING born"
)
_VECTOR = (
    "UPDATE vectors SET embedder = %s, data = %s, spans = %s, pieces = %s, digest = NULL WHERE owner = %s AND born = %s"
)
_RENEWED = "DELETE FROM renewed WHERE owner = %s AND born = %s"
_REVISE = "UPDATE owners SET revision = revision + 1 WHERE no = ANY(%s)"


def rewrite(session: Session, versions: Sequence[Stored]) -> None:
    """Rewrite the versions that are there, in one transaction."""
    with session.transaction():
        session.run(tables.LOCK, (sorted({rows.named(one.owner).lock for one in versions}),))
        found = session.rows(_NUMBERS, (rows.digests({one.owner for one in versions}),))
        numbers = {bytes(digest): int(number) for digest, number in found}
        for one in versions:
            number = numbers.get(rows.named(one.owner).digest)
            if number is not None:
                _rewrite(session, number, one)
        session.run(_REVISE, (list(numbers.values()),))


def _rewrite(session: Session, owner: int, one: Stored) -> None:
    for *row, write_id in session.rows(_VERSION, (owner, one.id, one.version, str(one.stamp))):
        erased = one.operation is Operation.ERASED
        rest = dict(one.facets)
        content = rest.pop("text", None)
        facets = None if erased else codec.encode_json(rest).decode()
        changed = (one.reason, facets, content, None if erased else one.payload)
        digest = rows.checksum((*row, one.reason, write_id, *changed[1:]))
        session.run(_UPDATE, (*changed, digest, owner, row[2]))
        get = one.facets.get
        columns = (
            get("author"),
            get("source_type"),
            bool(get("has_pointer", False)),
            list(get("tags", ())),
            get("key"),
        )
        for (born,) in session.rows(_HEAD, (*columns, owner, one.id, one.version)):
            if one.vector is not None:
                _, _, *vector, _ = rows.vector_row(owner, born, one.vector, None)
                session.run(_VECTOR, (*vector, owner, born))
                session.run(_RENEWED, (owner, born))
