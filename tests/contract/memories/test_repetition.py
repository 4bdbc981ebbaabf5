"""What is added twice word for word: one memory with two sources, unless it is a turn or speaks of another time."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.support.stand_ins import HandClock, Opener, plain
from tests.support.terminal import Terminal
from wellkept import Memories, Memory, NewMemory, View
from wellkept.errors import Conflict, InvalidInput
from wellkept.testing.builders import START
from wellkept.types import Source, SourceType, State

WEB = Source(type=SourceType.WEB, reference="example.com")
MANUAL = Source(type=SourceType.MANUAL)


@pytest.mark.req("N2")
def test_the_same_twice_is_one_memory(view: View) -> None:
    first = view.add("Likes tea")
    again = view.add("Likes tea")
    assert (first.merged, again.merged) == (False, True)
    assert (again.id, again.version, again.key) == (first.id, 1, None)
    assert view.count() == 1
    assert len(view.history(first.id)) == 1


@pytest.mark.req("N2", "N9")
def test_it_knows_both_sources_and_what_else_was_new(view: View, clock: HandClock) -> None:
    other = view.add("Other")
    first = view.add("Likes tea", tags=["food"], source=WEB, importance=0.3)
    clock.time += timedelta(days=1)
    again = view.add("Likes tea", tags=["drinks"], source=MANUAL, references=[other.id], importance=0.7)
    assert again.id == first.id
    assert (again.source, again.sources) == (WEB, (WEB, MANUAL))
    assert (again.tags, again.references, again.importance) == (("food", "drinks"), (other.id,), 0.7)
    assert (again.trust, again.version, again.updated_at) == (1.0, 2, clock.time)
    found = view.get(first.id)
    assert found is not None
    assert plain(found) == again
    assert [one.reason for one in view.history(first.id)] == [None, "merged"]
    assert view.add("Likes tea", source=MANUAL).version == 2, "nothing new"
    assert view.add("Likes tea", source=Source(type=SourceType.IMPORT)).sources[2].type is SourceType.IMPORT


OTHERS: list[dict[str, Any]] = [
    {"content": "Likes tea."},
    {"type": "preference"},
    {"author": "ada"},
    {"role": "user"},
    {"type": "conversation"},
    {"session": "monday"},
    {"occurred_at": START - timedelta(days=1)},
    {"metadata": {"cups": 3}},
    {"title": "Tea"},
    {"expires_at": START + timedelta(days=1)},
    {"key": "tea"},
    {"layer": "project"},
    {"vector": [1.0, 0.0]},
]


@pytest.mark.req("N2")
def test_what_differs_is_kept(memories: Memories) -> None:
    wrong = {}
    for number, other in enumerate(OTHERS):
        view = memories.view(user=f"user {number}", project=f"project {number}")
        view.add("Likes tea")
        added = view.add(**{"content": "Likes tea", **other})
        if (added.merged, view.count()) != (False, 2):
            wrong[str(other)] = added.merged, view.count()
    assert wrong == {}


@pytest.mark.req("N2")
def test_turns_are_always_kept(memories: Memories) -> None:
    view = memories.view(user="ada", session="monday")
    assert len({view.add("Yes", role="user").id for _ in range(3)}) == 3
    at = START - timedelta(days=3)
    one = view.add("Rained", layer="user", occurred_at=at)
    assert view.add("Rained", layer="user", occurred_at=at).id == one.id
    assert view.add("Rained", layer="user", occurred_at=at + timedelta(days=1)).id != one.id
    assert view.add("Rained", layer="user").id != one.id


@pytest.mark.req("N2")
def test_tomorrow_is_another_day_each_day(view: View, clock: HandClock) -> None:
    first = view.add("The demo is tomorrow")
    assert view.add("The demo is tomorrow").id == first.id
    clock.time += timedelta(days=2)
    assert view.add("The demo is tomorrow").id != first.id
    assert view.add("Likes tea").id == view.add("Likes tea").id


@pytest.mark.req("N2")
def test_the_caller_decides(view: View) -> None:
    first = view.add("Likes tea")
    kept = view.add("Likes tea", duplicates="keep")
    assert (kept.merged, view.count()) == (False, 2)
    with pytest.raises(Conflict) as refused:
        view.add_many(["Likes cake", "Likes tea"], duplicates="refuse")
    assert refused.value.details["memory_id"] == first.id
    with pytest.raises(Conflict):
        view.add_many(["Likes rum", "Likes rum"], duplicates="refuse")
    assert view.count() == 2, "all or none"
    with pytest.raises(InvalidInput) as wrong:
        view.add("x", duplicates="sometimes")  # type: ignore[arg-type]
    assert wrong.value.details["field"] == "duplicates"


@pytest.mark.req("N2")
def test_a_batch_holds_everything_once(view: View) -> None:
    old = view.add("Old")
    tagged, keyed = NewMemory(content="New", tags=["t"], source=WEB), NewMemory(content="Keyed", key="k")
    news: list[str | NewMemory] = ["New", tagged, "Old", keyed, "Other"]
    stored = view.add_many(news)
    assert [one.merged for one in stored] == [False, True, True, False, False]
    assert stored[0].id == stored[1].id
    assert stored[2].id == old.id
    assert stored[0].tags == ("t",)
    found = view.get(stored[0].id)
    assert found is not None
    assert (found.tags, found.version) == (("t",), 1)
    assert view.count() == 4
    assert [one.id for one in view.add_many(news)] == [one.id for one in stored]


@pytest.mark.req("N2")
def test_what_is_gone_or_changed_is_not_added_to(view: View, clock: HandClock) -> None:
    first = view.add("Likes tea")
    view.update(first.id, content="Likes coffee")
    second = view.add("Likes tea")
    assert second.id != first.id
    view.forget(second.id)
    third = view.add("Likes tea")
    assert (third.merged, third.id != second.id) == (False, True)
    view.restore(second.id)
    assert view.add("Likes tea").id == third.id
    view.update(third.id, importance=0.9)
    assert view.add("Likes tea").id == third.id, "it still says the same"
    short = view.add("For a while", expires_at=clock.time + timedelta(days=1))
    clock.time += timedelta(days=2)
    assert view.add("For a while", expires_at=clock.time + timedelta(days=1)).id != short.id
    view.forget(third.id, permanent=True)
    assert view.add("Likes tea").merged is False


@pytest.mark.req("N2")
def test_writers_at_once_leave_one(opener: Opener) -> None:
    views = [opener().view(user="ada") for _ in range(1 if opener.kind == "ram" else 3)]

    def add(number: int) -> Memory:
        return views[number % len(views)].add("Likes tea", tags=[f"t{number}"])

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(add, range(24)))
    assert len({one.id for one in found}) == 1
    [memory] = views[0].list()
    assert len(memory.tags) == 24
    assert memory.state is State.ACTIVE


def test_the_policy_is_on_the_command_line(terminal: Terminal) -> None:
    [first] = terminal.json("add", "Likes tea")["memories"]
    [again] = terminal.json("add", "Likes tea")["memories"]
    assert (again["id"], again["merged"]) == (first["id"], True)
    assert terminal("add", "Likes tea", "--duplicates", "refuse").code != 0
    assert terminal.json("add", "Likes tea", "--duplicates", "keep")["memories"][0]["id"] != first["id"]
