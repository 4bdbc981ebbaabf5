"""Lines that people wrote: edited, appended or copied, and taken over as new versions, so that the journal tells of it.

An edited line is known by a checksum that does not fit, one that was appended by hand has none. What an edited line
said before is known only to a process that read it then; there the former line comes back.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect import codec, ids, validation
from recollect.errors import InvalidInput
from recollect.stores.jsonl import checks, lines
from recollect.stores.jsonl.folders import folder as folder_name
from recollect.stores.jsonl.folders import owner_of
from recollect.stores.jsonl.lines import Fields, Flaw, Line
from recollect.stores.jsonl.owner_folder import MEMORY, OwnerFolder
from recollect.types import Layer, MemoryType, Operation, Owner, Stamp, State, Stored
from recollect.types.memory import DEFAULT_IMPORTANCE

if TYPE_CHECKING:
    from recollect.stores.jsonl.journal import JsonlJournal

EDITED = "edited by hand"
ADDED = "added by hand"


def accept(journal: "JsonlJournal", at: datetime) -> list[str]:
    """Take over what people wrote, as versions recorded at a time; the ids of the memories."""
    taken: list[str] = []
    clock = ids.StampClock(journal.origin(), os.urandom)
    for folder in journal.folders():
        taken += _accept_folder(journal, folder, clock, codec.to_micros(at))
    if taken:
        journal.reload()
    return list(dict.fromkeys(taken))


def _accept_folder(journal: "JsonlJournal", folder: OwnerFolder, clock: ids.StampClock, at: int) -> list[str]:
    found = [one for _, one in checks.entries(journal, folder, MEMORY)]
    newest = _newest(journal, folder, [one for one in found if isinstance(one, Flaw)])
    unfinished = [one for one in found if isinstance(one, Line) and not journal.counts(one)]
    dropped = {_stamp(one) for one in found if isinstance(one, Flaw) and one.data in newest} - folder.vanished.keys()
    known = checks.known_stamps(found) - dropped
    if not newest and not unfinished and not any(_is_cut(one, known) for one in found):
        return []
    kept, added = bytearray(), bytearray()
    last = folder.last
    for one in found:
        if isinstance(one, Line):
            line = one._replace(batch=None) if one in unfinished else one
            kept += lines.encode(line._replace(after=None) if _is_cut(line, known) else line)
        elif one.data not in newest:
            kept += one.data + b"\n"
        else:
            former = folder.vanished.get(_stamp(one))
            kept += b"" if former is None else lines.encode(Line(stored=former))
            stored = _version(newest[one.data], clock, at)
            added += lines.encode(Line(stored=stored, after=last))
            last = stored.stamp
    journal.disk.replace(folder.memory, bytes(kept + added))
    return [one.id for one in newest.values()] + [one.stored.id for one in unfinished]


def _stamp(one: Flaw) -> Stamp:
    return Stamp(str((one.fields or {}).get("stamp")))


def _is_cut(one: Line | Flaw, known: set[str]) -> bool:
    return isinstance(one, Line) and one.after is not None and one.after not in known


def _newest(journal: "JsonlJournal", folder: OwnerFolder, flaws: Sequence[Flaw]) -> dict[bytes, Stored]:
    """By line, what each would become; of several for one memory, the one with the highest version."""
    by_id: dict[str, tuple[bytes, Stored]] = {}
    for one in flaws:
        candidate = None if one.fields is None else _candidate(journal, folder, one.fields)
        if candidate is not None:
            known = by_id.get(candidate.id)
            if known is None or known[1].version <= candidate.version:
                by_id[candidate.id] = (one.data, candidate)
    return dict(by_id.values())


def _candidate(journal: "JsonlJournal", folder: OwnerFolder, fields: Fields) -> Stored | None:
    """What a line says, if it is a memory of this folder that the engine would accept, in its newest version."""
    try:
        owner = _owner(folder, fields)
        facets, payload = _facets(fields), lines.to_payload(fields)
        version = fields.get("version", 0)
        if owner is None or not isinstance(version, int) or not 0 <= version < 2**31:
            return None
    except (*lines.UNREADABLE, InvalidInput):
        return None
    given = fields.get("id")
    memory_id = given if isinstance(given, str) and 0 < len(given) <= 64 else ids.uuid7(0, os.urandom(ids.ENTROPY))
    log = journal.log_of(owner)
    head = log.heads.get(memory_id) if log is not None else None
    holder = log.keys.get(facets.get("key", "")) if log is not None else None
    outdated = head is not None and (head.operation is Operation.ERASED or 0 < version < head.version)
    if outdated or holder not in (None, memory_id):
        return None
    stamp = fields.get("stamp")
    former = folder.vanished.get(Stamp(str(stamp)))
    if former is not None and (former.id, former.version) != (memory_id, version):
        return None  # it was another one
    return Stored(
        owner=owner,
        id=memory_id,
        version=max(version, 0 if head is None else head.version) + 1,
        seq=0,
        born=0,
        born_at=0,
        recorded_at=0,
        operation=Operation.ADDED if head is None and not version else Operation.UPDATED,
        stamp=Stamp(""),
        replaced=head.stamp if head is not None else Stamp(stamp) if isinstance(stamp, str) else None,
        reason=EDITED if version else ADDED,
        facets=facets,
        payload=payload,
    )


def _owner(folder: OwnerFolder, fields: Fields) -> Owner | None:
    if "owner" in fields:
        layer, *names = fields["owner"]
        owner = Owner(Layer(layer), tuple(map(str, names)))
        return owner if folder_name(owner) == folder.name else None
    return folder.owner or owner_of(folder.name)


def _facets(fields: Fields) -> dict[str, Any]:
    """The facets of a line by hand, which may leave out all but the content; checked as the engine checks them."""
    content = fields.get("content")
    usual = {"state": State.ACTIVE.value, "type": MemoryType.FACT.value, "importance": DEFAULT_IMPORTANCE}
    facets = lines.to_facets(
        usual | fields | {"content": {"message": content} if isinstance(content, str) else content}
    )
    validation.content(facets["text"])
    validation.unit("importance", facets["importance"])
    validation.tags(facets.get("tags", ()))
    validation.metadata(facets.get("fields", {}))
    for name in ("key", "title", "author", "role", "session"):
        validation.optional_line(name, facets.get(name))
    facets["bytes"] = lines.size_of(facets, lines.to_payload(fields))
    return facets


def _version(one: Stored, clock: ids.StampClock, at: int) -> Stored:
    """The version with its stamp and times."""
    if one.replaced is not None:
        with suppress(ValueError):  # a stamp by hand
            clock.observe(one.replaced)
    facets = {"created_at": at, "occurred_at": at, **one.facets}
    return one._replace(stamp=clock.stamp(at), recorded_at=at, facets=facets)
