"""The folder of one owner: what was read of its files, and what follows from the lines for its vectors."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from recollect import logs
from recollect.errors import NotAStore
from recollect.stores.jsonl import lines
from recollect.stores.jsonl.disk import MISSING, Disk, Look
from recollect.stores.jsonl.folders import folder
from recollect.stores.jsonl.lines import CORRUPT, Flaw, Line
from recollect.stores.jsonl.order import Numbers
from recollect.types import Operation, Owner, Stamp, Stored, Vector

MEMORY = "memory.jsonl"
ARCHIVE = "archive.jsonl"
TOMBSTONES = "tombstones.jsonl"
DAMAGED = "damaged.jsonl"
DELETED = "deleted"
LINES = (MEMORY, ARCHIVE, TOMBSTONES, DELETED)
"""The files that hold versions, in the order of reading: a line moves from the first to the second, never back. The
last one stands elsewhere: the tombstones of a folder that was deleted, without which a merge would bring it back."""

DERIVED = "derived"
_END_BYTES = 64


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
    vectors_seen: Look = MISSING
    vectors_offset: int = 0
    revision: int = 0  # of the vectors that were read
    _since: dict[str, set[Stamp]] = field(default_factory=dict)  # versions that have the same text
    _given: dict[str, Vector] = field(default_factory=dict)
    _made: dict[str, dict[str, tuple[Stamp, Vector]]] = field(default_factory=dict)

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
        moved = look.inode != self.seen.inode or look.size <= self.seen.size or not data.startswith(self.end)
        if moved:
            return None
        found = self._whole(data[len(self.end) :], look)
        self._note_flaws(self.flaws + _flaws(found))
        self._note_flawed(MEMORY, found)
        return [one for one in found if isinstance(one, Line)]

    def whole(self, disk: Disk) -> list[Line]:
        """Every line of every file."""
        found: list[Line | Flaw] = []
        self.flawed.clear()
        if self.decode_foreign is not None:
            (memory, look), (tombstones, _) = (disk.read(f"{self.name}/{file}") for file in (MEMORY, TOMBSTONES))
            self.seen, self.loaded = look, True
            found = list(self.decode_foreign(memory, tombstones))
            self._note_flaws(_flaws(found))
            return [one for one in found if isinstance(one, Line)]
        for file in LINES:
            try:
                data, look = disk.read(self.file(file))
            except NotAStore:  # a link or a pipe hides this owner, and nobody else
                data, look = b"", disk.look(self.memory)
                found.append(Flaw("damaged", b""))
            if file == MEMORY:
                self.offset, self.end = 0, b""
                decoded = self._whole(data, look)
            else:
                decoded = self._decoded(_ended(data))
            self._note_flawed(file, decoded)
            found += decoded
        self._note_flaws(_flaws(found))
        self.loaded = True
        return [one for one in found if isinstance(one, Line)]

    def tombstones(self, disk: Disk) -> list[Line]:
        """The tombstones in its files."""
        found = (self._decoded(disk.read(self.file(file))[0]) for file in (TOMBSTONES, DELETED))
        return [one for some in found for one in some if isinstance(one, Line)]

    def _note_flaws(self, found: Counter[str]) -> None:
        """Take in which lines are not served; the log hears of damage that was not there before."""
        more = sum(found[kind] - self.flaws[kind] for kind in CORRUPT)
        self.flaws = found
        if more > 0:
            logs.lines_damaged(more)

    def _note_flawed(self, file: str, found: Iterable[Line | Flaw]) -> None:
        for one in found:
            if isinstance(one, Flaw) and one.fields is not None:
                self.flawed.add(Stamp(str(one.fields.get("stamp"))))
                self.handwritten = True
            elif isinstance(one, Flaw):
                self.fresh.append((one.kind, file, one.data))

    def _whole(self, data: bytes, look: Look) -> list[Line | Flaw]:
        """The lines that are whole. Half a line is left for later: perhaps somebody is writing it."""
        whole = _ended(data)
        self.advance(whole, look)
        return self._decoded(whole)

    def advance(self, data: bytes, look: Look) -> None:
        """Note that so much more was read, or written."""
        self.offset += len(data)
        self.end = (self.end + data[-_END_BYTES:])[-_END_BYTES:]
        self.seen = look

    def replaced(self, data: bytes, look: Look) -> None:
        """Note that the file was replaced by this process."""
        self.offset, self.end = 0, b""
        self.advance(data, look)

    def _decoded(self, data: bytes) -> list[Line | Flaw]:
        return [self._checked(lines.decode(one), one) for one in lines.split(data)]

    def _checked(self, one: Line | Flaw, data: bytes) -> Line | Flaw:
        """A line counts only in the folder of its owner."""
        if isinstance(one, Flaw) or one.stored.owner == self.owner:
            return one
        if folder(one.stored.owner) != self.name:
            return misplaced(data)
        self.owner = one.stored.owner
        return one

    # -- vectors ----------------------------------------------------------------------------------------------

    def forget_versions(self) -> None:
        """Begin anew, before everything is noted again."""
        self.batched.clear()
        self._since.clear()
        self._given.clear()

    def note(self, line: Line) -> None:
        """Take in what a version says of its batch and its vector."""
        one = line.stored
        if line.batch is not None and line.batch.size > 1:
            self.batched[one.stamp] = line.batch.id
        if line.keeps_vector:
            self._since.setdefault(one.id, set()).add(one.stamp)
            return
        self._given.pop(one.id, None)
        if one.operation is Operation.ERASED:
            self._since.pop(one.id, None)
            self._made.pop(one.id, None)
            return
        self._since[one.id] = {one.stamp}
        if line.vector is not None:
            self._given[one.id] = line.vector

    def forget_vectors(self, embedder: str | None = None) -> None:
        """Drop derived vectors: all, or those of other embedders than one."""
        for memory_id, held in list(self._made.items()):
            self._made[memory_id] = {name: one for name, one in held.items() if name == embedder}
        self.vectors_seen = MISSING

    def note_vector(self, memory_id: str, stamp: Stamp, vector: Vector) -> None:
        """Take in a vector that an embedder made for a version."""
        self._made.setdefault(memory_id, {})[vector.embedder] = (stamp, vector)

    def made_for(self, memory_id: str) -> list[Vector]:
        """The derived vectors that fit the newest text of a memory, by whichever embedder."""
        fitting = self._since.get(memory_id, ())
        return [vector for stamp, vector in self._made.get(memory_id, {}).values() if stamp in fitting]

    def vectors_of(self, memory_id: str) -> Iterable[Vector]:
        """The same, and the one that a caller gave."""
        found = self.made_for(memory_id)
        given = self._given.get(memory_id)
        return found if given is None else [given, *found]

    def read_vectors(self, disk: Disk) -> set[str]:
        """Read what was added to the derived vectors; the ids."""
        name = self.derived("vectors.jsonl")
        again = disk.look(name).inode != self.vectors_seen.inode
        data, look = disk.read(name, 0 if again else self.vectors_offset)
        whole = data[: data.rfind(b"\n") + 1]
        self.vectors_offset = len(whole) + (0 if again else self.vectors_offset)
        self.vectors_seen = look
        touched = set()
        for one in map(lines.unsealed, lines.split(whole)):
            if isinstance(one, dict):  # what is damaged is made again
                try:
                    self.note_vector(str(one["id"]), Stamp(str(one["stamp"])), lines.to_vector(one))
                    touched.add(str(one["id"]))
                    self.revision = max(self.revision, int(one["revision"]))
                except lines.UNREADABLE:
                    continue
        return touched


def entries(disk: Disk, folder: OwnerFolder, file: str) -> list[tuple[int, Line | Flaw]]:
    """The lines of a file with their numbers; a line of another owner is a flaw."""
    data, _ = disk.read(folder.file(file))
    found: list[tuple[int, Line | Flaw]] = []
    every = data.split(b"\n")
    for number, line in enumerate(every, start=1):
        if line.strip():
            one = lines.decode(line.strip(b" \t\r"))
            if isinstance(one, Flaw) and one.fields is None and number == len(every):
                one = Flaw("torn", line)  # nobody was told that it was written; the next writer sets it aside
            if isinstance(one, Line) and one.stored.owner != folder.owner:
                one = misplaced(line)
            found.append((number, one))
    return found


def misplaced(data: bytes) -> Flaw:
    """A sealed line in the folder of another owner."""
    fields = lines.unsealed(data.strip(b" \t\r"))
    return Flaw("misplaced", data, fields.fields if isinstance(fields, Flaw) else fields)


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


def _flaws(found: Iterable[Line | Flaw]) -> Counter[str]:
    return Counter(one.kind for one in found if isinstance(one, Flaw))


def vector_line(memory_id: str, stamp: Stamp, vector: Vector, revision: int) -> bytes:
    """The line of a derived vector: it fits the text that this version has. The owner's revision rises with it."""
    fields: dict[str, Any] = {"id": memory_id, "stamp": stamp, "revision": revision, **lines.of_vector(vector)}
    return lines.seal(fields)
