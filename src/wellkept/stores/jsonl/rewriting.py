"""Files that are replaced as a whole: without what was erased, with versions rewritten, or compacted.

Every other line stays as it is, also one that cannot be read.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from wellkept import codec
from wellkept.stores.jsonl import derived, lines, writing
from wellkept.stores.jsonl.disk import Disk
from wellkept.stores.jsonl.lines import Flaw, Line
from wellkept.stores.jsonl.owner_folder import ARCHIVE, DAMAGED, DELETED, MEMORY, TOMBSTONES, Entry, OwnerFolder
from wellkept.stores.jsonl.vectors import VECTORS
from wellkept.types import Operation, Owner, Stamp, State, Stored

if TYPE_CHECKING:
    from wellkept.stores.jsonl.journal import JsonlJournal


def exchange(disk: Disk, folder: OwnerFolder, file: str, change: Callable[[Entry], bytes]) -> None:
    """Replace one of the files of versions, if that changes anything."""
    data, look = disk.read(folder.file(file))
    after = b"".join(map(change, folder.decoded(data)))
    if look.inode and after != data:
        disk.replace(folder.file(file), after)


# -- erasing --------------------------------------------------------------------------------------------------


def purge(disk: Disk, folder: OwnerFolder, erased: set[str]) -> None:
    """Write the files of a folder without what was erased.

    The files of versions come last, for whoever finds erased versions there begins again. Of these, ``memory.jsonl``
    comes first and is always replaced: other processes see by that that something was erased.
    """
    remove_copies(disk, folder, erased)
    _remove(disk, folder.derived(derived.ACCESSES), erased)
    superseded = {stamp for line in folder.tombstones(disk) for stamp in line.removed}
    for file in (TOMBSTONES, DELETED):
        exchange(disk, folder, file, lambda entry: b"" if entry.stamp in superseded else entry.data + b"\n")
    data, look = disk.read(folder.memory)
    if look.inode:
        after = _without(data, erased)
        folder.replaced(after, disk.replace(folder.memory, after))
    _remove(disk, folder.file(ARCHIVE), erased)


def remove_copies(disk: Disk, folder: OwnerFolder, ids: set[str]) -> None:
    """Take some memories out of every file but those of the versions: what was set aside, what is derived, and what was
    to be exchanged when a process was killed. Half a line that a crash left is set aside before.
    """
    writing.end_of(disk, folder, MEMORY)
    folder.sweep(disk)
    disk.sweep(derived.INDICES)
    _remove(disk, folder.file(DAMAGED), ids)
    _remove(disk, folder.derived(VECTORS), ids)
    for name in (folder.derived(derived.INDEX), derived.GLOBAL, derived.TOPICS):
        disk.remove(name)


def _remove(disk: Disk, name: str, ids: set[str]) -> None:
    data, _ = disk.read(name)
    after = _without(data, ids)
    if after != data:
        disk.replace(name, after)


def _without(data: bytes, ids: set[str]) -> bytes:
    """Lines without those of some memories. Of a damaged line, the id may still be legible."""
    marks = [codec.encode_json(memory_id) for memory_id in ids]
    marks += [mark.replace(b'"', b'\\"') for mark in marks]  # as a text within damaged.jsonl

    def is_of(line: bytes) -> bool:
        if len(ids) <= 10 and not any(mark in line for mark in marks):
            return False
        found = lines.unsealed(line)
        fields = found.fields if isinstance(found, Flaw) else found
        if fields is not None and isinstance(fields.get("id"), str):
            return fields["id"] in ids
        return any(mark in line for mark in marks)

    return b"".join(line + b"\n" for line in lines.split(data) if not is_of(line))


# -- rewriting ------------------------------------------------------------------------------------------------


def rewrite(disk: Disk, folder: OwnerFolder, others: Mapping[tuple[str, Stamp], Stored]) -> None:
    """Write the files of a folder with other facets, payloads and reasons in the place of those of stored versions.

    The file that other processes look at comes last, and copies go first: whoever finds the former versions after a
    crash begins again.
    """
    vectors = {one.id: one.vector for one in others.values() if one.vector is not None}

    def change(entry: Entry) -> bytes:
        one = entry.one
        other = others.get((one.stored.id, one.stored.stamp)) if isinstance(one, Line) else None
        if isinstance(one, Flaw) or other is None:
            return entry.data + b"\n"
        stored = one.stored._replace(facets=other.facets, payload=other.payload, reason=other.reason)
        return lines.encode(one._replace(stored=stored, vector=one.vector and vectors.get(stored.id)))

    remove_copies(disk, folder, {one.id for one in others.values()})
    for file in (ARCHIVE, TOMBSTONES, DELETED, MEMORY):
        exchange(disk, folder, file, change)


# -- compaction -----------------------------------------------------------------------------------------------


def compact(journal: "JsonlJournal", owner: Owner) -> None:
    """Write each version once, move former versions and those of archived memories to ``archive.jsonl``, and keep one
    vector and one count of accesses for each memory.

    The archive is written first: a crash in between leaves lines in both files, and a stamp counts once.
    """
    journal.migrate({owner})
    folder, log, disk = journal.folder_of(owner), journal.log_of(owner), journal.disk
    if log is None:
        return
    folder.sweep(disk)
    writing.end_of(disk, folder, MEMORY)  # half a line that a crash left is set aside
    memory, archive = (disk.read(folder.file(file))[0] for file in (MEMORY, ARCHIVE))
    staying = {head.stamp for head in log.heads.values() if head.facets.get("state") != State.ARCHIVED.value}
    moving = {one.stamp for one in log.versions} - staying  # not those of a batch that is not all here
    seen = {entry.stamp for entry in folder.decoded(archive)} - {None}
    kept, moved = bytearray(), bytearray()
    for entry in folder.decoded(memory):
        if entry.stamp not in seen:
            target = moved if entry.stamp in moving else kept
            target += entry.data + b"\n"
            seen |= {entry.stamp} - {None}
    if moved:
        disk.replace(folder.file(ARCHIVE), archive + bytes(moved))
    if len(kept) < len(memory):
        folder.replaced(bytes(kept), disk.replace(folder.memory, bytes(kept)))
    heads = [one for one in log.heads.values() if one.operation is not Operation.ERASED]
    derived.compact_accesses(disk, folder, heads)
    folder.vectors.compact(disk, heads)
