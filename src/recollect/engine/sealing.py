"""Memories to facets and payload, and back: the one place that turns a memory into bytes.

Facets are what a store may read; the payload is the rest, as JSON. Encryption is a change of these two functions: a
sensitive memory keeps its text, title and fields out of the facets, and its payload is sealed.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from recollect import codec
from recollect.errors import StoreCorrupt
from recollect.types import Facets, Memory, MemoryType, Operation, Position, Source, SourceType, State, Stored, Version
from recollect.types.memory import DEFAULT_IMPORTANCE

_FACETS = ("key", "author", "role", "session", "title", "decay_factor")
_PAYLOAD = ("description", "language", "type_name", "confidence", "relevance", "pointer")
_facets_of, _payload_of = attrgetter(*_FACETS), attrgetter(*_PAYLOAD)
_NO_FACETS, _NO_PAYLOAD = (None,) * len(_FACETS), (None,) * len(_PAYLOAD)
_EMPTY = len("{}")
KNOWN = frozenset(
    """state type importance created_at occurred_at expires_at bytes text tags fields source_type has_pointer
    key author role session title decay_factor""".split()
)
"""The facets that a memory of this release is made of. Others are carried along unchanged."""


def seal(memory: Memory, before: Stored | None = None) -> tuple[Facets, bytes]:
    """The facets and the payload of a memory. What a newer release wrote into the version before is carried along.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea", tags=["food"], language="en")
    >>> facets, payload = seal(memory)
    >>> facets["text"], facets["tags"], payload
    ('Likes tea', ['food'], b'{"language":"en"}')
    """
    named = _named(memory)
    rest = _rest(memory)
    if before is not None:
        named.update((name, value) for name, value in before.facets.items() if name not in KNOWN)
        rest = {**_unknown(before.payload), **rest}
    payload = codec.encode_json(rest) if rest else b""
    content = memory.content
    size = len(content) if content.isascii() else len(content.encode())
    created_at = codec.to_micros(memory.created_at)
    facets = {
        "state": memory.state.value,
        "type": memory.type.value,
        "importance": memory.importance,
        "created_at": created_at,
        "occurred_at": created_at if memory.occurred_at is memory.created_at else codec.to_micros(memory.occurred_at),
        "bytes": size + (len(codec.encode_json(named)) if named else _EMPTY) + len(payload),
        "text": content,
        **named,
    }
    return facets, payload


def _named(memory: Memory) -> dict[str, Any]:
    """The facets that not every memory has; the others count for nothing."""
    named: dict[str, Any] = {}
    if (values := _facets_of(memory)) != _NO_FACETS:  # most memories have none of these
        named = {name: value for name, value in zip(_FACETS, values, strict=True) if value is not None}
    if memory.tags:
        named["tags"] = list(memory.tags)
    if memory.metadata:
        named["fields"] = dict(memory.metadata)
    if memory.expires_at is not None:
        named["expires_at"] = codec.to_micros(memory.expires_at)
    if memory.source is not None:
        named["source_type"] = memory.source.type.value
    if memory.pointer is not None:
        named["has_pointer"] = True
    return named


def _rest(memory: Memory) -> dict[str, Any]:
    rest: dict[str, Any] = {}
    if (values := _payload_of(memory)) != _NO_PAYLOAD:
        rest = {name: value for name, value in zip(_PAYLOAD, values, strict=True) if value is not None}
    if memory.references:
        rest["references"] = memory.references
    if memory.source is not None and memory.source.reference is not None:
        rest["source_reference"] = memory.source.reference
    return rest


def _unknown(payload: bytes) -> dict[str, Any]:
    """What a newer release put into a payload."""
    known = {*_PAYLOAD, "references", "source_reference"}
    return {name: value for name, value in _read_payload(payload or b"{}").items() if name not in known}


_read_payload = codec.reader(dict[str, Any])


def unseal(stored: Stored) -> Memory:
    """The memory of a stored version; ``StoreCorrupt`` if it cannot be read."""
    facets = stored.facets
    try:
        recorded = facets["created_at"]
        created_at = codec.from_micros(recorded)
        fields: dict[str, Any] = {
            "id": stored.id,
            "owner": stored.owner,
            "version": stored.version,
            "content": facets["text"],
            "type": _TYPES[facets["type"]],
            "state": _STATES[facets["state"]],
            "importance": facets.get("importance", DEFAULT_IMPORTANCE),
            "created_at": created_at,
            "updated_at": created_at if stored.recorded_at == recorded else codec.from_micros(stored.recorded_at),
            "occurred_at": _time(facets["occurred_at"]) if facets["occurred_at"] != recorded else created_at,
            "access_count": stored.access_count,
            "last_accessed_at": _time(stored.last_accessed_at),
            "vector": stored.vector,
        }
        if fields["state"] is State.FORGOTTEN:  # nothing else changes a memory that is forgotten
            fields["forgotten_at"] = fields["updated_at"]
        if len(facets) > _ALWAYS:
            _add_named(fields, facets)
        rest = _read_payload(stored.payload) if stored.payload else {}
        if rest:
            fields.update((name, rest[name]) for name in (*_PAYLOAD, "references") if name in rest)
        if "source_type" in facets:
            fields["source"] = Source(type=SourceType(facets["source_type"]), reference=rest.get("source_reference"))
        return codec.make_memory(fields)
    except codec.UNREADABLE as error:
        raise StoreCorrupt(
            f"version {stored.version} of memory {stored.id!r} cannot be decoded",
            details={"memory_id": stored.id, "version": stored.version},
            hint="run doctor; it names every damaged version",
        ) from error


def _add_named(fields: dict[str, Any], facets: Facets) -> None:
    """The fields of the facets that not every memory has."""
    for name in _FACETS:
        if name in facets:
            fields[name] = facets[name]
    if "tags" in facets:
        fields["tags"] = tuple(facets["tags"])
    if "fields" in facets:
        fields["metadata"] = _copied(facets["fields"])
    if "expires_at" in facets:
        fields["expires_at"] = codec.from_micros(facets["expires_at"])


_ALWAYS = len(("state", "type", "importance", "created_at", "occurred_at", "bytes", "text"))
_TYPES: Mapping[str, MemoryType] = {kind.value: kind for kind in MemoryType}
_STATES: Mapping[str, State] = {state.value: state for state in State}


def _copied(fields: Mapping[str, Any]) -> Any:
    """A copy by value: a store that holds everything in RAM gives away its own."""
    return codec.decode_json(codec.encode_json(fields))


def _time(micros: int | None) -> Any:
    return None if micros is None else codec.from_micros(micros)


def version_of(stored: Stored, position: Position | None = None) -> Version:
    """A stored version as callers see it."""
    return Version(
        memory_id=stored.id,
        owner=stored.owner,
        version=stored.version,
        operation=stored.operation,
        recorded_at=codec.from_micros(stored.recorded_at),
        stamp=stored.stamp,
        replaced=stored.replaced,
        reason=stored.reason,
        memory=None if stored.operation is Operation.ERASED else unseal(stored),
        position=position,
    )
