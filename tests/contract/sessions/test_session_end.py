"""The end of a session: what mattered is promoted, the rest stays or goes as somebody configured it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.refusals import refusal
from tests.support.stand_ins import HandClock, Opener, one_store, store_of
from wellkept import Memories
from wellkept.errors import Conflict, Held, UpkeepRefused
from wellkept.events import MemoryPromoted
from wellkept.memories import Session
from wellkept.types import Filter, Layer, Owner, SessionEndPolicy, State, UpkeepAction, UpkeepJob

JOB = UpkeepJob.SESSION_END
ADA = Owner(Layer.USER, ("ada",))
PROMOTING = SessionEndPolicy(promote_importance=0.8, promote_uses=3, automatic=False)


def talk(memories: Memories, id: str = "monday", *, created: bool = True) -> Session:
    """A session with a weighty memory and a light one, created or only used."""
    view = memories.view(user="ada", session=id)
    if created:
        view.sessions.create(id)
    view.add("Is allergic to nuts", importance=0.9, layer="session", tags=["health"])
    view.add("Talked about rain", importance=0.2, layer="session")
    return view.sessions.load(id)


def kept(memories: Memories) -> list[str]:
    return sorted(one.content for one in memories.view(user="ada").list(limit=100))


@pytest.mark.req("H9", "N3")
@pytest.mark.parametrize("created", [True, False], ids=["created", "only used"])
def test_without_a_policy_everything_stays(memories: Memories, clock: HandClock, created: bool) -> None:
    session = talk(memories, created=created)
    assert session.close() is None
    clock.forward(days=500)
    assert memories.upkeep.plan(job=JOB).steps == ()
    assert memories.upkeep.run_due() is None
    assert (session.view.count(), kept(memories)) == (2, [])


@pytest.mark.req("H9")
@pytest.mark.parametrize("created", [True, False], ids=["created", "only used"])
def test_what_is_important_goes_to_the_user_with_its_lineage(memories: Memories, created: bool) -> None:
    memories.upkeep.set_session_end(PROMOTING)
    session = talk(memories, created=created)
    told: list[MemoryPromoted] = []
    memories.on(MemoryPromoted, told.append)
    run = session.close()
    assert run is not None
    assert (run.promoted, run.forgotten, run.erased) == (1, 0, 0)
    [copy] = memories.view(user="ada").list().memories
    [source] = [one for one in session.view.list() if one.importance == 0.9]
    assert (copy.content, copy.tags, copy.derived_from, copy.trust) == (
        source.content,
        source.tags,
        (source.id,),
        source.trust,
    )
    assert [(one.memory_id, one.source_id, one.owner) for one in told] == [(copy.id, source.id, ADA)]
    assert session.view.count() == 2, "the rest is kept, and the original too"
    assert [hit.memory.id for hit in memories.view(user="ada").search("allergic to nuts", min_score=0.01)] == [copy.id]


@pytest.mark.req("H9")
def test_what_was_read_often_is_promoted_and_nothing_twice(memories: Memories) -> None:
    memories.upkeep.set_session_end(PROMOTING)
    session = talk(memories)
    [rain] = [one for one in session.view.list() if "rain" in one.content]
    for _ in range(3):
        session.view.get(rain.id)
    session.close()
    assert kept(memories) == ["Is allergic to nuts", "Talked about rain"]
    session.reopen()
    assert session.close() is None
    memories.view(user="ada").forget(memories.view(user="ada").list().memories[0].id)
    assert memories.upkeep.run(job=JOB).promoted == 0, "what the user forgot is not brought again"
    assert len(kept(memories)) == 1


@pytest.mark.req("H9", "N3")
def test_what_is_deleted_at_once_is_forgotten_and_comes_back(memories: Memories, clock: HandClock) -> None:
    memories.upkeep.set_session_end(replace(PROMOTING, delete_after="0d"))
    session = talk(memories)
    session.view.add("Keep me", metadata={"pinned": True})
    run = session.close()
    assert run is not None
    assert (run.promoted, run.forgotten, run.erased) == (1, 2, 0)
    assert [one.content for one in session.view.list()] == ["Keep me"]
    clock.forward(days=3)
    undone = memories.upkeep.undo(run.id)
    assert (len(undone.ids), len(undone.removed)) == (2, 1)
    assert (session.view.count(), kept(memories)) == (3, [])


@pytest.mark.req("H9", "P4")
@pytest.mark.parametrize("created", [True, False], ids=["created", "only used"])
def test_a_period_counts_from_the_end_and_is_applied_on_schedule(
    memories: Memories, clock: HandClock, created: bool
) -> None:
    memories.upkeep.set_session_end(SessionEndPolicy(delete_after="7d"))
    session, opened = talk(memories, created=created), talk(memories, "tuesday")
    assert session.close() is None
    clock.forward(days=6)
    run = memories.upkeep.run_due()
    assert run is not None
    assert run.forgotten == 0
    clock.forward(days=2)
    run = memories.upkeep.run_due()
    assert run is not None
    assert (run.job, run.forgotten, run.automatic) == (JOB, 2, True)
    assert (session.view.count(), opened.view.count()) == (0, 2), "an open session is left alone"


@pytest.mark.req("H9", "N3")
def test_only_a_policy_that_says_so_erases(memories: Memories, clock: HandClock) -> None:
    memories.upkeep.set_session_end(SessionEndPolicy(delete_after="1d", permanent=True, automatic=False))
    session = talk(memories)
    session.close()
    clock.forward(days=2)
    plan = memories.upkeep.plan(job=JOB)
    assert {step.action for step in plan.steps} == {UpkeepAction.ERASE}
    assert not any(step.undoable for step in plan.steps)
    run = memories.upkeep.apply(plan)
    assert run.erased == 2
    assert len(memories.upkeep.undo(run.id).erased) == 2
    assert session.view.count(filter=Filter(include_forgotten=True)) == 0


@pytest.mark.req("H9")
def test_the_most_specific_policy_holds(memories: Memories) -> None:
    upkeep = memories.upkeep
    session, other = talk(memories), talk(memories, "tuesday")
    bob = memories.view(user="bob", session="friday")
    bob.add("Lives in Rome", importance=0.9, layer="session")
    upkeep.set_session_end(SessionEndPolicy(delete_after="0d", automatic=False))
    upkeep.set_session_end(PROMOTING, owner=ADA)
    upkeep.set_session_end(SessionEndPolicy(automatic=False), owner=session.owner)
    assert session.close() is None
    run = other.close()
    assert run is not None
    assert (run.promoted, run.forgotten) == (1, 0)
    run = bob.sessions.close("friday")
    assert run is not None
    assert (run.promoted, run.forgotten) == (0, 1)
    assert upkeep.clear_session_end(owner=session.owner)
    assert upkeep.session_end(owner=session.owner) is None


@pytest.mark.req("H9", "N3")
def test_a_policy_does_not_take_most_sessions_of_a_user_at_once(memories: Memories, clock: HandClock) -> None:
    sessions = [talk(memories, f"day{number}") for number in range(12)]
    for session in sessions:
        session.close()
    memories.upkeep.set_session_end(SessionEndPolicy(delete_after="1d"))
    clock.forward(days=2)
    with pytest.raises(UpkeepRefused):
        memories.upkeep.run(job=JOB)
    run = memories.upkeep.run_due()
    assert run is not None
    assert (run.forgotten, len(run.errors)) == (0, 1)
    assert "12 of 12 sessions" in run.errors[0]
    assert memories.upkeep.run(job=JOB, max_share=1.0).forgotten == 24


@pytest.mark.req("H9", "N3")
def test_what_is_held_stays_and_keeps_an_undo_from_erasing(memories: Memories) -> None:
    memories.upkeep.set_session_end(replace(PROMOTING, delete_after="0d"))
    session = talk(memories)
    hold = memories.upkeep.hold(Filter(tags=["health"]), reason="case 17")
    run = session.close()
    assert run is not None
    assert (run.promoted, run.forgotten) == (0, 1)
    memories.upkeep.release(hold.id)
    run = memories.upkeep.run(job=JOB)
    assert (run.promoted, run.forgotten) == (1, 1)
    memories.upkeep.hold(Filter(tags=["health"]), reason="case 18")
    with pytest.raises(Held):
        memories.upkeep.undo(run.id)


@pytest.mark.req("N3")
def test_an_undo_after_an_edit_of_what_was_promoted_is_refused(memories: Memories) -> None:
    memories.upkeep.set_session_end(PROMOTING)
    run = talk(memories).close()
    assert run is not None
    [copy] = memories.view(user="ada").list().memories
    memories.view(user="ada").update(copy.id, content="Is allergic to peanuts")
    with pytest.raises(Conflict) as error:
        memories.upkeep.undo(run.id)
    assert error.value.details["changed"] == copy.id
    assert kept(memories) == ["Is allergic to peanuts"]


def test_closing_does_not_fail_while_another_process_runs_upkeep(opener: Opener, clock: HandClock) -> None:
    memories = opener(clock=clock)
    memories.upkeep.set_session_end(PROMOTING)
    session = talk(memories)
    store = store_of(memories)
    if not store.capabilities.leases:
        pytest.skip("the store has no leases")
    lease = store.records.lease("upkeep", "somebody else", 60_000)
    assert lease is not None
    assert session.close() is None
    assert session.closed_at is not None
    store.records.release(lease)
    assert memories.upkeep.run(job=JOB).promoted == 1


@one_store
def test_contradictory_and_bad_policies_are_refused(memories: Memories) -> None:
    policies: list[tuple[dict[str, Any], str]] = [
        ({"permanent": True}, "permanent"),
        ({"delete_after": "soon"}, "delete_after"),
        ({"delete_after": "-3d"}, "delete_after"),
        ({"promote_importance": 2}, "promote_importance"),
        ({"promote_uses": 0}, "promote_uses"),
        ({"schedule": "* * *"}, "schedule"),
    ]
    place = memories.upkeep.set_session_end
    refusals = {str(wrong): refusal(place, SessionEndPolicy(**wrong)) for wrong, _ in policies}
    assert refusals == {str(wrong): f"set_session_end: InvalidInput of {field}" for wrong, field in policies}
    assert memories.upkeep.session_end() is None


@pytest.mark.req("H9")
@one_store
def test_what_has_no_sessions_has_no_policy_for_their_end(memories: Memories) -> None:
    policy, owners = (
        SessionEndPolicy(delete_after="1d"),
        (Owner(Layer.PROJECT, ("api",)), Owner(Layer.COMPANY, ("acme",))),
    )
    refusals = {str(owner): refusal(memories.upkeep.set_session_end, policy, owner=owner) for owner in owners}
    assert refusals == dict.fromkeys(refusals, "set_session_end: InvalidInput of owner")
    assert memories.upkeep.session_end_policies() == {}


def test_what_is_promoted_is_the_user_s_own(memories: Memories) -> None:
    memories.upkeep.set_session_end(replace(PROMOTING, delete_after="0d", permanent=True))
    talk(memories).close()
    view = memories.view(user="ada")
    [copy] = view.list().memories
    assert (copy.owner, copy.version, copy.state) == (ADA, 1, State.ACTIVE)
    assert view.update(copy.id, importance=1.0).version == 2
