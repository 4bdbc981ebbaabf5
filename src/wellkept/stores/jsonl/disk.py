"""Files below one root: private, appended to or replaced as a whole, and forced to the disk.

Names are relative to the root, with slashes. Every file is opened step by step from the root's own descriptor, never
through a symbolic link, so that no name leads out of the root.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from wellkept import open_files
from wellkept.errors import NotAStore, StoreBusy, StoreError, StoreFull, StoreReadOnly

TEMPORARY = ".tmp"
DERIVED = "derived/"
"""What stands below it is made again when it is lost."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
_FOREIGN = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # neither a link nor waiting for a pipe
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Look(NamedTuple):
    """What tells that a file changed: which one it is, its length, and when it was written. All 0: it is missing."""

    inode: int = 0
    size: int = 0
    changed: int = 0

    @classmethod
    def of(cls, found: os.stat_result) -> "Look":
        """From what the system says."""
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


MISSING = Look()


class Disk:
    """The files of a store. If it is not ``durable``, nothing is forced to the disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.durable = True
        self._base = f"{root}/"

    @contextmanager
    def translated(self, name: str) -> Iterator[None]:
        """Errors of the system as errors of a store. Who plants a link or a pipe among what is derived costs its owner
        time, and stops nobody: that file is passed over.
        """
        try:
            yield
        except StoreError:
            raise
        except OSError as error:
            if error.errno not in _FOREIGN or not name.startswith(DERIVED):
                raise translate(error, name) from error

    def look(self, name: str) -> Look:
        """How a file looks now; it is called for every file before every read, and opens nothing."""
        try:
            return Look.of(os.lstat(self._base + name))
        except OSError:
            return MISSING

    def read(self, name: str, start: int = 0) -> tuple[bytes, Look]:
        """A file from a byte on, and how it looked; a missing file is empty."""
        with self.translated(name), suppress(FileNotFoundError), self._opened(name, os.O_RDONLY) as number:
            found = os.fstat(number)
            data = _read(number, start, found.st_size)
            return data, Look(found.st_ino, start + len(data), found.st_mtime_ns)
        return b"", MISSING

    def append(self, name: str, data: bytes, at: int, *, sync: bool = True) -> Look:
        """Write at the end of a file, which must be so long; what fails is taken back."""
        look = MISSING
        with self.translated(name), self._folder(name, make=True) as (folder, last):
            number, is_new = _open_or_make(folder, last)
            try:
                require_file(number)
                if os.fstat(number).st_size != at:  # nothing that somebody else wrote is ever written over
                    raise StoreBusy(f"{name!r} was changed at this moment", details={"file": name}, hint="try again")
                try:
                    _write(number, data, at)
                    if sync and self.durable:
                        getattr(os, "fdatasync", os.fsync)(number)
                        if is_new:
                            os.fsync(folder)
                except BaseException:  # reason: an interrupt, too, must leave nothing half written
                    with suppress(OSError):
                        os.ftruncate(number, at)
                    raise
                look = Look.of(os.fstat(number))
            finally:
                os.close(number)
        return look

    def force(self, name: str, data: bytes = b"", at: int = 0) -> None:
        """Force a file to the disk. Data is written again first, in its place: what the disk refused once, the system
        takes for written.
        """
        with self.translated(name), self._opened(name, os.O_WRONLY) as number:
            if data:
                _write(number, data, at)
            getattr(os, "fdatasync", os.fsync)(number)

    def cut(self, name: str, length: int) -> None:
        """Shorten a file that is longer."""
        with self.translated(name), self._opened(name, os.O_WRONLY) as number:
            if os.fstat(number).st_size > length:
                os.ftruncate(number, length)
                if self.durable:
                    os.fsync(number)

    def replace(self, name: str, data: bytes, *, sync: bool = True) -> Look:
        """Exchange the content of a file at once: readers see the former or the new one."""
        look = MISSING
        with self.translated(name), self._folder(name, make=True) as (folder, last):
            waiting = f"{last}.{secrets.token_hex(4)}{TEMPORARY}"
            number = os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o600, dir_fd=folder)
            try:
                os.fchmod(number, 0o600)
                _write(number, data, 0)
                if sync and self.durable:
                    os.fsync(number)
                look = Look.of(os.fstat(number))
                os.rename(waiting, last, src_dir_fd=folder, dst_dir_fd=folder)
                if sync and self.durable:
                    os.fsync(folder)
            except BaseException:  # reason: as above
                with suppress(OSError):
                    os.unlink(waiting, dir_fd=folder)
                raise
            finally:
                os.close(number)
        return look

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""
        with self.translated(name), suppress(FileNotFoundError), self._folder(name) as (folder, last):
            os.unlink(last, dir_fd=folder)
            if self.durable:
                os.fsync(folder)

    def sweep(self, name: str) -> None:
        """Delete what processes that were killed while they exchanged a file left in a folder. Only the one process
        that may write now can tell that nobody needs it.
        """
        for file, is_folder in self.entries(name):
            if file.endswith(TEMPORARY) and not is_folder:
                self.remove(f"{name}/{file}")

    def remove_folder(self, name: str) -> None:
        """Delete a folder, if it is there and empty."""
        with suppress(OSError), self._folder(name) as (folder, last):
            os.rmdir(last, dir_fd=folder)

    def entries(self, name: str) -> list[tuple[str, bool]]:
        """The files (false) and folders (true) in a folder, in order; links and everything else are left out."""
        with self.translated(name):
            try:
                with self._folder(f"{name}/*") as (folder, _), os.scandir(folder) as found:
                    kinds = [(one.name, one.is_dir(follow_symlinks=False), one) for one in found]
            except (FileNotFoundError, NotADirectoryError):
                return []
            return sorted((name, folder) for name, folder, one in kinds if folder or one.is_file(follow_symlinks=False))

    def in_git(self) -> bool:
        """Whether the root is in a working tree of git."""
        return any((folder / ".git").exists() for folder in (self.root, *self.root.parents))

    def make_root(self) -> None:
        """Make the root, for its owner only. The folder that it is in must exist: a misspelt path makes no folders."""
        if self.root.exists():
            return
        if not self.root.parent.is_dir():
            raise StoreReadOnly(
                f"{self.root.name!r} cannot be created",
                details={"file": self.root.name, "errno": errno.ENOENT},
                hint="check that the folder exists, can be written, and has room",
            )
        with self.translated(self.root.name):
            self.root.mkdir(mode=0o700, exist_ok=True)
            self.root.chmod(0o700)  # the umask may have taken even that
            number = os.open(self.root.parent, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)

    def require_root(self) -> None:
        """Refuse to take a folder that was deleted or unmounted for an empty one."""
        if self.look("") == MISSING:
            raise StoreReadOnly(
                f"the folder {self.root.name!r} is gone",
                details={"file": self.root.name},
                hint="put it back; the database goes on with what is there then",
            )

    @contextmanager
    def _opened(self, name: str, flags: int) -> Iterator[int]:
        with self._folder(name) as (folder, last):
            number = os.open(last, flags | _SAFE, dir_fd=folder)
        try:
            require_file(number)
            yield number
        finally:
            os.close(number)

    @contextmanager
    def _folder(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The descriptor of a file's folder, and the last part of its name."""
        *parts, last = name.split("/")
        if {"", ".", ".."} & {*parts, last}:
            raise OSError(errno.ELOOP, "leads out of the folder")
        number = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                before, number = number, self._enter(number, part, make=make)
                os.close(before)
            yield number, last
        finally:
            os.close(number)

    def _enter(self, folder: int, part: str, *, make: bool) -> int:
        try:
            return os.open(part, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            if not make:
                raise
        with suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=folder)
        number = os.open(part, _FOLDER, dir_fd=folder)
        os.fchmod(number, 0o700)
        if self.durable:
            os.fsync(folder)
        return number


