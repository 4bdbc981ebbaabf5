"""Lines to files: the parts of an append, and what must be done with half a line before."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from wellkept.errors import StoreError
from wellkept.ports import Step
from wellkept.stores.jsonl import lines
from wellkept.stores.jsonl.disk import Disk, Look
from wellkept.stores.jsonl.lines import Batch, Line
from wellkept.stores.jsonl.owner_folder import DAMAGED, MEMORY, TOMBSTONES, OwnerFolder
from wellkept.types import Operation, Owner, Stamp, Stored, Vector

if TYPE_CHECKING:
    from wellkept.stores.jsonl.journal import JsonlJournal

BUFFERED = 1_000
"""Appends that may wait for a disk that failed."""

GIVEN = "given"
"""The embedder's name in vectors that a caller brought and no embedder made."""


class Part(NamedTuple):
    """What an append writes into one file."""

    folder: OwnerFolder
    file: str
    lines: list[Line]
    vectors: list[tuple[str, Stamp, Vector]]


def parts_of(journal: "JsonlJournal", steps: Sequence[Step], stored: Sequence[Stored]) -> list[Part]:
    """The lines of an append, by file. What comes and goes in one batch is never written: of a memory that is erased,
    only the last tombstone.
    """
    erased = {(one.owner, one.id) for one in stored if one.operation is Operation.ERASED}
    last_stamps = {(one.owner, one.id): one.stamp for one in stored}
    written = []
    removed = _removed(journal, erased)
    for step, one in zip(steps, stored, strict=True):
        memory = (one.owner, one.id)
        if memory in erased and one.stamp != last_stamps[memory]:
            removed[memory].append((one.stamp, ""))
        else:
            written.append((step, one))
    for step in steps:
        if step.before is not None and step.before.erased:  # what the older tombstone took away stays away
            memory = (step.write.owner, step.write.id)
            removed[memory] += _told_before(journal, memory)
    parts: dict[tuple[Owner, str], Part] = {}
    last: dict[Owner, Stamp | None] = {}
    for place, (step, one) in enumerate(written, start=1):
        folder, file = journal.folder_of(one.owner), TOMBSTONES if one.operation is Operation.ERASED else MEMORY
        part = parts.setdefault((one.owner, file), Part(folder, file, [], []))
        batch = Batch(written[0][1].stamp, place, len(written)) if len(written) > 1 else None
        after = last.get(one.owner) or journal.newest(folder)
        part.lines.append(_line(step, one, after, batch, removed.get((one.owner, one.id), ())))
        vector = step.write.vector
        if part.lines[-1].vector is None and vector is not None and not step.write.keeps_vector:
            part.vectors.append((one.id, one.stamp, vector))
        last[one.owner] = one.stamp
    return list(parts.values())


def _line(
    step: Step, one: Stored, after: Stamp | None, batch: Batch | None, removed: Sequence[tuple[Stamp, str]]
) -> Line:
    write = step.write
    is_given = write.vector is not None and (write.given or write.vector.embedder == GIVEN)
    return Line(
        stored=one,
        after=after,
        batch=batch,
        vector=write.vector if is_given and not write.keeps_vector else None,
        keeps_vector=write.keeps_vector and one.operation is not Operation.ERASED,
        removed=tuple(dict.fromkeys(stamp for stamp, _ in removed)),
        completes=tuple(dict.fromkeys(name for _, name in removed if name)),
    )


def _removed(
    journal: "JsonlJournal", erased: Iterable[tuple[Owner, str]]
) -> dict[tuple[Owner, str], list[tuple[Stamp, str]]]:
    """The stamps that erasing takes away, each with its batch: others of that batch stay complete without it."""
    found: dict[tuple[Owner, str], list[tuple[Stamp, str]]] = {place: [] for place in erased}
    for owner in {owner for owner, _ in found}:
        log, batched = journal.log_of(owner), journal.folder_of(owner).batched
        for version in log.versions if log is not None else ():
            if (owner, version.id) in found:
                found[owner, version.id].append((version.stamp, batched.get(version.stamp, "")))
    return found


