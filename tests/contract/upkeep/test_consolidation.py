"""Consolidation: memories that say the same become one that knows them all, and nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import wellkept
from tests.support.refusals import refusal
from tests.support.same_pairs import LOOK_ALIKES
from tests.support.stand_ins import HandClock, Opener, one_store
from wellkept import Memories, View
from wellkept.errors import Conflict, InvalidInput, PlanRestriction, UpkeepRefused
from wellkept.events import MemoriesMerged
from wellkept.types import (
    ConsolidationPolicy,
    Filter,
    Layer,
    Memory,
    Owner,
    Source,
    SourceType,
    State,
    UpkeepAction,
    UpkeepJob,
    UpkeepPlan,
)

POLICY = ConsolidationPolicy(trigger=2, automatic=False)
JOB = UpkeepJob.CONSOLIDATION


@pytest.fixture
def view(memories: Memories) -> View:
    memories.upkeep.set_consolidation(POLICY)
    return memories.view(user="ada")


def every(view: View) -> dict[str, Memory]:
    """All memories in view, whatever their state, without what every version changes."""
    found = view.list(filter=Filter(include_forgotten=True, include_archived=True), limit=100).memories
    same: dict[str, Any] = {"version": 0, "access_count": 0, "last_accessed_at": None}
    return {one.id: replace(one, updated_at=one.created_at, **same) for one in found}


def planned(memories: Memories, **given: Any) -> UpkeepPlan:
    return memories.upkeep.plan(job=JOB, **given)


@pytest.mark.req("H8", "N3")
def test_memories_that_say_the_same_become_one_that_knows_them(memories: Memories, view: View) -> None:
    web = Source(type=SourceType.WEB)
    first = view.add("Prefers dark mode", tags=["ui"], importance=0.4, source=web, metadata={"a": 1})
    second = view.add("Prefers the dark mode.", tags=["theme"], importance=0.9, metadata={"b": 2})
    other = view.add("Likes tea")
    plan = planned(memories)
    assert {step.memory_id for step in plan.steps} == {first.id, second.id}
    assert {step.action for step in plan.steps} == {UpkeepAction.MERGE}
    [merge] = plan.merges
    assert (merge.content, merge.sources, merge.differing, merge.proposed) == (
        "Prefers the dark mode.",
        tuple(sorted((first.id, second.id))),
        ("the",),
        False,
    )
    assert view.count() == 3, "a plan changes nothing"
    run = memories.upkeep.apply(plan)
    assert (run.merged, run.forgotten, run.erased, run.errors) == (2, 0, 0, ())
    merged = view.get(merge.id)
    assert merged is not None
    assert set(merged.derived_from) == set(merged.supersedes) == {first.id, second.id}
    assert (merged.importance, set(merged.tags), merged.metadata) == (0.9, {"ui", "theme"}, {"a": 1, "b": 2})
    assert merged.trust == first.trust < second.trust, "as low as the lowest of its sources"
    assert {one.id for one in view.list()} == {merged.id, other.id}
    assert {one.id for one in view.lineage(merged.id).replaced} == {first.id, second.id}
    assert [one.id for one in view.lineage(first.id).replaced_by] == [merged.id]
    assert [hit.memory.id for hit in view.search("dark mode", min_score=0.01)] == [merged.id]
    assert planned(memories).steps == (), "nothing is left to merge"


@pytest.mark.req("H8", "N3")
def test_an_undo_brings_back_exactly_what_was_days_later(memories: Memories, view: View, clock: HandClock) -> None:
    for text in ("Prefers dark mode", "prefers the dark mode", "Likes tea", "Uses vim", "Uses vim."):
        view.add(text)
    before = every(view)
    vectors = {one.id: one.vector for one in view.list(limit=100)}
    run = memories.upkeep.run(job=JOB)
    assert run.merged == 4
    clock.forward(days=9)
    undone = memories.upkeep.undo(run.id)
    assert (len(undone.ids), len(undone.removed), undone.erased) == (4, 2, ())
    assert every(view) == before
    assert {one.id: one.vector for one in view.list(limit=100)} == vectors
    assert {one.state for one in before.values()} == {State.ACTIVE}
    with pytest.raises(Conflict):
        memories.upkeep.undo(run.id)


@pytest.mark.req("N3")
def test_an_undo_after_an_edit_is_refused_and_changes_nothing(memories: Memories, view: View) -> None:
    for text in ("Uses vim", "Uses vim."):
        view.add(text)
    run = memories.upkeep.run(job=JOB)
    [merged] = view.list().memories
    view.update(merged.id, content="Uses neovim")
    before = every(view)
    with pytest.raises(Conflict) as error:
        memories.upkeep.undo(run.id)
    assert error.value.details["changed"] == merged.id
    assert every(view) == before


@pytest.mark.req("N3")
def test_a_plan_is_applied_once_and_not_after_a_change(memories: Memories, view: View) -> None:
    ids = [view.add(text).id for text in ("Uses vim", "Uses vim.")]
    plan = planned(memories)
    view.update(ids[0], importance=1.0)
    with pytest.raises(Conflict) as error:
        memories.upkeep.apply(plan)
    assert error.value.details["changed"] == ids[0]
    assert view.count() == 2
    fresh = planned(memories)
    memories.upkeep.apply(fresh)
    with pytest.raises(Conflict):
        memories.upkeep.apply(fresh)
    assert view.count() == 1


@pytest.mark.req("H8")
def test_what_looks_alike_is_never_merged(memories: Memories, view: View) -> None:
    for left, right in LOOK_ALIKES:
        view.add(left)
        view.add(right)
    assert planned(memories).steps == ()


@pytest.mark.req("H8", "N3")
def test_what_belongs_elsewhere_or_is_protected_is_never_merged(memories: Memories, clock: HandClock) -> None:
    memories.upkeep.set_consolidation(POLICY)
    view = memories.view(user="ada", project="api", session="monday")
    variants: Sequence[dict[str, Any]] = (
        {"layer": "project"},
        {"type": "preference"},
        {"type": "conversation"},
        {"type": "event"},
        {"author": "Bob"},
        {"role": "user"},
        {"session": "tuesday"},
        {"key": "editor"},
        {"metadata": {"pinned": True}},
        {"tags": ["legal"]},
        {"expires_at": clock.time.replace(year=2030)},
    )
    for different in variants:
        view.add("Uses vim", duplicates="keep", **{"layer": "user", **different})
    view.add("Uses vim", layer="session")
    view.add("Uses vim", layer="session", importance=0.1, duplicates="keep")
    memories.upkeep.hold({"tags": ["legal"]}, reason="case 17")
    assert planned(memories).steps == ()
    view.add("Uses vim", layer="user", duplicates="keep")
    view.add("Uses vim", layer="user", duplicates="keep")
    assert len(planned(memories).steps) == 2


@pytest.mark.req("H8")
def test_what_was_said_of_a_day_is_kept_apart_from_what_was_said_of_another(
    memories: Memories, view: View, clock: HandClock
) -> None:
    view.add("The demo is tomorrow")
    view.add("The demo is tomorrow.")
    clock.forward(days=2)
    view.add("The demo is tomorrow")
    assert len(planned(memories).steps) == 2


@pytest.mark.req("H8")
def test_trigger_layers_and_threshold_are_settings(memories: Memories) -> None:
    upkeep, view = memories.upkeep, memories.view(user="ada", team="core")
    for layer in ("user", "team"):
        view.add("Uses vim", layer=layer)
        view.add("Uses vim.", layer=layer)
    assert planned(memories).steps == (), "without a policy"
    upkeep.set_consolidation(replace(POLICY, trigger=3))
    assert planned(memories).steps == ()
    upkeep.set_consolidation(replace(POLICY, layers=("team",)))  # type: ignore[arg-type]
    assert {step.owner.layer for step in planned(memories).steps} == {Layer.TEAM}
    upkeep.set_consolidation(replace(POLICY, layers=(Layer.USER,)), owner=Owner(Layer.USER, ("ada",)))
    assert {step.owner.layer for step in planned(memories).steps} == {Layer.USER, Layer.TEAM}
    assert upkeep.clear_consolidation(owner=Owner(Layer.USER, ("ada",)))
    assert upkeep.consolidation() == replace(POLICY, layers=(Layer.TEAM,))


class Meaning:
    """An embedder for which texts that begin with the same letter are near, as near as it is told."""

    name, dimension = "letters", 2

    def __init__(self, cosine: float) -> None:
        self._cosine = cosine

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The second of two texts that begin alike lies beside the first."""
        beside = (1 - self._cosine**2) ** 0.5
        return [[self._cosine, beside] if "large" in text else [1.0, 0.0] for text in texts]


