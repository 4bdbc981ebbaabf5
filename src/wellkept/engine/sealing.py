"""Memories to facets and payload, and back: the one place that turns a memory into bytes.

Facets are what a store may read; the payload is the rest, as JSON. What is sensitive is encrypted afterwards, by the
journal that every write and every read of the engine passes: see ``memory_cipher``.
"""

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from wellkept import codec, layers, logs
from wellkept.engine.encrypted_versions import ENCRYPTED
from wellkept.errors import KeyUnavailable, StoreCorrupt
from wellkept.lifecycle import duplicates
from wellkept.types import (
    AccessPolicy,
    Facets,
    Fact,
    Memory,
    MemoryType,
    Operation,
    Position,
    Source,
    SourceType,
    State,
    Stored,
    Tier,
    Version,
)
from wellkept.types.memory import DEFAULT_IMPORTANCE, DEFAULT_TRUST
from wellkept.types.stored import ACCESS_POLICY

_FACETS = ("key", "author", "role", "session", "title", "decay_factor", "superseded_by", "sensitive", ACCESS_POLICY)
_PAYLOAD = ("data", "description", "language", "type_name", "confidence", "relevance", "pointer")
_LISTS = ("references", "supersedes", "sources")
_facets_of, _payload_of = attrgetter(*_FACETS), attrgetter(*_PAYLOAD)
_NO_FACETS, _NO_PAYLOAD = (None,) * len(_FACETS), (None,) * len(_PAYLOAD)
_EMPTY = len("{}")
KNOWN = frozenset(
    """state type tier tier_set importance created_at occurred_at expires_at bytes text tags fields source_type
    has_pointer key author role session title decay_factor superseded_by sensitive access_policy fact trust derived_from
    moved_to moved_from""".split()
)
"""The facets that a memory of this release is made of. Others are carried along unchanged."""


