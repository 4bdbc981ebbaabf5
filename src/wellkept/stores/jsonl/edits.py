"""Lines that people wrote: edited, appended or copied, and taken over as new versions, so that the journal tells of it.

An edited line is known by a checksum that does not fit, one that was appended by hand has none. What an edited line
said before is known only to a process that read it then; there the former line comes back.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from wellkept import codec, ids, layers, validation
from wellkept.errors import InvalidInput, NotAStore
from wellkept.lifecycle import duplicates
from wellkept.stores.jsonl import lines
from wellkept.stores.jsonl.lines import Fields, Flaw, Line
from wellkept.stores.jsonl.names import folder as folder_name
from wellkept.stores.jsonl.names import owner_of
from wellkept.stores.jsonl.owner_folder import MEMORY, OwnerFolder, has_gap, known_stamps
from wellkept.types import MemoryType, Operation, Owner, Stamp, State, Stored, Tier
from wellkept.types.memory import DEFAULT_IMPORTANCE

if TYPE_CHECKING:
    from wellkept.stores.jsonl.journal import JsonlJournal

EDITED = "edited by hand"
ADDED = "added by hand"
COPIED = "copied by hand"
BY_HAND = frozenset({"edited", "unsealed", "misplaced"})
"""The kinds of lines that a person may have written, or moved."""

_SHOWN = 60


def accept(journal: "JsonlJournal", at: datetime) -> list[str]:
    """Take over what people wrote, as versions recorded at a time; the ids of the memories."""
    taken: list[str] = []
    clock = ids.StampClock(journal.origin(), os.urandom)
    for folder in journal.folders():
        folder.handwritten = False
        if folder.decode_foreign is not None:
            continue
        with suppress(NotAStore):
            taken += _accept_folder(journal, folder, clock, codec.to_micros(at))
    if taken:
        journal.reload()
    return list(dict.fromkeys(taken))


def _accept_folder(journal: "JsonlJournal", folder: OwnerFolder, clock: ids.StampClock, at: int) -> list[str]:
    found = folder.entries(journal.disk, MEMORY)
    flaws = [entry.one for entry in found if isinstance(entry.one, Flaw)]
    newest = candidates(journal, folder, flaws)
    unfinished = {
        one.stored.stamp: one
        for entry in found
        if isinstance(one := entry.one, Line)
        if not journal.batches.counts(one)
    }
    dropped = [one for one in flaws if one.data in newest and folder.former(one) is None]
    known = known_stamps(entry.one for entry in found) - known_stamps(dropped)
    if not newest and not unfinished and not any(has_gap(entry.one, known) for entry in found):
        return []
    kept, added = bytearray(), bytearray()
    last = folder.last
    for entry in found:
        one = entry.one
        if isinstance(one, Flaw) and one.data in newest:
            former = folder.former(one)
            kept += b"" if former is None else lines.encode(Line(stored=former))
            stored = _version(newest[one.data], clock, at)
            added += lines.encode(Line(stored=stored, after=last))
            last = stored.stamp
        elif isinstance(one, Line) and (entry.stamp in unfinished or has_gap(one, known)):
            alone = one._replace(batch=None) if entry.stamp in unfinished else one
            kept += lines.encode(alone._replace(after=None) if has_gap(one, known) else alone)
        else:
            kept += entry.data + b"\n"
    journal.disk.replace(folder.memory, bytes(kept + added))
    return [one.id for one in newest.values()] + [one.stored.id for one in unfinished.values()]


def told(one: Stored | None) -> str:
    """What a line would become, for people."""
    if one is None:
        return ": not a memory that would be accepted"
    text = str(one.facets["text"])
    text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return f": would become version {one.version} of {one.id}, {one.reason}: {text!r}"


def candidates(journal: "JsonlJournal", folder: OwnerFolder, flaws: Sequence[Flaw]) -> dict[bytes, Stored]:
    """By line, what each would become; of several for one memory, the one with the highest version."""
    by_id: dict[str, tuple[bytes, Stored]] = {}
    for one in flaws:
        candidate = None if one.fields is None or one.kind not in BY_HAND else _candidate(journal, folder, one)
        if candidate is not None:
            known = by_id.get(candidate.id)
            if known is None or known[1].version <= candidate.version:
                by_id[candidate.id] = (one.data, candidate)
    return dict(by_id.values())


def _candidate(journal: "JsonlJournal", folder: OwnerFolder, flaw: Flaw) -> Stored | None:
    """What a line says, if it is a memory of this folder that the engine would accept, in its newest version. One that
    was copied from elsewhere begins anew here.
    """
    fields = flaw.fields or {}
    if flaw.kind == "misplaced":
        own = ("owner", "version", "stamp") if fields.get("tier_set") else ("owner", "version", "stamp", "tier")
        fields = {name: value for name, value in fields.items() if name not in own}
    try:
        owner, fields = _owner(folder, fields), lines.by_hand(fields)
        version = fields.get("version", 0)
        if owner is None or not isinstance(version, int) or not 0 <= version < 2**31:
            return None
        found, payload = facets(fields, owner), lines.to_payload(fields)
    except (*lines.UNREADABLE, InvalidInput):
        return None
    given, log = fields.get("id"), journal.log_of(owner)
    memory_id = given if isinstance(given, str) and 0 < len(given) <= 64 else ids.uuid7(0, os.urandom(ids.ENTROPY))
    head = log.heads.get(memory_id) if log is not None else None
    holder = log.keys.get(found.get("key", "")) if log is not None else None
    if head is not None and flaw.kind == "misplaced":
        return None
    outdated = head is not None and (head.operation is Operation.ERASED or 0 < version < head.version)
    if outdated or holder not in (None, memory_id):
        return None
    if head is not None:  # versions before count as well, as they do when the engine writes
        found["bytes"] += int(head.facets.get("bytes", 0))
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
        reason=COPIED if flaw.kind == "misplaced" else EDITED if version else ADDED,
        facets=found,
        payload=payload,
    )


def _owner(folder: OwnerFolder, fields: Fields) -> Owner | None:
    if "owner" in fields:
        owner = codec.decode_owner(codec.encode_json(fields["owner"]))
        return owner if folder_name(owner) == folder.name and not owner.branch else None
    return folder.owner or owner_of(folder.name)


def facets(fields: Fields, owner: Owner) -> dict[str, Any]:
    """The facets of a line by hand, which may leave out all but the content; checked as the engine checks them.

    A tier is taken for one that somebody set if the line says so, or is new: that of an edited line was written by us.
    """
    usual: Fields = {"state": State.ACTIVE.value, "type": MemoryType.FACT.value, "importance": DEFAULT_IMPORTANCE}
    found = lines.to_facets(usual | {"tier": Tier.SEMANTIC.value} | fields)
    validation.content(found["text"])
    if isinstance(payload := fields.get("payload"), dict) and "data" in payload:
        validation.content_object(payload["data"])
    validation.unit("importance", found["importance"])
    validation.tags(found.get("tags", ()))
    validation.tier(found["tier"])
    if "tier" in fields and "version" not in fields:
        found["tier_set"] = True
    if "tier_set" not in found:
        found["tier"] = layers.tier_of(owner.layer, found["type"], found["state"], is_fact="fact" in found).value
    validation.metadata(found.get("fields", {}))
    if duplicates.is_mark(found.get("key")):  # by which the same is found when it is added again: it says other now
        del found["key"]
    for name in ("key", "title", "author", "role", "session"):
        validation.optional_line(name, found.get(name))
    found["bytes"] = lines.size_of(found, lines.to_payload(fields))
    return found


def _version(one: Stored, clock: ids.StampClock, at: int) -> Stored:
    """The version with its stamp and times."""
    if one.replaced is not None:
        with suppress(ValueError):  # a stamp by hand
            clock.observe(one.replaced)
    facets = {"created_at": at, "occurred_at": at, **one.facets}
    return one._replace(stamp=clock.stamp(at), recorded_at=at, facets=facets)
