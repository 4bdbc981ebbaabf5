"""The bus, and what the engine tells over it."""

import logging
from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from tests.support.stand_ins import CountingEmbedder, HandClock, Opener
from wellkept import Memories, NewMemory, View, events
from wellkept.errors import InvalidInput, NotFound
from wellkept.events import (
    Event,
    EventBus,
    MemoryForgotten,
    MemoryRestored,
    MemoryRetrieved,
    MemoryStored,
    MemoryUpdated,
    QuotaWarning,
    SearchCompleted,
)
from wellkept.testing.builders import START
from wellkept.types import Layer, MemoryType, Owner

ADA = Owner(Layer.USER, ("ada",))
RESTORED = MemoryRestored(at=START, memory_id="x", owner=ADA)
RETRIEVED = MemoryRetrieved(at=START, memory_id="x", owner=ADA, type=MemoryType.FACT)


@pytest.fixture
def ada(memories: Memories) -> View:
    return memories.view(user="ada")


@pytest.fixture
def heard(memories: Memories) -> list[Event]:
    heard: list[Event] = []
    memories.on(Event, heard.append)
    return heard


def test_handlers_are_called_in_the_order_they_asked() -> None:
    bus, heard = EventBus(), list[tuple[int, Event]]()

    def note(number: int) -> Callable[[Event], None]:
        return lambda event: heard.append((number, event))

    for number in range(4):
        bus.on(MemoryRestored if number % 2 else Event, note(number))
    bus.emit(RESTORED)
    bus.emit(RETRIEVED)
    assert heard == [(0, RESTORED), (1, RESTORED), (2, RESTORED), (3, RESTORED), (0, RETRIEVED), (2, RETRIEVED)]


def test_a_handler_can_stop_listening() -> None:
    bus, heard = EventBus(), list[Event]()
    stop, other = bus.on(Event, heard.append), bus.on(Event, heard.append)
    assert bus.wants(MemoryRestored)
    stop()
    stop()
    bus.emit(RESTORED)
    assert heard == [RESTORED]
    other()
    bus.emit(RESTORED)
    assert heard == [RESTORED]
    assert not bus.wants(MemoryRestored)


def test_a_handler_may_stop_itself_and_others_while_it_is_told() -> None:
    bus, heard = EventBus(), list[str]()
    stops: list[Callable[[], None]] = []

    def end(event: Event) -> None:
        heard.append("first")
        for stop in stops:
            stop()

    stops.append(bus.on(Event, end))
    stops.append(bus.on(Event, lambda _: heard.append("second")))
    bus.emit(RESTORED)
    bus.emit(RESTORED)
    assert heard == ["first", "second"]


def test_only_wanted_kinds_are_wanted() -> None:
    bus = EventBus()
    bus.on(MemoryRestored, lambda _: None)
    assert bus.wants(MemoryRestored)
    assert not bus.wants(MemoryStored)
    bus.on(Event, lambda _: None)
    assert bus.wants(MemoryStored)


def test_what_nobody_can_listen_to_is_refused_at_once(memories: Memories) -> None:
    refused = []
    wrong: list[tuple[Any, Any, str]] = [
        ("MemoryStored", print, "kind"),
        (str, print, "kind"),
        (RESTORED, print, "kind"),
        (None, print, "kind"),
        (Event, 5, "handler"),
    ]
    for kind, handler, _ in wrong:
        with pytest.raises(InvalidInput) as caught:
            memories.on(kind, handler)
        refused.append((caught.value.details["field"], caught.value.operation))
    assert refused == [(field, "on") for _, _, field in wrong]
    memories.view(user="ada").add("still works")


def test_a_failing_handler_is_logged_and_fails_nothing(
    memories: Memories, ada: View, caplog: pytest.LogCaptureFixture
) -> None:
    after: list[Event] = []

    def fail(event: Event) -> None:
        raise ZeroDivisionError("boom")

    memories.on(Event, fail)
    memories.on(Event, after.append)
    with caplog.at_level(logging.ERROR, logger="wellkept.events"):
        memory = ada.add("Likes tea")
        assert ada.update(memory.id, title="Tea").version == 2
        assert ada.get(memory.id) is not None
        assert len(ada.search("tea")) == 1
        assert ada.forget(memory.id)
        assert ada.restore(memory.id)
    kinds = [MemoryStored, MemoryUpdated, MemoryRetrieved, SearchCompleted, MemoryForgotten, MemoryRestored]
    assert [type(event) for event in after] == kinds
    assert [record.name for record in caplog.records] == ["wellkept.events"] * 6
    assert [record.getMessage() for record in caplog.records] == [
        f"handler failed for {kind.__name__}" for kind in kinds
    ]
    assert all(record.exc_info and record.exc_info[0] is ZeroDivisionError for record in caplog.records)
    assert "tea" not in "".join(record.getMessage() for record in caplog.records)
    assert memories.health().components["handlers"].message == "6 calls failed"


def test_a_handler_may_use_the_memories(memories: Memories, ada: View) -> None:
    bob = memories.view(user="bob")

    def copy(event: MemoryStored) -> None:
        if event.owner == ADA:
            bob.add(f"ada stored {event.memory_id}")

    memories.on(MemoryStored, copy)
    memory = ada.add("Likes tea")
    assert [m.content for m in bob.list()] == [f"ada stored {memory.id}"]