def _open_or_make(folder: int, name: str) -> tuple[int, bool]:
    try:
        return os.open(name, os.O_WRONLY | _SAFE, dir_fd=folder), False
    except FileNotFoundError:
        number = os.open(name, os.O_WRONLY | os.O_CREAT | _SAFE, 0o600, dir_fd=folder)
        os.fchmod(number, 0o600)  # whatever the umask
        return number, True


def require_file(number: int) -> None:
    """Refuse what is open if it is no plain file."""
    if not stat.S_ISREG(os.fstat(number).st_mode):
        raise OSError(errno.ENXIO, "not a regular file")


def _read(number: int, start: int, end: int) -> bytes:
    parts = []
    while start < end and (part := os.pread(number, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _write(number: int, data: bytes, at: int) -> None:
    rest = memoryview(data)
    os.lseek(number, at, os.SEEK_SET)
    while rest:
        rest = rest[os.write(number, rest) :]


def translate(error: OSError, name: str) -> StoreError:
    """The one place where errors of the system become ours."""
    if (too_many := open_files.too_many(error)) is not None:
        return too_many
    details = {"file": name, "errno": error.errno}
    if error.errno in _FULL:
        return StoreFull(f"no space left for {name!r}", details=details, hint="free disk space; reading still works")
    if error.errno in READ_ONLY:
        return StoreReadOnly(
            f"{name!r} cannot be opened or changed",
            details=details,
            hint="check the permissions of the file and its folder",
        )
    if error.errno == errno.ENOENT:
        return StoreReadOnly(f"the folder of {name!r} is not there", details=details, hint="check the path")
    if error.errno in _FOREIGN:
        return NotAStore(
            f"{name!r} is a link, or not a plain file", details=details, hint="remove what stands in its place"
        )
    return StoreError(f"the disk failed at {name!r}: {error.strerror}", details=details, hint="check the disk")
