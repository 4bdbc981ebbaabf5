"""The audit log: a file with one line of JSON for each operation, chained by hashes. It holds ids, never contents.

Each entry is written before the operation returns, so a killed process loses none; a power loss may take the last ones
unless each is forced to the disk. The database keeps an anchor: the number and the hash of an entry that the log must
have, so that its end cannot be cut off unseen.
"""

import hashlib
import hmac
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from wellkept import codec, hash_chain
from wellkept.engine.core import Engine
from wellkept.engine.ledger import ANCHORS
from wellkept.errors import ConfigurationError
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
        self._unanchored = 0
        with self._held():
            pass  # a file that cannot be made is told of at once

    # -- writing ----------------------------------------------------------------------------------------------

    def append(self, body: dict[str, Any]) -> bool:
        """Add an entry; whether it is time for a new anchor."""
        with self._lock:
            file = self._locked()
            try:
                seq = self._last.seq + 1
                data, digest = hash_chain.line(body, seq, self._last.hash)
                os.write(file, data)
                if self._sync:
                    os.fdatasync(file)
                self._last = Anchor(seq, digest)
                self._end += len(data)
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)
            self._unanchored = (self._unanchored + 1) % ANCHORED
            return not self._unanchored

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
            self._process, self._end = os.getpid(), -1
        return self._file

    def _look(self, file: int, size: int) -> None:
        """Find the last entry. Half a line, left by a crash of the machine, is ended: verify tells of it."""
        tail = b""
        at = size
        while at > 0 and tail.rstrip(b"\n").count(b"\n") < 1:
            at = max(0, at - _CHUNK)
            tail = os.pread(file, size - at, at)
        lines = tail.rstrip(b"\n").split(b"\n") if tail.strip() else []
        if tail and not tail.endswith(b"\n"):
            os.write(file, b"\n")
            size += 1
            lines = lines[:-1] or _read_lines(self.path)[-2:-1]
        self._last = _place_of(lines[-1]) if lines else Anchor()
        self._end = size

    def force(self) -> Anchor:
        """Force what was written to the disk; the last entry, as an anchor."""
        with self._held() as file:
            os.fsync(file)
            self._unanchored = 0
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
            new = self.path.with_name(f".{self.path.name}.new")
            new.unlink(missing_ok=True)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as out:
                out.write(b"".join(line + b"\n" for line in (base, *kept)))
                out.flush()
                os.fsync(out.fileno())
            new.replace(self.path)
            self._end = -1
        return dropped

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
        wanted = {one.seq: one.hash for one in (kept.last, kept.base, anchor or Anchor()) if one.seq}
        seq, previous, checked = 0, GENESIS, 0
        problems: list[str] = []
        for number, line in enumerate(_lines(self.path)):
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
                seq, previous, checked = seq + 1, str(entry["hash"]), checked + 1
                if wanted.pop(seq, previous) != previous:
                    problems.append(f"entry {seq} is another one than the anchor says")
            if problems:
                break
        if not problems and any(one > seq for one in wanted):
            problems.append(f"the end was cut off: entry {max(wanted)} is missing, the last one is {seq}")
        return Verification(
            valid=not problems, checked=checked, anchor=str(Anchor(seq, previous)), problems=tuple(problems)
        )


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from (line for line in file if line.strip())


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
