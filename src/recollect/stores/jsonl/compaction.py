"""The files of an owner without what nobody needs: what was superseded, counted twice, or left by a crash.

Every version of every memory stays, and so do lines that we cannot read: a person may still make something of them.
"""

from recollect.ports import Owners
from recollect.stores.journal import Journal
from recollect.stores.jsonl import lines, loading
from recollect.stores.jsonl.commit import Change, Files
from recollect.stores.jsonl.folders import folder
from recollect.types import Operation, Owner


def of_owners(journal: Journal, files: Files, owners: Owners) -> Change:
    """What is to be rewritten; nothing where nothing becomes shorter."""
    change = Change()
    for owner in sorted(owners, key=folder):
        for kept in loading.KEPT:
            name = f"{folder(owner)}/{kept}"
            after = _compacted(journal, owner, kept, files.content(name))
            if len(after) < files.disk.stat(name)[1]:
                change.rewrite(name, after)
    return change


def _compacted(journal: Journal, owner: Owner, kept: str, data: bytes) -> bytes:
    match kept:
        case loading.MEMORY:
            return _versions(journal, kept, data)
        case loading.TOMBSTONES:
            return _marks(journal, kept, data)
        case loading.VECTORS:
            return _vectors(journal, owner) + _unreadable(kept, data)
        case _:
            return _accesses(journal, owner) + _unreadable(kept, data)


def _versions(journal: Journal, file: str, data: bytes) -> bytes:
    """Each version once, without those of erased memories."""
    seen: set[int] = set()
    kept = bytearray()
    for line in lines.split(data):
        fields = lines.unseal(line, file)
        if fields is not None:
            sequence, head = fields.get("sequence", 0), journal.heads.get(fields.get("id", ""))
            if sequence in seen or (head is not None and head.memory is None):
                continue
            seen.add(sequence)
        kept += line + b"\n"
    return bytes(kept)


def _marks(journal: Journal, file: str, data: bytes) -> bytes:
    """What was erased stays told. That it was forgotten before, is not worth a line any more."""
    kept = bytearray()
    for line in lines.split(data):
        fields = lines.unseal(line, file)
        if fields is not None and fields.get("operation") != Operation.ERASED:
            head = journal.heads.get(fields.get("id", ""))
            if head is not None and head.memory is None:
                continue
        kept += line + b"\n"
    return bytes(kept)


def _vectors(journal: Journal, owner: Owner) -> bytes:
    found = bytearray()
    for memory_id in journal.owned.get(owner, ()):
        for held in (journal.vectors, journal.renewed):
            if memory_id in held:
                found += lines.of_vector(memory_id, held[memory_id], None)
    return bytes(found)


def _accesses(journal: Journal, owner: Owner) -> bytes:
    counted = ((memory_id, journal.accesses.get(memory_id)) for memory_id in journal.owned.get(owner, ()))
    return b"".join(lines.of_accesses(memory_id, one) for memory_id, one in counted if one is not None)


def _unreadable(file: str, data: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines.split(data) if lines.unseal(line, file) is None)
