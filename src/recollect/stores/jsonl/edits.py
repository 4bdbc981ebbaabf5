"""Lines that a person edited: taken over as new versions, so that the journal tells of it.

An edited line is known by a checksum that no longer fits. It is taken over if it still says a memory of this folder, in
its newest version. What it said before is known only to a process that read it then; there the former line comes back.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from recollect import codec, validation
from recollect.errors import InvalidInput
from recollect.stores.journal import Entry, Journal
from recollect.stores.jsonl import lines, loading
from recollect.stores.jsonl.commit import Change, Files
from recollect.stores.jsonl.folders import folder
from recollect.types import Memory, Operation

REASON = "edited by hand"


@dataclass(frozen=True, slots=True)
class Edit:
    """An edited line: where it stands, the version that it says now, and the one that it said, if that is known."""

    file: str
    line: bytes
    entry: Entry
    before: Entry | None


def found(files: Files, journal: Journal) -> list[Edit]:
    """The edited lines that can be taken over, one for each memory."""
    newest: dict[str, Edit] = {}
    for name, length in files.at.lengths.items():
        if not name.endswith(f"/{loading.MEMORY}"):
            continue
        for line in lines.split(loading.content(files.disk, name, 0, length)):
            edit = None if loading.readable(line, name) else _edit(journal, name, line)
            if edit is not None:
                known = newest.get(edit.entry.memory_id)
                if known is None or known.entry.version < edit.entry.version:
                    newest[edit.entry.memory_id] = edit
    return list(newest.values())


def of_edits(edits: list[Edit], files: Files, last: int, at: datetime) -> Change:
    """The former lines in their places where they are known, and a new version behind them for each edit."""
    change = Change()
    former: dict[str, dict[bytes, bytes]] = {}
    for sequence, edit in enumerate(edits, start=last + 1):
        entry, memory, before = edit.entry, _memory(edit.entry), edit.before
        version = entry.version + 1
        after = replace(memory, version=version, updated_at=at)
        number, owner = entry.number, entry.owner
        new = Entry(sequence, number, version, Operation.UPDATED, at, REASON, entry.memory_id, owner, after)
        change.append(edit.file, lines.of_entry(new, after))
        # Whatever was derived from the former text does not fit any more; null makes room for what is derived now.
        change.append(f"{folder(owner)}/{loading.VECTORS}", lines.of_vector(entry.memory_id, None, sequence))
        former.setdefault(edit.file, {})[edit.line] = b"" if before is None else lines.of_entry(before, _memory(before))
    for name, replaced in former.items():
        every = lines.split(files.content(name))
        change.rewrite(name, b"".join(replaced.get(line, line + b"\n") for line in every))
    return change


def _memory(entry: Entry) -> Memory:
    assert entry.memory is not None  # noqa: S101  # erased ones are no edits: for the type checker
    return entry.memory


def _edit(journal: Journal, file: str, line: bytes) -> Edit | None:
    """What an edited line says, if it fits what is known."""
    try:
        fields = codec.decode_json(line)
        fields.pop("checksum", None)
        entry = lines.to_entry(fields)
        _check(_memory(entry))
    except (*codec.UNREADABLE, InvalidInput):
        return None
    head = journal.heads.get(entry.memory_id)
    before = _known(journal, entry.sequence)
    if f"{folder(entry.owner)}/{loading.MEMORY}" != file or entry.operation is Operation.ERASED:
        return None
    if not _fits(journal, entry, head, before) or _takes_a_key(journal, entry):
        return None
    return Edit(file, line, entry, before)


def _known(journal: Journal, sequence: int) -> Entry | None:
    place = bisect_left(journal.entries, sequence, key=attrgetter("sequence"))
    one = journal.entries[place] if place < len(journal.entries) else None
    return one if one is not None and one.sequence == sequence else None


def _fits(journal: Journal, entry: Entry, head: Entry | None, before: Entry | None) -> bool:
    """Whether a version is the newest one of its memory, and in the place where that stood."""
    if entry.sequence > journal.last or entry.version < 1:
        return False
    if before is not None:
        same = (before.memory_id, before.owner, before.version, before.number, before.operation)
        return before is head and same == (entry.memory_id, entry.owner, entry.version, entry.number, entry.operation)
    if head is None:
        return entry.number not in journal.ids
    older = head.version < entry.version and head.sequence < entry.sequence
    return head.memory is not None and head.owner == entry.owner and head.number == entry.number and older


def _takes_a_key(journal: Journal, entry: Entry) -> bool:
    return entry.key is not None and journal.keys.get((entry.owner, entry.key), entry.memory_id) != entry.memory_id


def _check(memory: Memory) -> None:
    """What the engine checks before it writes."""
    validation.content(memory.content)
    validation.unit("importance", memory.importance)
    validation.tags(memory.tags)
    validation.references(memory.references)
    validation.metadata(memory.metadata)
    for name in ("confidence", "relevance", "decay_factor"):
        validation.optional_unit(name, getattr(memory, name))
    for name in ("key", "title", "language", "author", "role", "session", "type_name"):
        validation.optional_line(name, getattr(memory, name))
    validation.description(memory.description)
