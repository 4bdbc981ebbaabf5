"""Holds: what is held is never taken by upkeep, and no erasure of it is possible."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.refusals import error_of, refusal
from tests.support.stand_ins import HandClock, Opener, one_store, somebody
from wellkept import Memories, View
from wellkept.errors import Held, NotFound
from wellkept.types import Filter, Layer, Owner, RetentionPolicy

ADA = Owner(Layer.USER, ("ada",))
LEGAL = Filter(tags=["legal"])
ERASURES: dict[str, Callable[[View, str], Any]] = {
    "forget": lambda view, id: view.forget(id, permanent=True),
    "forget_many": lambda view, id: view.forget_many([id], permanent=True),
    "forget_many, a preview": lambda view, id: view.forget_many([id], permanent=True, dry_run=True),
    "forget_many by a filter": lambda view, _: view.forget_many(filter=Filter(), permanent=True),
}


@pytest.mark.req("P4", "N3")
def test_an_erasure_of_what_is_held_is_refused_and_names_the_hold(memories: Memories) -> None:
    hold = memories.upkeep.hold(LEGAL, reason="case 17")
    attempts = []
    wrong: dict[str, object] = {}
    for name, erase in ERASURES.items():
        view = somebody(memories)
        memory = view.add("Signed the contract", tags=["legal.contracts"])
        other = view.add("Likes tea")
        attempts.append((erase, view, memory.id))
        for state in ("active", "forgotten"):
            error = error_of(erase, view, memory.id)
            if not isinstance(error, Held) or error.details["hold"] != hold.id:
                wrong[f"{name}, {state}"] = error
            if error and "case 17" in f"{error!r} {error} {error.details}":  # it is for administrators alone
                wrong[f"{name}, {state}, the reason"] = error
            if state == "active":
                if set(view.get_many([memory.id, other.id])) != {memory.id, other.id}:
                    wrong[f"{name}, all or none"] = view.list()
                if not view.forget(memory.id):  # that can be undone, so it is allowed
                    wrong[f"{name}, forgetting"] = "refused"
    assert wrong == {}
    assert memories.upkeep.release(hold.id) == hold
    for erase, view, id in attempts:
        erase(view, id)


@pytest.mark.req("P4")
def test_sessions_cannot_erase_what_is_held(memories: Memories) -> None:
    sessions = memories.view(user="ada").sessions
    session = sessions.create("monday")
    memory = session.view.add("Signed the contract", tags=["legal"])
    session.view.forget(memory.id)
    memories.upkeep.hold(LEGAL, reason="case 17", owner=ADA)
    session.compact(purge=True)  # leaves alone what is held
    with pytest.raises(Held):
        sessions.delete("monday", permanent=True)
    assert session.view.restore(memory.id)


@pytest.mark.req("P4")
def test_a_hold_covers_an_owner_with_its_sessions_and_agents_and_no_other(memories: Memories) -> None:
    memories.upkeep.hold(Filter(), reason="case 17", owner=ADA)
    for ids in ({"user": "ada"}, {"user": "ada", "session": "monday"}, {"user": "ada", "agent": "debugger"}):
        view = memories.view(**ids)  # type: ignore[arg-type]  # only ids
        memory = view.add("Likes tea", layer=view.layers[0])
        with pytest.raises(Held):
            view.forget(memory.id, permanent=True)
    bob = memories.view(user="bob")
    assert bob.forget(bob.add("Likes tea").id, permanent=True)


@pytest.mark.req("P4", "N3")
def test_upkeep_leaves_alone_what_is_held(memories: Memories, clock: HandClock) -> None:
    view = memories.view(user="ada")
    view.add("Signed the contract", tags=["legal"])
    view.add("Said the word secret")
    taken = view.add("Likes tea")
    clock.forward(days=400)
    memories.upkeep.set_retention(RetentionPolicy(long_term_age="365d", automatic=False))
    memories.upkeep.hold(LEGAL, reason="case 17")
    memories.upkeep.hold({"text": "secret"}, reason="case 18")
    plan = memories.upkeep.plan()
    assert [step.memory_id for step in plan.steps] == [taken.id]
    memories.upkeep.hold(Filter(), reason="late")
    run = memories.upkeep.apply(plan)
    assert run.forgotten == 0
    assert "HELD" in run.errors[0]
    assert view.count() == 3


@pytest.mark.req("P4")
def test_holds_are_kept_with_their_filters(opener: Opener, clock: HandClock) -> None:
    memories = opener(clock=clock)
    wanted = Filter(
        types=["fact"],
        tags=("legal",),
        any_tags=["a", "b"],
        authors=["ada"],
        within=timedelta(days=7),
        created_before=clock.time + timedelta(days=1),
        metadata={"case": 17},
        min_importance=0.2,
    )
    hold = memories.upkeep.hold(wanted, reason="case 17", owner=ADA)
    assert memories.upkeep.holds() == (hold,)
    assert hold.filter.within is None
    assert hold.filter.created_after == clock.time - timedelta(days=7), "counted from when it was placed"
    with pytest.raises(NotFound):
        memories.upkeep.release("unknown")
    memories.upkeep.release(hold.id)
    assert memories.upkeep.holds() == ()


@one_store
def test_a_hold_that_makes_no_sense_is_refused(memories: Memories) -> None:
    holds: list[tuple[Any, str, str]] = [
        (Filter(references=["x"]), "case", "filter.references"),
        ({"tag": ["x"]}, "case", "filter.tag"),
        (Filter(within="soon"), "case", "filter.within"),
        ("legal", "case", "filter"),
        (LEGAL, "", "reason"),
    ]
    refusals = {str(filter): refusal(memories.upkeep.hold, filter, reason=reason) for filter, reason, _ in holds}
    assert refusals == {str(filter): f"hold: InvalidInput of {field}" for filter, _, field in holds}
    assert memories.upkeep.holds() == ()


@pytest.mark.req("P4")
def test_policies_holds_and_runs_are_converted_along(tmp_path: Path, clock: HandClock) -> None:
    with wellkept.open(tmp_path / "memory.db", embedder=None, clock=clock) as memories:
        memory = memories.view(user="ada").add("Signed the contract", tags=["legal"])
        other = memories.view(user="ada").add("Likes tea")
        memories.upkeep.set_retention(RetentionPolicy(long_term_age="365d"), owner=ADA)
        hold = memories.upkeep.hold(LEGAL, reason="case 17")
        clock.forward(days=400)
        run = memories.upkeep.run()
    wellkept.convert(tmp_path / "memory.db", f"jsonl:{tmp_path / 'notes'}")
    with wellkept.open(f"jsonl:{tmp_path / 'notes'}", embedder=None, clock=clock) as memories:
        assert memories.upkeep.holds() == (hold,)
        assert list(memories.upkeep.policies()) == [ADA]
        assert memories.upkeep.undo(run.id).ids == (other.id,)
        with pytest.raises(Held):
            memories.view(user="ada").forget(memory.id, permanent=True)
        assert memories.doctor().healthy
        clock.forward(days=366)
    with wellkept.open(f"jsonl:{tmp_path / 'notes'}", embedder=None, clock=clock) as memories:
        assert [one.forgotten for one in memories.upkeep.runs() if one.automatic] == [1, 0]
