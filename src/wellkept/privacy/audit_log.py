"""The audit log: a file with one line of JSON for each operation, chained by hashes. It holds ids, never contents.

Each entry is written before the operation returns, so a killed process loses none; a power loss may take the last ones
unless each is forced to the disk. The database keeps an anchor: the number and the hash of an entry that the log must
have, so that its end cannot be cut off unseen.

An entry is written whole or not at all. Half a line can only be left by a crash, or by a disk that takes nothing back
either; the next one who opens the log cuts it off. How many entries are missing for such reasons is an entry itself,
made as soon as there is room: a log of a disk that was full is valid, and says what it lacks.
"""

import errno
import hashlib
import hmac
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from wellkept import codec, hash_chain
from wellkept.engine.core import Engine
from wellkept.engine.ledger import ANCHORS
from wellkept.errors import ConfigurationError, StoreError, StoreFull, StoreReadOnly
from wellkept.hash_chain import GENESIS
from wellkept.ports import Record
from wellkept.types import Verification
from wellkept.types.owners import DATABASE

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

ANCHORED = 256
"""After so many entries the database gets a new anchor, and when it is closed."""

MISSING = "audit.missing"
"""The verb of the entry that says how many entries could not be written."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
_NAME = "anchor"
_BASE = "base"
_CHUNK = 64 * 1024


class Anchor(NamedTuple):
    """An entry of the log, by its number and its hash."""

    seq: int = 0
    hash: str = GENESIS

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


class Kept(NamedTuple):
    """What the database knows of its log: an entry that must be there, and the last one that was dropped for age."""

    last: Anchor = Anchor()
    base: Anchor = Anchor()


class Missing(NamedTuple):
    """How many entries could not be written, from when to when, and why the last of them."""

    entries: int = 0
    since: str | None = None
    until: str | None = None
    why: str = "TORN"


_read = codec.reader(tuple[Kept, str | None])


class AuditLog:
    """The file of an audit log, for any number of threads and processes."""

    def __init__(self, path: Path, *, sync: bool) -> None:
        if fcntl is None:
            raise ConfigurationError(
                "this system has no file locks for an audit log", details={"field": "audit.file"}, hint="leave it out"
            )
        self.path, self._sync = path, sync
        self._lock = threading.RLock()
        self._file = -1
        self._process = 0
        self._end = -1  # where the file ended, and with which entry, when it was last looked at
        self._last = Anchor()
        self._torn = False  # half a line of this process, which was counted, may stand at the end
        self.missing = Missing()
        self.failure: str | None = None  # why nothing could be written the last time
        self.unanchored = 0
        try:
            with self._held():
                pass  # a file that cannot be made is told of at once
        except OSError as error:
            raise unwritable(path, error) from error

    # -- writing ----------------------------------------------------------------------------------------------

    def append(self, body: dict[str, Any], *, announces: bool = False) -> int:
        """Add an entry, whole or not at all; its number. One that cannot be added is missing from then on, unless it
        only ``announces`` what is not done then.
        """
        with self._lock:
            try:
                return self._append(body)
            except BaseException as error:  # reason: an interrupt, too, leaves the entry out
                if not announces:
                    self._miss(body["at"], error)
                self.failure = reason(error)
                raise

    def settle(self, at: str) -> None:
        """Enter how many entries are missing, if any are."""
        with self._lock:
            if self.missing.entries:
                self._append(None, at)

    def _append(self, body: dict[str, Any] | None, at: str = "") -> int:
        file = self._locked()
        try:
            data, last = b"", self._last
            for one in (self._gap(body["at"] if body else at), body):
                if one is not None:
                    line, digest = hash_chain.line(one, last.seq + 1, last.hash)
                    data, last = data + line, Anchor(last.seq + 1, digest)
            end, self._end = self._end, -1  # whatever interrupts this, the end is looked for again
            self._write(file, data, end)
            self._last, self.missing, self.failure = last, Missing(), None
            self._end = end + len(data)
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
        self.unanchored += 1
        return last.seq

    def _gap(self, at: str) -> dict[str, Any] | None:
        missing = self.missing
        if not missing.entries:
            return None
        times = {"since": missing.since, "until": missing.until} if missing.since else {}
        return {"at": at, "verb": MISSING, "count": missing.entries, "error": missing.why, **times}

    def _miss(self, at: str, error: BaseException) -> None:
        before = self.missing
        self.missing = Missing(before.entries + 1, before.since or at, at, reason(error))

    def _write(self, file: int, data: bytes, end: int) -> None:
        """All of it or nothing: what a full disk took in part is cut off."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
            if self._sync:
                os.fdatasync(file)
        except BaseException:  # reason: as in ``append``
            self._torn = True
            with suppress(OSError):
                os.ftruncate(file, end)
                self._torn = False
            raise

    @contextmanager
    def _held(self) -> Iterator[int]:
        """The file, locked against others, its end known."""
        with self._lock:
            file = self._locked()
            try:
                yield file
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)

    def _locked(self) -> int:
        """The file, once it is locked against others, its end known."""
        while True:
            file = self._opened()
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                seen = os.fstat(file)
                if seen.st_nlink:
                    if seen.st_size != self._end:
                        self._look(file, seen.st_size)
                    return file
            except BaseException:  # reason: whatever it is, others must not wait for the lock
                fcntl.flock(file, fcntl.LOCK_UN)
                raise
            fcntl.flock(file, fcntl.LOCK_UN)
            self._close()  # somebody put another file in its place, as a pruning does, or deleted it

    def _opened(self) -> int:
        """The descriptor; a forked child needs its own, for a lock is its descriptor's."""
        if self._file < 0 or self._process != os.getpid():
            try:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise ConfigurationError(
                    f"the audit log {self.path.name!r} cannot be written: {error.strerror}",
                    details={"field": "audit.file"},
                    hint="choose another place for it, or make that one writable",
                ) from error
            if self._process != os.getpid():  # what could not be written before a fork is the parent's to tell
                self.missing, self.failure, self._torn = Missing(), None, False
            self._process, self._end = os.getpid(), -1
        return self._file

    def _look(self, file: int, size: int) -> None:
        """Find the last entry, and cut off half a line behind it. A whole one only lacks its end."""
        tail = whole = b""
        at = size
        while at > 0 and b"\n" not in whole:
            at = max(0, at - _CHUNK)
            tail = os.pread(file, size - at, at)
            whole = tail[: tail.rfind(b"\n") + 1].rstrip(b"\n")
        torn = tail[tail.rfind(b"\n") + 1 :]
        self._last = _place_of(whole[whole.rfind(b"\n") + 1 :]) if whole else Anchor()
        entry = _parsed(torn)
        if entry is not None and hash_chain.broken([entry], seq=self._last.seq, previous=self._last.hash) is None:
            os.write(file, b"\n")
            self._last, size = _place_of(torn), size + 1
        elif torn:
            os.ftruncate(file, size - len(torn))
            size -= len(torn)
            if not self._torn:
                self.missing = self.missing._replace(entries=self.missing.entries + 1)
        self._end, self._torn = size, False

    def force(self) -> Anchor:
        """Force what was written to the disk; the last entry, as an anchor."""
        with self._held() as file:
            os.fsync(file)
            self.unanchored = 0
            return self._last

    def prune(self, before: datetime, remember: Callable[[Anchor], None]) -> int:
        """Drop the entries from before a time; how many. What stays is chained to the last one dropped, which is told
        before anything is dropped.
        """
        with self._held():
            kept = _read_lines(self.path)
            first = Anchor()
            dropped = 0
            for line in kept:
                entry = _parsed(line)
                if entry is None or (_BASE not in entry and datetime.fromisoformat(entry["at"]) >= before):
                    break
                first = _place_of(line)
                dropped += _BASE not in entry
            if not dropped:
                return 0
            kept = [line for line in kept if _place_of(line).seq > first.seq]
            remember(first)
            base = codec.encode_json({_BASE: True, "seq": first.seq, "hash": first.hash})
            try:
                self._replace(b"".join(line + b"\n" for line in (base, *kept)))
            except OSError as error:
                raise unwritable(self.path, error) from error
        return dropped

    def _replace(self, data: bytes) -> None:
        new = self.path.with_name(f".{self.path.name}.new")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            new.replace(self.path)
        except BaseException:  # reason: half a file would only take room
            new.unlink(missing_ok=True)
            raise
        self._end = -1

    def _close(self) -> None:
        if self._file >= 0 and self._process == os.getpid():
            os.close(self._file)
        self._file = -1

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._close()

    # -- reading ----------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[dict[str, Any]]:
        """All entries that can be read, the oldest first."""
        with self.path.open("rb") as file:
            for line in file:
                entry = _parsed(line)
                if entry is not None and _BASE not in entry:
                    yield entry

    def check(self, kept: Kept, anchor: Anchor | None) -> Verification:
        """Whether no entry was altered or removed, up to the database's anchor and another one at least."""
        with self._held():
            file, end, lost = self.path.open("rb"), self._end, self.missing.entries
        with file:
            return self._checked(file, end, lost, kept, anchor)

    def _checked(self, file: BinaryIO, end: int, lost: int, kept: Kept, anchor: Anchor | None) -> Verification:
        """The same of a file up to where it ended, where so many entries are to be told missing."""
        wanted = {one.seq: one.hash for one in (kept.last, kept.base, anchor or Anchor()) if one.seq}
        seq, previous, checked = 0, GENESIS, 0
        problems: list[str] = []
        for number, line in enumerate(_lines(file, end)):
            entry = _parsed(line)
            if entry is None:
                problems.append(f"line {number + 1} cannot be read")
            elif _BASE in entry and number == 0:
                seq, previous = _place_of(line)
                if (seq, previous) != kept.base:
                    problems.append(f"the first {seq} entries are missing, and were not dropped for their age")
            elif (broken := hash_chain.broken([entry], seq=seq, previous=previous)) is not None:
                problems.append(f"entry {broken.seq}: {broken.why}")
            else:
                seq, previous, checked = seq + 1, str(entry["hash"]), checked + ("unfinished" not in entry)
                lost += entry["count"] if entry.get("verb") == MISSING else 0
                if wanted.pop(seq, previous) != previous:
                    problems.append(f"entry {seq} is another one than the anchor says")
            if problems:
                break
        if not problems and any(one > seq for one in wanted):
            problems.append(f"the end was cut off: entry {max(wanted)} is missing, the last one is {seq}")
        told = str(Anchor(seq, previous))
        return Verification(valid=not problems, checked=checked, missing=lost, anchor=told, problems=tuple(problems))


