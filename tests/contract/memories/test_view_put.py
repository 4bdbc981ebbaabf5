"""Keys that stand for what holds now: put, and reading by key."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.refusals import refusal
from tests.support.stand_ins import HandClock
from tests.support.terminal import Terminal
from wellkept import Memories, Memory, View
from wellkept.errors import Conflict, InvalidInput, MissingIdentifier
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.types import Filter, State


def _content(memory: Memory | None) -> str | None:
    return None if memory is None else memory.content


@pytest.mark.req("N2")
def test_put_adds_then_writes_versions_of_one_memory(view: View, clock: HandClock) -> None:
    first = view.put("home", "Lives in Rome", tags=["personal"], title="Home", metadata={"sure": True})
    clock.forward(days=1)
    second = view.put("home", "Lives in Berlin", metadata={"since": 2026})
    assert (first.version, second.version, second.id) == (1, 2, first.id)
    assert (second.tags, second.title, dict(second.metadata)) == (("personal",), "Home", {"sure": True, "since": 2026})
    assert second.created_at == first.created_at
    assert second.occurred_at - first.occurred_at == timedelta(days=1)  # it holds since it was said
    assert [one.memory and one.memory.content for one in view.history(first.id)] == ["Lives in Rome", "Lives in Berlin"]
    assert [hit.memory.id for hit in view.search("Where does she live?", min_score=0)] == [first.id]


@pytest.mark.req("N2")
def test_the_same_again_writes_nothing(view: View, clock: HandClock) -> None:
    first = view.put("home", "Lives in Rome", tags=(tag for tag in ["personal"]))
    clock.forward(days=1)
    assert view.put("home", "Lives in Rome", tags=["personal"]) == first
    assert view.put("home", "Lives in Rome", title="Home").version == 2
    cleared = view.put("home", "Lives in Rome", title=None)
    assert (cleared.version, cleared.title, cleared.occurred_at) == (3, None, first.occurred_at)


@pytest.mark.req("N2")
@pytest.mark.parametrize("ended", ["forgotten", "expired"])
def test_what_was_forgotten_lives_again_as_a_new_version_without_its_old_fields(
    view: View, clock: HandClock, ended: str
) -> None:
    expires: dict[str, Any] = {"expires_at": clock() + timedelta(days=1)} if ended == "expired" else {}
    first = view.put("home", "Lives in Rome", title="A secret", tags=["old"], **expires)
    if ended == "forgotten":
        view.forget(first.id)
    clock.forward(days=2)
    assert view.get(key="home") is None
    again = view.put("home", "Lives in Berlin")
    assert (again.id, again.state, again.title, again.tags) == (first.id, State.ACTIVE, None, ())
    assert (again.created_at, again.expires_at, again.forgotten_at) == (first.created_at, None, None)
    assert again.version == len(view.history(first.id)) == (3 if ended == "forgotten" else 2)
    assert _content(view.get(key="home")) == "Lives in Berlin"
    assert [hit.memory.content for hit in view.search("Berlin", min_score=0)] == ["Lives in Berlin"]


@pytest.mark.req("N2")
def test_an_erased_memory_frees_its_key(view: View) -> None:
    first = view.put("home", "Lives in Rome")
    view.forget(first.id, permanent=True)
    assert view.put("home", "Lives in Berlin").id != first.id


@pytest.mark.req("N2")
def test_add_with_a_key_stays_the_idempotent_retry(view: View) -> None:
    added = view.add("Likes tea", key="drink")
    assert view.put("drink", "Likes coffee").id == added.id
    assert view.add("Likes tea", key="drink").content == "Likes coffee"  # the retry of the first request


@pytest.mark.req("N2", "H4")
def test_the_most_specific_layer_that_has_the_key_is_read(memories: Memories) -> None:
    ada = memories.view(user="ada", project="api", company="acme")
    ada.put("style", "Use spaces", layer="company")
    assert _content(ada.get(key="style")) == "Use spaces"
    project = ada.put("style", "Use tabs", layer="project")
    assert _content(ada.get(key="style")) == "Use tabs"
    ada.forget(project.id)
    assert _content(ada.get(key="style")) == "Use spaces"
    forgotten = ada.get(key="style", include_forgotten=True)
    assert forgotten is not None
    assert forgotten.id == project.id
    assert memories.view(user="bob").get(key="style") is None


@pytest.mark.req("N2")
def test_a_key_is_read_as_of_a_moment(view: View, clock: HandClock) -> None:
    ends = clock() + timedelta(days=1)
    short = view.add("Is on holiday", key="status", expires_at=ends)
    before = view.position()
    clock.forward(days=2)
    view.put("home", "Lives in Rome")
    after = view.add("Is back", key="status")  # the expired memory gave its key away
    assert after.id != short.id
    then = view.get(key="status", as_of=before)
    assert then is not None
    assert then.id == short.id
    assert view.get(key="home", as_of=before) is None
    assert [one.id for one in view.list(keys=["status", "home"], as_of=before)] == [short.id]


@pytest.mark.req("N2")
def test_listings_counts_and_searches_take_keys(view: View) -> None:
    home, drink = view.put("home", "Lives in Rome"), view.put("drink", "Likes tea")
    view.add("Has a cat", references=[drink.id])
    assert {one.id for one in view.list(keys=["home", "drink", "nothing"])} == {home.id, drink.id}
    assert [one.id for one in view.list(keys=["home", "drink"], filter={"text": "tea"})] == [drink.id]
    assert view.count(filter=Filter(keyed=["home"])) == 1
    assert view.list(keys=[]).memories == ()
    assert [hit.memory.id for hit in view.search("tea or Rome", min_score=0, filter={"keyed": ["drink"]})] == [drink.id]


def test_bad_input_changes_nothing(view: View) -> None:
    calls: list[tuple[dict[str, Any], str]] = [
        ({"key": ""}, "InvalidInput of key"),
        ({"key": "a\nb"}, "InvalidInput of key"),
        ({"key": None}, "InvalidInput of key"),
        ({"content": " "}, "InvalidInput of content"),
        ({"importance": 7}, "InvalidInput of importance"),
        ({"references": ["nobody"]}, "InvalidInput of references"),
        ({"color": "red"}, "InvalidInput of color"),
        ({"dangling": "yes"}, "InvalidInput of dangling"),
    ]
    first = view.put("home", "Lives in Rome")
    home: dict[str, Any] = {"key": "home", "content": "Lives in Berlin"}
    refusals = {str(call): refusal(view.put, **home | call) for call, _ in calls}
    assert refusals == {str(call): f"put: {expected}" for call, expected in calls}
    assert view.list().memories == (first,)


def test_a_put_needs_the_ids_of_its_layer_and_a_get_one_name(view: View) -> None:
    with pytest.raises(MissingIdentifier):
        view.put("style", "Use tabs", layer="team")
    for wrong in ({}, {"id": "x", "key": "y"}, {"key": ""}, {"key": 7}):
        with pytest.raises(InvalidInput):
            view.get(**cast("dict[str, Any]", wrong))
    with pytest.raises(InvalidInput):
        view.list(keys=["\n"])


def test_many_writers_of_one_key_leave_one_memory_with_all_versions(memories: Memories, view: View) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda number: view.put("count", f"It is {number}"), range(16)))
    assert len({one.id for one in done}) == 1
    assert [one.version for one in view.history(done[0].id)] == list(range(1, 17))


def test_a_put_is_tried_as_often_as_any_other_change() -> None:
    """Whoever is always too late gives up in the end, and not a hundred times as late."""
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=None) as memories:
        view = memories.view(user="ada")
        id = view.put("home", "Lives in Rome").id
        attempts: dict[str, int] = {}
        changes: dict[str, Callable[[], Memory]] = {
            "update": lambda: view.update(id, content="Lives in Oslo"),
            "put": lambda: view.put("home", "Lives in Oslo"),
        }
        for name, change in changes.items():
            for call in range(1, 1_000):
                store.fail("append", Conflict("somebody was faster"), call=call)
            before = store.calls["append"]
            with pytest.raises(Conflict):
                change()
            attempts[name] = store.calls["append"] - before
    assert attempts["put"] == attempts["update"] == 100


@given(steps=st.lists(st.sampled_from(["put a", "put b", "forget", "erase", "expire"]), max_size=8))
def test_a_key_holds_what_was_put_last(steps: list[str]) -> None:
    clock = HandClock()
    with wellkept.open("ram:", embedder=None, clock=clock) as memories:
        view = memories.view(user="ada")
        held: str | None = None
        for step in steps:
            memory = view.get(key="k")
            if step.startswith("put"):
                view.put("k", held := step)
            elif memory is not None and step == "expire":
                view.update(memory.id, expires_at=clock() + timedelta(hours=1))
                clock.forward(hours=2)
                held = None
            elif memory is not None:
                view.forget(memory.id, permanent=step == "erase")
                held = None
            found = view.get(key="k")
            assert (found.content if found else None) == held
            assert view.count() == (held is not None)


def test_the_command_line_and_async_code_put_as_well(terminal: Terminal) -> None:
    first = terminal.json("put", "style", "Use", "spaces", "--tag", "code")
    second = terminal.json("put", "style", "Use tabs")
    assert (second["id"], second["version"], second["tags"]) == (first["id"], 2, ["code"])
    assert terminal.json("show", "--key", "style")["content"] == "Use tabs"
    assert [one["id"] for one in terminal.json("list", "--key", "style")["memories"]] == [first["id"]]
    assert terminal("show", "--key", "other").code == 3
    assert terminal("show").code == 2

    async def main() -> str:
        async with wellkept.aio.open("ram:", embedder=None) as memories:
            view = memories.view(user="ada")
            await view.put("home", "Lives in Rome")
            found = await view.get(key="home")
            return found.content if found else ""

    assert asyncio.run(main()) == "Lives in Rome"