def _told_before(journal: "JsonlJournal", place: tuple[Owner, str]) -> list[tuple[Stamp, str]]:
    """What the tombstones of a memory say that they took away."""
    folder = journal.folder_of(place[0])
    found: list[tuple[Stamp, str]] = []
    for line in folder.tombstones(journal.disk):
        if line.stored.id == place[1]:
            found += [(Stamp(stamp), "") for stamp in line.removed] + [
                (line.stored.stamp, name) for name in line.completes
            ]
    return found


class Unforced(NamedTuple):
    """Lines that were appended and not yet forced to the disk."""

    folder: OwnerFolder
    inode: int
    at: int
    data: bytes


def write(disk: Disk, parts: Sequence[Part], *, later: bool = False) -> Unforced | None:
    """Append to all files, or to none. One file that is there already may be forced to the disk later."""
    later = later and disk.durable and len(parts) == 1 and disk.look(parts[0].folder.memory).inode != 0
    written: list[tuple[str, int]] = []
    done: list[tuple[Part, bytes, Look]] = []
    try:
        for part in parts:
            for memory_id, stamp, vector in part.vectors:
                vectors = part.folder.vectors
                vectors.keep(disk, memory_id, stamp, vector, revision=vectors.revision)
        for part in parts:
            name, data = f"{part.folder.name}/{part.file}", b"".join(map(lines.encode, part.lines))
            at = end_of(disk, part.folder, part.file)
            done.append((part, data, disk.append(name, data, at, sync=not later)))
            written.append((name, at))
    except BaseException:  # reason: an interrupt, too, must leave nothing half written
        for name, at in written:
            with suppress(StoreError):
                disk.cut(name, at)
        raise
    for part, data, look in done:
        if part.file == MEMORY:
            part.folder.advance(data, look)
    part, data, look = done[0]
    return Unforced(part.folder, look.inode, written[0][1], data) if later else None


def end_of(disk: Disk, folder: OwnerFolder, file: str) -> int:
    """Where to append to a file. Half a line that a crash left is set aside; one that a person left is ended."""
    name = f"{folder.name}/{file}"
    size = disk.look(name).size
    start = folder.offset if file == MEMORY else 0
    if size == start:
        is_open = file == MEMORY and folder.end and not folder.end.endswith(b"\n")
        return disk.append(name, b"\n", size).size if is_open else size
    data, look = disk.read(name, start)
    torn = data[data.rfind(b"\n") + 1 :]
    if not torn:
        return look.size
    found = lines.unsealed(torn)
    if isinstance(found, lines.Flaw) and found.fields is None:
        set_aside(disk, folder, [("torn by a crash", file, torn)])
        disk.cut(name, look.size - len(torn))
        end = look.size - len(torn)
    else:
        end = disk.append(name, b"\n", look.size).size
        folder.flaws["unsealed"] += isinstance(found, lines.Flaw)
    if file == MEMORY:
        folder.offset, folder.end = end, b""
    return end


def set_aside(disk: Disk, folder: OwnerFolder, found: Iterable[tuple[str, str, bytes]]) -> None:
    """Copy lines that cannot be read to ``damaged.jsonl``, each with its reason and file, and each once."""
    name = f"{folder.name}/{DAMAGED}"
    data, look = disk.read(name)
    before = {one.get("line") for one in map(lines.unsealed, lines.split(data)) if isinstance(one, dict)}
    added = b"" if not data or data.endswith(b"\n") else b"\n"
    for reason, file, line in found:
        text = line.decode("utf-8", "backslashreplace")
        if text not in before:
            added += lines.seal({"file": file, "reason": reason, "line": text})
    if added.strip():
        disk.append(name, added, look.size)
