"""What is derived and may be deleted at any time: numbers, access counts, and indexes for people and their tools.

The store reads its numbers and access counts; it never reads an index.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

from wellkept import codec
from wellkept.errors import StoreError
from wellkept.lifecycle import decay
from wellkept.stores.jsonl import lines
from wellkept.stores.jsonl.disk import Disk
from wellkept.stores.jsonl.order import Numbers
from wellkept.stores.jsonl.owner_folder import DERIVED, LINES, OwnerFolder
from wellkept.stores.jsonl.vectors import VECTORS
from wellkept.types import Access, Operation, Owner, Stamp, State, Stored

if TYPE_CHECKING:
    from wellkept.stores.jsonl.journal import JsonlJournal

VERSION = 1
INDEX = "index.json"
NUMBERS = "numbers.json"
ACCESSES = "accesses.jsonl"
FILES = (VECTORS, ACCESSES, INDEX, NUMBERS)
INDICES = f"{DERIVED}/indices"
GLOBAL = f"{INDICES}/global_index.json"
TOPICS = f"{INDICES}/topic_index.json"
_MOST = 2**53


# -- numbers --------------------------------------------------------------------------------------------------


def read_numbers(disk: Disk, folder: OwnerFolder) -> Numbers:
    """The sequences that were given away; none if they are not there or make no sense."""
    try:
        fields = lines.unsealed(disk.read(folder.derived(NUMBERS))[0])
        if isinstance(fields, lines.Flaw):
            return Numbers({})
        given = {Stamp(str(stamp)): int(seq) for stamp, seq in fields["numbers"].items()}
        last = int(fields["last"])
        sound = len(set(given.values())) == len(given) and all(0 < seq <= last for seq in given.values())
        newest = Stamp(str(fields["newest"])) if fields.get("newest") else None
        return Numbers(given, last, newest) if sound and last < _MOST else Numbers({})
    except (*lines.UNREADABLE, StoreError):
        return Numbers({})


def write_numbers(disk: Disk, folder: OwnerFolder, numbers: Numbers) -> None:
    """Keep the sequences, so that positions survive a restart, and that what arrives meanwhile is numbered behind."""
    with suppress(StoreError):  # without them, positions are lost and nothing else
        fields = {"last": numbers.last, "newest": numbers.newest, "numbers": numbers.by_stamp}
        disk.replace(folder.derived(NUMBERS), lines.seal(fields), sync=False)


# -- accesses -------------------------------------------------------------------------------------------------


def read_accesses(disk: Disk, folder: OwnerFolder) -> dict[str, tuple[int, int]]:
    """How often each memory was read, and when last."""
    found: dict[str, tuple[int, int]] = {}
    with suppress(StoreError):
        data, _ = disk.read(folder.derived(ACCESSES))
        for one in map(lines.unsealed, lines.split(data)):
            if isinstance(one, dict):
                with suppress(*lines.UNREADABLE):
                    times, last_at = found.get(one["id"], (0, 0))
                    found[one["id"]] = (times + int(one["times"]), max(last_at, int(one["last_at"])))
    return found


def add_accesses(disk: Disk, accesses: Iterable[tuple[OwnerFolder, Access]]) -> None:
    """Keep access counts, all or none; they are not forced to the disk."""
    by_file: dict[str, bytes] = {}
    for folder, one in accesses:
        line = access_line(one.id, one.times, one.last_at)
        name = folder.derived(ACCESSES)
        by_file[name] = by_file.get(name, b"") + line
    written: list[tuple[str, int]] = []
    try:
        for name, data in by_file.items():
            at = disk.look(name).size
            disk.append(name, data, at, sync=False)
            written.append((name, at))
    except BaseException:  # reason: whatever it was, they are counted again
        for name, at in written:
            with suppress(StoreError):
                disk.cut(name, at)
        raise


def access_line(memory_id: str, times: int, last_at: int) -> bytes:
    """The line of some accesses; lines add up. It begins with an end of line: a crash may have torn the one before."""
    return b"\n" + lines.seal({"id": memory_id, "times": times, "last_at": last_at})


def compact_accesses(disk: Disk, folder: OwnerFolder, heads: Iterable[Stored]) -> None:
    """Keep one line for each memory."""
    counted = read_accesses(disk, folder)
    data = b"".join(access_line(head.id, *counted[head.id]) for head in heads if head.id in counted)
    if disk.look(folder.derived(ACCESSES)).size > len(data):
        disk.replace(folder.derived(ACCESSES), data, sync=False)


# -- indexes --------------------------------------------------------------------------------------------------


def write_indexes(journal: "JsonlJournal", owners: Iterable[Owner]) -> None:
    """Write the indexes of some owners, and those over all of them."""
    now = datetime.now(UTC)
    for owner in owners:
        folder, log = journal.folder_of(owner), journal.log_of(owner)
        if log is not None and log.versions:
            heads = [head for head in log.heads.values() if head.operation is not Operation.ERASED]
            less = decay.irrelevance_of(now, {owner: journal.config.sessions.decay})
            relevances = {head.id: round(-less(head), 4) for head in heads}
            data = _index(heads, _places(journal.disk, folder), relevances, totals(journal, owner))
            journal.disk.replace(folder.derived(INDEX), data, sync=False)
            write_numbers(journal.disk, folder, journal.numbers(folder, log))
    _write_global(journal)


def totals(journal: "JsonlJournal", owner: Owner) -> dict[str, Any]:
    """What the metadata of a session say of its memories."""
    log, folder = journal.log_of(owner), journal.folder_of(owner)
    heads = () if log is None else log.heads.values()
    kinds = Counter(head.facets.get("type") for head in heads if head.facets.get("state") == State.ACTIVE.value)
    statistics: dict[str, int] = {f"{kind}s": count for kind, count in sorted(kinds.items(), key=str)}
    if folder.flaws:
        statistics["corrupt_lines"] = folder.flaws.total()
    return {
        "total_entries": kinds.total(),
        "total_size_bytes": sum(journal.disk.look(f"{folder.name}/{file}").size for file in LINES),
        "statistics": statistics,
    }


def _index(
    heads: Iterable[Stored],
    places: Mapping[str, tuple[int, int]],
    relevances: Mapping[str, float],
    about: Mapping[str, Any],
) -> bytes:
    entries: dict[str, Any] = {}
    tags: dict[str, list[str]] = {}
    types: dict[str, list[str]] = {}
    for head in heads:
        line_number, byte_offset = places.get(head.stamp, (0, 0))
        facets = head.facets
        entries[head.id] = {
            "line_number": line_number,
            "byte_offset": byte_offset,
            "type": facets.get("type"),
            "timestamp": codec.from_micros(facets.get("created_at", 0)),
            "tags": facets.get("tags", []),
            "importance": facets.get("importance"),
            "current_relevance": relevances[head.id],
        }
        if facets.get("state") != State.ACTIVE.value:
            entries[head.id]["deleted"] = True
            continue
        types.setdefault(facets.get("type", ""), []).append(head.id)
        for tag in facets.get("tags", ()):
            tags.setdefault(tag, []).append(head.id)
    return _pretty({**_about(), **about, "entries": entries, "tags": tags, "types": types})


def _places(disk: Disk, folder: OwnerFolder) -> dict[str, tuple[int, int]]:
    """On which line of ``memory.jsonl`` each version stands, counted from 1, and where it begins; by stamp."""
    places: dict[str, tuple[int, int]] = {}
    offset = 0
    for number, line in enumerate(BytesIO(disk.read(folder.memory)[0]), start=1):
        with suppress(*lines.UNREADABLE):
            places[codec.decode_json(line)["stamp"]] = (number, offset)
        offset += len(line)
    return places


def _write_global(journal: "JsonlJournal") -> None:
    places: dict[str, str] = {}
    topics: dict[str, dict[str, list[str]]] = {}
    for folder in journal.folders():
        log = journal.log_of(folder.owner)
        for head in log.heads.values() if log is not None else ():
            if head.facets.get("state") == State.ACTIVE.value:
                places[head.id] = folder.name
                for tag in head.facets.get("tags", ()):
                    topics.setdefault(tag, {}).setdefault(folder.name, []).append(head.id)
    journal.disk.replace(GLOBAL, _pretty({**_about(), "entries": places}), sync=False)
    journal.disk.replace(TOPICS, _pretty({**_about(), "topics": dict(sorted(topics.items()))}), sync=False)


def _about() -> dict[str, Any]:
    return {"version": VERSION, "last_updated": datetime.now(UTC)}


def _pretty(value: Mapping[str, Any]) -> bytes:
    """JSON with one entry a line, and a checksum."""
    parts = []
    value = {**value, lines.CHECKSUM: lines.checksum(value)}
    for name, one in value.items():
        text = codec.encode_json(one)
        if isinstance(one, dict) and one:
            inner = b",\n".join(codec.encode_json(key) + b":" + codec.encode_json(each) for key, each in one.items())
            text = b"{\n" + inner + b"\n}"
        parts.append(codec.encode_json(name) + b":" + text)
    return b"{" + b",\n".join(parts) + b"}\n"
