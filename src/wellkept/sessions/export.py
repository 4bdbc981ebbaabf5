"""A session as text that can be kept elsewhere, read by people, and read in again."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from wellkept import codec
from wellkept.lifecycle import decay
from wellkept.sessions.description import Description
from wellkept.types import DecayPolicy, Memory, SessionStats, State, Version

NAME = "wellkept.session"
VERSION = 1


class Format(StrEnum):
    """How an export is written: one JSON object, one for each line, or the active memories alone as the entries of a
    plain ``memory.jsonl``, which other software reads.
    """

    JSON = "json"
    JSONL = "jsonl"
    ENTRIES = "entries"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """All that is kept of a session; the history only if it was asked for."""

    description: Description
    stats: SessionStats
    memories: Sequence[Memory]
    history: Sequence[Version] | None = None


def written(contents: Contents, form: Format, now: datetime) -> str:
    """The text of an export."""
    if form is Format.ENTRIES:
        return "".join(f"{codec.encode_json(line).decode()}\n" for line in _entries(contents, now))
    head = {"format": NAME, "version": VERSION, "exported_at": now, "session": _session(contents)}
    if form is Format.JSONL:
        lines = (codec.encode_json(line).decode() for line in (head, *_lines(contents)))
        return "".join(f"{line}\n" for line in lines)
    history = {} if contents.history is None else {"history": contents.history}
    return codec.encode_json({**head, "memories": contents.memories, **history}).decode()


def _lines(contents: Contents) -> Iterator[dict[str, object]]:
    for memory in contents.memories:
        yield {"memory": memory}
    for version in contents.history or ():
        yield {"history": version}


def _entries(contents: Contents, now: datetime) -> Iterator[dict[str, object]]:
    session, policy = contents.description.session_id, contents.description.decay_config or DecayPolicy()
    for one in contents.memories:
        if one.state is not State.ACTIVE:
            continue
        more = {"metadata": dict(one.metadata)} if one.metadata else {}
        said = {"role": one.role} if one.role else {}
        entry: dict[str, Any] = {
            "id": one.id,
            "session_id": session,
            "timestamp": one.created_at,
            "type": one.type,
            "content": {**said, "message": one.content, **more} if one.data is None else one.data,
            "importance": one.importance,
            "decay_factor": round(decay.relevance(one, now, policy)["decay"], 4),
            "tags": list(one.tags),
            "references": list(one.references),
        }
        yield {**entry, "checksum": _checksum(codec.decode_json(codec.encode_json(entry)))}


def _checksum(entry: dict[str, Any]) -> str:
    """As that format computes it: only members that are named like one of the entry itself count, at any depth."""

    def kept(value: object) -> object:
        if isinstance(value, dict):
            return {name: kept(value[name]) for name in sorted(entry) if name in value}
        return [kept(one) for one in value] if isinstance(value, list) else value

    return "sha256:" + hashlib.sha256(codec.encode_json(kept(entry))).hexdigest()


def _session(contents: Contents) -> dict[str, Any]:
    """The description, and what it counts; the names are those of the record."""
    described: dict[str, Any] = codec.decode_json(codec.encode_json(contents.description))
    stats = contents.stats
    return {
        **described,
        "total_entries": stats.entries,
        "total_size_bytes": stats.bytes_used,
        "statistics": {f"{kind.value}s": count for kind, count in stats.by_type.items()},
    }
