"""Versions as schema 5 kept them, to those of schema 6 and back. Frozen: both sides are data of the file.

Schema 5 kept a version as a content and a JSON body with all other fields that differ from their defaults, under one
sequence for all owners.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from wellkept import codec, ids
from wellkept.stores.sqlite import projections, rows
from wellkept.types import Stamp

_FACETS = ("key", "author", "role", "session", "title", "decay_factor")
_PAYLOAD = ("description", "language", "type_name", "confidence", "relevance", "pointer")
_NAMED = (*_FACETS, *_PAYLOAD)
_MAPPED = {
    *_NAMED,
    "type",
    "importance",
    "tags",
    "metadata",
    "source",
    "references",
    "occurred_at",
    "expires_at",
    "state",
}
KNOWN_FACETS = frozenset(
    """state type importance created_at occurred_at expires_at bytes tags fields source_type has_pointer""".split()
) | frozenset(_FACETS)
_DEFAULTS = {"type": "fact", "importance": 0.5, "state": "active"}
_OLD = "sequence, id, version, number, owner, operation, recorded_at, created_at, reason, content, body, checksum"
_OLD_RAW = (
    "sequence, CAST(id AS BLOB), version, number, owner, CAST(operation AS BLOB), recorded_at, created_at,"
    " CAST(reason AS BLOB), CAST(content AS BLOB), CAST(body AS BLOB), checksum"
)
_OLD_HEAD = (
    "owner, number, sequence, state, type, importance, created_at, occurred_at, expires_at, author, source_type,"
    " has_pointer, bytes"
)
_BEFORE = "SELECT stamp, born, born_at FROM journal WHERE id = ? AND owner = ? ORDER BY version DESC LIMIT 1"
_AT_ONCE = 200
_DAMAGED = b""
"""The checksum of a version that was damaged before: no version has it, so every reader and the doctor notice."""

Row = tuple[Any, ...]


class _Old(NamedTuple):
    """A row of schema 5's journal."""

    sequence: int
    id: str
    version: int
    number: int
    owner: int
    operation: str
    recorded_at: int
    created_at: int
    reason: str | None
    content: str | None
    body: str | None


# -- to schema 6 ------------------------------------------------------------------------------------------------


def upgrade(connection: apsw.Connection) -> None:
    """Fill the tables of schema 6 from those of schema 5, which stand beside them under other names."""
    origin = ids.new_origin()
    rows.set_settings(connection, {"origin": origin, "epoch": ids.new_origin()})
    connection.execute("DELETE FROM settings WHERE name = 'generation'")
    clock = ids.StampClock(origin, bytes)  # one writer: its tag is zeros
    owners = {number for (number,) in rows.fetch(connection, "SELECT owner FROM owners")}
    seqs: defaultdict[int, int] = defaultdict(int)
    last_at: defaultdict[int, int] = defaultdict(int)
    made: list[Row] = []
    for old, sound in _old_versions(connection):
        if old.owner not in owners:
            _set_aside(connection, old.sequence)
            continue
        seqs[old.owner] += 1
        # Schema 5 recorded the writer's clock; from schema 6 on, times rise with the sequence of an owner.
        recorded_at = last_at[old.owner] = max(old.recorded_at, last_at[old.owner])
        before: Row | None = None
        if old.number != old.sequence and old.operation != rows.ERASED:
            rows.INTO_JOURNAL.rows(connection, made)
            made.clear()
            before = connection.execute(_BEFORE, (old.id, old.owner)).fetchone()
        made.append(_new_row(old, clock.stamp(max(recorded_at, 0)), seqs[old.owner], recorded_at, before, sound=sound))
        if len(made) >= _AT_ONCE:
            rows.INTO_JOURNAL.rows(connection, made)
            made.clear()
    rows.INTO_JOURNAL.rows(connection, made)
    for (sequence,) in rows.fetch(connection, "SELECT sequence FROM damaged_5"):
        _set_aside(connection, sequence, table="damaged_5")
    projections.rebuild(connection)
    connection.execute("UPDATE owners SET revision = 0")


def _old_versions(connection: apsw.Connection) -> Iterator[tuple[_Old, bool]]:
    """The versions of schema 5, and whether each is what was written."""
    for *values, checksum in connection.execute(f"SELECT {_OLD_RAW} FROM journal_5 ORDER BY sequence"):
        try:
            old = _Old._make(value.decode() if isinstance(value, bytes) else value for value in values)
            sound = old_checksum(old) == checksum
        except ValueError:
            readable = (value.decode(errors="replace") if isinstance(value, bytes) else value for value in values)
            old, sound = _Old._make(readable), False
        yield old, sound


