"""What is derived for people and their tools: the index and the metadata of a folder, and the indices of all.

The store itself answers from RAM and never reads an index.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from io import BytesIO
from typing import Any, TypedDict

from recollect import codec
from recollect.errors import StoreCorrupt
from recollect.lifecycle import decay
from recollect.stores.journal import Journal
from recollect.stores.jsonl import loading, records
from recollect.stores.jsonl.disk import Disk
from recollect.stores.jsonl.folders import folder
from recollect.types import DecayPolicy, Layer, Owner, State

VERSION = 1
INDEX = "index.json"
GLOBAL = "indices/global_index.json"
TOPICS = "indices/topic_index.json"


class _Place(TypedDict):
    sequence: int


_read_place = codec.reader(_Place)


def index(journal: Journal, owner: Owner, memory: bytes, now: datetime, policy: DecayPolicy = decay.USUAL) -> bytes:
    """The index of an owner, over the content of its ``memory.jsonl``."""
    places = _places(memory)
    entries: dict[str, codec.Described] = {}
    tags: dict[str, list[str]] = {}
    types: dict[str, list[str]] = {}
    for one in journal.memories({owner}):
        place = places.get(journal.heads[one.id].sequence)
        if place is None:
            continue
        active = one.state is State.ACTIVE
        relevance = round(one.importance * decay.factor(one, now, policy), 4)
        entries[one.id] = codec.Described(
            *place, one.type, one.created_at, one.tags, one.importance, relevance, deleted=not active
        )
        if active:
            types.setdefault(one.type.value, []).append(one.id)
            for tag in one.tags:
                tags.setdefault(tag, []).append(one.id)
    about = {"version": VERSION, "last_updated": now, "sequence": journal.last}
    return codec.encode_json({**about, "entries": entries, "tags": tags, "types": types})


def _places(memory: bytes) -> dict[int, tuple[int, int]]:
    """On which line each version stands, counted from 1, and where that begins; by sequence."""
    places: dict[int, tuple[int, int]] = {}
    offset = 0
    for number, line in enumerate(BytesIO(memory), start=1):
        with suppress(*codec.UNREADABLE):  # an empty or a damaged line
            places[_read_place(line)["sequence"]] = (number, offset)
        offset += len(line)
    return places


def derived(journal: Journal, session: Owner, disk: Disk) -> dict[str, Any]:
    """What the metadata of a session say of its memories."""
    kinds = Counter(one.type for one in journal.memories({session}) if one.state is State.ACTIVE)
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
        disk.replace(f"{folder(owner)}/{INDEX}", index(journal, owner, content, now, policy))
        if owner.layer is Layer.SESSION:
            with suppress(StoreCorrupt):  # a person may still find in it what we cannot read
                disk.replace(f"{folder(owner)}/{records.METADATA}", metadata(journal, owner, disk))


def write_global(disk: Disk, journal: Journal, now: datetime) -> None:
    """Write the indices over all owners: where each memory is, and where each topic."""
    places: dict[str, str] = {}
    topics: dict[str, dict[str, list[str]]] = {}
    for owner in journal.owned:
        where = folder(owner)
        for memory in journal.memories({owner}):
            if memory.state is State.ACTIVE:
                places[memory.id] = where
                for tag in memory.tags:
                    topics.setdefault(tag, {}).setdefault(where, []).append(memory.id)
    about = {"version": VERSION, "last_updated": now, "sequence": journal.last}
    disk.replace(GLOBAL, codec.encode_json({**about, "entries": places}))
    disk.replace(TOPICS, codec.encode_json({**about, "topics": dict(sorted(topics.items()))}))


def outdated(disk: Disk, owner: Owner) -> bool:
    """Whether the index of an owner is missing or older than its memories."""
    written, memory = (disk.changed(f"{folder(owner)}/{name}") for name in (INDEX, loading.MEMORY))
    return written <= memory