@pytest.mark.req("H8", "H4")
def test_the_threshold_is_that_of_meaning(opener: Opener) -> None:
    expected = {(0.99, 0.95): 2, (0.94, 0.95): 0, (0.96, 0.99): 0}
    merged = {}
    for cosine, threshold in expected:
        memories = opener(embedder=Meaning(cosine), name=f"{cosine} {threshold}")
        memories.upkeep.set_consolidation(replace(POLICY, threshold=threshold))
        view = memories.view(user="ada")
        view.add("A big house by the lake")
        view.add("A large house by the lake")
        merged[cosine, threshold] = memories.upkeep.run(job=JOB).merged
    assert merged == expected


@pytest.mark.req("N3")
def test_the_breaker_refuses_to_merge_most_of_an_owner(memories: Memories, view: View) -> None:
    for number in range(20):
        view.add(f"Uses {'the ' if number % 2 else ''}tool {chr(97 + number // 2)}x")
    for number in range(12):
        view.add("Uses vim", importance=number / 20, duplicates="keep")
    plan = planned(memories)
    assert plan.owners[0].taken == 21
    with pytest.raises(UpkeepRefused):
        memories.upkeep.apply(plan)
    assert view.count() == 32
    assert memories.upkeep.apply(plan, max_share=0.9).merged == 32


