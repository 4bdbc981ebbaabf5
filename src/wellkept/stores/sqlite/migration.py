"""Bringing a file to another schema on request, up or down. Opening a file brings it up by itself."""

from pathlib import Path

import apsw

from wellkept.errors import ConfigurationError, InvalidInput, StoreBusy
from wellkept.stores.sqlite import connections, schema
from wellkept.types import MigrationReport

_WAIT_MS = 1_000


def migrate(path: Path, to: int, *, dry_run: bool) -> MigrationReport:
    """Copy the file beside itself, then take it to a schema step by step; a crash leaves one schema or the next.

    With ``dry_run`` only what would be lost is told.
    """
    if not 1 <= to <= schema.latest():
        raise InvalidInput(
            f"no schema has the number {to}; this release knows 1 to {schema.latest()}",
            details={"field": "to", "newest": schema.latest()},
            hint=f"choose one from 1 to {schema.latest()}",
        )
    if not path.exists():
        raise ConfigurationError(
            f"there is no database at {str(path)[:100]!r}", details={"field": "database"}, hint="check the path"
        )
    try:
        connection = connections.existing(path)
    except apsw.Error as error:
        raise connections.translate(error, path) from error
    try:
        return _migrate(connection, path, to, dry_run=dry_run)
    except connections.UNREADABLE as error:
        raise connections.translate(error, path) from error
    finally:
        connection.close()


def _migrate(connection: apsw.Connection, path: Path, to: int, *, dry_run: bool) -> MigrationReport:
    before = schema.version_of(connection)
    losses = tuple(schema.losses(connection, to)) if to < before else ()
    if dry_run or to == before:
        return MigrationReport(before=before, after=to, losses=losses, dry_run=dry_run)
    _leave_wal(connection, path)
    copy = connections.copy_beside(connection, path)
    schema.migrate(connection, to)
    return MigrationReport(before=before, after=to, losses=losses, copy=copy.name)


def _leave_wal(connection: apsw.Connection, path: Path) -> None:
    """Give up the write-ahead log, which SQLite allows only while nobody else has the file open: a process that has
    would go on with the other schema.
    """
    connection.set_busy_timeout(_WAIT_MS)
    try:
        alone = connection.pragma("journal_mode", "delete") == "delete"
    except apsw.BusyError:
        alone = False
    if not alone:
        raise StoreBusy(
            f"{path.name!r} is open elsewhere",
            details={"file": path.name},
            hint="close every process that uses it, then migrate",
        )
