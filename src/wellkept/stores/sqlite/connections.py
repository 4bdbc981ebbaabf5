"""Connections to the embedded file: how they are opened, pooled, and how their errors are told."""

import errno
import glob
import os
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from wellkept import codec, filters, open_files
from wellkept.errors import (
    NotAStore,
    SchemaTooNew,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from wellkept.stores.sqlite import schema

BUSY_TIMEOUT_MS = 30_000
ERASURE_TIMEOUT_MS = 1_000
IDLE_READERS = 8
FORK_TIMEOUT_S = 5.0
_PAGES_AT_ONCE = 1_000
_MAGIC = b"SQLite format 3\x00"
_SYNCHRONOUS = {"full": "FULL", "relaxed": "NORMAL"}
# The schema of a file may come from others: it is compared with ours, and could do nothing if it were not.
_GUARDED = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
)
_BEYOND_REPAIR = "restore a backup; `sqlite3 FILE .recover` may save parts of it. The file was left as it is"
_SIDES = ("-wal", "-shm", "-journal")

# What comes of decoding a damaged row, besides SQLite's own errors: it need not be text, nor in any range, nor ours.
UNREADABLE = (apsw.Error, ArithmeticError, struct.error, *codec.UNREADABLE)


def translate(error: Exception, path: Path, *, doctored: bool = False) -> StoreError:
    """The one place where SQLite's errors become ours. Where opening or the doctor failed, the doctor is no advice."""
    name, details = path.name, {"file": path.name}
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusy(
            f"{name!r} stayed locked for {BUSY_TIMEOUT_MS} ms",
            details=details,
            hint="another process holds a long transaction; try again",
        )
    code = getattr(error, "extendedresult", 0)
    # The index of the log is memory that is backed by a file; SQLite has an error of its own for having no room for it.
    if isinstance(error, apsw.FullError) or code == apsw.SQLITE_IOERR_SHMSIZE:
        return StoreFull(
            f"no space left for {name!r}; nothing was written",
            details=details,
            hint="free disk space and try again; reading still works",
        )
    if isinstance(error, apsw.CantOpenError) and open_files.none_left():
        return open_files.refused()
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError | apsw.AuthError):
        return StoreReadOnly(
            f"{name!r} cannot be opened for writing",
            details=details,
            hint="check that the folder exists and that this user may write the file and the folder",
        )
    if isinstance(error, apsw.NotADBError):
        return _not_ours(path)
    malformed = isinstance(error, apsw.SQLError) and "malformed JSON" in str(error)
    if isinstance(error, apsw.CorruptError) or not isinstance(error, apsw.Error) or malformed:
        return StoreCorrupt(
            f"{name!r} is damaged",
            details=details,
            hint=_BEYOND_REPAIR if doctored else "run doctor with repair, or restore a backup",
        )
    if isinstance(error, apsw.SQLError) and (newer := _newer(path)):
        return newer
    return StoreError(
        f"{name!r}: the disk or SQLite failed ({apsw.mapping_extended_result_codes.get(code, code)})",
        details=details | {"sqlite": code},
        hint="nothing of this operation was kept; check the disk and try again",
    )


def _not_ours(path: Path) -> NotAStore:
    return NotAStore(
        f"{path.name!r} exists, but it is not a Wellkept file",
        details={"file": path.name},
        hint="choose another path; the file was left as it is",
    )


def prepare(path: Path) -> apsw.Connection:
    """The first connection: the file is created if it is not there, refused if not ours, and brought up to date."""
    _touch_private(path)
    connection = connect(path, "full")
    try:
        _check_ours(connection, path)
        if schema.version_of(connection) == 0:
            # Takes effect on an empty file only, which this one is: in WAL mode it could not change any more.
            connection.pragma("page_size", schema.PAGE_BYTES)
        _copy_older(connection, path)
        schema.migrate(connection, schema.latest())
        _enter_wal(connection)
    except BaseException:  # reason: whatever it was, the connection must not stay open
        connection.close()
        raise
    return connection