# -- summarisers ------------------------------------------------------------------------------------------------


@pytest.mark.req("H8")
def test_a_summariser_proposes_the_text_and_the_originals_stay(memories: Memories, view: View) -> None:
    ids = [view.add(text).id for text in ("Uses vim", "Uses the vim")]
    asked: list[Sequence[Memory]] = []

    def summarised(sources: Sequence[Memory]) -> str:
        asked.append(sources)
        return "Uses vim daily"[:8]

    plan = planned(memories, summariser=summarised)
    assert [one.id for one in asked[0]] == sorted(ids)
    assert [(one.content, one.proposed) for one in plan.merges] == [("Uses vim", True)]
    memories.upkeep.apply(plan)
    [merged] = view.list().memories
    assert {one.content for one in view.lineage(merged.id).replaced} == {"Uses vim", "Uses the vim"}


def failing(_: Sequence[Memory]) -> str:
    raise RuntimeError("out of credit, key sk-123")


@pytest.mark.req("H8")
def test_a_bad_answer_means_the_built_in_choice_and_a_report(opener: Opener) -> None:
    summarisers: dict[str, Any] = {
        "failing": failing,
        "none": lambda _: None,
        "empty": lambda _: "",
        "invented": lambda _: "Uses vim since 1999",
        "contrary": lambda _: "Never uses vim",
    }
    answers = {}
    for name, summariser in summarisers.items():
        memories = opener(name=name)
        memories.upkeep.set_consolidation(POLICY)
        view = memories.view(user="ada")
        for text in ("Uses vim", "Uses the vim"):
            view.add(text)
        run = memories.upkeep.run(job=JOB, summariser=summariser)
        notes = [("summariser" in note, "sk-123" in note) for note in run.notes]
        answers[name] = run.merged, notes, [one.content for one in view.list()]
    assert answers == dict.fromkeys(summarisers, (2, [(True, False)], ["Uses the vim"]))


# -- schedule, events, refusals -----------------------------------------------------------------------------------


@pytest.mark.req("H8", "P4")
def test_an_automatic_policy_is_applied_by_itself_and_beside_retention(opener: Opener, clock: HandClock) -> None:
    memories = opener(clock=clock)
    memories.upkeep.set_consolidation(ConsolidationPolicy(trigger=2))
    memories.upkeep.set_retention(wellkept.types.RetentionPolicy(long_term_age="10y"))
    view = memories.view(user="ada")
    for text in ("Uses vim", "Uses vim."):
        view.add(text)
    assert memories.upkeep.run_due() is None
    clock.forward(days=1)
    jobs = []
    while (run := memories.upkeep.run_due()) is not None:
        jobs.append((run.job.value, run.automatic))
    assert jobs == [("retention", True), ("consolidation", True)]
    assert view.count() == 1


def test_a_merge_is_announced(memories: Memories, view: View) -> None:
    told: list[MemoriesMerged] = []
    memories.on(MemoriesMerged, told.append)
    ids = {view.add(text).id for text in ("Uses vim", "Uses vim.")}
    memories.upkeep.run(job=JOB)
    [merged] = view.list().memories
    assert [(one.memory_id, set(one.source_ids), one.owner) for one in told] == [(merged.id, ids, merged.owner)]


def test_progress_is_told(memories: Memories, view: View) -> None:
    view.add("Uses vim")
    told: list[tuple[int, int]] = []
    memories.upkeep.plan(job=JOB, progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 1)]


@one_store
def test_bad_policies_are_refused(memories: Memories) -> None:
    policies: list[tuple[dict[str, Any], str]] = [
        ({"threshold": 1.5}, "InvalidInput of threshold"),
        ({"threshold": 0.2}, "InvalidInput of threshold"),
        ({"trigger": -1}, "InvalidInput of trigger"),
        ({"layers": ()}, "InvalidInput of layers"),
        ({"layers": ("galaxy",)}, "InvalidLayer of layer"),
        ({"schedule": "every day"}, "InvalidInput of schedule"),
        ({"automatic": 1}, "InvalidInput of automatic"),
    ]
    place = memories.upkeep.set_consolidation
    refusals = {str(wrong): refusal(place, replace(POLICY, **wrong)) for wrong, _ in policies}
    assert refusals == {str(wrong): f"set_consolidation: {expected}" for wrong, expected in policies}
    assert memories.upkeep.consolidation() is None


@one_store
def test_bad_input_is_refused(memories: Memories) -> None:
    for wrong in ({"job": "cleaning"}, {"job": "compaction"}, {"summariser": "llm"}, {"progress": 7}):
        with pytest.raises(InvalidInput) as error:
            memories.upkeep.plan(**wrong)
        assert error.value.details["field"] in wrong
    with pytest.raises(InvalidInput):
        memories.upkeep.set_consolidation(wellkept.types.RetentionPolicy())  # type: ignore[arg-type]


@one_store
def test_a_plan_without_policies_refuses_to_set_one(opener: Opener) -> None:
    with pytest.raises(PlanRestriction):
        opener(plan="core").upkeep.set_consolidation(POLICY)
