"""Adding memories: every field, layers, all or none."""

from dataclasses import fields, replace
from datetime import timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.refusals import refusal
from tests.support.samples import drafts
from tests.support.stand_ins import HandClock, Opener, one_store, plain, sequence
from wellkept import Layer, Memories, Memory, MemoryType, NewMemory, View
from wellkept.errors import InvalidInput, InvalidLayer, MissingIdentifier
from wellkept.testing.builders import START
from wellkept.types import AccessPolicy, KnowledgePointer, Owner, PointerType, Source, SourceType, Tier

EVERYTHING: dict[str, Any] = {
    "content": "Use PostgreSQL\nfor all new services — ✓",
    "layer": "project",
    "type": "decision",
    "tier": "personal",
    "importance": 0.9,
    "tags": ["database", "architecture.storage"],
    "metadata": {"n": 1, "flag": True, "list": [1.5, None, {"deep": "ü"}]},
    "title": "PostgreSQL",
    "description": "one line\nand another",
    "language": "en",
    "author": "ada",
    "role": "assistant",
    "session": "monday",
    "type_name": "app.Decision",
    "confidence": 0.8,
    "relevance": 0.7,
    "decay_factor": 0.6,
    "source": Source(type=SourceType.CONVERSATION, reference="msg-7"),
    "pointer": KnowledgePointer(
        source_type=PointerType.ADR, source_id="adr-042", content_hash="sha256:ab", synced_at=START - timedelta(days=9)
    ),
    "references": ["0198-other", "0198-more"],
    "key": "adr-042",
    "derived_from": ["0198-source"],
    "trust": 0.1,
    "occurred_at": START - timedelta(days=3, microseconds=1),
    "expires_at": START + timedelta(days=30),
    "access_policy": AccessPolicy.SHARED,
    "sensitive": False,
}


@pytest.mark.req("L1", "H2", "H3", "W4")
def test_every_field_comes_back(view: View) -> None:
    assert {one.name for one in fields(NewMemory)} == {*EVERYTHING, "vector", "fact", "supersedes"}
    added = view.add(**EVERYTHING, dangling=True)
    expected = Memory(**_memory(added.id))
    assert added == expected
    assert added.layer is Layer.PROJECT
    assert view.get(added.id) == expected
    assert plain(view.list().memories[0]) == expected
    assert plain(view.search("PostgreSQL").hits[0].memory) == expected
    assert view.history(added.id)[0].memory == view.changes()[0].memory == view.get(added.id, as_of=view.position())
    assert plain(view.history(added.id)[0].memory or added) == expected


def _memory(id: str) -> dict[str, Any]:
    given = {name: value for name, value in EVERYTHING.items() if name != "layer"}
    made = {"id": id, "owner": Owner(Layer.PROJECT, ("api",)), "created_at": START, "updated_at": START}
    plural = {name: tuple(EVERYTHING[name]) for name in ("tags", "references", "derived_from")}
    return given | made | plural | {"type": MemoryType.DECISION, "tier": Tier.PERSONAL, "tier_set": True}


@pytest.mark.req("L1", "H2")
def test_what_is_left_out_has_its_default(view: View) -> None:
    added = view.add("Likes tea")
    assert added == Memory(
        id=added.id,
        content="Likes tea",
        owner=Owner(Layer.USER, ("ada",)),
        created_at=START,
        updated_at=START,
        occurred_at=START,
    )
    assert view.get(added.id) == added


@pytest.mark.req("L1", "H2", "H3")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(drafts(), max_size=3))
def test_whatever_is_added_comes_back(view: View, clock: HandClock, wanted: list[dict[str, Any]]) -> None:
    news = [_storable(draft) for draft in wanted]
    clock.time = LONG_AGO
    added = view.add_many(news, duplicates="keep")
    clock.time = START
    for new, memory in zip(news, added, strict=True):
        for name in ("content", "type", "importance", "tags", "metadata", "author", "title", "confidence", "source"):
            assert getattr(memory, name) == getattr(new, name)
        assert repr(memory.metadata) == repr(new.metadata)
    found = view.get_many([memory.id for memory in added])
    assert [plain(memory) for memory in found.values()] == [memory for memory in added if memory.id in found]
    assert len(found) == sum(memory.expires_at is None or memory.expires_at > START for memory in added)


LONG_AGO = START - timedelta(days=20_000)
"""Before every expiry that a draft may have."""


def _storable(draft: dict[str, Any]) -> NewMemory:
    """A draft of the kit is about stores; the engine is stricter and sets some fields itself."""
    kept = {
        name: value
        for name, value in draft.items()
        if name not in {"created_at", "state", "references", "derived_from", "tier_set"} and value is not Tier.WORKING
    }
    kept["content"] = f"{kept['content']}."
    kept["title"] = "".join(filter(str.isprintable, kept.get("title") or "")) or None
    if kept.get("source"):
        kept["source"] = replace(kept["source"], reference=None)
    return NewMemory(**kept)


@pytest.mark.req("L1")
def test_times_are_kept_as_instants(view: View) -> None:
    there = timezone(timedelta(hours=5, minutes=30))
    memory = view.add("x", occurred_at=START.astimezone(there), expires_at=(START + timedelta(1)).astimezone(there))
    for found in (memory, view.get(memory.id)):
        assert found is not None
        assert (found.occurred_at, found.expires_at) == (START, START + timedelta(1))
        assert found.occurred_at.utcoffset() == timedelta()


