"""An exported session read in again: each form of ``export``, checked to the last memory before anything is stored."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from wellkept import codec, validation
from wellkept.engine.arrivals import Arrival, Place, misplaced
from wellkept.errors import InvalidInput, StoreCorrupt
from wellkept.fields import SETTABLE
from wellkept.sessions import description as descriptions
from wellkept.sessions.description import Description
from wellkept.sessions.export import NAME, VERSION, Format
from wellkept.text import plain_entries
from wellkept.types import Memory, NewMemory, State

BYTES = 256 * 1024 * 1024
"""What an export may have to be read."""

_LINE, _MEMORY = "line", "memory"
_KEPT_APART = frozenset({"content", "key", "expires_at"})
_COPIED = tuple(name for name in SETTABLE if name not in _KEPT_APART)
_HINT = "nothing was imported; read a text that session.export() or wellkept sessions export wrote"
_OWN_LINES = ("stamp", "operation")
"""What lines of a store of plain files have, and no export."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an export tells: of which session, if it says so, its description unless it is of plain entries, and its
    memories. ``omitted`` counts those that were moved to another owner, and are kept there.
    """

    form: Format
    session_id: str | None
    arrivals: tuple[Arrival, ...]
    description: Description | None = None
    omitted: int = 0


def read(text: object) -> Reading:
    """The reading of an export in any of its forms; ``InvalidInput`` names the first line that cannot be read."""
    if not isinstance(text, str):
        raise InvalidInput(
            f"text must be text, not {type(text).__name__}", details={"field": "text"}, hint="pass what export() gave"
        )
    data = _encoded(text)
    lines = plain_entries.numbered(data)
    number, line = next(lines, (0, b""))
    if not number:
        raise InvalidInput("the text is empty", details={"field": "text"}, hint=_HINT)
    try:
        first = plain_entries.parsed(line, BYTES)
    except plain_entries.UNREADABLE:
        try:  # somebody may have spread the one object over several lines
            first, lines = plain_entries.parsed(data, BYTES), iter(())
        except plain_entries.UNREADABLE:
            raise _unreadable(Place(_LINE, number)) from None
        if first.get("format") != NAME:
            raise _unreadable(Place(_LINE, number)) from None
    if first.get("format") != NAME:
        return _of_entries(data)
    _check_version(first)
    if "memories" not in first:
        return _of_memories(Format.JSONL, first, _memory_lines(lines))
    if (more := next(lines, None)) is not None:
        raise _unreadable(Place(_LINE, more[0]))
    listed = first["memories"]
    if not isinstance(listed, list):
        raise InvalidInput("memories is not a list", details={"field": "memories"}, hint=_HINT)
    return _of_memories(Format.JSON, first, ((Place(_MEMORY, place), one) for place, one in enumerate(listed, 1)))


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            "the text contains unpaired surrogates", details={"field": "text"}, hint="read the file as UTF-8"
        ) from None
    if len(data) > BYTES:
        raise InvalidInput(
            f"the text has {len(data)} bytes, the limit is {BYTES}",
            details={"field": "text", "limit": BYTES},
            hint="use wellkept convert to copy whole databases",
        )
    return data.removeprefix(b"\xef\xbb\xbf")


def _unreadable(place: Place, what: str = "is not JSON of an export, or too long or too deep") -> InvalidInput:
    return InvalidInput(
        f"{place.kind} {place.number} {what}", details={"field": "text", place.kind: place.number}, hint=_HINT
    )


def _check_version(head: Mapping[str, Any]) -> None:
    version = head.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= VERSION:
        raise InvalidInput(
            f"this release reads exports up to version {VERSION}, and this is another one",
            details={"field": "version", "supported": VERSION},
            hint="nothing was imported; use the release that wrote it, or a newer one",
        )


# -- our own forms ------------------------------------------------------------------------------------------------


def _memory_lines(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[Place, Any]]:
    """The memories of the lines behind the first; former versions are not taken over."""
    for number, line in lines:
        place = Place(_LINE, number)
        try:
            found = plain_entries.parsed(line)
        except plain_entries.UNREADABLE:
            raise _unreadable(place) from None
        if found.keys() == {"memory"}:
            yield place, found["memory"]
        elif found.keys() != {"history"}:
            raise _unreadable(place, "is neither a memory nor a version of one")


def _of_memories(form: Format, head: Mapping[str, Any], told: Iterator[tuple[Place, Any]]) -> Reading:
    described = _described(head.get("session"))
    memories = [(place, _memory(place, fields)) for place, fields in told]
    _check_count(len(memories))
    staying = [one for one in memories if one[1].state is not State.MOVED]
    return Reading(
        form=form,
        session_id=described.session_id,
        arrivals=tuple(_arrival(place, memory, described.session_id) for place, memory in staying),
        description=described,
        omitted=len(memories) - len(staying),
    )


def _described(told: object) -> Description:
    try:
        found = descriptions.decode(codec.encode_json(told))
    except StoreCorrupt:
        raise InvalidInput(
            "the description of the session cannot be read", details={"field": "session"}, hint=_HINT
        ) from None
    for name in ("created_at", "last_accessed"):
        validation.moment(f"session.{name}", getattr(found, name))
    validation.optional_moment("session.closed_at", found.closed_at)
    return replace(
        found, metadata=validation.metadata(found.metadata, "session.metadata"), deleted_at=None, deleted_reason=None
    )


def _memory(place: Place, fields: object) -> Memory:
    if not isinstance(fields, dict):
        raise _unreadable(place, "is not a memory of an export")
    try:
        return codec.decode_as(codec.encode_json({**fields, "vector": None}), Memory)
    except codec.UNREADABLE:
        raise _unreadable(place, "is not a memory of an export: a field is missing, or has another type") from None


def _arrival(place: Place, memory: Memory, session: str) -> Arrival:
    given: dict[str, Any] = {name: getattr(memory, name) for name in _COPIED}
    if given["session"] == session:
        given["session"] = None  # the one that it is read into
    if not memory.tier_set:
        given["tier"] = None
    return Arrival(
        place=place,
        id=memory.id,
        new=NewMemory(content=memory.content if memory.data is None else memory.data, **given),
        created_at=memory.created_at,
        # Which run quarantined it is known only where it came from: here it is restored like any other.
        state=State.FORGOTTEN if memory.state is State.QUARANTINED else memory.state,
        expires_at=memory.expires_at,
        superseded_by=memory.superseded_by,
        sources=memory.sources,
        key=memory.key,
    )


def _check_count(count: int) -> None:
    if count > validation.BATCH:
        raise InvalidInput(
            f"the export has more than {validation.BATCH} memories",
            details={"field": "text", "limit": validation.BATCH},
            hint="use wellkept convert to copy whole databases",
        )


# -- plain entries ------------------------------------------------------------------------------------------------


def _of_entries(data: bytes) -> Reading:
    """The last line of an id is what became of it: that format changes an entry by writing it again."""
    found: dict[str, Arrival] = {}
    sessions: set[str] = set()
    for number, line in plain_entries.numbered(data):
        place = Place(_LINE, number)
        try:
            fields = plain_entries.parsed(line)
        except plain_entries.UNREADABLE:
            raise _unreadable(place) from None
        try:
            one = _entry(place, fields)
        except InvalidInput as error:
            raise misplaced(place, error) from None
        found[one.id] = one
        if isinstance(session := fields.get("session_id"), str):
            sessions.add(session)
        _check_count(len(found))
    if len(sessions) > 1:
        raise InvalidInput(
            f"the entries are of {len(sessions)} sessions",
            details={"field": "session_id"},
            hint="nothing was imported; read the entries of one session at a time",
        )
    return Reading(form=Format.ENTRIES, session_id=next(iter(sessions), None), arrivals=tuple(found.values()))


def _entry(place: Place, fields: dict[str, Any]) -> Arrival:
    if any(name in fields for name in _OWN_LINES):
        raise InvalidInput(
            "the line is one of a folder of plain files, not of an export",
            details={"field": "text"},
            hint="open the folder and export the session, or use wellkept convert",
        )
    at = _time(fields.get("timestamp"))
    given: dict[str, Any] = {
        name: fields[name] for name in ("type", "importance", "tags", "references") if name in fields
    }
    content = fields.get("content")
    if isinstance(content, dict) and not plain_entries.is_structured(content):
        given |= {name: content[name] for name in ("role", "metadata") if content.get(name) is not None}
        content = content["message"]
    new = NewMemory(content=content, occurred_at=at, **given)  # type: ignore[arg-type]  # checked when it is drafted
    return Arrival(place=place, id=validation.name("id", fields.get("id")), new=new, created_at=at)


def _time(value: object) -> datetime:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None:
        raise InvalidInput(
            "timestamp is not a time", details={"field": "timestamp"}, hint="write it as 2026-01-10T14:23:45Z"
        )
    return validation.moment("timestamp", found)
