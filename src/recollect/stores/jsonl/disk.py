"""Files below one root: private, appended to or replaced as a whole, and forced to the disk.

Names are relative to the root, with slashes. This is the one place where errors of the system become ours.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from recollect.errors import StoreError, StoreFull, StoreReadOnly

_FULL = (errno.ENOSPC, errno.EDQUOT)
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class Disk:
    """The files of a store. If it is not ``durable``, nothing is forced to the disk."""

    def __init__(self, root: Path, *, durable: bool = True) -> None:
        self.root = root
        self.durable = durable
        self._paths: dict[str, Path] = {}

    def path(self, name: str) -> Path:
        """Where a file stands. Paths are kept: making one takes longer than asking the system about it."""
        found = self._paths.get(name)
        if found is None:
            found = self._paths[name] = self.root / name
        return found

    @contextmanager
    def translated(self, name: str) -> Iterator[None]:
        """Errors of the system as errors of a store."""
        try:
            yield
        except StoreError:
            raise
        except OSError as error:
            raise _translate(error, name) from error

    def stat(self, name: str) -> tuple[int, int]:
        """What tells whether a file was replaced, and its length; zeros if it is not there."""
        with self.translated(name):
            try:
                found = self.path(name).stat()
            except FileNotFoundError:
                return 0, 0
            return found.st_ino, found.st_size

    def changed(self, name: str) -> int:
        """When a file was last written, in nanoseconds; 0 if it is not there."""
        with self.translated(name):
            try:
                return self.path(name).stat().st_mtime_ns
            except FileNotFoundError:
                return 0

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """A part of a file; what is not there is empty."""
        with self.translated(name):
            try:
                number = os.open(self.path(name), os.O_RDONLY | _BINARY)
            except FileNotFoundError:
                return b""
            with os.fdopen(number, "rb") as file:
                file.seek(start)
                return file.read() if end is None else file.read(max(0, end - start))

    def append(self, name: str, data: bytes, at: int) -> None:
        """Write behind the first ``at`` bytes, and force it to the disk."""
        with self.translated(name):
            is_new = self.make_folder(name) or not self.path(name).exists()
            with self._opened(name, os.O_WRONLY | os.O_CREAT) as number:
                if is_new:
                    os.fchmod(number, 0o600)
                if os.fstat(number).st_size > at:
                    os.ftruncate(number, at)
                _write(number, data, at)
                self._sync(number)
            if is_new:
                self._sync_folder(name)

    def cut(self, name: str, length: int) -> None:
        """Shorten a file that is longer."""
        with self.translated(name):
            if self.stat(name)[1] > length:
                with self._opened(name, os.O_WRONLY) as number:
                    os.ftruncate(number, length)
                    self._sync(number)

    def write(self, name: str, data: bytes) -> None:
        """Make a file anew; whoever reads it meanwhile may see half of it."""
        with self.translated(name):
            self.make_folder(name)
            with self._opened(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as number:
                os.fchmod(number, 0o600)
                _write(number, data, 0)
                self._sync(number)
            self._sync_folder(name)

    def rename(self, name: str, new: str) -> None:
        """Put a file in the place of another one, at once; not if it is not there: then that was done before."""
        with self.translated(new), suppress(FileNotFoundError):
            self.path(name).replace(self.path(new))
            self._sync_folder(new)

    def replace(self, name: str, data: bytes) -> None:
        """Exchange the content of a file at once: readers see the former or the new one."""
        self.write(f"{name}.new", data)
        self.rename(f"{name}.new", name)

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""
        with self.translated(name), suppress(FileNotFoundError):
            self.path(name).unlink()
            self._sync_folder(name)

    def names(self, pattern: str) -> list[str]:
        """The files that fit a pattern, in order."""
        with self.translated(pattern):
            return sorted(path.relative_to(self.root).as_posix() for path in self.root.glob(pattern))

    @contextmanager
    def _opened(self, name: str, flags: int) -> Iterator[int]:
        number = os.open(self.path(name), flags | _BINARY, 0o600)
        try:
            yield number
        finally:
            os.close(number)

    def make_folder(self, name: str) -> bool:
        """Make the folder of a file, for its owner only; says whether it was missing."""
        folder = self.path(name).parent
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir(mode=0o700, exist_ok=True)
            one.chmod(0o700)  # the mask may have taken even that
            self._sync_path(one.parent)
        return bool(missing)

    def _sync(self, number: int) -> None:
        if self.durable:
            getattr(os, "fdatasync", os.fsync)(number)

    def _sync_folder(self, name: str) -> None:
        self._sync_path(self.path(name).parent)

    def _sync_path(self, folder: Path) -> None:
        if self.durable and os.name == "posix":
            number = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)


def _write(number: int, data: bytes, at: int) -> None:
    rest = memoryview(data)
    os.lseek(number, at, os.SEEK_SET)
    while rest:
        rest = rest[os.write(number, rest) :]


def _translate(error: OSError, name: str) -> StoreError:
    details = {"file": name, "errno": error.errno}
    if error.errno in _FULL:
        return StoreFull(f"no space left for {name!r}", details=details, hint="make room; reading goes on")
    if error.errno in _READ_ONLY:
        return StoreReadOnly(f"{name!r} cannot be written", details=details, hint="check the rights of the folder")
    return StoreError(f"the disk failed at {name!r}: {error.strerror}", details=details, hint="check the disk")