def old_checksum(old: Row) -> bytes:
    """The checksum that schemas 1 to 5 kept with a version."""
    sequence, id_, version, number, owner, operation, recorded_at, created_at, reason, content, body = old
    return codec.checksum(
        f"{sequence},{version},{number},{owner},{operation},{recorded_at},{created_at}"
        f",{len(id_)}:{id_},{len(reason or '')}:{reason},{len(content or '')}:{content},{body}"
    )


def _set_aside(connection: apsw.Connection, sequence: int, table: str = "journal_5") -> None:
    """Keep a row that fits no table any more, as far as the table of damaged versions has columns for it."""
    connection.execute(
        "INSERT OR REPLACE INTO damaged (place, id, version, number, owner, operation, recorded_at, born_at, reason,"
        f" text, facets, checksum) SELECT {_OLD} FROM {table} WHERE sequence = ?",
        (sequence,),
    )


def _new_row(old: _Old, stamp: Stamp, seq: int, recorded_at: int, before: Row | None, *, sound: bool) -> Row:
    facets: str | None = None
    payload: bytes | None = None
    if old.body is not None:
        try:
            named, payload = new_form(codec.decode_json(old.body), old.content or "", old.created_at)
            facets = codec.encode_json(named).decode()
        except codec.UNREADABLE:
            facets, sound = "{}", False
    replaced, born, born_at = before or (None, seq, recorded_at)
    values = (
        old.sequence,
        old.owner,
        old.id,
        old.version,
        seq,
        old.number,
        born,
        born_at,
        recorded_at,
        old.operation,
        stamp,
        replaced,
        old.reason,
        facets,
        old.content,
        payload,
    )
    return (*values, rows.checksum(values) if sound else _DAMAGED)


def new_form(body: Mapping[str, Any], content: str, created_at: int) -> tuple[dict[str, Any], bytes]:
    """The facets, without the text, and the payload of a memory that schema 5 kept."""
    named: dict[str, Any] = {name: body[name] for name in _FACETS if body.get(name) is not None}
    if body.get("tags"):
        named["tags"] = body["tags"]
    if body.get("metadata"):
        named["fields"] = body["metadata"]
    if body.get("expires_at") is not None:
        named["expires_at"] = _micros(body["expires_at"])
    source = body.get("source") or {}
    if source:
        named["source_type"] = source["type"]
    if body.get("pointer") is not None:
        named["has_pointer"] = True
    rest = {name: value for name, value in body.items() if name not in _MAPPED}
    rest |= {name: body[name] for name in _PAYLOAD if body.get(name) is not None}
    if body.get("references"):
        rest["references"] = body["references"]
    if source.get("reference") is not None:
        rest["source_reference"] = source["reference"]
    payload = codec.encode_json(rest) if rest else b""
    facets = {
        **{name: body.get(name, default) for name, default in _DEFAULTS.items()},
        "created_at": created_at,
        "occurred_at": created_at if body.get("occurred_at") is None else _micros(body["occurred_at"]),
        "bytes": len(content.encode()) + len(codec.encode_json(named)) + len(payload),
        **named,
    }
    return facets, payload


def _micros(text: str) -> int:
    return codec.to_micros(datetime.fromisoformat(text))


# -- to schema 5 ------------------------------------------------------------------------------------------------


def downgrade(connection: apsw.Connection) -> None:
    """Fill the tables of schema 5 from those of schema 6, which stand beside them under other names. What schema 5
    cannot hold (see ``losses``) is left out.
    """
    into = rows.Insert(f"journal ({_OLD})", 12)
    heads: dict[str, _Old] = {}  # the newest version of each id
    owner_of: dict[str, int] = {}
    for row in connection.execute(f"SELECT {rows.CHECKED} FROM journal_6 ORDER BY place"):
        old = _old_row(row)
        if old is None or owner_of.setdefault(old.id, old.owner) != old.owner:
            continue
        sound = rows.checksum(row[:16]) == row[16]
        into.rows(connection, [(*old, old_checksum(old) if sound else _DAMAGED)])
        if old.operation == rows.ERASED:
            heads.pop(old.id, None)
        else:
            heads[old.id] = old
    for table in ("tags", "keys"):
        connection.execute(f"DELETE FROM {table}")
    for head in heads.values():
        _insert_head(connection, head)
    for table in ("vectors", "renewed", "accesses"):
        connection.execute(f"DELETE FROM {table} WHERE number NOT IN (SELECT number FROM heads)")
    connection.execute("DELETE FROM settings WHERE name IN ('origin', 'epoch')")


