"""Comparing the tables with the journal, and mending them: the journal is the truth, the rest follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from wellkept import codec
from wellkept.ports import Counters, Head, Step, StoreSettings
from wellkept.stores.postgres import append, epochs, records, rows, schema, tables
from wellkept.stores.postgres.server import Row, Session
from wellkept.types import Diagnosis, Finding, Operation, Owner, Stamp, State, Write

_AT_ONCE = 2_000
_JOURNAL = (
    f"SELECT o.name, {rows.JOURNAL}, o.no, coalesce(octet_length(v.data), 0) FROM journal j"
    " JOIN owners o ON o.no = j.owner LEFT JOIN vectors v ON v.owner = j.owner AND v.born = j.born"
    " ORDER BY j.owner, j.id, j.version"
)
_HEADS = f"SELECT {rows.HEAD} FROM heads ORDER BY owner, id"
_COUNTERS = "SELECT no, seq, memories, bytes, last_at FROM owners"
_COUNT = "UPDATE owners SET seq = %s, memories = %s, bytes = %s, last_at = %s, revision = revision + 1 WHERE no = %s"
_UNFIT = (
    "FROM {table} v WHERE NOT EXISTS (SELECT 1 FROM heads h WHERE h.owner = v.owner AND h.born = v.born"
    " AND h.state <> 'erased')"
)
_WRONG = (
    f"{_UNFIT.format(table='vectors')}"
    " OR embedder <> %(embedder)s::text"
    " OR octet_length(data) <> 4 * %(dimension)s::integer * greatest(1, coalesce(octet_length(spans), 0) / 8)"
)
# An owner whose number is damaged has no name.
_RECORDS = (
    f"SELECT {records.COLUMNS}, r.owner FROM records r LEFT JOIN owners o ON o.no = r.owner"
    " ORDER BY r.owner, r.kind, r.name"
)
_SHOWN = 10  # what a finding names
_REPAIR = "derive heads and counters again"


@dataclass(slots=True)
class Differences:
    """What the tables say and the journal does not. A head that should not be there is ``None``."""

    versions: int = 0
    damaged: int = 0
    heads: dict[tuple[int, str], tuple[object, ...] | None] = field(default_factory=dict)
    counters: dict[int, Counters] = field(default_factory=dict)


def compare(session: Session) -> Differences:
    """Go through the journal and the heads side by side, in one transaction."""
    found = Differences()
    counted: dict[int, Counters] = {}
    expected = _expected(session, found, counted)
    actual = _stream(session, "heads", _HEADS)
    wanted, kept = next(expected, None), next(actual, None)
    while wanted is not None or kept is not None:
        key = min(one[:2] for one in (wanted, kept) if one is not None)
        if wanted is not None and wanted[:2] == key:
            if kept is None or kept != wanted:
                found.heads[key] = wanted
            wanted, differs = next(expected, None), kept is not None and kept[:2] == key
            kept = next(actual, None) if differs else kept
        else:
            found.heads[key] = None
            kept = next(actual, None)
    for number, *known in session.rows(_COUNTERS):
        seq, memories, used, last_at = counted.get(number, Counters())
        # Sequences and times may be ahead: those of erased versions are not given again.
        right = Counters(max(seq, known[0]), memories, used, max(last_at, known[3]))
        if right != Counters(*known):
            found.counters[number] = right
    return found


def _expected(session: Session, found: Differences, counted: dict[int, Counters]) -> Iterator[tuple[Any, ...]]:
    """The heads that follow from the journal, by owner and id; counts on the way."""
    newest: Row | None = None
    for row in _stream(session, "journal", _JOURNAL):
        found.versions += 1
        number = row[16]
        if not _is_sound(row):
            found.damaged += 1
        if newest is not None and (newest[16], newest[rows.ID]) != (number, row[rows.ID]):
            yield _head(newest, counted)
        newest = row
        seq, memories, used, last_at = counted.get(number, Counters())
        counted[number] = Counters(max(seq, row[rows.SEQ]), memories, used, max(last_at, row[6]))
    if newest is not None:
        yield _head(newest, counted)


def _is_sound(row: Row) -> bool:
    try:
        return rows.checksum(row[rows.ID : rows.DIGEST]) == row[rows.DIGEST] and isinstance(_facets(row), dict)
    except codec.UNREADABLE:
        return False


def _facets(row: Row) -> Any:
    return {} if row[12] is None else codec.decode_json(row[12])


def _head(row: Row, counted: dict[int, Counters]) -> tuple[Any, ...]:
    """The head that a version leaves, as ``append`` would have written it."""
    number, vector, facets = row[16], row[17], _facets(row)
    erased, archived = row[rows.OPERATION] == rows.ERASED, facets.get("state") == State.ARCHIVED
    size = int(facets.get("bytes", 0))
    after = Head(row[2], row[4], row[5], Stamp(row[rows.STAMP]), erased, facets.get("key"), size, vector, archived)
    owner: Owner = rows.owner_of(row[rows.WHO])
    write = Write(owner, row[rows.ID], row[2], 0, Operation(row[rows.OPERATION]), after.stamp, row[6], facets=facets)
    if not erased:
        seq, memories, used, last_at = counted[number]
        counted[number] = Counters(seq, memories + 1, used + (0 if archived else size + vector), last_at)
    return rows.head_row(number, Step(write, row[rows.SEQ], row[4], row[5], row[6], None, after))


def _stream(session: Session, name: str, statement: str) -> Iterator[Row]:
    with session.connection.cursor(name=name, binary=True) as cursor:
        cursor.itersize = _AT_ONCE
        cursor.execute(statement.encode())
        yield from cursor


def rebuild(session: Session) -> None:
    """Put heads and counters right while nobody writes; what is right is not touched."""
    with session.transaction(unhurried=True):
        session.run(tables.LOCK_ALONE, (tables.EMBEDDER_LOCK,))
        found = compare(session)
        cursor = session.connection.cursor()
        gone = [key for key, row in found.heads.items() if row is None]
        cursor.executemany("DELETE FROM heads WHERE owner = %s AND id = %s", gone)
        cursor.executemany(append.PUT_HEAD.encode(), [row for row in found.heads.values() if row is not None])
        cursor.executemany(_COUNT, [(*right, number) for number, right in found.counters.items()])


def examine(session: Session, *, repair: bool) -> Diagnosis:
    """Ask every question; mend and ask again if a repair was asked for."""
    problems = left = _problems(session)
    if repair and problems:
        tables.mend_settings(session)
        _set_aside(session)
        rebuild(session)  # before the vectors: those of heads that were missing fit again
        session.run(f"DELETE {_WRONG}", _vectors_of(tables.settings(session)))
        for table in ("renewed", "accesses"):
            session.run(f"DELETE {_UNFIT.format(table=table)}")
        rebuild(session)
        left = _problems(session)
    return Diagnosis(
        checks=("checksums", "records", "heads", "counters", "vectors", "settings"),
        findings=tuple(
            Finding(check=check, message=message, repair=mend, repaired=repair and check not in left)
            for check, (message, mend) in problems.items()
        ),
        facts=_facts_of(session),
    )


def _damaged_records(session: Session) -> list[Row]:
    """What ``SET_ASIDE`` needs of those that are not what was written."""
    found = _stream(session, "records", _RECORDS)
    return [(row[-1], row[1], row[2], row[6]) for row in found if not records.is_sound(row[:-1])]


def _set_aside(session: Session) -> None:
    """Nothing is thrown away: the rows stay in a table of their own until the record is dropped."""
    with session.transaction(unhurried=True):
        session.connection.cursor().executemany(records.SET_ASIDE.encode(), _damaged_records(session))


def _vectors_of(settings: StoreSettings) -> dict[str, object]:
    """What vectors must be, by the settings: the values of ``_WRONG``."""
    dimension = settings.get("dimension")
    return {"embedder": settings.get("embedder"), "dimension": None if dimension is None else int(dimension)}


def _named(damaged: Sequence[str], what: str) -> str:
    """The beginning of what is damaged, by name."""
    return f"{what} are damaged: {', '.join(damaged[:_SHOWN])}{', ...' if len(damaged) > _SHOWN else ''}"


def _problems(session: Session) -> dict[str, tuple[str, str]]:
    """What is wrong, by check: in words, and what mends it."""
    with session.connection.transaction():
        session.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        found = compare(session)
        settings = tables.settings(session)
        [(wrong,)] = session.rows(f"SELECT count(*) {_WRONG}", _vectors_of(settings))
        unsound = [f"{kind[:64]} {name[:64]!r}" for _, kind, name, _ in _damaged_records(session)]
    unset = [repr(name[:64]) for name in settings.damaged]
    problems = {
        "checksums": (found.damaged, "versions are damaged", "restore them from a backup of the server"),
        "records": (len(unsound), _named(unsound, "records"), "set them aside in a table of their own"),
        "heads": (len(found.heads), "heads differ from the journal", _REPAIR),
        "counters": (len(found.counters), "owners are counted wrongly", _REPAIR),
        "vectors": (wrong, "vectors fit no memory or not the embedder", "remove them"),
        "settings": (len(unset), _named(unset, "settings"), "write them anew from what the tables tell"),
    }
    return {check: (f"{count} {words}", mend) for check, (count, words, mend) in problems.items() if count}


def _facts_of(session: Session) -> dict[str, str]:
    [[(server, fsync)], settings, epoch, [(versions,)]] = session.together(
        [
            ("SELECT current_setting('server_version'), current_setting('fsync')", ()),
            (tables.SETTINGS, ()),
            epochs.CURRENT,
            ("SELECT count(*) FROM journal", ()),
        ]
    )
    kept = tables.to_settings(session, settings)
    return {
        "schema": f"{epochs.read(epoch).schema} of {schema.latest()}",
        "postgresql": server,
        "fsync": fsync,
        "durability": kept.get("durability", "full"),
        "embedder": kept.get("embedder", "none"),
        "dimension": kept.get("dimension", "none"),
        "versions": str(versions),
    }