@pytest.mark.req("L1")
def test_metadata_is_nobodys_but_the_stores(view: View) -> None:
    mine = {"list": [1]}
    memory = view.add("x", metadata=mine)
    mine["list"].append(2)
    memory.metadata["list"].append(3)
    first = view.get(memory.id)
    assert first is not None
    assert first.metadata == {"list": [1]}
    first.metadata["list"].append(4)
    again = view.get(memory.id)
    assert again is not None
    assert again.metadata == {"list": [1]}


@pytest.mark.req("H1")
@one_store
def test_the_default_layer_is_the_most_specific_one(memories: Memories) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"agent": "a"}, "agent"),
        ({"agent": "a", "user": "u", "session": "s"}, "agent"),
        ({"user": "u", "session": "s", "team": "t"}, "user"),
        ({"project": "p", "company": "c"}, "project"),
        ({"team": "t", "org": "o"}, "team"),
        ({"org": "o", "company": "c"}, "org"),
        ({"company": "c"}, "company"),
    ]
    layers = {str(ids): memories.view(**ids).add("x").layer.value for ids, _ in cases}
    assert layers == {str(ids): layer for ids, layer in cases}


@pytest.mark.req("H1")
def test_an_agent_without_a_user_belongs_to_the_default_user(memories: Memories) -> None:
    memory = memories.view(agent="debugger").add("x")
    assert memory.owner == Owner(Layer.AGENT, ("default", "debugger"))
    assert memories.view(agent="debugger").get(memory.id) is not None
    assert memories.view(agent="debugger", user="ada").get(memory.id) is None


@pytest.mark.req("H1")
def test_each_layer_can_be_written_with_its_ids(memories: Memories) -> None:
    ids = {layer.value: f"my {layer}" for layer in Layer}
    everywhere = memories.view(**ids)  # type: ignore[arg-type]  # only ids
    assert everywhere.layers == tuple(Layer)
    for layer in Layer:
        memory = everywhere.add(f"in {layer}", layer=layer)
        assert memory.layer is layer
        assert everywhere.add("as text", layer=layer.value).owner == memory.owner
        assert everywhere.count(layers=[layer]) == 2
    assert everywhere.count() == 14


@pytest.mark.req("H1")
@one_store
def test_a_layer_that_is_missing_or_unknown_is_refused(memories: Memories, view: View) -> None:
    for layer in (Layer.AGENT, Layer.SESSION, Layer.TEAM, Layer.COMPANY):
        with pytest.raises(MissingIdentifier) as caught:
            view.add("x", layer=layer)
        assert (caught.value.details["field"], caught.value.operation) == (layer.value, "add")
    with pytest.raises(InvalidLayer):
        view.add("x", layer="planet")  # type: ignore[arg-type]
    assert sequence(memories) == 0


@pytest.mark.req("L2")
def test_add_many_takes_texts_and_new_memories_in_order(view: View) -> None:
    added = view.add_many(item for item in ("one", NewMemory(content="two", layer="project"), "three"))
    assert [(memory.content, memory.layer.value) for memory in added] == [
        ("one", "user"),
        ("two", "project"),
        ("three", "user"),
    ]
    for layer, contents in ((Layer.USER, ["one", "three"]), (Layer.PROJECT, ["two"])):
        assert [memory.content for memory in view.list(sort_by="oldest", layers=[layer])] == contents
    assert view.add_many([]) == []


BAD_ITEMS: dict[str, Any] = {
    "content": NewMemory(content=""),
    "importance": NewMemory(content="x", importance=2),
    "vector": NewMemory(content="x", vector=[0.0]),
    "number": 5,
    "nothing": None,
}


@pytest.mark.req("L2")
def test_one_bad_memory_stops_them_all(memories: Memories, view: View) -> None:
    accepted = {}
    for name, bad in BAD_ITEMS.items():
        for place in (0, 1, 2):
            items: list[Any] = ["good", "better"]
            items.insert(place, bad)
            answer = refusal(view.add_many, items)
            if not answer.startswith("add_many: InvalidInput of ") or sequence(memories):
                accepted[f"{name} at {place}"] = answer
    assert accepted == {}
    assert sequence(memories) == 0
    assert view.stats().active == view.count() == 0


@pytest.mark.req("L2")
def test_many_memories_are_one_transaction(opener: Opener, clock: HandClock) -> None:
    """A conflict that only the store can see, in the last of them."""
    memories = opener(clock=clock)
    view = memories.view(user="ada")
    view.add("first", vector=[1.0, 0.0])
    with pytest.raises(InvalidInput) as caught:
        view.add_many([NewMemory(content="fits", vector=[0.0, 1.0]), NewMemory(content="not", vector=[1.0, 2.0, 3.0])])
    assert caught.value.details["field"] == "vector"
    assert [memory.content for memory in view.list()] == ["first"]
    assert sequence(memories) == 1


@pytest.mark.req("L1")
@one_store
def test_an_expiry_in_the_past_is_refused(memories: Memories, view: View, clock: HandClock) -> None:
    memory = view.add("Likes tea")
    before = sequence(memories)
    for past in (clock.time, clock.time - timedelta(days=1)):
        for write in (
            lambda past=past: view.add("Likes cake", expires_at=past),
            lambda past=past: view.add_many(["Likes cake", NewMemory(content="x", expires_at=past)]),
            lambda past=past: view.update(memory.id, expires_at=past),
        ):
            with pytest.raises(InvalidInput) as caught:
                write()
            assert caught.value.details["field"] == "expires_at"
    assert sequence(memories) == before
