"""Tiers: how a memory is kept follows from its layer, type and state, unless a caller says so."""

import json
from pathlib import Path

import pytest

import wellkept
from tests.support.stand_ins import HandClock, one_store
from tests.support.terminal import Terminal
from wellkept import Memories, NewMemory, View
from wellkept.errors import InvalidInput
from wellkept.types import Fact, Filter, RetentionPolicy, State, Tier

FACT = Fact(subject="Ada", predicate="lives in", object="Rome")


@pytest.fixture
def view(memories: Memories) -> View:
    return memories.view(user="ada", session="monday", project="api")


def add_one_of_each(view: View) -> dict[str, str]:
    news = {
        "personal": NewMemory(content="Prefers tea", layer="user", type="preference"),
        "semantic": NewMemory(content="We prefer tabs", layer="project", type="preference"),
        "episodic": NewMemory(content="The upload failed", layer="project", type="event"),
        "procedural": NewMemory(content="Ada lives in Rome", layer="user", fact=FACT),
        "session": NewMemory(content="Look at the logs first", layer="session"),
    }
    return {tier: memory.id for tier, memory in zip(news, view.add_many(list(news.values())), strict=True)}


@pytest.mark.req("H13")
def test_the_tier_is_there_after_every_write_and_can_be_listed(view: View) -> None:
    ids = add_one_of_each(view)
    for tier, id in ids.items():
        memory = view.get(id)
        assert memory is not None
        assert (memory.tier, memory.tier_set) == (tier, False)
        assert [one.id for one in view.list(filter={"tiers": tier})] == [id]
        assert view.count(filter=Filter(tiers=[Tier(tier)])) == 1
    assert view.count(filter={"tiers": ["episodic", "semantic"]}) == 2
    hits = view.search("Prefers tea", filter={"tiers": ["personal"]}, min_score=0)
    assert [hit.memory.id for hit in hits] == [ids["personal"]]
    changed = view.update(ids["personal"], type="event")
    assert changed.tier is Tier.EPISODIC
    assert view.move(ids["personal"], layer="session").tier is Tier.SESSION
    view.forget(ids["semantic"])
    assert view.count(filter={"tiers": "semantic", "include_forgotten": True}) == 1


@pytest.mark.req("H13")
def test_a_tier_that_was_set_stays_until_it_is_cleared(view: View) -> None:
    memory = view.add("Deploy with make release", layer="project", tier="procedural")
    assert (memory.tier, memory.tier_set) == (Tier.PROCEDURAL, True)
    changed = view.update(memory.id, type="event", content="Deploy by make release")
    assert (changed.tier, changed.tier_set) == (Tier.PROCEDURAL, True)
    assert view.move(memory.id, layer="session").tier is Tier.PROCEDURAL
    assert view.update(memory.id, tier="semantic").tier is Tier.SEMANTIC
    cleared = view.update(memory.id, tier=None)
    assert (cleared.tier, cleared.tier_set) == (Tier.SESSION, False)
    assert [version.memory.tier for version in view.history(memory.id) if version.memory and version.version < 3] == [
        "procedural",
        "procedural",
    ]


@pytest.mark.req("H13")
def test_what_is_archived_is_archival(memories: Memories, clock: HandClock) -> None:
    """And has its own tier again when it is restored; one that was set stays."""
    view = memories.view(user="ada")
    plain = view.add("Prefers tea", type="preference", decay_factor=0.05)
    chosen = view.add("Use tabs", tier="personal", decay_factor=0.05)
    memories.upkeep.set_retention(RetentionPolicy(archive_below=0.1, automatic=False))
    clock.forward(days=40)
    memories.upkeep.run(max_share=1.0)
    tiers = {one.id: one.tier for one in view.list(filter={"include_archived": True})}
    assert {one.state for one in view.list(filter={"include_archived": True})} == {State.ARCHIVED}
    assert tiers == {plain.id: Tier.ARCHIVAL, chosen.id: Tier.PERSONAL}
    view.restore(plain.id)
    restored = view.get(plain.id)
    assert restored is not None
    assert restored.tier is Tier.PERSONAL


@one_store
def test_working_is_never_stored_and_unknown_tiers_are_refused(memories: Memories) -> None:
    view = memories.view(user="ada")
    memory = view.add("Likes tea")
    for tier, hint in (("working", "never stored"), ("quick", "use one of")):
        with pytest.raises(InvalidInput, match=hint) as added:
            view.add("Likes cake", tier=tier)  # type: ignore[arg-type]  # what a type checker refuses
        with pytest.raises(InvalidInput, match=hint) as updated:
            view.update(memory.id, tier=tier)  # type: ignore[arg-type]  # as above
        assert added.value.details["field"] == updated.value.details["field"] == "tier"
    with pytest.raises(InvalidInput) as refused:
        view.list(filter={"tiers": ["quick"]})
    assert refused.value.details["field"] == "filter.tiers"
    assert view.count() == 1
    assert view.count(filter={"tiers": "working"}) == 0


@pytest.mark.req("H13")
def test_tiers_in_a_terminal(terminal: Terminal) -> None:
    terminal("add", "Deploy with make release", "--tier", "procedural")
    terminal("add", "Likes tea", "--type", "preference")
    listed = terminal.json("list", "--tier", "procedural")
    assert [(one["content"], one["tier"]) for one in listed["memories"]] == [("Deploy with make release", "procedural")]


@pytest.mark.req("H13")
def test_a_line_by_hand_names_its_tier_or_leaves_it_out(tmp_path: Path) -> None:
    """An edit of the type moves the tier along; the tier of a new line, or with ``tier_set``, is one that was set."""
    folder = tmp_path / "folder"
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        view = memories.view(user="ada")
        edited, chosen = view.add("Likes tea"), view.add("Likes cake")
    file = folder / "users" / "ada" / "memory.jsonl"
    first, second = map(json.loads, file.read_text().splitlines())
    second |= {"tier": "procedural", "tier_set": True}
    new = {"content": "By hand", "type": "preference"}
    lines = [first | {"type": "event"}, second, new, new | {"content": "Set by hand", "tier": "semantic"}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        view = memories.view(user="ada")
        memories.doctor(accept=True)
        tiers = {one.content: (one.tier.value, one.tier_set) for one in view.list()}
        assert {edited.id, chosen.id} < {one.id for one in view.list()}
    assert tiers == {
        "Likes tea": ("episodic", False),
        "Likes cake": ("procedural", True),
        "By hand": ("personal", False),
        "Set by hand": ("semantic", True),
    }


@pytest.mark.req("H13")
def test_a_set_tier_survives_an_export_and_keeps_duplicates_apart(memories: Memories) -> None:
    ada, bob = (memories.view(user=user) for user in ("ada", "bob"))
    monday = ada.sessions.create("monday")
    monday.view.add("Use make release", layer="session", tier="procedural")
    monday.view.add("The build is slow", layer="session")
    bob.sessions.import_session(monday.export("json", history=True))
    kept = {one.content: (one.tier.value, one.tier_set) for one in bob.sessions.load("monday").view.list()}
    assert kept == {"Use make release": ("procedural", True), "The build is slow": ("session", False)}
    plain, chosen = ada.add("Likes tea"), ada.add("Likes tea", tier="episodic")
    assert plain.id != chosen.id
    assert ada.add("Likes tea").id == plain.id
    assert ada.add("Likes tea", tier="episodic").id == chosen.id
