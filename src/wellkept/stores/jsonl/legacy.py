"""Folders of release 0.1, whose truth was a log of lengths beside the lines: read once, and written as lines of today.

A copy is made first, beside the folder, and everything is read from the copy. The settings of today are written last: a
migration that was killed before begins again.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from wellkept import ids
from wellkept.stores.jsonl import derived, lines, settings_file, vectors
from wellkept.stores.jsonl.derived import ACCESSES
from wellkept.stores.jsonl.disk import Disk
from wellkept.stores.jsonl.lines import Fields, Flaw, Line
from wellkept.stores.jsonl.locks import Lock
from wellkept.stores.jsonl.names import FOLDERS
from wellkept.stores.jsonl.owner_folder import MEMORY, TOMBSTONES, OwnerFolder
from wellkept.stores.jsonl.settings_file import SettingsFile
from wellkept.stores.jsonl.vectors import VECTORS
from wellkept.stores.jsonl.writing import GIVEN
from wellkept.types import Operation, Stamp, State, Stored, Vector

LOG = "journal/commits.jsonl"
SETTINGS = "settings.jsonl"
COPY = "journal/copy"
"""Names the copy while a migration is under way."""

_COPIES = 1_000
_KEPT = """id owner version operation reason timestamp type importance tags state key author session title decay_factor
occurred_at expires_at""".split()
_PAYLOAD = ("description", "language", "type_name", "confidence", "relevance", "pointer", "references")


@dataclass(slots=True)
class Old:
    """What an owner's folder of 0.1 holds."""

    versions: dict[int, Fields] = field(default_factory=dict)  # by sequence
    unread: list[bytes] = field(default_factory=list)
    vectors: dict[str, dict[str, Vector]] = field(default_factory=dict)
    accesses: dict[str, tuple[int, int]] = field(default_factory=dict)


def is_legacy(disk: Disk) -> bool:
    """Whether a folder is of release 0.1. One with settings of today is not, whatever else stands in it."""
    return not disk.look(settings_file.SETTINGS).inode and any(disk.look(name).inode for name in (LOG, SETTINGS))


def migrate(disk: Disk, lock: Lock) -> None:
    """Bring a folder of 0.1 to lines of today; nothing if it is one of today."""
    if not is_legacy(disk) and not disk.look(COPY).inode:
        return
    with lock.exclusive("migrate"):
        if is_legacy(disk):
            (disk.root / "journal").mkdir(mode=0o700, exist_ok=True)
            with Lock(disk.root / "journal" / "lock").exclusive("migrate"):  # processes of 0.1 wait for this one
                _convert(Disk(_copy(disk)), disk)
        if disk.look(COPY).inode:  # else somebody else was faster
            for name in (SETTINGS, LOG, "journal/lock", "journal/lock.turn", COPY):
                disk.remove(name)
            disk.remove_folder("journal")


def _copy(disk: Disk) -> Path:
    """The copy of the folder, made whole or not at all. That of an earlier migration is never taken for it: what was
    written since would be lost.
    """
    name = disk.read(COPY)[0].decode()
    if name in _names(disk) and (begun := disk.root.with_name(name)).exists():
        return begun
    made = next(path for name in _names(disk) if not (path := disk.root.with_name(name)).exists())
    half = made.with_name(f"{made.name}.half")
    with disk.translated(made.name):
        shutil.rmtree(half, ignore_errors=True)
        shutil.copytree(disk.root, half, symlinks=True, ignore=shutil.ignore_patterns("lock", "lock.turn"))
        half.chmod(0o700)
        half.rename(made)
    disk.replace(COPY, made.name.encode())
    return made


def _names(disk: Disk) -> list[str]:
    """What copies are named, the first one first."""
    first = f"{disk.root.name}.0.1.bak"
    return [first, *(f"{first}.{number}" for number in range(2, _COPIES))]


def _convert(old: Disk, disk: Disk) -> None:
    _exchange(old)
    settings = {str(one["name"]): one["value"] for one in _lines(old, SETTINGS) if not isinstance(one, Flaw)}
    origin = ids.new_origin(os.urandom)
    clock = ids.StampClock(origin)
    folders = [f"{layer}/{name}" for layer in FOLDERS.values() for name, is_folder in old.entries(layer) if is_folder]
    found = {name: _read(old, name) for name in folders}
    written: dict[str, list[Stored]] = {name: [] for name in folders}
    last: dict[tuple[str, str], Stamp] = {}
    every = sorted((sequence, name) for name, one in found.items() for sequence in one.versions)
    for sequence, name in every:
        with suppress(*lines.UNREADABLE):
            fields = found[name].versions[sequence]
            stored = _stored(fields, clock, last.get((name, str(fields["id"]))))
            last[name, stored.id] = stored.stamp
            written[name].append(stored)
    for name in folders:
        _write(disk, OwnerFolder(name), found[name], written[name])
    disk.remove("indices/global_index.json")
    disk.remove("indices/topic_index.json")
    disk.remove_folder("indices")
    kept = {name: value for name, value in settings.items() if isinstance(value, str)}
    SettingsFile(disk).write(kept | {"origin": origin})


# -- reading --------------------------------------------------------------------------------------------------


