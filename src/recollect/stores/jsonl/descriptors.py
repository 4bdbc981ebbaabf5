"""The lock files that this process has open, and what a fork does to them.

``flock`` belongs to the open file, not to the process. So each acquisition opens the file anew: threads, and several
locks on one path, then exclude one another as processes do. (``fcntl`` locks belong to the process: they would let
threads pass, and closing any descriptor of the file would drop them. Open file description locks would do as well,
but only Linux has them.) The price is paid at a fork: the child shares the open file, and thereby the lock. It could
release its parent's lock, and it would keep the lock of a parent that died. So a child closes its copies first of all,
without unlocking, and whatever it inherited counts as released.

On NFS, Linux turns ``flock`` into a lock of the server's; it needs a descriptor that may write for an exclusive lock,
which is how files are opened here.
"""

import errno
import os
import stat
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

from recollect import open_files
from recollect.errors import ConfigurationError, NotAStore, RecollectError, StoreError, StoreFull, StoreReadOnly

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def require_locks() -> None:
    """Refuse a system that cannot lock, before anything is written on it."""
    if fcntl is None:
        raise ConfigurationError(
            "this system has no flock, which the JSON Lines store needs",
            hint="use a SQLite file here; it works on every system",
        )


class Opened:
    """One open lock file; it compares by identity, since numbers of descriptors are used again."""

    __slots__ = ("_path", "descriptor")

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self.descriptor = descriptor

    def try_lock(self, *, exclusive: bool) -> bool:
        """Lock it if nobody is in the way just now."""
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        try:
            fcntl.flock(self.descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise open_files.too_many(error) or _refusal(self._path, error) from error
        return True

    def is_in_place(self) -> bool:
        """Whether the file is still the one of its path: the folder may have been deleted, and made again."""
        try:
            there = self._path.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(os.fstat(self.descriptor), there)


class Descriptors:
    """What this process has open, and which of its threads hold what."""

    def __init__(self) -> None:
        self._opened: set[Opened] = set()
        self._holders: set[tuple[str, int]] = set()
        # Reentrant: collecting an abandoned context manager closes its file, in the middle of anything.
        self._mutex = threading.RLock()
        os.register_at_fork(
            before=self._before_fork, after_in_parent=self._after_in_parent, after_in_child=self._after_in_child
        )

    def enter(self, path: Path) -> tuple[str, int]:
        """Note that this thread wants a path, once: asking again would wait for itself."""
        holder = (str(path), threading.get_ident())
        with self._mutex:
            if holder in self._holders:
                raise RuntimeError(f"this thread already holds {name(path)!r}, and locks are not reentrant")
            self._holders.add(holder)
        return holder

    def leave(self, holder: tuple[str, int]) -> None:
        """Undo ``enter``."""
        with self._mutex:
            self._holders.discard(holder)

    def open(self, path: Path, *, exclusive: bool) -> Opened:
        """Open a lock file, made if it is not there. Who only reads may do so where nothing can be written."""
        with self._mutex:  # between opening and noting, no child may be made
            try:
                opened = Opened(path, _open(path, exclusive=exclusive))
            except OSError as error:
                raise open_files.too_many(error) or _refusal(path, error) from error
            self._opened.add(opened)
        return opened

    def close(self, opened: Opened, *, clear: bool = False) -> None:
        """Unlock and close a file, emptied first if so told; nothing if a parent opened it."""
        with self._mutex:
            if opened not in self._opened:
                return
            self._opened.discard(opened)
            try:
                with suppress(OSError):  # emptying it is for readers of the file only
                    if clear:
                        os.ftruncate(opened.descriptor, 0)
                # Closing unlocks only if no copy exists: a fork that Python did not see would have one.
                fcntl.flock(opened.descriptor, fcntl.LOCK_UN)
            finally:
                os.close(opened.descriptor)

    def _before_fork(self) -> None:
        self._mutex.acquire()

    def _after_in_parent(self) -> None:
        self._mutex.release()

    def _after_in_child(self) -> None:
        for opened in self._opened:
            with suppress(OSError):
                os.close(opened.descriptor)
        self._opened.clear()
        self._holders.clear()
        self._mutex = threading.RLock()


@cache
def descriptors() -> Descriptors:
    """Those of this process: forks are told per process, and cannot be untold."""
    return Descriptors()


def name(path: Path) -> str:
    """What a message calls a lock file: its folder says whose it is."""
    return f"{path.parent.name}/{path.name}"


def _refusal(path: Path, error: OSError) -> RecollectError:
    """The one place where errors of lock files become ours."""
    told = {"file": name(path), "errno": error.errno}
    if error.errno in _NO_LOCKS:
        return ConfigurationError(
            f"the file system of {name(path)!r} has no locks", details=told, hint="use a folder on a local disk"
        )
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StoreFull(f"no space left for {name(path)!r}", details=told, hint="free disk space and try again")
    if error.errno == errno.ENOENT:
        return StoreReadOnly(f"the folder of {name(path)!r} is not there", details=told, hint="check the path")
    if error.errno in _REFUSED:
        return StoreReadOnly(
            f"{name(path)!r} cannot be opened", details=told, hint="check the permissions of the file and its folder"
        )
    if error.errno in {errno.ELOOP, errno.EISDIR, errno.EINVAL}:
        return NotAStore(f"{name(path)!r} is not a plain file", details=told, hint="remove what stands in its place")
    return StoreError(f"{name(path)!r} cannot be locked", details=told, hint="check the disk and try again")


def _open(path: Path, *, exclusive: bool) -> int:
    # Not through a link: the file is written to, and the link may lead anywhere. Not waiting: it may be a pipe.
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, os.O_RDWR | flags)
    except FileNotFoundError:
        descriptor = _create(path, os.O_RDWR | flags)
    except OSError as error:
        if exclusive or error.errno not in _REFUSED:
            raise
        descriptor = os.open(path, os.O_RDONLY | flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor


def _create(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags)  # another one was first, and made the same file
    os.fchmod(descriptor, 0o600)  # whatever the umask
    return descriptor
