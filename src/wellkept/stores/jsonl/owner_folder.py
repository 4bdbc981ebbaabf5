"""The folder of one owner: what was read of its files."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from wellkept import logs
from wellkept.errors import NotAStore
from wellkept.stores.jsonl import lines
from wellkept.stores.jsonl.disk import MISSING, Disk, Look
from wellkept.stores.jsonl.lines import CORRUPT, Flaw, Line
from wellkept.stores.jsonl.names import folder
from wellkept.stores.jsonl.order import Numbers
from wellkept.stores.jsonl.vectors import VECTORS, Vectors
from wellkept.text import plain_entries
from wellkept.types import Owner, Stamp, Stored

MEMORY = "memory.jsonl"
ARCHIVE = "archive.jsonl"
TOMBSTONES = "tombstones.jsonl"
DAMAGED = "damaged.jsonl"
METADATA = "metadata.json"
DELETED = "deleted"
LINES = (MEMORY, ARCHIVE, TOMBSTONES, DELETED)
"""The files that hold versions, in the order of reading: a line moves from the first to the second, never back. The
last one stands elsewhere: the tombstones of a folder that was deleted, without which a merge would bring it back."""

DERIVED = "derived"
_END_BYTES = 64


class Entry(NamedTuple):
    """A line of a file with its number, and what it says."""

    number: int
    data: bytes
    one: Line | Flaw

    @property
    def stamp(self) -> Stamp | None:
        """Of the version, if it counts."""
        return self.one.stored.stamp if isinstance(self.one, Line) else None


@dataclass(slots=True)
class OwnerFolder:
    """What this process knows of a folder.

    ``seen``, ``offset`` and ``end`` say how far ``memory.jsonl`` was read. ``last`` is the stamp of the newest line.
    ``left`` tells that lines of erased memories still stand in the files. ``vanished`` are versions that were read once
    and whose lines are gone or were edited. ``lost`` is the newest line that an earlier process saw, if it is gone.
    ``flawed`` are the stamps of lines that are not served, ``fresh`` those that cannot be read and were not set aside.
    """

    name: str
    owner: Owner | None = None
    seen: Look = MISSING
    offset: int = 0
    end: bytes = b""
    last: Stamp | None = None
    left: bool = False
    loaded: bool = False
    flaws: Counter[str] = field(default_factory=Counter)
    vanished: dict[Stamp, Stored] = field(default_factory=dict)
    kept: Numbers = field(default_factory=lambda: Numbers({}))  # what its derived file says
    handwritten: bool = False  # lines came that a person may have written, and nobody looked at them yet
    lost: Stamp | None = None
    flawed: set[Stamp] = field(default_factory=set)
    fresh: list[tuple[str, str, bytes]] = field(default_factory=list)
    batched: dict[Stamp, str] = field(default_factory=dict)
    gone: dict[Stamp, int] = field(default_factory=dict)  # the sequences of versions that were erased
    decode_foreign: Callable[[bytes, bytes], Iterable[Line | Flaw]] | None = None  # if it is of the older format
    vectors: Vectors = field(init=False)

    def __post_init__(self) -> None:
        """With nothing read."""
        self.vectors = Vectors(self.derived(VECTORS))

    @property
    def memory(self) -> str:
        """The file of its versions."""
        return f"{self.name}/{MEMORY}"

    def file(self, name: str) -> str:
        """One of its files that hold versions."""
        return f"{DELETED}/{self.name}.jsonl" if name == DELETED else f"{self.name}/{name}"

    def derived(self, file: str) -> str:
        """The name of a derived file."""
        return f"{DERIVED}/{self.name}/{file}"

    def sweep(self, disk: Disk) -> None:
        """Delete what was to be exchanged when a process was killed: it holds memories, too."""
        for name in (self.name, f"{DERIVED}/{self.name}"):
            disk.sweep(name)

    # -- reading ----------------------------------------------------------------------------------------------

    def tail(self, disk: Disk) -> list[Line] | None:
        """What was appended since the last look; nothing if more than that happened: then everything must be read."""
        if not self.loaded or self.seen.inode == 0 or self.decode_foreign is not None:
            return None
        data, look = disk.read(self.memory, self.offset - len(self.end))
        if look.inode != self.seen.inode or look.size <= self.seen.size or not data.startswith(self.end):
            return None
        return self._served([(MEMORY, one) for one in self._whole(data[len(self.end) :], look)], self.flaws)

    def whole(self, disk: Disk) -> list[Line]:
        """Every line of every file."""
        found: list[tuple[str, Line | Flaw]] = []
        self.flawed.clear()
        self.loaded = False  # until all of them were read
        if self.decode_foreign is not None:
            (memory, self.seen), (tombstones, _) = (disk.read(self.file(file)) for file in (MEMORY, TOMBSTONES))
            found = [("", one) for one in self.decode_foreign(memory, tombstones)]
        for file in () if self.decode_foreign is not None else LINES:
            try:
                data, look = disk.read(self.file(file))
            except NotAStore:  # a link or a pipe hides this owner, and nobody else
                data, look = b"", disk.look(self.memory)
                found.append(("", Flaw("damaged", b"")))
            if file == MEMORY:
                self.offset, self.end = 0, b""
                found += [(file, one) for one in self._whole(data, look)]
            else:
                found += [(file, self._checked(line)) for line in lines.split(_ended(data))]
        self.loaded = True
        return self._served(found, Counter())

    def _served(self, found: Iterable[tuple[str, Line | Flaw]], flaws: Counter[str]) -> list[Line]:
        """The lines that count. The others are noted with their files, if they stand in one of ours; the log hears of
        damage that was not there before.
        """
        served, flaws = [], Counter(flaws)
        for file, one in found:
            if isinstance(one, Line):
                served.append(one)
                continue
            flaws[one.kind] += 1
            if file and one.fields is not None:
                self.flawed.add(Stamp(str(one.fields.get("stamp"))))
                self.handwritten = True
            elif file:
                self.fresh.append((one.kind, file, one.data))
        more = sum(flaws[kind] - self.flaws[kind] for kind in CORRUPT)
        self.flaws = flaws
        if more > 0:
            logs.lines_damaged(more)
        return served

    def tombstones(self, disk: Disk) -> list[Line]:
        """The tombstones in its files."""
        found = (entry.one for file in (TOMBSTONES, DELETED) for entry in self.entries(disk, file))
        return [one for one in found if isinstance(one, Line)]

    def entries(self, disk: Disk, file: str) -> list[Entry]:
        """All that stands in one of its files. Half a line at the end is torn: nobody was told that it was written."""
        data, _ = disk.read(self.file(file))
        found = list(self.decoded(data))
        if data[data.rfind(b"\n") + 1 :].strip() and isinstance(one := found[-1].one, Flaw) and one.fields is None:
            found[-1] = found[-1]._replace(one=Flaw("torn", one.data))
        return found

    def decoded(self, data: bytes) -> Iterator[Entry]:
        """Lines and what they say."""
        return (Entry(number, line, self._checked(line)) for number, line in plain_entries.numbered(data))

    def _whole(self, data: bytes, look: Look) -> list[Line | Flaw]:
        """The lines that are whole. Half a line is left for later: perhaps somebody is writing it."""
        whole = _ended(data)
        self.advance(whole, look)
        return [self._checked(line) for line in lines.split(whole)]

    def advance(self, data: bytes, look: Look) -> None:
        """Note that so much more was read, or written."""
        self.offset += len(data)
        self.end = (self.end + data[-_END_BYTES:])[-_END_BYTES:]
        self.seen = look

    def replaced(self, data: bytes, look: Look) -> None:
        """Note that the file was replaced by this process."""
        self.offset, self.end = 0, b""
        self.advance(data, look)

    def _checked(self, data: bytes) -> Line | Flaw:
        """A line counts only in the folder of its owner."""
        one = lines.decode(data)
        if isinstance(one, Flaw) or one.stored.owner == self.owner:
            return one
        if folder(one.stored.owner) != self.name:
            fields = lines.unsealed(data)
            return Flaw("misplaced", data, None if isinstance(fields, Flaw) else fields)
        self.owner = one.stored.owner
        return one

    def former(self, one: Flaw) -> Stored | None:
        """What this process read before a line was edited."""
        return None if one.fields is None else self.vanished.get(Stamp(str(one.fields.get("stamp"))))

    # -- versions ---------------------------------------------------------------------------------------------

    def forget_versions(self) -> None:
        """Begin anew, before everything is noted again."""
        self.batched.clear()
        self.vectors.forget_versions()

    def note(self, line: Line) -> None:
        """Take in what a version says of its batch and its vector."""
        if line.batch is not None and line.batch.size > 1:
            self.batched[line.stored.stamp] = line.batch.id
        self.vectors.note(line)


def has_gap(one: Line | Flaw, known: Set[str]) -> bool:
    """Whether the line that was written before this one is not among those that are known."""
    return isinstance(one, Line) and one.after is not None and one.after not in known


def known_stamps(found: Iterable[Line | Flaw]) -> set[str]:
    """The stamps that some lines tell of, edited and erased ones too."""
    known: set[str] = set()
    for one in found:
        if isinstance(one, Line):
            known |= {one.stored.stamp, *one.removed}
        elif one.fields is not None:
            known.add(str(one.fields.get("stamp")))
    return known


def _ended(data: bytes) -> bytes:
    """Without half a line at the end. A sealed line is whole even if an editor took its end of line away."""
    end = data.rfind(b"\n") + 1
    return data if isinstance(lines.unsealed(data[end:].strip(b" \t\r")), dict) else data[:end]
