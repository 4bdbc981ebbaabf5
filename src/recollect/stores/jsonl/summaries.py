"""What is derived for people and their tools: the index and the metadata of a folder, and the indices of all.

The store itself answers from RAM and never reads an index.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, TypedDict

from recollect import codec, decay
from recollect.errors import StoreCorrupt
from recollect.stores.journal import Journal
from recollect.stores.jsonl import loading, records
from recollect.stores.jsonl.disk import Disk
from recollect.stores.jsonl.folders import folder
from recollect.types import DecayPolicy, Layer, Memory, Owner, State

VERSION = 1
INDEX = "index.json"
GLOBAL = "indices/global_index.json"
TOPICS = "indices/topic_index.json"


class _Place(TypedDict):
    sequence: int


_read_place = codec.reader(_Place)


def index(
    journal: Journal, owner: Owner, memory: bytes, now: datetime, policy: DecayPolicy = decay.USUAL
) -> dict[str, Any]:
    """The index of an owner, over the content of its ``memory.jsonl``."""
    places: dict[int, tuple[int, int]] = {}
    offset = 0
    for number, line in enumerate(memory.split(b"\n"), start=1):
        with suppress(*codec.UNREADABLE):  # an empty or a damaged line
            places[_read_place(line)["sequence"]] = (number, offset)
        offset += len(line) + 1
    current = [one for one in journal.current({owner}) if one[0].sequence in places]
    active = [(entry, one) for entry, one in current if one.state is State.ACTIVE]
    return {
        "version": VERSION,
        "last_updated": now,
        "sequence": journal.last,
        "entries": {entry.memory_id: _described(one, places[entry.sequence], now, policy) for entry, one in current},
        "tags": _grouped((tag, entry.memory_id) for entry, one in active for tag in one.tags),
        "types": _grouped((one.type.value, entry.memory_id) for entry, one in active),
    }


def _described(memory: Memory, place: tuple[int, int], now: datetime, policy: DecayPolicy) -> dict[str, Any]:
    described = {
        "line_number": place[0],
        "byte_offset": place[1],
        "type": memory.type,
        "timestamp": memory.created_at,
        "tags": memory.tags,
        "importance": memory.importance,
        "current_relevance": round(memory.importance * decay.factor(memory, now, policy), 4),
    }
    return described if memory.state is State.ACTIVE else {**described, "deleted": True}


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, memory_id in pairs:
        groups.setdefault(name, []).append(memory_id)
    return groups


def derived(journal: Journal, session: Owner, disk: Disk) -> dict[str, Any]:
    """What the metadata of a session say of its memories."""
    kinds = Counter(one.type for _, one in journal.current({session}) if one.state is State.ACTIVE)
    size = sum(disk.stat(f"{folder(session)}/{name}")[1] for name in (*loading.KEPT, INDEX))
    return {
        "total_entries": kinds.total(),
        "total_size_bytes": size,
        "statistics": {f"{kind.value}s": count for kind, count in sorted(kinds.items())},
    }


def metadata(journal: Journal, session: Owner, disk: Disk) -> bytes:
    """``metadata.json`` of a session as it is now, with the record that is in it."""
    name = f"{folder(session)}/{records.METADATA}"
    before = disk.read(name)
    record = records.decode(before, name) if before else None
    now = derived(journal, session, disk)
    if record is not None:
        return records.encode(record, now)
    user, session_id = (*session.ids, "", "")[:2]
    times = [entry.recorded_at for entry, _ in journal.current({session})]
    about = {
        "version": VERSION,
        "session_id": session_id,
        "user_id": user,
        "created_at": min(times, default=None),
        "last_accessed": max(times, default=None),
        **now,
    }
    return records.pretty(codec.decode_json(codec.encode_json(about)))


def write(
    disk: Disk,
    journal: Journal,
    owners: Iterable[Owner],
    lengths: dict[str, int],
    now: datetime,
    *,
    policy: DecayPolicy = decay.USUAL,
) -> None:
    """Write what is derived from the memories of some owners."""
    for owner in owners:
        name = f"{folder(owner)}/{loading.MEMORY}"
        content = disk.read(name, 0, lengths.get(name, 0))
        disk.replace(f"{folder(owner)}/{INDEX}", codec.encode_json(index(journal, owner, content, now, policy)))
        if owner.layer is Layer.SESSION:
            with suppress(StoreCorrupt):  # a person may still find in it what we cannot read
                disk.replace(f"{folder(owner)}/{records.METADATA}", metadata(journal, owner, disk))


def write_global(disk: Disk, journal: Journal, now: datetime) -> None:
    """Write the indices over all owners: where each memory is, and where each topic."""
    places: dict[str, str] = {}
    topics: dict[str, dict[str, list[str]]] = {}
    for owner in journal.owned:
        where = folder(owner)
        for entry, memory in journal.current({owner}):
            if memory.state is State.ACTIVE:
                places[entry.memory_id] = where
                for tag in memory.tags:
                    topics.setdefault(tag, {}).setdefault(where, []).append(entry.memory_id)
    about = {"version": VERSION, "last_updated": now, "sequence": journal.last}
    disk.replace(GLOBAL, codec.encode_json({**about, "entries": places}))
    disk.replace(TOPICS, codec.encode_json({**about, "topics": dict(sorted(topics.items()))}))


def outdated(disk: Disk, owner: Owner) -> bool:
    """Whether the index of an owner is missing or older than its memories."""
    written, memory = (disk.changed(f"{folder(owner)}/{name}") for name in (INDEX, loading.MEMORY))
    return written <= memory
