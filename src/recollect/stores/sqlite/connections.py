"""Connections to the embedded file: how they are opened, pooled, and how their errors are told."""

import errno
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from recollect import codec, filters
from recollect.errors import (
    NotAStore,
    SchemaTooNew,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from recollect.stores.sqlite import schema

BUSY_TIMEOUT_MS = 30_000
IDLE_READERS = 8
_MAGIC = b"SQLite format 3\x00"
_SYNCHRONOUS = {"full": "FULL", "relaxed": "NORMAL"}


def translate(error: apsw.Error, path: Path) -> StoreError:
    """The one place where SQLite's errors become ours."""
    name, details = path.name, {"file": path.name}
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusy(
            f"{name!r} stayed locked for {BUSY_TIMEOUT_MS} ms",
            details=details,
            hint="another process holds a long transaction; try again",
        )
    if isinstance(error, apsw.FullError):
        return StoreFull(
            f"no space left for {name!r}; nothing was written",
            details=details,
            hint="free disk space and try again; reading still works",
        )
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError | apsw.AuthError):
        return StoreReadOnly(
            f"{name!r} cannot be opened for writing",
            details=details,
            hint="check that the folder exists and that this user may write the file and the folder",
        )
    if isinstance(error, apsw.NotADBError):
        return _not_ours(path)
    if isinstance(error, apsw.CorruptError):
        return StoreCorrupt(
            f"{name!r} is damaged",
            details=details,
            hint="run doctor with repair, or restore a backup",
        )
    code = getattr(error, "extendedresult", 0)
    return StoreError(
        f"{name!r}: the disk or SQLite failed ({apsw.mapping_extended_result_codes.get(code, code)})",
        details=details | {"sqlite": code},
        hint="nothing of this operation was kept; check the disk and try again",
    )


def _not_ours(path: Path) -> NotAStore:
    return NotAStore(
        f"{path.name!r} exists, but it is not a Recollect file",
        details={"file": path.name},
        hint="choose another path; the file was left as it is",
    )


def prepare(path: Path) -> None:
    """Create the file if it is not there, refuse what is not ours, and bring the schema up to date."""
    _touch_private(path)
    connection = connect(path, "full")
    try:
        _check_ours(connection, path)
        if schema.version_of(connection) == 0:
            # Takes effect on an empty file only, which this one is: in WAL mode it could not change any more.
            connection.pragma("page_size", schema.PAGE_BYTES)
        schema.migrate(connection)
        _enter_wal(connection)
    finally:
        connection.close()


def _touch_private(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
        if start not in (b"", _MAGIC):
            raise _not_ours(path)
    except FileNotFoundError:
        _create(path)
    except IsADirectoryError:
        raise _not_ours(path) from None
    except OSError as error:
        raise StoreReadOnly(
            f"{path.name!r} cannot be read",
            details={"file": path.name, "errno": error.errno},
            hint="check the permissions of the file and its folder",
        ) from error


def _create(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
    except FileExistsError:
        return  # another process was first: it made the same file
    except OSError as error:
        kind = StoreFull if error.errno == errno.ENOSPC else StoreReadOnly
        raise kind(
            f"{path.name!r} cannot be created",
            details={"file": path.name, "errno": error.errno},
            hint="check that the folder exists, can be written, and has room",
        ) from error
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask; the WAL and its index take over this mode
    finally:
        os.close(descriptor)


def _check_ours(connection: apsw.Connection, path: Path) -> None:
    mark, version = int(connection.pragma("application_id")), schema.version_of(connection)
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if mark != schema.APPLICATION_ID and (mark or version or tables):
        raise _not_ours(path)
    if version > schema.LATEST:
        raise SchemaTooNew(
            f"{path.name!r} has schema {version}, this release reads up to {schema.LATEST}",
            details={"file": path.name, "schema": version, "supported": schema.LATEST},
            hint="upgrade recollect",
        )


def _enter_wal(connection: apsw.Connection) -> None:
    """SQLite does not call the busy handler for this one change, so it is tried until it works."""
    patience = _Patience()
    attempt = 0
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if not patience(attempt):
                raise
            attempt += 1
        else:
            return


def connect(path: Path, durability: str) -> apsw.Connection:
    """One connection with all its settings."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX)
    connection.set_busy_handler(_Patience())
    # Without this, SQLite compiles a statement again whenever a bound value could change its plan:
    # a get by id then takes four times as long.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.pragma("synchronous", _SYNCHRONOUS[durability])
    connection.pragma("foreign_keys", True)
    connection.pragma("secure_delete", True)
    connection.pragma("temp_store", "memory")
    connection.pragma("cache_size", -16_000)
    connection.create_scalar_function("text_contains", _text_contains, 2, deterministic=True)
    connection.create_scalar_function("has_fields", _has_fields, 2, deterministic=True)
    return connection


def _text_contains(*values: Any) -> bool:
    content, folded = values
    return filters.contains(content, folded)


def _has_fields(*values: Any) -> bool:
    body, wanted = values
    return filters.has_fields(codec.decode_json(body).get("metadata", {}), codec.decode_json(wanted))


class _Patience:
    """A busy handler: waits a little longer each time, at random, so that two writers do not starve one another."""

    def __init__(self) -> None:
        self._deadline = 0.0

    def __call__(self, attempt: int) -> bool:
        now = time.monotonic()
        if attempt == 0:
            self._deadline = now + BUSY_TIMEOUT_MS / 1000
        if now >= self._deadline:
            return False
        time.sleep(random.uniform(0.000_1, min(0.000_5 * (attempt + 1), 0.01)))  # noqa: S311  # not a secret
        return True


class Readers:
    """A pool of connections for reading, one per thread that reads at the moment.

    A connection must not cross a fork: a child process starts with a pool of its own.
    """

    def __init__(self, open_one: Callable[[], apsw.Connection]) -> None:
        self._open = open_one
        self._idle: list[apsw.Connection] = []
        self._inherited: list[list[apsw.Connection]] = []
        self._pid = os.getpid()
        self._closed = False

    def take(self) -> apsw.Connection:
        """A connection that nobody else uses; give it back."""
        if self._pid != os.getpid():
            # Kept, not closed: closing an inherited connection would disturb the parent's locks.
            self._inherited.append(self._idle)
            self._idle, self._pid = [], os.getpid()
        if self._closed:
            raise StoreClosed("the store is closed", hint="open it again")
        try:
            return self._idle.pop()
        except IndexError:
            return self._open()

    def give(self, connection: apsw.Connection) -> None:
        """Return a connection."""
        if self._closed or len(self._idle) >= IDLE_READERS:
            connection.close()
        else:
            self._idle.append(connection)

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """A connection that sees one state of the file for several statements."""
        connection = self.take()
        try:
            connection.execute("BEGIN")
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self.give(connection)

    def close(self) -> None:
        """Close what is idle now, and the rest when it is given back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
