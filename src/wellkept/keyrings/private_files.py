"""Files that only their user may read, replaced as a whole or not at all, and locked among processes."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wellkept import open_files
from wellkept.errors import ConfigurationError, KeyUnavailable

_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Tell of a file that cannot be used in words that name it."""
    try:
        yield
    except OSError as error:
        if (refused := open_files.too_many(error)) is not None:
            raise refused from error
        raise KeyUnavailable(
            f"{path.name!r}, which holds keys, cannot be used: {error.strerror or error}",
            details={"path": str(path)},
            hint="check its path and its permissions, that its folder is there, and that the disk is not full",
        ) from error


def read(path: Path) -> bytes | None:
    """The bytes of a file, refused if others than its user can read it; ``None`` if there is no such file."""
    with _told(path):
        try:
            with path.open("rb") as file:
                mode, data = os.fstat(file.fileno()).st_mode, file.read()
        except FileNotFoundError:
            return None
    if os.name != "nt" and stat.S_IMODE(mode) & 0o077:
        raise ConfigurationError(
            f"{path.name!r} holds keys, and other users may read it",
            details={"path": str(path)},
            hint="chmod 600 it; if others had access, run 'wellkept keys rotate'",
        )
    return data


def replace(path: Path, data: bytes) -> None:
    """Put a file in the place of another: after a crash there is the one or the other, whole."""
    with _told(path):
        _replace(path, path.with_name(f"{path.name}.{os.getpid()}.tmp"), data)
        sync_folder(path.parent)


def _replace(path: Path, aside: Path, data: bytes) -> None:
    aside.unlink(missing_ok=True)
    number = os.open(aside, _OPEN | os.O_EXCL, 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:  # reason: whatever happened, nothing half written stays
        with suppress(OSError):
            aside.unlink()
        raise


def append(path: Path, data: bytes) -> None:
    """Add to the end of a file, durably."""
    with _told(path):
        number = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0))
        try:
            if os.write(number, data) < len(data):  # a full disk may take a part, and say so only then
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(number)
        finally:
            os.close(number)


def remove(path: Path) -> None:
    """Remove a file, durably."""
    with _told(path):
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder that only the user may look into, unless it is there."""
    with _told(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Windows does that by itself."""
    if os.name != "nt":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Held by one thread of one process at a time; a process that dies holds it no longer."""
    with _told(path):
        number = os.open(path, _OPEN, 0o600)
    try:
        with _told(path):
            _lock(number)
        yield
    finally:
        os.close(number)


if sys.platform == "win32":
    import msvcrt

    def _lock(number: int) -> None:
        msvcrt.locking(number, msvcrt.LK_LOCK, 1)
else:
    import fcntl

    def _lock(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_EX)
