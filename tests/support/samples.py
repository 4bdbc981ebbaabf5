"""Memories to test the engine with: short ways to make them, and generated ones."""

from itertools import count
from typing import Any

from hypothesis import strategies as st

from wellkept import codec
from wellkept.engine.sealing import seal
from wellkept.testing.builders import START, owner
from wellkept.testing.strategies import AUTHORS, IMPORTANCES, TAGS, TRUSTS, contents, fields, moments, texts
from wellkept.types import (
    KnowledgePointer,
    Memory,
    MemoryType,
    Operation,
    Owner,
    PointerType,
    Source,
    SourceType,
    Stamp,
    State,
    Stored,
    Tier,
)

_NUMBERS = count(1)


def memory(content: str = "a memory", whose: Owner | None = None, **given: Any) -> Memory:
    """A memory of ada's, or of somebody else's, with those fields."""
    created = given.pop("created_at", START)
    known = {"id": f"m{next(_NUMBERS)}", "occurred_at": created, "updated_at": created} | given
    return Memory(content=content, owner=whose or owner("ada"), created_at=created, **known)


def stored(what: Memory) -> Stored:
    """The memory as a journal would keep it, as its first and only version."""
    facets, payload = seal(what)
    micros = codec.to_micros(what.updated_at)
    return Stored(
        owner=what.owner,
        id=what.id,
        version=what.version,
        seq=1,
        born=1,
        born_at=micros,
        recorded_at=micros,
        operation=Operation.ADDED,
        stamp=Stamp("stamp"),
        replaced=None,
        reason=None,
        facets=facets,
        payload=payload,
    )


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A value or nothing."""
    return st.none() | strategy


def drafts() -> st.SearchStrategy[dict[str, Any]]:
    """The fields of a memory but its id and owner."""
    unit = st.sampled_from(IMPORTANCES) | st.floats(0, 1)
    pointer = st.builds(
        KnowledgePointer,
        source_type=st.sampled_from(PointerType),
        source_id=st.just("adr-1"),
        content_hash=st.just("sha256:00"),
        synced_at=moments(),
    )
    return st.fixed_dictionaries(
        {
            "content": contents(),
            "type": st.sampled_from(MemoryType),
            "tier": st.sampled_from(Tier),
            "tier_set": st.just(True),
            "importance": unit,
            "tags": st.lists(st.sampled_from(TAGS), unique=True, max_size=4).map(tuple),
            "metadata": fields(),
            "created_at": moments(),
        },
        optional={
            "occurred_at": moments(),
            "expires_at": maybe(moments()),
            "state": st.sampled_from(State),
            "author": st.sampled_from(AUTHORS),
            "role": st.sampled_from(("user", "assistant", "tool")),
            "session": st.sampled_from(("monday", "Monday", "mon")),
            "title": maybe(texts()),
            "description": maybe(texts()),
            "confidence": maybe(unit),
            "source": st.builds(Source, type=st.sampled_from(SourceType), reference=maybe(texts())),
            "pointer": maybe(pointer),
            "trust": st.sampled_from(TRUSTS),
            "derived_from": st.lists(texts(), max_size=3).map(tuple),
            "references": st.lists(texts(), max_size=3).map(tuple),
        },
    )