def _exchange(old: Disk) -> None:
    """Finish what a crash interrupted: the last commit replaced files, and some were not exchanged yet."""
    data, _ = old.read(LOG)
    for line in lines.split(data[data.rstrip().rfind(b"\n") + 1 :]):
        fields = lines.unsealed(line)
        if isinstance(fields, Flaw) or not isinstance(fields.get("rewritten", []), list):
            return
        for name in map(str, fields.get("rewritten", [])):
            waiting = f"{name}.{fields.get('commit')}.new"
            if ".." not in name and old.look(waiting).inode:  # a hostile log may name anything
                old.replace(name, old.read(waiting)[0])


def _lines(old: Disk, name: str) -> Iterator[Fields | Flaw]:
    """Every whole line, whatever length the log says: a log that is older than its files hides nothing."""
    data, _ = old.read(name)
    return map(lines.unsealed, lines.split(data[: data.rfind(b"\n") + 1]))


def _read(old: Disk, name: str) -> Old:
    found = Old()
    for file in (MEMORY, TOMBSTONES):
        for one in _lines(old, f"{name}/{file}"):
            if isinstance(one, Flaw):
                found.unread += [one.data] if file == MEMORY else []
            elif (file == MEMORY or one.get("operation") == Operation.ERASED) and isinstance(one.get("sequence"), int):
                found.versions.setdefault(one["sequence"], one)
    for one in _lines(old, f"{name}/{VECTORS}"):
        if not isinstance(one, Flaw):
            with suppress(*lines.UNREADABLE):
                _take_vector(found, one)
    for one in _lines(old, f"{name}/{ACCESSES}"):
        if not isinstance(one, Flaw):
            with suppress(*lines.UNREADABLE):
                times, last_at = found.accesses.get(one["id"], (0, 0))
                found.accesses[one["id"]] = (
                    times + int(one["count"]),
                    max(last_at, lines.micros(one["last_accessed"])),
                )
    return found


def _take_vector(found: Old, one: Fields) -> None:
    """A vector that came with a version replaces all others; one that came later stands beside other embedders'."""
    held = found.vectors.setdefault(one["id"], {})
    if "sequence" in one:
        held.clear()
    if one["vector"] is not None:
        vector = lines.to_vector({**one, "data": one["vector"]})
        held[vector.embedder] = vector


# -- writing --------------------------------------------------------------------------------------------------


def _stored(fields: Fields, clock: ids.StampClock, replaced: Stamp | None) -> Stored:
    """A version, with the facets and the payload that the engine would make of it today."""
    recorded_at = lines.micros(fields.get("recorded_at") or fields["timestamp"])
    kept = {name: one for name in _KEPT if (one := fields.get(name)) not in (None, "", [])}
    kept |= {"recorded_at": recorded_at, "stamp": clock.stamp(recorded_at), "replaced": replaced}
    if fields["operation"] == Operation.ERASED:
        return lines.line(kept | {"timestamp": recorded_at, "born_at": 0}).stored
    source = fields.get("source") or {}
    kept["content"] = {name: one for name, one in fields["content"].items() if one}
    kept |= {"source_type": source["type"]} if source else {}
    kept |= {"has_pointer": True} if fields.get("pointer") else {}
    rest = {name: fields[name] for name in _PAYLOAD if fields.get(name)}
    rest |= {"source_reference": source["reference"]} if source.get("reference") else {}
    stored = lines.line({"state": State.ACTIVE.value, **kept} | ({"payload": rest} if rest else {})).stored
    return stored._replace(facets={**stored.facets, "bytes": lines.size_of(stored.facets, stored.payload)})


def _write(disk: Disk, folder: OwnerFolder, old: Old, versions: list[Stored]) -> None:
    heads = {one.id: one.stamp for one in versions}
    started: set[str] = set()
    parts = {MEMORY: bytearray(), TOMBSTONES: bytearray()}
    after: Stamp | None = None
    for one in versions:
        given = old.vectors.get(one.id, {}).get(GIVEN) if heads[one.id] == one.stamp else None
        keeps = one.id in started and given is None and one.operation is not Operation.ERASED
        line = Line(stored=one, after=after, vector=given, keeps_vector=keeps)
        parts[TOMBSTONES if one.operation is Operation.ERASED else MEMORY] += lines.encode(line)
        started.add(one.id)
        after = one.stamp
    parts[MEMORY] += b"".join(line + b"\n" for line in old.unread)
    made = [
        vectors.encoded(memory_id, heads[memory_id], vector, 0)
        for memory_id, held in old.vectors.items()
        if memory_id in heads
        for vector in held.values()
        if vector.embedder != GIVEN
    ]
    accesses = [derived.access_line(memory_id, *counted) for memory_id, counted in old.accesses.items()]
    for name, data in (
        (folder.memory, bytes(parts[MEMORY])),
        (f"{folder.name}/{TOMBSTONES}", bytes(parts[TOMBSTONES])),
        (folder.derived(VECTORS), b"".join(made)),
        (folder.derived(ACCESSES), b"".join(accesses)),
    ):
        if data or disk.look(name).inode:
            disk.replace(name, data)
    for file in (VECTORS, ACCESSES, "index.json"):
        disk.remove(f"{folder.name}/{file}")
