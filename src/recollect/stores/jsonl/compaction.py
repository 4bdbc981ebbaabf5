"""The files of an owner without what nobody needs. Every version stays, and so do lines that cannot be read."""

from typing import TYPE_CHECKING

from recollect.stores.jsonl import derived, lines, writing
from recollect.stores.jsonl.disk import Disk
from recollect.stores.jsonl.lines import Flaw, Line
from recollect.stores.jsonl.owner_folder import ARCHIVE, MEMORY, OwnerFolder, entries, vector_line
from recollect.stores.owner_log import OwnerLog
from recollect.types import Operation, Owner, State

if TYPE_CHECKING:
    from recollect.stores.jsonl.journal import JsonlJournal


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
    staying = {head.stamp for head in log.heads.values() if head.facets.get("state") != State.ARCHIVED.value}
    waiting = {one.stored.stamp for _, one in entries(disk, folder, MEMORY) if isinstance(one, Line)}
    staying |= waiting - {one.stamp for one in log.versions}  # of a batch that is not all here
    writing.end_of(disk, folder, MEMORY)  # half a line that a crash left is set aside
    memory, _ = disk.read(folder.memory)
    archive, _ = disk.read(f"{folder.name}/{ARCHIVE}")
    seen = {one.stored.stamp for one in map(lines.decode, lines.split(archive)) if not isinstance(one, Flaw)}
    kept, moved = bytearray(), bytearray()
    for data in lines.split(memory):
        one = lines.decode(data)
        if not isinstance(one, Flaw):
            if one.stored.stamp in seen:
                continue
            seen.add(one.stored.stamp)
        target = kept if isinstance(one, Flaw) or one.stored.stamp in staying else moved
        target += data + b"\n"
    if moved:
        disk.replace(f"{folder.name}/{ARCHIVE}", archive + bytes(moved))
    if len(kept) < len(memory):
        folder.replaced(bytes(kept), disk.replace(folder.memory, bytes(kept)))
    _compact_derived(journal, owner)


def _compact_derived(journal: "JsonlJournal", owner: Owner) -> None:
    folder, log = journal.folder_of(owner), journal.log_of(owner)
    heads = [] if log is None else [one for one in log.heads.values() if one.operation is not Operation.ERASED]
    counted = derived.read_accesses(journal.disk, folder)
    accesses = b"".join(derived.access_line(head.id, *counted[head.id]) for head in heads if head.id in counted)
    name = folder.derived("accesses.jsonl")
    if journal.disk.look(name).size > len(accesses):
        journal.disk.replace(name, accesses, sync=False)
    compact_vectors(journal.disk, folder, log)


def compact_vectors(disk: Disk, folder: OwnerFolder, log: OwnerLog | None) -> None:
    """Keep the vectors that fit the newest texts."""
    name = folder.derived("vectors.jsonl")
    heads = () if log is None else log.heads.values()
    data = b"".join(
        vector_line(head.id, head.stamp, vector, folder.revision)
        for head in heads
        for vector in folder.made_for(head.id)
    )
    if disk.look(name).size > len(data):
        disk.replace(name, data, sync=False)
    folder.read_vectors(disk)
