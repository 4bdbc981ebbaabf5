"""A session as text that can be kept elsewhere, read by people, and read in again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from recollect import codec
from recollect.sessions.description import Description
from recollect.types import Memory, SessionStats, Version

NAME = "recollect.session"
VERSION = 1


class Format(StrEnum):
    """How an export is written: one JSON object, or one for each line."""

    JSON = "json"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """All that is kept of a session; the history only if it was asked for."""

    description: Description
    stats: SessionStats
    memories: Sequence[Memory]
    history: Sequence[Version] | None = None


def written(contents: Contents, form: Format, now: datetime) -> str:
    """The text of an export."""
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