def _lines(file: BinaryIO, end: int) -> Iterator[bytes]:
    for line in file:
        end -= len(line)
        if end < 0:
            return  # written meanwhile
        if line.strip():
            yield line


def _read_lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().split(b"\n") if line]


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = codec.decode_json(line)
    except codec.UNREADABLE:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("seq"), int) else None


def _place_of(line: bytes) -> Anchor:
    entry = _parsed(line) or {}
    return Anchor(int(entry.get("seq", 0)), str(entry.get("hash", GENESIS)))


def reason(error: BaseException) -> str:
    """Why an entry could not be written: the name that the system has for it, or the error's."""
    return errno.errorcode.get(getattr(error, "errno", None) or 0, type(error).__name__)


def unwritable(path: Path, error: OSError) -> StoreError:
    """The error of ours for an entry that could not be written."""
    kind = StoreFull if error.errno in _FULL else StoreReadOnly if error.errno in _READ_ONLY else StoreError
    return kind(
        f"the audit log {path.name!r} cannot be written: {error.strerror or reason(error)}",
        details={"file": path.name, "errno": error.errno},
        hint="nothing was changed; make room for the log, or let operations go on without it:"
        " audit.on_failure = 'continue'",
    )


# -- anchors --------------------------------------------------------------------------------------------------------


