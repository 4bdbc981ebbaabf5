"""Who reads a memory that has an access policy: one table, held for every way to read."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import HandClock
from wellkept import Memories, Memory, View
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import Conflict, InvalidInput, NotFound
from wellkept.types import AccessPolicy, Grant, Layer, Need, Owner, RetentionPolicy

POLICIES = (None, *AccessPolicy)
CORE, ADA = Owner(Layer.TEAM, ("core",)), Owner(Layer.USER, ("ada",))
ALL = set(POLICIES)
NAMED = {None, AccessPolicy.SHARED, AccessPolicy.ORGANIZATION, AccessPolicy.PUBLIC}
# A reader, and the policies of ada's memories in the team's layer that it may read. The guide shows the same table.
READERS: dict[str, tuple[dict[str, Any], Grant | None, set[AccessPolicy | None]]] = {
    "the author": ({"user": "ada", "team": "core"}, None, ALL),
    "the author, an agent": ({"user": "bob", "agent": "ada", "team": "core"}, None, ALL),
    "the author, as holder": ({"team": "core"}, Grant(need=Need.READ, owners=(CORE,), holder="ada"), ALL),
    "somebody": ({"user": "bob", "team": "core"}, None, ALL - {AccessPolicy.PRIVATE}),
    "an agent": ({"agent": "debugger", "team": "core"}, None, ALL - {AccessPolicy.PRIVATE}),
    "a writer": (
        {"user": "bob", "team": "core"},
        Grant(need=Need.WRITE, owners=(CORE, Owner(Layer.USER, ("*",)))),
        ALL - {AccessPolicy.PRIVATE},
    ),
    "a reader": ({"user": "bob", "team": "core"}, Grant(need=Need.READ), NAMED),
    "a holder": ({"team": "core"}, Grant(need=Need.READ, owners=(CORE,), holder="bob"), NAMED),
    "a holder for ada": ({"user": "ada", "team": "core"}, Grant(need=Need.READ, holder="bob"), NAMED),
    "an organisation": (
        {"team": "core", "org": "acme"},
        None,
        {None, AccessPolicy.ORGANIZATION, AccessPolicy.PUBLIC},
    ),
    "nobody": ({"team": "core"}, None, {None, AccessPolicy.PUBLIC}),
}
WORDS = {
    None: "plan for the harbour",
    AccessPolicy.PRIVATE: "plan of quarterly salaries",
    AccessPolicy.RESTRICTED: "plan to migrate servers",
    AccessPolicy.SHARED: "plan about summer picnics",
    AccessPolicy.ORGANIZATION: "plan against flooding cellars",
    AccessPolicy.PUBLIC: "plan with seven bicycles",
}


@pytest.fixture(params=["ram", "sqlite", "jsonl"])
def memories(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memories]:
    url = {"ram": "ram:", "sqlite": str(tmp_path / "a.db"), "jsonl": f"jsonl:{tmp_path / 'folder'}"}[request.param]
    with wellkept.open(url, embedder=HashingEmbedder(16)) as opened:
        yield opened


def fill(memories: Memories) -> dict[AccessPolicy | None, Memory]:
    ada = memories.view(user="ada", team="core")
    return {
        policy: ada.add(WORDS[policy], layer="team", author="ada", access_policy=policy, tags=[str(policy or "unset")])
        for policy in POLICIES
    }


def seen(view: View, made: dict[AccessPolicy | None, Memory]) -> dict[str, set[AccessPolicy | None]]:
    """The policies of the memories that each way to read shows."""
    of = {memory.id: policy for policy, memory in made.items()}
    ids = list(of)
    here = view.position()
    everything = {"include_forgotten": True}
    tags = {None if one.tag == "unset" else AccessPolicy(one.tag) for one in view.stats().top_tags}
    return {
        "get": {of[one] for one in ids if view.get(one, include_forgotten=True) is not None},
        "get then": {of[one] for one in ids if view.get(one, as_of=here) is not None},
        "get_many": {of[one] for one in view.get_many(ids)},
        "list": {of[one.id] for one in view.list(filter=everything)},
        "list by relevance": {of[one.id] for one in view.list(sort_by="relevance")},
        "list then": {of[one.id] for one in view.list(as_of=here)},
        "count": {policy for policy in made if view.count(filter={"tags": [str(policy or "unset")]})},
        "search": {of[hit.memory.id] for hit in view.search("plan", min_score=0)},
        "search by words": {of[hit.memory.id] for hit in view.search('"plan"', min_score=0)},
        "search beginnings": {of[hit.memory.id] for hit in view.search("pla*", min_score=0)},
        "search then": {of[hit.memory.id] for hit in view.search("plan", min_score=0, as_of=here)},
        "search forgotten": {of[hit.memory.id] for hit in view.search("plan", min_score=0, filter=everything)},
        "history": {of[one] for one in ids if view.history(one)},
        "changes": {of[one.memory_id] for one in view.changes()},
        "lineage": {of[one] for one in ids if _answers(view.lineage, one)},
        "stats": tags,
    }


def _answers(call: Callable[[str], Any], id: str) -> bool:
    try:
        call(id)
    except NotFound:
        return False
    return True


@pytest.mark.req("H2", "L11")
def test_who_reads_what(memories: Memories) -> None:
    made = fill(memories)
    wrong: dict[tuple[str, str], object] = {}
    for reader, (identity, grant, expected) in READERS.items():
        view = memories.view(**identity, grant=grant)
        wrong |= {(reader, how): policies for how, policies in seen(view, made).items() if policies != expected}
        page = view.list()
        counts = {
            "number counted": view.count(),
            "number in the statistics": view.stats().active,
            "number on a page": len(page.memories),
            "number in total": page.total,
            "number found": view.search("plan", min_score=0, limit=1).total,
        }
        wrong |= {(reader, how): count for how, count in counts.items() if count != len(expected)}
    assert wrong == {}


@pytest.mark.req("H2", "L11")
def test_what_may_not_be_read_cannot_be_changed(memories: Memories) -> None:
    made = fill(memories)
    secret = made[AccessPolicy.PRIVATE]
    bob = memories.view(user="bob", team="core")
    with pytest.raises(NotFound):
        bob.update(secret.id, access_policy=None)
    assert not bob.forget(secret.id)
    assert not bob.forget(secret.id, permanent=True)
    assert bob.forget_many([secret.id], permanent=True).failed == (secret.id,)
    assert secret.id not in bob.forget_many(filter={}, permanent=True).ids
    with pytest.raises(InvalidInput):
        bob.add("x", references=[secret.id])
    with pytest.raises(InvalidInput):
        bob.add("x", derived_from=[secret.id])
    with pytest.raises((NotFound, InvalidInput)):
        bob.add("x", supersedes=[secret.id])
    ada = memories.view(user="ada", team="core")
    assert ada.get(secret.id) == secret or ada.get(secret.id).version == 1  # type: ignore[union-attr]


@pytest.mark.req("H2", "L11")
def test_a_run_over_what_may_not_be_read_is_out_of_reach(memories: Memories) -> None:
    """Neither a plan that was made by hand takes it, nor is a run taken back that changed it."""
    ada, bob = memories.view(user="ada", team="core"), memories.view(user="bob", team="core")
    secret = ada.add("secret", layer="team", author="ada", access_policy="private")
    shown = ada.add("open", layer="team", author="ada")
    plan = bob.plan_quarantine(ids=[shown.id])
    forged = replace(plan, steps=(replace(plan.steps[0], memory_id=secret.id, version=secret.version),))
    with pytest.raises(Conflict):
        bob.quarantine(plan=forged)
    run = ada.quarantine(author="ada")
    assert run.quarantined == 2
    for call in (bob.release, bob.erase_quarantined):
        with pytest.raises(NotFound):
            call(run.id)
        with pytest.raises(NotFound):
            call()
    assert [one.blocked is not None for one in bob.undoable(layers=["team"]) if one.run_id] == [True]
    assert set(ada.release(run.id).ids) == {secret.id, shown.id}
    own = bob.quarantine(ids=[shown.id])
    assert bob.release(own.id).ids == (shown.id,)


@pytest.mark.req("H2", "N3")
def test_upkeep_that_changed_what_may_not_be_read_is_not_undone_by_others() -> None:
    clock = HandClock()
    with wellkept.open("ram:", embedder=None, clock=clock) as memories:
        ada, bob = memories.view(user="ada", team="core"), memories.view(user="bob", team="core")
        secret = ada.add("secret", layer="team", author="ada", access_policy="private")
        shown = ada.add("open", layer="team", author="ada")
        memories.upkeep.set_retention(RetentionPolicy(long_term_age="1d", automatic=False), owner=CORE)
        clock.forward(days=2)
        run = memories.upkeep.run(max_share=1)
        assert run.forgotten == 2
        [undoable] = [one for one in bob.undoable(layers=["team"]) if one.run_id]
        assert (undoable.memory_ids, undoable.blocked) == ((shown.id,), "it changed memories of others as well")
        with pytest.raises(Conflict):
            bob.undo(run.id, layers=["team"])
        assert set(ada.undo(run.id, layers=["team"]).ids) == {secret.id, shown.id}


@pytest.mark.req("H2")
def test_the_newest_version_decides_for_the_whole_history(memories: Memories) -> None:
    ada, bob = memories.view(user="ada", team="core"), memories.view(user="bob", team="core")
    memory = ada.add("open", layer="team", author="ada")
    start = bob.position()
    assert bob.get(memory.id) is not None
    ada.update(memory.id, content="secret", access_policy="private")
    assert bob.history(memory.id) == []
    assert list(bob.changes()) == []
    assert bob.get(memory.id, as_of=start) is None
    assert bob.list(as_of=start).memories == ()
    assert len(bob.search("open", min_score=0, as_of=start)) == 0
    ada.update(memory.id, access_policy=None)
    assert len(bob.history(memory.id)) == 3
    assert bob.get(memory.id) is not None


@pytest.mark.req("H2")
def test_a_key_that_is_taken_by_a_hidden_memory_stays_taken(memories: Memories) -> None:
    ada, bob = memories.view(user="ada", team="core"), memories.view(user="bob", team="core")
    ada.put("plan", "secret", layer="team", author="ada", access_policy="private")
    for call in (bob.put, lambda key, text, layer: bob.add(text, key=key, layer=layer)):
        with pytest.raises(Conflict):
            call("plan", "mine", layer="team")
    assert bob.get(key="plan") is None
    assert ada.get(key="plan").content == "secret"  # type: ignore[union-attr]


def test_a_private_memory_of_a_shared_layer_names_its_author(memories: Memories) -> None:
    view = memories.view(user="ada", team="core")
    with pytest.raises(InvalidInput, match="author"):
        view.add("x", layer="team", access_policy="private")
    with pytest.raises(InvalidInput, match="author"):
        view.update(view.add("x", layer="team").id, access_policy="private")
    assert view.add("x", layer="user", access_policy="private").access_policy is AccessPolicy.PRIVATE
    with pytest.raises(InvalidInput, match="access_policy"):
        view.add("x", access_policy="secret")  # type: ignore[arg-type]
    assert view.count() == 2


@pytest.mark.req("H2")
def test_a_user_reads_all_of_the_own_layers(memories: Memories) -> None:
    ada = memories.view(user="ada", agent="debugger", session="monday")
    for layer in (Layer.AGENT, Layer.USER, Layer.SESSION):
        ada.add(f"tea of {layer}", layer=layer, author="bob", access_policy="private")
    assert ada.count() == len(ada.search("tea", min_score=0)) == 3
    assert memories.view(agent="tester").add("x", access_policy="private").version == 1
    assert memories.view(agent="tester").count() == 1
    other = memories.view(user="ada", grant=Grant(need=Need.READ, owners=(ADA,), holder="eve"))
    assert other.count() == 0


@pytest.mark.req("H2")
def test_a_session_is_exported_and_asked_as_it_may_be_read(memories: Memories) -> None:
    sessions = memories.view(user="ada").sessions
    sessions.create("monday").view.add("hush", author="ada", access_policy="private", tags=["a"])
    eve = memories.view(user="ada", grant=Grant(need=Need.READ, owners=(ADA,), holder="eve")).sessions
    assert "hush" not in eve.load("monday").export(history=True)
    assert eve.topics() == ()
    assert eve.sessions_about("a") == ()
    assert eve.list()[0].entries == 0
    assert sessions.list()[0].entries == 1


@pytest.mark.req("H2")
def test_what_another_process_writes_is_heeded(tmp_path: Path) -> None:
    """Each has an engine and caches of its own."""
    url = str(tmp_path / "a.db")
    with wellkept.open(url, embedder=None) as one, wellkept.open(url, embedder=None) as other:
        ada, bob = one.view(user="ada", team="core"), other.view(user="bob", team="core")
        memory = ada.add("plan", layer="team", author="ada")
        assert bob.count() == len(bob.search("plan", min_score=0)) == 1
        ada.update(memory.id, access_policy="private")
        assert bob.count() == len(bob.search("plan", min_score=0)) == 0
        ada.update(memory.id, access_policy="public")
        assert bob.count() == len(bob.search("plan", min_score=0)) == 1
        ada.update(memory.id, access_policy="private")
        one.rebuild()
        assert bob.count() == 0
