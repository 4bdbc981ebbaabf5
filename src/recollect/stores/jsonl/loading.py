"""From files to the journal in RAM. What cannot be read is passed over and counted."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from recollect import codec
from recollect.stores.journal import Accesses, Entry, Journal
from recollect.stores.jsonl import lines
from recollect.stores.jsonl.disk import Disk
from recollect.types import Vector

MEMORY = "memory.jsonl"
TOMBSTONES = "tombstones.jsonl"
VECTORS = "vectors.jsonl"
ACCESSES = "accesses.jsonl"
SETTINGS = "settings.jsonl"
DAMAGED = "damaged.jsonl"
KEPT = (MEMORY, TOMBSTONES, VECTORS, ACCESSES)
"""The files of an owner that the commit log tells of."""

_FEW = 10  # ids: looking for more of them takes longer than decoding the line


class Misplaced(Exception):
    """A file was changed by somebody else: what is read from it does not begin with a line."""


@dataclass(slots=True)
class Loaded:
    """What stood in parts of files."""

    settings: list[tuple[str, str | None]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    vectors: list[tuple[str, Vector | None, bool]] = field(default_factory=list)
    accesses: list[tuple[str, Accesses]] = field(default_factory=list)
    damaged: Counter[str] = field(default_factory=Counter)
    known: dict[bytes, Entry] = field(default_factory=dict)  # versions by the seals of their lines

    def into(self, journal: Journal) -> None:
        """Add it to what is known."""
        for name, value in self.settings:
            if value is None:
                journal.settings.pop(name, None)
            else:
                journal.settings[name] = value
        journal.restore(self._in_order(journal.last))
        for memory_id, vector, replaces in self.vectors:
            journal.place_vector(memory_id, vector, replaces=replaces)
        for memory_id, accesses in self.accesses:
            journal.touch(memory_id, accesses)

    def _in_order(self, last: int) -> list[Entry]:
        """The versions, each once: a line that somebody copied does not count twice."""
        by_sequence = {entry.sequence: entry for entry in reversed(self.entries) if entry.sequence > last}
        return [by_sequence[sequence] for sequence in sorted(by_sequence)]


def load(disk: Disk, parts: Mapping[str, tuple[int, int]], known: Mapping[bytes, Entry]) -> Loaded:
    """Read parts of files. Of a version that is known by the seal of its line, the line is checked and not decoded."""
    loaded = Loaded()
    for name, (start, end) in parts.items():
        take = _takers(loaded).get(name.rpartition("/")[2])
        if take is None:
            continue
        read = lines.split(content(disk, name, start, end))
        if name.endswith(MEMORY):
            _take_versions(loaded, read, name, known)
        else:
            loaded.damaged[name] += sum(not _taken(line, name, take) for line in read)
    return loaded


def _take_versions(loaded: Loaded, read: Iterable[bytes], file: str, known: Mapping[bytes, Entry]) -> None:
    for line in read:
        seal = lines.seal_of(line)
        entry = None if seal is None else known.get(seal)
        if entry is None:
            unseal = lines.unseal if seal is None else lines.unseal_own
            entry = _version(unseal(line, file))
        if entry is None:
            loaded.damaged[file] += 1
            continue
        loaded.entries.append(entry)
        if seal is not None:
            loaded.known[seal] = entry


def _version(fields: lines.Fields | None) -> Entry | None:
    try:
        return None if fields is None else lines.to_entry(fields)
    except codec.UNREADABLE:  # it is what was written, but not by us
        return None


def content(disk: Disk, name: str, start: int, end: int) -> bytes:
    """A part of a file that begins and ends with whole lines. One that somebody has edited is read to its end."""
    if start:
        data = disk.read(name, start - 1, end)
        if data[:1] != b"\n":
            raise Misplaced
        return data[1:]
    data = disk.read(name, 0, end)
    return data if data.endswith(b"\n") or not data else disk.read(name)


def _takers(loaded: Loaded) -> dict[str, Callable[[lines.Fields], None]]:
    def take_mark(fields: lines.Fields) -> None:
        mark = lines.to_mark(fields)
        if mark is not None:
            loaded.entries.append(mark)

    return {
        MEMORY: lambda fields: loaded.entries.append(lines.to_entry(fields)),
        TOMBSTONES: take_mark,
        VECTORS: lambda fields: loaded.vectors.append(lines.to_vector(fields)),
        ACCESSES: lambda fields: loaded.accesses.append(lines.to_accesses(fields)),
        SETTINGS: lambda fields: loaded.settings.append((fields["name"], fields["value"])),
    }


def readable(line: bytes, file: str) -> bool:
    """Whether a line of a file can be taken in."""
    return _taken(line, file, _takers(Loaded()).get(file.rpartition("/")[2], lambda _: None))


def _taken(line: bytes, file: str, take: Callable[[lines.Fields], None]) -> bool:
    unseal = lines.unseal_version if file.endswith(MEMORY) else lines.unseal
    fields = unseal(line, file)
    if fields is None:
        return False
    try:
        take(fields)
    except codec.UNREADABLE:  # it is what was written, but not by us
        return False
    return True


def found(disk: Disk) -> Iterator[str]:
    """The files that are there, for a store whose commit log is lost."""
    for kept in KEPT:
        yield from disk.names(f"*/*/{kept}")
    yield from disk.names(f"**/{DAMAGED}")
    yield from disk.names(SETTINGS)


def without(data: bytes, file: str, ids: set[str]) -> bytes:
    """Lines without those of some memories. Of a damaged line, the id may still be legible."""
    marks = [codec.encode_json(memory_id) for memory_id in ids]
    return b"".join(line + b"\n" for line in lines.split(data) if not _is_of(line, file, ids, marks))


def _is_of(line: bytes, file: str, ids: set[str], marks: list[bytes]) -> bool:
    if len(marks) <= _FEW and not any(mark in line for mark in marks):
        return False
    fields = lines.unseal(line, file)
    return any(mark in line for mark in marks) if fields is None else fields.get("id") in ids