def anchor(engine: Engine) -> Kept | None:
    """What the database knows of its log; ``None`` if that is not sealed by the keyring: somebody replaced it."""
    record = engine.records.get(DATABASE, ANCHORS, _NAME)
    if record is None:
        return Kept()
    told, seal = _read(record.body)
    expected = _seal(engine, told)
    return None if expected is not None and not hmac.compare_digest(expected, seal or "") else told


def keep_anchor(engine: Engine, last: Anchor) -> None:
    """Keep the last entry as an anchor, unless there is a later one."""
    _change(engine, lambda before: before._replace(last=max(before.last, last)))


def keep_base(engine: Engine, base: Anchor) -> None:
    """Remember the last entry that is dropped for its age."""
    _change(engine, lambda before: Kept(max(before.last, base), base))


def _change(engine: Engine, change: Callable[[Kept], Kept]) -> None:
    record = engine.records.get(DATABASE, ANCHORS, _NAME)
    before = Kept() if record is None else _read(record.body)[0]
    after = change(before)
    if after != before:
        body = codec.encode_json((after, _seal(engine, after)))
        version = 1 if record is None else record.version + 1
        now = engine.clock()
        engine.records.put(Record(owner=DATABASE, kind=ANCHORS, name=_NAME, body=body, version=version, updated_at=now))


def _seal(engine: Engine, told: Kept) -> str | None:
    """A keyed hash, if there is a keyring: without it nobody can make another one."""
    if engine.keyring is None:
        return None
    return hmac.new(engine.keyring.signing_seed(), f"audit {told}".encode(), hashlib.sha256).hexdigest()


def parse_anchor(text: str) -> Anchor | None:
    """An anchor as ``verify`` told it; ``None`` if it is none."""
    number, _, digest = text.partition(":")
    return Anchor(int(number), digest) if number.isdigit() and len(digest) == len(GENESIS) else None
