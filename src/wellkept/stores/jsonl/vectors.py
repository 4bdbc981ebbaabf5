"""The vectors of an owner's memories: those that callers gave stand in lines, those that embedders made are derived."""

from collections.abc import Iterable

from wellkept.stores.jsonl import lines
from wellkept.stores.jsonl.disk import MISSING, Disk
from wellkept.stores.jsonl.lines import Line
from wellkept.types import Operation, Stamp, Stored, Vector

VECTORS = "vectors.jsonl"


class Vectors:
    """What this process knows of them. ``revision`` is that of the newest derived vector that was read."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._seen = MISSING
        self._offset = 0
        self.revision = 0
        self._since: dict[str, set[Stamp]] = {}  # versions that have the same text
        self._given: dict[str, Vector] = {}
        self._made: dict[str, dict[str, tuple[Stamp, Vector]]] = {}

    def note(self, line: Line) -> None:
        """Take in what a version says of its vector."""
        one = line.stored
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

    def forget_versions(self) -> None:
        """Begin anew, before all versions are noted again."""
        self._since.clear()
        self._given.clear()

    def forget_made(self, embedder: str | None = None) -> None:
        """Drop derived vectors: all, or those of other embedders than one."""
        for memory_id, held in self._made.items():
            self._made[memory_id] = {name: one for name, one in held.items() if name == embedder}
        self._seen = MISSING

    def of(self, memory_id: str) -> list[Vector]:
        """Those that fit the newest text of a memory: the one that a caller gave, and those of any embedder."""
        given = self._given.get(memory_id)
        return [*([] if given is None else [given]), *self._fitting(memory_id)]

    def _fitting(self, memory_id: str) -> list[Vector]:
        stamps = self._since.get(memory_id, ())
        return [vector for stamp, vector in self._made.get(memory_id, {}).values() if stamp in stamps]

    # -- the derived file -------------------------------------------------------------------------------------

    def changed(self, disk: Disk) -> bool:
        """Whether somebody else wrote the file."""
        return disk.look(self._file) != self._seen

    def read(self, disk: Disk) -> set[str]:
        """Read what was added to the file; the ids."""
        again = disk.look(self._file).inode != self._seen.inode
        data, self._seen = disk.read(self._file, 0 if again else self._offset)
        whole = data[: data.rfind(b"\n") + 1]
        self._offset = len(whole) + (0 if again else self._offset)
        touched = set()
        for one in map(lines.unsealed, lines.split(whole)):
            if isinstance(one, dict):  # what is damaged is made again
                try:
                    self._take(str(one["id"]), Stamp(str(one["stamp"])), lines.to_vector(one))
                    touched.add(str(one["id"]))
                    self.revision = max(self.revision, int(one["revision"]))
                except lines.UNREADABLE:
                    continue
        return touched

    def _take(self, memory_id: str, stamp: Stamp, vector: Vector) -> None:
        self._made.setdefault(memory_id, {})[vector.embedder] = (stamp, vector)

    def keep(self, disk: Disk, memory_id: str, stamp: Stamp, vector: Vector, *, revision: int) -> None:
        """Keep a vector that can be made again: it is not forced to the disk."""
        size = disk.look(self._file).size
        lead = b"\n" if size != self._offset and size else b""
        self._seen = disk.append(self._file, lead + encoded(memory_id, stamp, vector, revision), size, sync=False)
        self._offset = self._seen.size
        self._take(memory_id, stamp, vector)
        self.revision = revision

    def compact(self, disk: Disk, heads: Iterable[Stored]) -> None:
        """Keep what fits the newest texts in the file."""
        data = b"".join(
            encoded(head.id, head.stamp, vector, self.revision) for head in heads for vector in self._fitting(head.id)
        )
        if disk.look(self._file).size > len(data):
            disk.replace(self._file, data, sync=False)
        self.read(disk)


def encoded(memory_id: str, stamp: Stamp, vector: Vector, revision: int) -> bytes:
    """The line of a derived vector: it fits the text that this version has. The owner's revision rises with it."""
    return lines.seal({"id": memory_id, "stamp": stamp, "revision": revision, **lines.of_vector(vector)})