@pytest.mark.req("L13")
def test_stored(opener: Opener, clock: HandClock) -> None:
    memories, heard = opener(clock=clock, embedder=CountingEmbedder()), list[MemoryStored]()
    memories.on(MemoryStored, heard.append)
    ada = memories.view(user="ada", team="core")
    one = ada.add("Likes tea", type="preference", importance=0.75)
    many = ada.add_many(["Über", NewMemory(content="Ship it", layer="team", type="decision")])
    assert [(e.memory_id, e.owner, e.type, e.importance, e.content_length) for e in heard] == [
        (one.id, ADA, MemoryType.PREFERENCE, 0.75, 9),
        (many[0].id, ADA, MemoryType.FACT, 0.5, 5),  # bytes: Ü takes two
        (many[1].id, Owner(Layer.TEAM, ("core",)), MemoryType.DECISION, 0.5, 7),
    ]
    assert all(event.at == clock.time and event.embedding_ms > 0 and not event.encrypted for event in heard)


@pytest.mark.req("L13")
def test_what_was_stored_before_is_not_told_again(ada: View, heard: list[Event]) -> None:
    ada.add("Likes tea", key="k")
    ada.add("Likes tea", key="k")
    ada.add_many([NewMemory(content="Likes tea", key="k"), NewMemory(content="new", key="n")])
    assert [type(event) for event in heard] == [MemoryStored, MemoryStored]


@pytest.mark.req("L13")
def test_retrieved_updated_forgotten_restored(ada: View, heard: list[Event], clock: HandClock) -> None:
    first, second = ada.add_many(["one", NewMemory(content="two", type="decision")])
    heard.clear()
    clock.forward(seconds=5)
    ada.get(first.id)
    ada.get_many([second.id, "missing", first.id])
    ada.update(first.id, title="One")
    ada.forget(first.id, reason="done")
    ada.restore(first.id)
    ada.forget(first.id, permanent=True)
    here: dict[str, Any] = {"at": START + timedelta(seconds=5), "memory_id": first.id, "owner": ADA}
    assert heard == [
        MemoryRetrieved(**here, type=MemoryType.FACT, was_decrypted=False),
        MemoryRetrieved(**here | {"memory_id": second.id}, type=MemoryType.DECISION, was_decrypted=False),
        MemoryRetrieved(**here, type=MemoryType.FACT, was_decrypted=False),
        MemoryUpdated(**here, version=2),
        MemoryForgotten(**here, permanent=False, reason="done"),
        MemoryRestored(**here),
        MemoryForgotten(**here, permanent=True, reason=None),
    ]


@pytest.mark.req("L13")
def test_search_completed(memories: Memories, ada: View, heard: list[Event]) -> None:
    ada.add_many(["green tea", "black tea", "cake"])
    heard.clear()
    memories.view(user="ada", project="api").search("tea please", limit=1)
    (event,) = heard
    assert isinstance(event, SearchCompleted)
    assert (event.at, event.query, event.result_count) == (START, "tea please", 1)
    assert event.layers == (Layer.USER, Layer.PROJECT)
    assert event.owners == (ADA, Owner(Layer.PROJECT, ("api",)))
    assert event.duration_ms > 0


@pytest.mark.req("L13")
def test_nothing_is_told_of_what_did_not_happen(memories: Memories, ada: View, heard: list[Event]) -> None:
    memory = ada.add("Likes tea", tags=["a"])
    bob = memories.view(user="bob")
    heard.clear()
    assert bob.get(memory.id) is None
    assert bob.get_many([memory.id, "missing"]) == {}
    assert not bob.forget(memory.id)
    assert not bob.restore(memory.id)
    assert not ada.restore(memory.id)
    ada.update(memory.id, add_tags=["a"])
    ada.get(memory.id, as_of=ada.position())
    ada.history(memory.id)
    ada.list()
    ada.changes()
    with pytest.raises(NotFound):
        bob.update(memory.id, title="x")
    with pytest.raises(InvalidInput):
        ada.add("")
    assert heard == []


# The events of the source "long-term memory", section 4.3: the name of each field there, and here.
SOURCE_EVENTS: dict[type[Event], dict[str, str]] = {
    MemoryStored: {
        "AgentId": "owner",
        "EntryId": "memory_id",
        "Type": "type",
        "Importance": "importance",
        "ContentLength": "content_length",
        "WasEncrypted": "encrypted",
        "EmbeddingTime": "embedding_ms",
        "Timestamp": "at",
    },
    MemoryRetrieved: {
        "AgentId": "owner",
        "EntryId": "memory_id",
        "Type": "type",
        "WasDecrypted": "was_decrypted",
        "Timestamp": "at",
    },
    MemoryForgotten: {"AgentId": "owner", "EntryId": "memory_id", "Permanent": "permanent", "Timestamp": "at"},
    SearchCompleted: {
        "AgentId": "owners",
        "Query": "query",
        "ResultCount": "result_count",
        "SearchTime": "duration_ms",
        "Timestamp": "at",
    },
    QuotaWarning: {
        "AgentId": "owners",
        "CurrentUsage": "bytes_used",
        "Limit": "bytes_limit",
        "PercentUsed": "percent_used",
        "Timestamp": "at",
    },
}


@pytest.mark.req("L13")
@pytest.mark.parametrize("kind", SOURCE_EVENTS, ids=lambda kind: kind.__name__)
def test_events_have_what_the_source_lists(kind: type[Event]) -> None:
    assert {one.name for one in fields(kind)} >= set(SOURCE_EVENTS[kind].values())


def test_every_event_is_documented_here() -> None:
    kinds = {kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, Event)}
    assert kinds - {Event} >= {
        MemoryStored,
        MemoryRetrieved,
        MemoryUpdated,
        MemoryForgotten,
        MemoryRestored,
        SearchCompleted,
    }
    assert all(kind.__mro__[1] is Event for kind in kinds - {Event})