def seal(memory: Memory, before: Stored | None = None) -> tuple[Facets, bytes]:
    """The facets and the payload of a memory. What a newer release wrote into the version before is carried along.

    ``bytes`` counts the versions before as well, since they are kept until the memory is erased.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
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
    counted = size + (len(codec.encode_json(named)) if named else _EMPTY) + len(payload)
    if before is not None:
        counted = _with_history(counted, memory.state, before.facets)
    created_at = codec.to_micros(memory.created_at)
    facets = {
        "state": memory.state.value,
        "type": memory.type.value,
        "tier": _tier(memory).value,
        "importance": memory.importance,
        "created_at": created_at,
        "occurred_at": created_at if memory.occurred_at is memory.created_at else codec.to_micros(memory.occurred_at),
        "bytes": counted,
        "text": content,
        **named,
    }
    if before is not None and memory.state is State.ACTIVE and "key" not in named:
        mark = before.facets.get("key")
        if mark is not None and duplicates.is_mark(mark) and duplicates.fits(memory, mark):
            facets["key"] = mark
    return facets, payload


def _with_history(own: int, state: State, before: Facets) -> int:
    """The bytes of a version and all before it. A move to another state says nothing new: forgetting fills no limit."""
    earlier = int(before.get("bytes", 0))
    return max(own, earlier) if before.get("state") != state else own + earlier


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
    if memory.fact is not None:
        named["fact"] = _of_fact(memory.fact)
    if memory.tier_set:
        named["tier_set"] = True
    if memory.trust != DEFAULT_TRUST:
        named["trust"] = memory.trust
    if memory.derived_from:
        named["derived_from"] = list(memory.derived_from)
    return named


def _tier(memory: Memory) -> Tier:
    if memory.tier_set:
        return memory.tier
    return layers.tier_of(memory.owner.layer, memory.type, memory.state, is_fact=memory.fact is not None)


def _of_fact(fact: Fact) -> dict[str, Any]:
    times = {"valid_from": fact.valid_from, "valid_until": fact.valid_until}
    return {
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
        **({} if fact.kind is None else {"kind": fact.kind}),
        **{name: codec.to_micros(time) for name, time in times.items() if time is not None},
        **({"multiple": True} if fact.multiple else {}),
    }


def fact_of(facet: Mapping[str, Any]) -> Fact:
    """The fact that a facet holds."""
    times = {name: codec.from_micros(facet[name]) for name in ("valid_from", "valid_until") if name in facet}
    known = {name: facet[name] for name in ("subject", "predicate", "object", "kind", "multiple") if name in facet}
    return Fact(**{**known, **times})


def _rest(memory: Memory) -> dict[str, Any]:
    rest: dict[str, Any] = {}
    if (values := _payload_of(memory)) != _NO_PAYLOAD:
        rest = {name: value for name, value in zip(_PAYLOAD, values, strict=True) if value is not None}
    if memory.references:
        rest["references"] = memory.references
    if memory.supersedes:
        rest["supersedes"] = memory.supersedes
    if memory.sources:
        rest["sources"] = memory.sources
    if memory.source is not None and memory.source.reference is not None:
        rest["source_reference"] = memory.source.reference
    return rest


def _unknown(payload: bytes) -> dict[str, Any]:
    """What a newer release put into a payload."""
    known = {*_PAYLOAD, *_LISTS, "source_reference"}
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
            "tier": _TIERS[facets["tier"]],
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
            fields.update((name, rest[name]) for name in (*_PAYLOAD, *_LISTS) if name in rest)
        if "source_type" in facets:
            fields["source"] = Source(type=SourceType(facets["source_type"]), reference=rest.get("source_reference"))
        return codec.make_memory(fields)
    except codec.UNREADABLE as error:
        if ENCRYPTED in facets:
            raise KeyUnavailable(
                f"memory {stored.id!r} is encrypted, and the database was opened without its keyring",
                details={"memory_id": stored.id, "version": stored.version},
                hint="open it again with keyring=; 'wellkept keys check' tells more",
            ) from None
        raise StoreCorrupt(
            f"version {stored.version} of memory {stored.id!r} cannot be decoded",
            details={"memory_id": stored.id, "version": stored.version},
            hint="run doctor; it names every damaged version",
        ) from error


def readable(found: Iterable[Stored]) -> Iterator[tuple[Stored, Memory]]:
    """Stored versions with their memories, without those that cannot be decoded: one of them must not stop a listing.
    ``get`` and ``history`` tell of it, and doctor.
    """
    for one in found:
        try:
            memory = unseal(one)
        except StoreCorrupt:
            logs.memory_damaged(one.id)
            continue
        yield one, memory


def _add_named(fields: dict[str, Any], facets: Facets) -> None:
    """The fields of the facets that not every memory has."""
    for name in _FACETS:
        if name in facets:
            fields[name] = facets[name]
    if duplicates.is_mark(fields.get("key")):
        del fields["key"]
    if ACCESS_POLICY in facets:
        fields[ACCESS_POLICY] = AccessPolicy(facets[ACCESS_POLICY])
    if "tags" in facets:
        fields["tags"] = tuple(facets["tags"])
    if "fields" in facets:
        fields["metadata"] = _copied(facets["fields"])
    if "expires_at" in facets:
        fields["expires_at"] = codec.from_micros(facets["expires_at"])
    if "fact" in facets:
        fields["fact"] = fact_of(facets["fact"])
    if "tier_set" in facets:
        fields["tier_set"] = True
    if "trust" in facets:
        fields["trust"] = facets["trust"]
    if "derived_from" in facets:
        fields["derived_from"] = tuple(facets["derived_from"])


_ALWAYS = len(("state", "type", "tier", "importance", "created_at", "occurred_at", "bytes", "text"))
_TYPES: Mapping[str, MemoryType] = {kind.value: kind for kind in MemoryType}
_TIERS: Mapping[str, Tier] = {tier.value: tier for tier in Tier}
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
        write_id=stored.write_id,
        reason=stored.reason,
        memory=None if stored.operation is Operation.ERASED else unseal(stored),
        position=position,
    )