def _touch_private(path: Path) -> None:
    _check_sides(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            start = None  # a folder, or a pipe, which would be waited for
        else:
            with path.open("rb") as file:
                start = file.read(len(_MAGIC))
    except FileNotFoundError:
        _create(path)
        return
    except OSError as error:
        raise open_files.too_many(error) or StoreReadOnly(
            f"{path.name!r} cannot be read",
            details={"file": path.name, "errno": error.errno},
            hint="check the permissions of the file and its folder",
        ) from error
    # Zeros may be a file that another process is just making, or one whose making was cut off: SQLite knows.
    if start is None or (start != _MAGIC and start.strip(b"\x00")):
        raise _not_ours(path)
    if start == b"":
        with suppress(PermissionError):  # another user created it: then its mode is theirs to set
            path.chmod(0o600)


def _check_sides(path: Path) -> None:
    """Refuse what is no file in the place of a log: a pipe would be waited for, a link would lead elsewhere."""
    for side in _SIDES:
        file = path.with_name(path.name + side)
        mode = stat.S_IFREG
        with suppress(OSError):
            mode = stat.S_IFMT(file.lstat().st_mode)
        if mode != stat.S_IFREG:
            raise NotAStore(
                f"{file.name!r} beside {path.name!r} is not a regular file",
                details={"file": file.name},
                hint="remove it",
            )


def _create(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
    except FileExistsError:
        return  # another process was first: it made the same file
    except OSError as error:
        kind = StoreFull if error.errno == errno.ENOSPC else StoreReadOnly
        raise open_files.too_many(error) or kind(
            f"{path.name!r} cannot be created",
            details={"file": path.name, "errno": error.errno},
            hint="check that the folder exists, can be written, and has room",
        ) from error
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask; the WAL and its index take over this mode
    finally:
        os.close(descriptor)


def _check_ours(connection: apsw.Connection, path: Path) -> None:
    # In one transaction: another process may be making the file, and half of what it makes would look foreign.
    connection.execute("BEGIN")
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
        mark, version = int(connection.pragma("application_id")), schema.version_of(connection)
        ours = mark == schema.APPLICATION_ID and version <= schema.latest()
        strangers = schema.strangers(connection) if ours else []
    finally:
        connection.execute("ROLLBACK")
    if mark == schema.FORMER_APPLICATION_ID:
        raise NotAStore(
            f"{path.name!r} was made before the first release, when the project had another name: no release reads it",
            details={"file": path.name, "schema": version},
            hint="choose another path, and add its memories anew; the file was left as it is",
        )
    if mark != schema.APPLICATION_ID and (mark or version or tables):
        raise _not_ours(path)
    check_not_newer(version, path)
    if strangers:
        raise NotAStore(
            f"{path.name!r} has objects that Wellkept did not make: {', '.join(strangers)}"[:500],
            details={"file": path.name, "objects": strangers[:20]},
            hint="do not use a file of somebody you do not trust; if you made them yourself, drop them",
        )


def check_not_newer(version: int, path: Path) -> None:
    """Refuse a schema that only a later release understands."""
    if version > schema.latest():
        raise SchemaTooNew(
            f"{path.name!r} has schema {version}, this release reads up to {schema.latest()}",
            details={"file": path.name, "schema": version, "supported": schema.latest()},
            hint="install a newer release of Wellkept",
        )


def _newer(path: Path) -> SchemaTooNew | None:
    """Why a statement does not fit the tables any more, if a later release migrated the file while it was open here."""
    try:
        existing(path).close()
    except SchemaTooNew as error:
        return error
    except (apsw.Error, StoreError):
        return None
    return None


def _copy_older(connection: apsw.Connection, path: Path) -> None:
    """Before a file of an older schema is migrated, copy it beside itself: the way back to the older release.

    The copy appears under its name when it is complete; what a killed process leaves is overwritten by the next one.
    """
    version = schema.version_of(connection)
    if not 0 < version < schema.latest() or not connection.execute("SELECT EXISTS (SELECT 1 FROM journal)").get:
        return
    lock = connect(path, "full")
    try:
        lock.execute("BEGIN IMMEDIATE")  # one process at a time makes the copy
        if schema.version_of(lock) == version:
            copy_beside(connection, path)
    finally:
        lock.close()


def copy_beside(connection: apsw.Connection, path: Path) -> Path:
    """Copy a file beside itself, under a name that tells its schema."""
    target = path.with_name(f"{path.name}.schema-{schema.version_of(connection)}.bak")
    draft = target.with_name(f"{target.name}.part")
    with suppress(OSError):  # what cannot be removed cannot be made either
        draft.unlink(missing_ok=True)
    _create(draft)
    _copy(connection, draft)
    draft.replace(target)
    return target


def unwritable(path: Path, reason: StoreError) -> apsw.Connection:
    """The first connection to a file that can only be read: on a read-only or a full disk. ``reason`` if that would
    leave something out, or the file must be migrated first.
    """
    log = path.with_name(f"{path.name}-wal")
    if not path.exists() or path.stat().st_size == 0:
        raise reason
    if log.exists() and log.stat().st_size:
        reason.hint = f"{log.name!r} cannot be read without writing: copy both files to where they can be written"
        raise reason
    connection = connect(path, "full", immutable=True)
    try:
        _check_ours(connection, path)
        if schema.version_of(connection) != schema.latest():
            reason.hint = "it has an older schema: copy it to where it can be written, and open it there"
            raise reason
    except BaseException:  # reason: whatever it was, the connection must not stay open
        connection.close()
        raise
    return connection


def existing(path: Path) -> apsw.Connection:
    """A connection to a file of ours, which is left at the schema that it has."""
    _check_sides(path)
    connection = connect(path, "full")
    try:
        _check_ours(connection, path)
    except BaseException:  # reason: whatever it was, the connection must not stay open
        connection.close()
        raise
    return connection


def _copy(connection: apsw.Connection, target: Path) -> None:
    """Copy a file, page by page, by SQLite itself: it sees one state, the write-ahead log included."""
    copy = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with copy.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(_PAGES_AT_ONCE)
    finally:
        copy.close()


def copies(path: Path) -> list[Path]:
    """The copies that migrations made beside a file."""
    return sorted(path.parent.glob(f"{glob.escape(path.name)}.schema-*.bak"))


def _enter_wal(connection: apsw.Connection) -> None:
    """SQLite does not call the busy handler for this one change, so it is tried until it works."""
    patience = Patience()
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


def connect(path: Path, durability: str, *, immutable: bool = False) -> apsw.Connection:
    """One connection with all its settings; an ``immutable`` file is read without a log and without locks."""
    if immutable:
        place, mode = f"{path.absolute().as_uri()}?immutable=1", apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    else:
        place, mode = str(path), apsw.SQLITE_OPEN_READWRITE
    # With its mutex: a connection is used by one thread at a time, but the garbage collector ends statements in any.
    connection = apsw.Connection(place, flags=mode | apsw.SQLITE_OPEN_FULLMUTEX)
    connection.set_busy_handler(Patience())
    # Without this, SQLite compiles a statement again whenever a bound value could change its plan:
    # a get by id then takes four times as long.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    for option, value in _GUARDED:
        connection.config(option, value)
    connection.pragma("synchronous", _SYNCHRONOUS[durability])
    connection.pragma("foreign_keys", True)
    connection.pragma("secure_delete", True)
    connection.pragma("temp_store", "memory")
    connection.pragma("cache_size", -16_000)
    connection.create_scalar_function("text_contains", _text_contains, 2, deterministic=True)
    connection.create_scalar_function("has_words", _has_words, 2, deterministic=True)
    connection.create_scalar_function("has_fields", _has_fields, 2, deterministic=True)
    return connection


def _text_contains(*values: Any) -> bool:
    content, folded = values
    return filters.contains(content, folded)


def _has_words(*values: Any) -> bool:
    content, wanted = values
    return filters.has_words(content, wanted.split(" "))


def _has_fields(*values: Any) -> bool:
    facets, wanted = values
    return filters.has_fields(codec.decode_json(facets).get("fields", {}), codec.decode_json(wanted))


class Patience:
    """A busy handler: waits a little longer each time, at random, so that two writers do not starve one another."""

    def __init__(self, timeout_ms: int | None = None) -> None:
        self._timeout_ms = timeout_ms
        self._deadline = 0.0

    def __call__(self, attempt: int) -> bool:
        now = time.monotonic()
        if attempt == 0:
            self._deadline = now + (BUSY_TIMEOUT_MS if self._timeout_ms is None else self._timeout_ms) / 1000
        if now >= self._deadline:
            return False
        import random  # lazy: files are seldom busy

        time.sleep(random.uniform(0.000_1, min(0.000_5 * (attempt + 1), 0.01)))  # noqa: S311  # not a secret
        return True


def empty_log(connection: apsw.Connection) -> bool:
    """Copy the write-ahead log into the file and cut it to nothing; false if a reader still needs it."""
    connection.set_busy_handler(Patience(ERASURE_TIMEOUT_MS))
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_handler(Patience())
    return True


@contextmanager
def writing(connection: apsw.Connection, wait_ms: int | None) -> Iterator[None]:
    """A write transaction, or a ``BusyError`` if another connection holds the write lock for longer than that."""
    connection.set_busy_handler(Patience(wait_ms))
    try:
        connection.execute("BEGIN IMMEDIATE")
    finally:
        connection.set_busy_handler(Patience())
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class Readers:
    """A pool of connections for reading, one per thread that reads at the moment.

    Taking and giving back are single list operations, which need no lock. ``give`` appends before it compares with the
    limit, and ``close`` sets the limit before it looks at the list: so no connection is left open.
    """

    def __init__(self, open_one: Callable[[], apsw.Connection]) -> None:
        self._open = open_one
        self._idle: list[apsw.Connection] = []
        self._count = 0  # of all that are open
        self._mutex = threading.Lock()
        self._most = IDLE_READERS
        self._closed = False
        self._all_back: threading.Condition | None = None  # set while a thread waits to fork
        self._strays: list[apsw.Connection] = []  # of the process that this one was forked from

    def take(self) -> apsw.Connection:
        """A connection that no other thread uses; to be given back."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._one_more()

    def _one_more(self) -> apsw.Connection:
        with self._mutex:
            if self._closed:
                raise StoreClosed("the store is closed", hint="open it again")
            self._count += 1
        try:
            return self._open()
        except BaseException:  # reason: whatever it was, nothing was opened
            with self._mutex:
                self._count -= 1
                self._tell()
            raise

    def give(self, connection: apsw.Connection) -> None:
        """Return a connection."""
        self._idle.append(connection)
        if len(self._idle) > self._most:
            with self._mutex:
                self._close_idle()
                self._tell()

    def _close_idle(self) -> None:
        """Close those that are too many now."""
        with suppress(IndexError):  # another thread took the last one
            while len(self._idle) > self._most:
                self._idle.pop().close()
                self._count -= 1

    def _tell(self) -> None:
        if self._all_back is not None:
            self._all_back.notify_all()

    def add(self, connection: apsw.Connection) -> None:
        """Take over a connection that was opened elsewhere."""
        self._count += 1
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
        with self._mutex:
            self._closed, self._most = True, 0
            self._close_idle()

    def before_fork(self) -> None:
        """Wait until no connection is in use, close all, and open no others.

        A thread may hold a connection for long, even the one that forks; it is not waited for forever.
        """
        self._mutex.acquire()
        self._all_back = threading.Condition(self._mutex)
        self._most = 0
        self._close_idle()
        self._all_back.wait_for(lambda: self._count == 0, timeout=FORK_TIMEOUT_S)

    def after_fork(self, *, in_child: bool) -> None:
        """Open connections again; in a child none is in use yet."""
        self._all_back = None
        self._most = 0 if self._closed else IDLE_READERS
        if in_child:
            self._mutex, self._count = threading.Lock(), 0
            # One that was not waited for may have come back just now. It is the parent's: not even closed here.
            self._strays, self._idle = self._idle, []
        else:
            self._mutex.release()
