"""One change of the files, all or none of it."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from recollect.errors import StoreError
from recollect.stores.jsonl import commits, lines, loading
from recollect.stores.jsonl.commits import LOG, Position
from recollect.stores.jsonl.disk import Disk


@dataclass(slots=True)
class Change:
    """What is to be appended to files, and what is to take their place."""

    appended: dict[str, bytearray] = field(default_factory=dict)
    rewritten: dict[str, bytes] = field(default_factory=dict)

    def append(self, name: str, line: bytes) -> None:
        """Add a line to a file."""
        self.appended.setdefault(name, bytearray()).extend(line)

    def rewrite(self, name: str, data: bytes) -> None:
        """Put other content into the place of a file, and behind it what was to be appended."""
        self.rewritten[name] = data + self.appended.pop(name, b"")


class Files:
    """The files of a store, and how far they are known. Whoever writes holds the lock of the store."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.at = Position()

    def commit(self, change: Change, sequence: int) -> None:
        """Write a change. If it raises before the commit is on the disk, nothing of it is kept."""
        ends: dict[str, int] = {}
        try:
            lengths = self._append(change.appended, ends) | self._prepare(change.rewritten)
            line = commits.line(self.at, sequence, lengths, tuple(change.rewritten))
            self.disk.append(LOG, line, self.at.offset)
        except BaseException:  # reason: an interrupt, too, must leave nothing half written
            self._take_back(ends, change.rewritten)
            raise
        self.at = Position(
            self.at.file or self.disk.stat(LOG)[0],
            self.at.offset + len(line),
            self.at.ordinal + 1,
            sequence,
            self.at.lengths | lengths,
            tuple(change.rewritten),
        )
        if not change.rewritten and self.at.offset > commits.CHECKPOINT_BYTES:
            with suppress(StoreError):  # the log may as well grow on
                self.checkpoint()

    def _append(self, appended: Mapping[str, bytearray], ends: dict[str, int]) -> dict[str, int]:
        lengths = {}
        for name, data in appended.items():
            at, lead = self._end(name)
            ends[name] = at + len(lead)
            self.disk.append(name, lead + data, at)
            lengths[name] = at + len(lead) + len(data)
        return lengths

    def _end(self, name: str) -> tuple[int, bytes]:
        """Where to go on in a file, and what to write there first.

        What a crash left behind the end goes: lines of ours that were not committed, and half a line. Lines that
        somebody else wrote there stay, for ``doctor`` to tell of.
        """
        size = self.disk.stat(name)[1]
        end = min(size, self.at.lengths.get(name, 0))  # somebody may have shortened it
        if end and self.disk.read(name, end - 1, end) != b"\n":  # somebody edited it
            return size, b"" if self.disk.read(name, size - 1) == b"\n" else b"\n"
        if size == end:
            return end, b""
        return end, b"".join(line + b"\n" for line in self.foreign(name, end))

    def content(self, name: str) -> bytes:
        """What counts of a file, and what somebody else wrote behind it: all that must be in it if it is rewritten."""
        end = self.at.lengths.get(name, 0)
        return loading.content(self.disk, name, 0, end) + b"".join(line + b"\n" for line in self.foreign(name, end))

    def foreign(self, name: str, end: int) -> list[bytes]:
        """The lines behind the end of a file that somebody else wrote; none if an edit moved the end itself."""
        if end and self.disk.read(name, end - 1, end) != b"\n":
            return []
        extra = self.disk.read(name, end)
        whole = extra[: extra.rfind(b"\n") + 1]
        return [line for line in lines.split(whole) if lines.unseal(line, name) is None and b"\0" not in line]

    def _prepare(self, rewritten: Mapping[str, bytes]) -> dict[str, int]:
        for name, data in rewritten.items():
            for stale in self.disk.names(f"{name}.*.new"):
                self.disk.remove(stale)
            self.disk.write(commits.waiting(name, self.at.ordinal + 1), data)
        return {name: len(data) for name, data in rewritten.items()}

    def _take_back(self, ends: Mapping[str, int], rewritten: Iterable[str]) -> None:
        """Undo, as far as the disk lets us: the log first, since it is what counts."""
        with suppress(StoreError):
            self.disk.cut(LOG, self.at.offset)
        for name, end in ends.items():
            with suppress(StoreError):
                self.disk.cut(name, end)
        for name in rewritten:
            with suppress(StoreError):
                self.disk.remove(commits.waiting(name, self.at.ordinal + 1))

    def finish(self, at: Position) -> None:
        """Put rewritten files into their places, unless that was done, and drop what was derived from the former."""
        for name in at.rewritten:
            for derived in (*self.disk.names(f"{name.rpartition('/')[0]}/index.json*"), *self.disk.names("indices/*")):
                self.disk.remove(derived)
            self.disk.rename(commits.waiting(name, at.ordinal), name)
        at.rewritten = ()

    def checkpoint(self) -> None:
        """Begin a new log, with one line that says all."""
        line = commits.line(self.at, self.at.sequence, self.at.lengths, checkpoint=True)
        self.disk.replace(LOG, line)
        self.at = Position(
            self.disk.stat(LOG)[0], len(line), self.at.ordinal + 1, self.at.sequence, dict(self.at.lengths)
        )

    def salvaged(self) -> dict[str, int]:
        """What counts if the log is lost or damaged: every line that is whole."""
        return {name: self.disk.read(name).rfind(b"\n") + 1 for name in loading.found(self.disk)}
