"""Comparing the file with itself, and mending it: the journal is the truth, everything else can be derived again."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from wellkept import codec
from wellkept.stores import folder_modes
from wellkept.stores.sqlite import connections, records, rows, schema
from wellkept.stores.sqlite.projections import counters, decoded, projections, raw, rebuild
from wellkept.types import Diagnosis, Finding

SAFE_SQLITE = (3, 51, 3)  # earlier ones can damage a WAL file that two connections reset at the same moment
_SHOWN = 10  # records that a finding names


@dataclass(frozen=True, slots=True)
class Check:
    """One question to the file: what is wrong, in words; and what mends it."""

    name: str
    wrong: Callable[[apsw.Connection], str]
    repair: str
    mend: Callable[[apsw.Connection], None]


def examine(connection: apsw.Connection, path: Path, *, repair: bool) -> Diagnosis:
    """Ask every question; mend and ask again if a repair was asked for."""
    found: list[tuple[Check, str]] = []
    checks = _checks(path)
    for check in checks:
        message = check.wrong(connection)
        if message:
            found.append((check, message))
            if repair:
                check.mend(connection)
    return Diagnosis(
        checks=tuple(check.name for check in checks),
        # Asked again at the end only: a later repair can mend what an earlier check found.
        findings=tuple(
            Finding(
                check=check.name,
                message=message,
                repair=check.repair,
                repaired=repair and not check.wrong(connection),
            )
            for check, message in found
        ),
        facts=_facts(connection, path),
    )


def _checks(path: Path) -> tuple[Check, ...]:
    return (
        Check("sqlite", _old_sqlite, "install a newer apsw", _nothing),
        Check("mode", lambda _: _open_mode(path), "set the file mode to 600", lambda _: _close_mode(path)),
        Check("folder", lambda _: _open_folder(path), "set the mode of the folder to 700", _nothing),
        Check("pages", _bad_pages, "rebuild the indexes; if that fails, restore a backup", _reindex),
        Check("checksums", _bad_checksums, "set what is damaged aside in tables of its own", _set_aside),
        Check("heads", _heads_differ, "rebuild the projections", rebuild),
        Check("tags", lambda c: _rows_differ(c, "tags"), "rebuild the projections", rebuild),
        Check("keys", lambda c: _rows_differ(c, "keys"), "rebuild the projections", rebuild),
        Check("counters", _counters_differ, "rebuild the projections", rebuild),
        Check("settings", _bad_settings, "write them anew from what the file tells", rows.mend_settings),
        Check("vectors", _bad_vectors, "remove vectors that fit no memory or no embedder", _drop_vectors),
    )


def _facts(connection: apsw.Connection, path: Path) -> dict[str, str]:
    settings = rows.settings(connection)
    facts = {
        "schema": str(schema.version_of(connection)),
        "sqlite": apsw.sqlite_lib_version(),
        "durability": settings.get("durability", "full"),
        "embedder": settings.get("embedder", "none"),
        "dimension": settings.get("dimension", "none"),
        "versions": str(connection.execute("SELECT count(*) FROM journal").get),
    }
    if copies := connections.copies(path):
        # They hold what was erased since: a person must know of them.
        facts["copies that migrations made"] = ", ".join(copy.name for copy in copies)
    return facts


def _nothing(_: apsw.Connection) -> None:
    """Some things only a person can mend."""


def _old_sqlite(_: apsw.Connection) -> str:
    version = apsw.sqlite_lib_version()
    old = tuple(int(part) for part in version.split(".")) < SAFE_SQLITE
    return f"SQLite {version} can damage the write-ahead log" if old else ""


def _open_mode(path: Path) -> str:
    modes = [stat.S_IMODE(file.stat().st_mode) for file in _files(path)]
    wrong = [f"{mode:o}" for mode in modes if mode & 0o077]
    return f"the file mode is {wrong[0]}, others may read it" if wrong else ""


def _open_folder(path: Path) -> str:
    folder = path.absolute().parent
    return folder_modes.FINDING if folder_modes.everybody_writes(folder, sticky_protects=True) else ""


def _close_mode(path: Path) -> None:
    for file in _files(path):
        file.chmod(0o600)


def _files(path: Path) -> list[Path]:
    """The file, its write-ahead log, and the index of that."""
    files = [path.with_name(path.name + side) for side in ("", "-wal", "-shm")]
    return [file for file in files if file.exists()]


def _bad_pages(connection: apsw.Connection) -> str:
    found = [row[0] for row in connection.execute("PRAGMA integrity_check(10)")]
    found += [f"foreign key in {row[0]}" for row in connection.execute("PRAGMA foreign_key_check")]
    return "" if found == ["ok"] else f"{len(found)} problems in the pages of the file"


def _reindex(connection: apsw.Connection) -> None:
    connection.execute("REINDEX")


def _damaged(connection: apsw.Connection) -> list[int]:
    """Places of the versions that are not what was written."""
    found = connection.execute(f"SELECT {raw(rows.CHECKED)} FROM journal")
    return [row[0] for row in found if not _sound(row)]


def _sound(row: tuple[Any, ...]) -> bool:
    try:
        return rows.is_sound((*decoded(row[:-1]), row[-1]))
    except connections.UNREADABLE:
        return False


def _bad_checksums(connection: apsw.Connection) -> str:
    damaged = _damaged(connection)
    found = [f"{len(damaged)} versions are damaged"] if damaged else []
    if unsound := _unsound_records(connection):
        found.append(_named("records", list(map(_told, unsound))))
    return "; ".join(found)


def _bad_settings(connection: apsw.Connection) -> str:
    damaged = rows.settings(connection).damaged
    return _named("settings", [repr(name[:64]) for name in damaged]) if damaged else ""


def _named(what: str, damaged: Sequence[str]) -> str:
    """How many are damaged, and the names of the first ones."""
    more = ", ..." if len(damaged) > _SHOWN else ""
    return f"{len(damaged)} {what} are damaged: {', '.join(damaged[:_SHOWN])}{more}"


def _told(key: tuple[Any, ...]) -> str:
    """The kind and the name of a record, as they are in the file now: either may be what is damaged."""
    kind, name = (bytes(part).decode(errors="backslashreplace") for part in key[1:])
    return f"{kind[:64]} {name[:64]!r}"


def _set_aside(connection: apsw.Connection) -> None:
    """Nothing is thrown away: the raw rows stay in the file, and the memories go back to their last good version."""
    for place in _damaged(connection):
        connection.execute(
            f"INSERT OR REPLACE INTO damaged ({rows.CHECKED}) SELECT {rows.CHECKED} FROM journal WHERE place = ?",
            (place,),
        )
        connection.execute("DELETE FROM journal WHERE place = ?", (place,))
    for key in _unsound_records(connection):
        for statement in (f"INSERT INTO damaged_records SELECT {records.COLUMNS} FROM records", "DELETE FROM records"):
            connection.execute(f"{statement} WHERE {records.ONE_RAW}", key)
    rebuild(connection)


def _unsound_records(connection: apsw.Connection) -> list[tuple[Any, ...]]:
    """The raw keys of the records that are not what was written."""
    found = connection.execute(f"SELECT {records.RAW} FROM records r")
    return [row[:3] for row in found if not records.is_sound(row)]


def _heads_differ(connection: apsw.Connection) -> str:
    expected = {projection.head for projection in projections(connection)}
    actual = set(connection.execute(f"SELECT {rows.HEAD} FROM heads").fetchall())
    wrong = len(expected ^ actual)
    return f"{wrong} heads differ from the journal" if wrong else ""


def _rows_differ(connection: apsw.Connection, table: str) -> str:
    expected = {row for projection in projections(connection) for row in getattr(projection, table)}
    actual = set(connection.execute(f"SELECT * FROM {table}").fetchall())
    wrong = len(expected ^ actual)
    return f"{wrong} {table} differ from the journal" if wrong else ""


def _counters_differ(connection: apsw.Connection) -> str:
    """Sequences and times may be ahead of the journal: those of versions set aside are not given again."""
    actual = {row[0]: row[1:] for row in rows.fetch(connection, _COUNTERS)}
    wrong = 0
    for one in counters(connection, projections(connection)):
        seq, memories, used, last_at = actual[one.owner]
        behind = not one.seq <= seq < rows.BOUND or not one.last_at <= last_at <= codec.LAST_MICROS
        wrong += behind or (memories, used) != (one.memories, one.bytes_used)
    return f"the counters of {wrong} owners differ from the journal" if wrong else ""


_COUNTERS = "SELECT owner, seq, memories, bytes, last_at FROM owners"
_UNFIT = (
    "FROM vectors WHERE number NOT IN (SELECT number FROM heads)"
    " OR embedder <> :embedder OR length(data) <> 4 * :dimension * max(1, coalesce(length(spans), 0) / 8)"
)


def _bad_vectors(connection: apsw.Connection) -> str:
    wrong = connection.execute(f"SELECT count(*) {_UNFIT}", _wanted(connection)).get
    return f"{wrong} vectors fit no memory or not the embedder of the file" if wrong else ""


def _wanted(connection: apsw.Connection) -> dict[str, Any]:
    """What vectors must be, by the settings; where these are not known, any vector may stay."""
    settings = rows.settings(connection)
    dimension = settings.get("dimension")
    return {"embedder": settings.get("embedder"), "dimension": None if dimension is None else int(dimension)}


def _drop_vectors(connection: apsw.Connection) -> None:
    connection.execute(f"DELETE {_UNFIT}", _wanted(connection))
    rebuild(connection)  # the size of a memory counts its vector
