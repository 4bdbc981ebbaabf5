"""Retention: policies, plans, runs and their undo. Nothing goes without a policy, and nothing exempt goes with one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.refusals import refusal
from tests.support.stand_ins import HandClock, Opener, one_store, store_of
from wellkept import Memories, View
from wellkept.errors import Conflict, InvalidInput, NotFound, PlanRestriction, UpkeepRefused
from wellkept.events import MemoryForgotten, RetentionCleanupCompleted
from wellkept.types import (
    Filter,
    Layer,
    Memory,
    Owner,
    RetentionPolicy,
    State,
    UpkeepAction,
    UpkeepPlan,
)

ADA = Owner(Layer.USER, ("ada",))
API = Owner(Layer.PROJECT, ("api",))
DEFAULT = RetentionPolicy.default()
BY_HAND = RetentionPolicy(long_term_age="365d", forgotten_age="90d", automatic=False)


def every(view: View) -> dict[str, Memory]:
    """All memories in view without what every version changes, forgotten ones too."""
    found = view.list(filter=Filter(include_forgotten=True), limit=100).memories
    same: dict[str, Any] = {"version": 0, "access_count": 0, "last_accessed_at": None, "forgotten_at": None}
    return {one.id: replace(one, updated_at=one.created_at, **same) for one in found}


@pytest.mark.req("P4", "N3")
def test_without_a_policy_nothing_goes(memories: Memories, view: View, clock: HandClock) -> None:
    view.forget(view.add("Likes tea").id)
    view.add("Likes cake")
    clock.forward(days=700)
    before = every(view)
    assert memories.upkeep.plan().steps == ()
    assert memories.upkeep.run().owners_processed == 0
    assert every(view) == before


@pytest.mark.req("P4")
def test_the_named_default_is_that_of_the_source() -> None:
    assert DEFAULT.long_term_age == timedelta(days=365)
    assert DEFAULT.forgotten_age == timedelta(days=90)
    assert (DEFAULT.max_snapshots, DEFAULT.snapshot_age) == (10, timedelta(days=30))
    assert (DEFAULT.working_age, DEFAULT.automatic, DEFAULT.schedule) == (None, True, "0 0 * * *")


@pytest.mark.req("P4")
def test_policies_are_kept_for_owners_and_the_database(opener: Opener, clock: HandClock) -> None:
    memories = opener(clock=clock)
    upkeep = memories.upkeep
    own = RetentionPolicy(
        working_age="1d",
        long_term_age=timedelta(days=30),
        snapshot_age="12h",
        max_snapshots=3,
        exempt_importance=0.9,
        exempt_tags=("legal",),
        automatic=False,
        schedule="30 3 * * 1",
    )
    assert upkeep.retention() is None
    upkeep.set_retention(replace(DEFAULT, automatic=False))
    upkeep.set_retention(own, owner=ADA)
    kept = replace(own, working_age=timedelta(days=1), snapshot_age=timedelta(hours=12))
    assert upkeep.retention(owner=ADA) == kept
    assert upkeep.policies() == {None: replace(DEFAULT, automatic=False), ADA: kept}
    assert upkeep.clear_retention(owner=ADA)
    assert not upkeep.clear_retention(owner=ADA)
    assert list(upkeep.policies()) == [None]
    assert "upkeep" not in memories.settings()


@pytest.mark.req("P4")
def test_old_memories_are_forgotten_and_forgotten_ones_erased(memories: Memories, view: View, clock: HandClock) -> None:
    gone = view.add("Likes cake")
    view.forget(gone.id)
    clock.forward(days=100)
    old = view.add("Likes tea")
    clock.forward(days=370)
    new = view.add("Likes water")
    memories.upkeep.set_retention(BY_HAND)
    plan = memories.upkeep.plan()
    assert {step.memory_id: step.action for step in plan.steps} == {
        gone.id: UpkeepAction.ERASE,
        old.id: UpkeepAction.FORGET,
    }
    assert {step.memory_id: step.undoable for step in plan.steps} == {gone.id: False, old.id: True}
    assert [(one.taken, one.erased, one.memories) for one in plan.owners] == [(2, 1, 3)]
    assert view.get(old.id) is not None, "a plan changes nothing"
    run = memories.upkeep.apply(plan)
    assert (run.forgotten, run.erased, run.owners_processed, run.errors) == (1, 1, 1, ())
    assert run.bytes_freed == plan.bytes_freed > 0
    assert view.get(old.id) is None
    assert view.get(new.id) is not None
    assert not view.restore(gone.id), "erased"
    assert view.restore(old.id)
    assert memories.upkeep.runs() == (run,)


@pytest.mark.req("P4")
def test_the_most_specific_policy_holds(memories: Memories, clock: HandClock) -> None:
    upkeep = memories.upkeep
    views = {
        "own": memories.view(user="ada"),
        "session": memories.view(user="ada", session="monday"),
        "agent": memories.view(user="bob", agent="debugger"),
        "project": memories.view(project="api"),
    }
    ids = {name: view.add("Likes tea", layer=view.layers[-1]).id for name, view in views.items()}
    clock.forward(days=50)
    upkeep.set_retention(RetentionPolicy(long_term_age="100d", automatic=False))
    upkeep.set_retention(RetentionPolicy(long_term_age="10d", automatic=False), owner=ADA)
    upkeep.set_retention(RetentionPolicy(automatic=False), owner=Owner(Layer.SESSION, ("ada", "monday")))
    assert [step.memory_id for step in upkeep.plan().steps] == [ids["own"]]
    assert upkeep.plan(owner=API).steps == ()
    clock.forward(days=50)
    assert {step.memory_id for step in upkeep.plan().steps} == {ids["own"], ids["agent"], ids["project"]}
    assert [step.memory_id for step in upkeep.plan(owner=API).steps] == [ids["project"]]


@pytest.mark.req("P4", "N3")
def test_a_restored_or_edited_memory_is_young_again(memories: Memories, view: View, clock: HandClock) -> None:
    memory = view.add("Likes tea")
    memories.upkeep.set_retention(BY_HAND)
    clock.forward(days=400)
    run = memories.upkeep.run()
    memories.upkeep.undo(run.id)
    assert memories.upkeep.plan().steps == (), "the next run must not take again what was just brought back"
    clock.forward(days=400)
    view.update(memory.id, content="Likes green tea")
    assert memories.upkeep.plan().steps == ()


@pytest.mark.req("P4", "N2")
def test_what_is_said_again_is_young_again(memories: Memories, view: View, clock: HandClock) -> None:
    first = view.add("Likes tea")
    memories.upkeep.set_retention(BY_HAND)
    clock.forward(days=364)
    again = view.add("Likes tea")
    assert (again.id, again.merged, again.updated_at) == (first.id, True, clock.time)
    assert view.add("Likes tea").version == again.version, "twice on a day is once"
    clock.forward(days=2)
    assert memories.upkeep.plan().steps == (), "it was said two days ago"
    clock.forward(days=364)
    assert [step.memory_id for step in memories.upkeep.plan().steps] == [first.id]


@pytest.mark.req("N3")
@given(
    kinds=st.lists(
        st.fixed_dictionaries(
            {
                "text": st.sampled_from(["Likes tea", "Likes cake"]),
                "days": st.integers(0, 800),
                "importance": st.sampled_from([0.1, 0.5, 0.95]),
                "tags": st.sampled_from([[], ["legal"], ["legal.case"], ["other"]]),
                "pinned": st.sampled_from([None, True, "yes"]),
                "forgotten": st.booleans(),
            }
        ),
        max_size=12,
    )
)
def test_a_plan_never_takes_what_is_exempt_or_held_and_undo_is_exact(kinds: list[dict[str, Any]]) -> None:
    clock = HandClock()
    policy = RetentionPolicy(
        long_term_age="365d", forgotten_age="90d", exempt_importance=0.9, exempt_tags=("legal",), automatic=False
    )
    with wellkept.open("ram:", embedder=None, clock=clock) as memories:
        view = memories.view(user="ada")
        memories.upkeep.set_retention(policy)
        memories.upkeep.hold(Filter(metadata={"held": True}), reason="case 17")
        spared = set()
        for number, kind in enumerate(sorted(kinds, key=lambda one: -one["days"])):
            clock.time = HandClock().time + timedelta(days=800 - kind["days"])
            held = number % 3 == 0
            metadata = {"held": True} if held else {} if kind["pinned"] is None else {"pinned": kind["pinned"]}
            memory = view.add(kind["text"], importance=kind["importance"], tags=kind["tags"], metadata=metadata)
            if kind["forgotten"]:
                view.forget(memory.id)
            limit, since = (90, clock.time) if kind["forgotten"] else (365, memory.updated_at)
            # What was said before in the same words is this memory too: it has the importance and the tags of both.
            exempt = memory.importance >= 0.9 or "legal" in str(memory.tags) or metadata.get("pinned") is True
            spared.discard(memory.id)
            if held or exempt or HandClock().time + timedelta(days=800) - since < timedelta(days=limit):
                spared.add(memory.id)
        clock.time = HandClock().time + timedelta(days=800)
        before = every(view)
        plan = memories.upkeep.plan()
        assert {step.memory_id for step in plan.steps} == set(before) - spared
        run = memories.upkeep.apply(plan, max_share=1.0, trust_clock=True)
        assert {id: one for id, one in every(view).items() if id in spared} == {id: before[id] for id in spared}
        back = memories.upkeep.undo(run.id)
        erased = {step.memory_id for step in plan.steps if step.action is UpkeepAction.ERASE}
        assert set(back.erased) == erased
        assert every(view) == {id: one for id, one in before.items() if id not in erased}


def aged(memories: Memories, clock: HandClock, count: int = 3) -> tuple[View, list[str], UpkeepPlan]:
    """Old memories, and the plan that takes them."""
    view = memories.view(user="ada")
    ids = [one.id for one in view.add_many([f"Fact {number}" for number in range(count)])]
    clock.forward(days=400)
    memories.upkeep.set_retention(BY_HAND)
    return view, ids, memories.upkeep.plan()


@pytest.mark.req("N3")
def test_a_plan_is_applied_once(memories: Memories, clock: HandClock) -> None:
    view, ids, plan = aged(memories, clock)
    memories.upkeep.apply(plan)
    with pytest.raises(Conflict, match="was applied at"):
        memories.upkeep.apply(plan)
    assert view.restore(ids[0])


@pytest.mark.req("N3")
def test_a_plan_is_refused_after_memories_changed_and_says_which(memories: Memories, clock: HandClock) -> None:
    view, ids, plan = aged(memories, clock)
    view.update(ids[1], importance=0.9)
    with pytest.raises(Conflict) as refused:
        memories.upkeep.apply(plan)
    assert refused.value.details["changed"] == ids[1]
    assert view.count() == 3


@pytest.mark.req("N3")
def test_undo_is_refused_after_an_edit_and_names_the_memories(memories: Memories, clock: HandClock) -> None:
    view, ids, plan = aged(memories, clock)
    run = memories.upkeep.apply(plan)
    clock.forward(days=5)
    view.restore(ids[2])
    with pytest.raises(Conflict) as refused:
        memories.upkeep.undo(run.id)
    assert refused.value.details["changed"] == ids[2]
    assert view.count() == 1, "nothing else came back"


@pytest.mark.req("N3")
def test_undo_works_days_later_and_once(opener: Opener, clock: HandClock) -> None:
    memories = opener(clock=clock)
    view, _, plan = aged(memories, clock)
    before = every(view)
    run = memories.upkeep.apply(plan)
    clock.forward(days=30)
    if opener.kind != "ram":
        memories = opener(clock=clock)
    assert len(memories.upkeep.undo(run.id).ids) == 3
    assert every(memories.view(user="ada")) == before
    assert memories.upkeep.runs()[0].undone_at == clock.time
    with pytest.raises(Conflict, match="was undone at"):
        memories.upkeep.undo(run.id)
    with pytest.raises(NotFound):
        memories.upkeep.undo("unknown")


@pytest.mark.req("N3")
def test_the_breaker_refuses_to_take_too_much_of_an_owner(memories: Memories, clock: HandClock) -> None:
    view, _, plan = aged(memories, clock, 11)
    for number in range(25):
        view.add(f"New fact {number}")
    with pytest.raises(Conflict):
        memories.upkeep.apply(replace(plan, steps=(*plan.steps, replace(plan.steps[0], memory_id="other"))))
    plan = memories.upkeep.plan()
    with pytest.raises(UpkeepRefused, match=r"user ada: 11 of 36 memories would go, 31 % where 30 % are allowed"):
        memories.upkeep.apply(plan)
    assert view.count() == 36
    assert memories.upkeep.apply(plan, max_share=0.5).forgotten == 11


@pytest.mark.req("N3")
def test_a_few_memories_may_go_whatever_their_share(memories: Memories, clock: HandClock) -> None:
    view, _, plan = aged(memories, clock, 10)
    assert memories.upkeep.apply(plan).forgotten == 10
    assert view.count() == 0


@pytest.mark.req("N3")
@pytest.mark.parametrize("days", [-2, 2000])
def test_a_clock_that_jumped_is_refused(memories: Memories, clock: HandClock, days: int) -> None:
    view, _, _ = aged(memories, clock)
    view.add("Newest")
    clock.forward(days=days)
    with pytest.raises(UpkeepRefused, match="the clock is doubtful"):
        memories.upkeep.run()
    assert view.count() == 4
    memories.upkeep.run(trust_clock=True)


@pytest.mark.req("N3")
def test_a_run_in_the_future_makes_the_clock_doubtful(memories: Memories, clock: HandClock) -> None:
    memories.view(user="ada").add("Likes tea")
    memories.upkeep.set_retention(BY_HAND)
    clock.forward(days=100)
    memories.upkeep.run()
    clock.forward(days=-50)
    assert "the last run began" in (memories.upkeep.plan().clock_doubt or "")


@pytest.mark.req("P4", "N3")
def test_an_owner_that_fails_does_not_stop_the_others(
    memories: Memories, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("ada", "bob", "eve"):
        memories.view(user=user).add("Likes tea")
    clock.forward(days=400)
    memories.upkeep.set_retention(BY_HAND)
    journal = store_of(memories).journal
    real = journal.get

    def failing(owners: Any, ids: Any, **how: Any) -> Any:
        if Owner(Layer.USER, ("bob",)) in owners:
            raise wellkept.errors.StoreError("the disk failed")
        return real(owners, ids, **how)

    monkeypatch.setattr(journal, "get", failing)
    run = memories.upkeep.run()
    assert run.errors == ("user bob: PROVIDER_ERROR: the disk failed",)
    assert (run.forgotten, run.owners_processed) == (2, 2)


@pytest.mark.req("P4", "P6")
def test_events_tell_of_each_memory_and_of_the_run(memories: Memories, clock: HandClock) -> None:
    _, ids, plan = aged(memories, clock)
    heard: list[Any] = []
    memories.on(MemoryForgotten, heard.append)
    memories.on(RetentionCleanupCompleted, heard.append)
    run = memories.upkeep.apply(plan)
    assert [one.memory_id for one in heard[:-1]] == ids
    assert (heard[-1].run_id, heard[-1].entries_deleted, heard[-1].bytes_freed) == (run.id, 3, 0)


@pytest.mark.req("P4")
@one_store
def test_retention_needs_a_plan_that_has_it(opener: Opener) -> None:
    memories = opener(plan="writerpro")
    with pytest.raises(PlanRestriction):
        memories.upkeep.set_retention(DEFAULT)
    with pytest.raises(PlanRestriction):
        memories.upkeep.run()


BAD_POLICIES: list[tuple[dict[str, Any], str]] = [
    ({"long_term_age": "soon"}, "long_term_age"),
    ({"forgotten_age": timedelta()}, "forgotten_age"),
    ({"working_age": timedelta(days=-1)}, "working_age"),
    ({"snapshot_age": 7}, "snapshot_age"),
    ({"max_snapshots": -1}, "max_snapshots"),
    ({"exempt_importance": 1.5}, "exempt_importance"),
    ({"exempt_importance": 0.0, "long_term_age": "1d"}, "exempt_importance"),
    ({"exempt_tags": ("a b\n",)}, "exempt_tags"),
    ({"automatic": "no"}, "automatic"),
    ({"schedule": "every day"}, "schedule"),
    ({"schedule": "0 0 31 2 *"}, "schedule"),
]


@one_store
def test_a_policy_that_makes_no_sense_is_refused(memories: Memories) -> None:
    place = memories.upkeep.set_retention
    refusals = {str(fields): refusal(place, RetentionPolicy(**fields)) for fields, _ in BAD_POLICIES}
    assert refusals == {str(fields): f"set_retention: InvalidInput of {field}" for fields, field in BAD_POLICIES}
    assert refusal(place, "365d") == "set_retention: InvalidInput of policy"
    assert memories.upkeep.policies() == {}


@one_store
def test_an_owner_that_cannot_be_is_refused(memories: Memories) -> None:
    owners: list[Any] = ["ada", Owner(Layer.SESSION, ("ada",)), Owner(Layer.USER, ("",))]
    refusals = {repr(owner): refusal(memories.upkeep.set_retention, DEFAULT, owner=owner) for owner in owners}
    assert refusals == dict.fromkeys(refusals, "set_retention: InvalidInput of owner")
    assert memories.upkeep.policies() == {}


@one_store
def test_what_is_no_plan_is_refused(memories: Memories) -> None:
    with pytest.raises(InvalidInput):
        memories.upkeep.apply("plan")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        memories.upkeep.run(max_share=2)


@pytest.mark.req("N3")
def test_only_the_last_hundred_runs_are_kept(memories: Memories, clock: HandClock) -> None:
    for _ in range(103):
        clock.forward(seconds=1)
        memories.upkeep.run()
    kept = memories.upkeep.runs(limit=1000)
    assert len(kept) == 100
    assert kept[0].started_at == clock.time


@pytest.mark.req("N3")
def test_archived_memories_are_forgotten_and_come_back_archived(memories: Memories, clock: HandClock) -> None:
    view = memories.view(user="ada", session="monday")
    view.sessions.create("monday")
    memory = view.add("Likes tea", layer="session", expires_at=clock.time + timedelta(days=1))
    clock.forward(days=2)
    view.sessions.compact("monday")
    clock.forward(days=400)
    memories.upkeep.set_retention(BY_HAND)
    run = memories.upkeep.run()
    assert run.forgotten == 1
    memories.upkeep.undo(run.id)
    found = view.get(memory.id, include_forgotten=True)
    assert found is not None
    assert found.state is State.ARCHIVED


@pytest.mark.req("P4")
def test_old_entries_of_working_memory_are_removed(memories: Memories, clock: HandClock) -> None:
    me = memories.agent("debugger", user="ada")
    other = memories.agent("writer", user="bob")
    scope = me.working.create_scope("task")
    for level in (me.working, scope, other.working):
        level.set("old", 1)
        level.set("kept", 2, metadata={"pinned": True})
    clock.forward(days=2)
    me.working.set("new", 3)
    policy = RetentionPolicy(working_age="1d", automatic=False)
    memories.upkeep.set_retention(policy, owner=Owner(Layer.AGENT, ("ada", "debugger")))
    assert memories.upkeep.run().working_removed == 2
    assert set(me.working.keys()) == {"kept", "new"}
    assert set(scope.local_entries()) == {"kept"}
    assert set(other.working.keys()) == {"old", "kept"}
