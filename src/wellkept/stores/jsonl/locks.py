"""Who may read and who may write a folder: many readers, or one writer, among all processes and threads.

The locks are the operating system's, so that a process that dies leaves none behind. The lock file also holds a note
for people: who writes, since when, and by when it would be done if nothing were wrong. Nobody decides by the note: one
of the dead stops nobody, and a writer that takes longer than its note says is slow, not dead. To break its lock would
let two write at once.

Nobody is left waiting for ever. In front of the lock stands a turnstile, a second file that is locked in the same way:
whoever wants the lock takes the turnstile first, and keeps it until the lock is theirs. A waiting writer thereby holds
new readers back and waits only for those inside; a waiting reader holds new writers back and lets other readers in
beside it. Who gets the turnstile when it is free is left to chance, with pauses so short that chance comes round often.

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
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from wellkept import logs
from wellkept.errors import ConfigurationError, LockTimeout, WellkeptError
from wellkept.ports import Clock
from wellkept.stores.jsonl.disk import READ_ONLY, require_file, translate

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TURNSTILE = ".turn"
_NOTE_BYTES = 4_096
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSettings:
    """How long to wait, and how long to pause between two looks.

    Pauses double from the first to the longest and are cut at random. Keep the longest short: it costs a hundredth of a
    percent of a processor, and who sleeps for long misses its turn.
    """

    timeout_ms: float = 5_000
    first_pause_ms: float = 0.5
    longest_pause_ms: float = 10


# -- lock files -----------------------------------------------------------------------------------------------


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
            raise _refusal(self._path, error) from error
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
                raise _refusal(path, error) from error
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


def _refusal(path: Path, error: OSError) -> WellkeptError:
    if error.errno in _NO_LOCKS:
        return ConfigurationError(
            f"the file system of {name(path)!r} has no locks",
            details={"file": name(path), "errno": error.errno},
            hint="use a folder on a local disk",
        )
    return translate(error, name(path))


def _open(path: Path, *, exclusive: bool) -> int:
    # Not through a link: the file is written to, and the link may lead anywhere. Not waiting: it may be a pipe.
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, os.O_RDWR | flags)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
        os.fchmod(descriptor, 0o600)  # whatever the umask
    except OSError as error:
        if exclusive or error.errno not in READ_ONLY:
            raise
        descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        require_file(descriptor)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


# -- the lock -------------------------------------------------------------------------------------------------


class Lock:
    """The lock of one folder, for any number of threads. Not reentrant: a thread that holds it and asks again, through
    this object or another one on the same path, gets a ``RuntimeError``, since it would wait for itself.

    A child that was forked while the lock was held does not have it; leaving the ``with`` there releases nothing.

    >>> lock = Lock(Path("lock"))
    >>> with lock.exclusive("write"):
    ...     json.loads(Path("lock").read_text())["operation"]
    'write'
    >>> Path("lock").read_text()
    ''
    """

    def __init__(
        self,
        path: Path,
        settings: LockSettings | None = None,
        *,
        clock: Clock = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if fcntl is None:
            raise ConfigurationError(
                "this system has no flock, which the JSON Lines store needs",
                hint="use a SQLite file here; it works on every system",
            )
        self._path = path.absolute()
        self._turnstile = self._path.with_name(path.name + TURNSTILE)
        self.settings = settings or LockSettings()
        self._clock, self.monotonic, self.sleep, self.chance = clock, monotonic, sleep, chance

    def waiting(self, timeout_ms: float) -> "Lock":
        """The same lock for somebody who waits another time for it."""
        other = copy(self)
        other.settings = replace(self.settings, timeout_ms=timeout_ms)
        return other

    def shared(self, operation: str) -> AbstractContextManager[None]:
        """Hold it together with others who read."""
        return self._held(operation, exclusive=False)

    def exclusive(self, operation: str) -> AbstractContextManager[None]:
        """Hold it alone. The operation is what the note says, and what others are told who waited in vain."""
        return self._held(operation, exclusive=True)

    @contextmanager
    def _held(self, operation: str, *, exclusive: bool) -> Iterator[None]:
        files = descriptors()
        holder = files.enter(self._path)
        try:
            asked = self.monotonic()
            opened = self._acquire(exclusive=exclusive)
            taken = self.monotonic()
            try:
                logs.lock_taken(name(self._path), (taken - asked) * 1000, exclusive=exclusive)
                self._note(opened, operation if exclusive else None)
                yield
            finally:
                files.close(opened, clear=exclusive)
                logs.lock_released(name(self._path), (self.monotonic() - taken) * 1000, exclusive=exclusive)
        finally:
            files.leave(holder)

    def _acquire(self, *, exclusive: bool) -> Opened:
        files = descriptors()
        patience = Patience(self)
        while True:
            turn = self._take(self._turnstile, patience, exclusive=exclusive)
            try:
                patience.refresh()  # next in line: nobody else looks as often
                opened = self._take(self._path, patience, exclusive=exclusive)
            finally:
                files.close(turn)
            if opened.is_in_place():
                return opened
            files.close(opened)
            if not patience.wait():
                raise self._timed_out(exclusive=exclusive)

    def _take(self, path: Path, patience: "Patience", *, exclusive: bool) -> Opened:
        files = descriptors()
        opened = files.open(path, exclusive=exclusive)
        try:
            while not opened.try_lock(exclusive=exclusive):
                if not patience.wait():
                    raise self._timed_out(exclusive=exclusive)
        except BaseException:  # reason: whatever it was, the file must not stay open, and perhaps locked
            files.close(opened)
            raise
        return opened

    def _note(self, opened: Opened, operation: str | None) -> None:
        """Say who writes. What is there already was left by one who died: nobody else can hold it now."""
        with suppress(OSError):  # a full disk must not stop those who make room, nor a read-only one those who read
            if os.fstat(opened.descriptor).st_size:
                os.ftruncate(opened.descriptor, 0)
            if operation is not None:
                os.pwrite(opened.descriptor, self._note_of(operation), 0)

    def _note_of(self, operation: str) -> bytes:
        now = self._clock()
        note = {
            "pid": os.getpid(),
            "timestamp": _iso(now),
            "operation": operation,
            "expires_at": _iso(now + timedelta(milliseconds=self.settings.timeout_ms)),
        }
        return json.dumps(note).encode() + b"\n"

    def _timed_out(self, *, exclusive: bool) -> LockTimeout:
        timeout_ms = self.settings.timeout_ms
        logs.lock_timed_out(name(self._path), timeout_ms, LockTimeout.code, exclusive=exclusive)
        details: dict[str, Any] = {"file": name(self._path), "timeout_ms": timeout_ms, **_holder(self._path)}
        who = "by readers, or by a writer that waits for them"
        if "pid" in details:
            who = f"by process {details['pid']} ({details['operation']!r} since {details['since']})"
        return LockTimeout(
            f"{name(self._path)!r} was held for all of {timeout_ms:g} ms {who}",
            details=details,
            hint="try again; a lock is free as soon as its process ends",
        )


class Patience:
    """Pauses between two looks at a lock, until a deadline."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._deadline = lock.monotonic() + lock.settings.timeout_ms / 1000
        self._pause_ms = lock.settings.first_pause_ms

    def wait(self) -> bool:
        """Pause, longer than the last time; false if there is no time left."""
        left = self._deadline - self._lock.monotonic()
        if left <= 0:
            return False
        pause_ms = min(self._pause_ms, self._lock.settings.longest_pause_ms)
        self._pause_ms = 2 * pause_ms
        self._lock.sleep(min(left, pause_ms * (0.5 + self._lock.chance() / 2) / 1000))
        return True

    def refresh(self) -> None:
        """Begin with short pauses again."""
        self._pause_ms = self._lock.settings.first_pause_ms


def _holder(path: Path) -> dict[str, Any]:
    """Who the note says is writing; nothing if there is none, or one that nobody here wrote."""
    try:
        with path.open("rb") as file:
            note = json.loads(file.read(_NOTE_BYTES))
        pid, operation, since = note["pid"], note["operation"], note["timestamp"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}
    if not (isinstance(pid, int) and isinstance(operation, str) and isinstance(since, str)):
        return {}
    return {"pid": pid, "operation": operation, "since": since}


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