def _old_row(row: Row) -> _Old | None:
    """A version as schema 5 keeps it; none if its text or payload is sealed."""
    place, owner, id_, version, _, number, _, _, recorded_at, operation, _, _, reason, facets, text, payload, _ = row
    if operation == rows.ERASED:
        return _Old(place, id_, version, number, owner, operation, recorded_at, recorded_at, reason, None, None)
    try:
        named, rest = codec.decode_json(facets), codec.decode_json(payload or b"{}")
    except codec.UNREADABLE:
        return None
    if text is None or not isinstance(rest, dict):
        return None
    body = codec.encode_json(old_body(named, rest)).decode()
    operation = "forgotten" if operation == "archived" else operation
    return _Old(place, id_, version, number, owner, operation, recorded_at, named["created_at"], reason, text, body)


def old_body(facets: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """The body that schema 5 kept of a memory."""
    body = {name: facets[name] for name, default in _DEFAULTS.items() if facets[name] != default}
    if body.get("state") in ("archived", "superseded"):
        body["state"] = "forgotten"
    body |= {name: facets[name] for name in _FACETS if name in facets}
    body |= {name: value for name, value in rest.items() if name != "source_reference"}
    if "tags" in facets:
        body["tags"] = facets["tags"]
    if "fields" in facets:
        body["metadata"] = facets["fields"]
    if "source_type" in facets:
        body["source"] = {"type": facets["source_type"], "reference": rest.get("source_reference")}
    if facets["occurred_at"] != facets["created_at"]:
        body["occurred_at"] = codec.from_micros(facets["occurred_at"])
    if "expires_at" in facets:
        body["expires_at"] = codec.from_micros(facets["expires_at"])
    return body


def _insert_head(connection: apsw.Connection, old: _Old) -> None:
    body, content = codec.decode_json(old.body or "{}"), old.content or ""
    vector = connection.execute("SELECT length(data) FROM vectors WHERE number = ?", (old.number,)).get or 0
    facets, _ = new_form(body, content, old.created_at)
    size = len(content.encode()) + len((old.body or "").encode()) + vector
    head = (old.owner, old.number, old.sequence, *rows.head_columns(facets, size))
    rows.Insert(f"heads ({_OLD_HEAD})", 13).rows(connection, [head])
    rows.INTO_TAGS.rows(connection, [(old.owner, tag, old.number) for tag in body.get("tags", ())])
    if body.get("key") is not None:
        rows.INTO_KEYS.rows(connection, [(old.owner, body["key"], old.number)])


# -- what gets lost ---------------------------------------------------------------------------------------------

_LOSSES = (
    ("SELECT count(*) FROM heads WHERE state = 'archived'", "{} archived memories become forgotten ones"),
    ("SELECT count(*) FROM heads WHERE state = 'superseded'", "{} superseded memories become forgotten ones"),
    (
        "SELECT count(DISTINCT number) FROM journal WHERE text IS NULL AND operation <> 'erased'",
        "{} memories with a sealed text are dropped, with their history",
    ),
    (
        "SELECT count(*) FROM (SELECT id FROM journal GROUP BY id HAVING count(DISTINCT owner) > 1)",
        "{} ids belong to memories of several owners: only one memory of each id stays",
    ),
    (
        "SELECT count(DISTINCT j.number) FROM journal j, json_each(j.facets) f WHERE f.key NOT IN ({known})",
        "{} memories lose facets that the older schema does not know",
    ),
    ("SELECT count(*) FROM leases", "{} leases are dropped"),
    (
        "SELECT count(*) FROM journal",
        "the stamps of {} versions are dropped: copies of this file no longer recognise each other, and positions of"
        " followers are lost",
    ),
)


def losses(connection: apsw.Connection) -> list[str]:
    """What schema 5 cannot hold of a file of schema 6, as sentences; to be told before going down."""
    known = ", ".join(f"'{name}'" for name in sorted(KNOWN_FACETS))
    found = []
    for statement, sentence in _LOSSES:
        count = connection.execute(statement.replace("{known}", known)).get
        if count:
            found.append(sentence.format(count))
    return found
