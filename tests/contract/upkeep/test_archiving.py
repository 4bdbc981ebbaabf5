"""Memories that faded are archived by upkeep, stay reachable, and come back when they are used again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stand_ins import HandClock, Opener, one_store
from wellkept import Memories
from wellkept.errors import InvalidInput
from wellkept.events import MemoryArchived, MemoryRestored
from wellkept.types import DecayPolicy, Filter, Layer, RetentionPolicy, State, UpkeepAction

FADING = RetentionPolicy(archive_below=0.1, automatic=False)
ARCHIVED = Filter(include_archived=True)


@pytest.mark.req("H7", "J7")
def test_what_faded_below_the_threshold_is_archived_and_can_be_found(memories: Memories, clock: HandClock) -> None:
    view = memories.view(user="ada")
    chatter = view.add("Talked about rain and wind", type="conversation")
    liked = view.add("Prefers tea", type="preference")
    weighty = view.add("Chose PostgreSQL", type="decision", importance=1.0, decay_factor=0.9)
    told = view.add("Said to have faded", type="preference", decay_factor=0.05)
    memories.upkeep.set_retention(FADING)
    clock.forward(days=40)
    heard: list[Any] = []
    memories.on(MemoryArchived, heard.append)
    run = memories.upkeep.run()
    assert (run.archived, run.forgotten, run.erased) == (2, 0, 0)
    assert run.bytes_freed > 0
    assert {one.memory_id for one in heard} == {chatter.id, told.id}
    assert {one.id for one in view.list()} == {liked.id, weighty.id}
    assert [hit.memory.id for hit in view.search("rain wind", min_score=0.01)] == []
    assert chatter.id in {one.id for one in view.list(filter=ARCHIVED)}
    assert [hit.memory.id for hit in view.search("rain wind", filter=ARCHIVED, min_score=0.01)] == [chatter.id]
    assert view.restore(told.id)
    assert told.id in {one.id for one in view.list()}


@pytest.mark.req("H7", "N3")
def test_archiving_can_be_undone(memories: Memories, clock: HandClock) -> None:
    view = memories.view(user="ada")
    view.add("Talked about rain", type="conversation")
    memories.upkeep.set_retention(FADING)
    clock.forward(days=40)
    run = memories.upkeep.run()
    assert view.count() == 0
    memories.upkeep.undo(run.id)
    assert view.count() == 1


@pytest.mark.req("H7", "N3")
def test_what_is_read_after_it_was_archived_comes_back_with_the_next_run(memories: Memories, clock: HandClock) -> None:
    view = memories.view(user="ada")
    memory = view.add("Talked about rain", type="conversation")
    memories.upkeep.set_retention(FADING)
    clock.forward(days=40)
    memories.upkeep.run()
    clock.forward(days=1)
    assert memories.upkeep.plan().steps == ()
    found = view.get(memory.id, include_forgotten=True)
    assert found is not None
    assert found.state is State.ARCHIVED
    assert found.version == 2
    clock.forward(hours=1)
    heard: list[Any] = []
    memories.on(MemoryRestored, heard.append)
    run = memories.upkeep.run()
    assert (run.restored, run.archived) == (1, 0)
    assert [one.memory_id for one in heard] == [memory.id]
    clock.forward(days=1)
    assert memories.upkeep.plan().steps == (), "it was used, so it is not archived again the next day"
    memories.upkeep.undo(run.id)
    assert view.count() == 0


@pytest.mark.req("H7")
def test_exempt_layers_pinned_important_and_held_memories_stay(memories: Memories, clock: HandClock) -> None:
    view = memories.view(user="ada", project="api")
    faded = view.add("Talked about rain", type="conversation")
    view.add("Talked about snow", type="conversation", metadata={"pinned": True})
    view.add("Talked about fog", type="conversation", tags=["legal"])
    view.add("Talked about hail", type="conversation", layer="project")
    memories.upkeep.hold(Filter(tags=["legal"]), reason="case 17")
    policy = RetentionPolicy(archive_below=0.1, exempt_layers=(Layer.PROJECT,), automatic=False)
    memories.upkeep.set_retention(policy)
    assert memories.upkeep.retention() == policy
    clock.forward(days=40)
    assert [(one.memory_id, one.action) for one in memories.upkeep.plan().steps] == [(faded.id, UpkeepAction.ARCHIVE)]


@pytest.mark.req("H7", "J7")
def test_sessions_fade_as_they_are_configured(memories: Memories, clock: HandClock) -> None:
    sessions = memories.view(user="ada").sessions
    slow = sessions.create("slow", config={"decay": {"half_life_hours": 10_000}})
    usual = sessions.create("usual")
    ids = {one.id: one.view.add("Talked about rain", type="conversation").id for one in (slow, usual)}
    memories.upkeep.set_retention(FADING)
    clock.forward(days=40)
    assert [step.memory_id for step in memories.upkeep.plan().steps] == [ids["usual"]]


@one_store
def test_a_threshold_that_makes_no_sense_is_refused(opener: Opener) -> None:
    memories = opener()
    for policy in (RetentionPolicy(archive_below=2), RetentionPolicy(exempt_layers=("planet",))):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            memories.upkeep.set_retention(policy)
    with pytest.raises(InvalidInput):
        memories.view(user="ada").list(filter={"include_archived": "yes"})


@pytest.mark.req("H7", "J7")
def test_a_daily_rate_and_a_half_life_are_one_curve(memories: Memories, clock: HandClock) -> None:
    session = memories.view(user="ada").sessions.create("monday", config={"decay": {"daily_rate": 0.1}})
    memory = session.view.add("Talked about rain", type="conversation")
    policy = session.config.decay
    assert policy == DecayPolicy.from_daily_rate(0.1)
    clock.forward(days=5)
    page = session.view.list(sort_by="relevance")
    assert [one.id for one in page] == [memory.id]
    assert page.reasons[0]["decay"] == round(0.9**5, 4)
    for wrong in ({"daily_rate": 1}, {"daily_rate": 0}, {"daily_rate": 0.1, "half_life_hours": 24}):
        with pytest.raises(InvalidInput) as refused:
            session.configure({"decay": wrong})
        assert refused.value.details["field"] == "config.decay.daily_rate"
