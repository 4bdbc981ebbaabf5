"""Undo: the last write or run is taken back, or it is said why it cannot be."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wellkept
from tests.support.stand_ins import HandClock, OneOwnerStore, Opener
from tests.support.terminal import Terminal
from wellkept import Memories, Memory, View
from wellkept.errors import Conflict, NotFound
from wellkept.types import Filter, Operation, RetentionPolicy, State

EVERYTHING = Filter(include_forgotten=True)


@pytest.fixture
def later(clock: HandClock) -> Callable[[], None]:
    def tick() -> None:
        clock.time += timedelta(seconds=1)

    return tick


def contents(view: View) -> list[tuple[str, State]]:
    return sorted((one.content, one.state) for one in view.list(filter=EVERYTHING))


@pytest.mark.req("N3")
def test_writes_are_taken_back_one_after_the_other(view: View, later: Callable[[], None]) -> None:
    tea = view.add("Likes tea", tags=["a"])
    later()
    view.update(tea.id, content="Likes coffee", add_tags=["b"])
    later()
    view.forget(tea.id)
    later()
    view.add_many(["One", "Two"])
    assert [len(one.memory_ids) for one in view.undoable()] == [2, 1, 1, 1]
    later()
    assert len(view.undo().ids) == 2
    assert view.count() == 0
    assert view.undo().ids == (tea.id,)
    found = view.get(tea.id)
    assert found is not None
    assert (found.content, found.tags) == ("Likes coffee", ("a", "b"))
    view.undo()
    found = view.get(tea.id)
    assert found is not None
    assert (found.content, found.tags) == ("Likes tea", ("a",))
    view.undo()
    assert view.get(tea.id) is None
    assert view.undoable() == []
    with pytest.raises(NotFound):
        view.undo()
    assert [one.operation for one in view.history(tea.id)].count(Operation.UPDATED) == 2, "nothing is rewritten"


@pytest.mark.req("N3")
def test_what_one_call_wrote_goes_together_whatever_the_clock_says(view: View, clock: HandClock) -> None:
    """A clock that was set back gives many writes the same time, and one call may take long."""
    view.add("before the correction")
    for seconds, text in ((1.0, "Monday"), (0.5, "Tuesday"), (0.1, "Wednesday")):
        clock.time -= timedelta(seconds=seconds)
        view.add(text)
    view.add_many(["Thursday", "Friday"])
    assert [len(one.memory_ids) for one in view.undoable()] == [2, 1, 1, 1, 1]
    assert len(view.undo().ids) == 2
    view.undo()
    assert contents(view)[:1] == [("Friday", State.FORGOTTEN)]
    assert {one.content for one in view.list()} == {"before the correction", "Monday", "Tuesday"}


@pytest.mark.req("N3")
def test_every_version_names_the_call_that_wrote_it(view: View) -> None:
    """The same id in every append of a call, told by history and changes; another one for each call."""
    first, second = view.add_many(["Likes tea", "Likes cake"])
    moved = view.add("Likes jam")
    view.forget_many(filter=Filter(text="likes"))
    calls: dict[str, set[str]] = {}
    for version in view.changes():
        calls.setdefault(version.write_id, set()).add(version.memory_id)
    assert list(calls.values()) == [{first.id, second.id}, {moved.id}, {first.id, second.id, moved.id}]
    assert [one.id for one in view.undoable()] == list(reversed(calls))
    assert {one.write_id for one in view.history(first.id)} < set(calls)


@pytest.mark.req("N3")
def test_a_move_is_one_write_with_both_owners(memories: Memories) -> None:
    view = memories.view(user="ada", project="api")
    moved = view.add("Reviews need two approvals", layer="user")
    view.update(moved.id, importance=0.9)
    view.move(moved.id, layer="project")
    assert len({one.write_id for one in memories.view(project="api").history(moved.id)}) == 1
    assert [len(one.memory_ids) for one in view.undoable()] == [1, 1, 1]
    assert memories.view(user="ada").history(moved.id)[-1].write_id == view.undoable()[0].id
    view.undo()
    assert [one.layer.value for one in view.list()] == ["user"]


@pytest.mark.req("N3")
def test_after_a_later_change_it_is_refused(view: View, later: Callable[[], None]) -> None:
    tea = view.add("Likes tea")
    later()
    view.update(tea.id, content="Likes coffee")
    [change, addition] = view.undoable()
    assert (change.blocked, addition.blocked) == (None, f"changed since: {tea.id}")
    with pytest.raises(Conflict, match="changed since") as refused:
        view.undo(addition.id)
    assert refused.value.details["changed"] == tea.id
    assert contents(view) == [("Likes coffee", State.ACTIVE)]
    view.undo(change.id)
    view.undo(addition.id)
    assert contents(view) == [("Likes tea", State.FORGOTTEN)]


@pytest.mark.req("N3")
def test_an_erasure_cannot_be_undone_and_says_so(view: View, later: Callable[[], None]) -> None:
    view.add("Likes cake")
    later()
    tea = view.add("Likes tea")
    later()
    view.forget(tea.id, permanent=True)
    with pytest.raises(Conflict, match="erased for good"):
        view.undo()
    assert view.count() == 1
    [erasure, addition] = view.undoable()
    assert (erasure.operations, addition.blocked) == ((Operation.ERASED,), None)


@pytest.mark.req("N3", "N4")
def test_what_was_superseded_holds_again(view: View, later: Callable[[], None]) -> None:
    view.facts.add("Ada", "lives in", "Rome")
    later()
    view.facts.add("Ada", "lives in", "Berlin")
    later()
    view.undo()
    [found] = view.facts.find(subject="Ada")
    assert found.fact is not None
    assert (found.fact.object, found.fact.valid_until, found.superseded_by) == ("Rome", None, None)
    later()
    view.facts.add("Ada", "lives in", "Paris")
    assert [one.fact.object for one in view.facts.find(subject="Ada") if one.fact] == ["Paris"]


@pytest.mark.req("N3")
def test_a_run_is_taken_back(memories: Memories, view: View, clock: HandClock) -> None:
    memories.upkeep.set_retention(RetentionPolicy(long_term_age="10d", automatic=False))
    view.add("Likes tea")
    clock.time += timedelta(days=20)
    run = memories.upkeep.run()
    assert run.forgotten == 1
    [last, *_] = view.undoable()
    assert last.run_id == run.id
    assert len(view.undo().ids) == 1
    assert view.count() == 1
    assert view.undoable()[0].run_id is None


@pytest.mark.req("N3")
def test_a_run_over_others_is_for_administrators(memories: Memories, view: View, clock: HandClock) -> None:
    memories.upkeep.set_retention(RetentionPolicy(long_term_age="10d", automatic=False))
    view.add("Likes tea")
    memories.view(user="bob").add("Likes cake")
    clock.time += timedelta(days=20)
    memories.upkeep.run()
    with pytest.raises(Conflict, match="others"):
        view.undo()


@pytest.mark.req("N3")
def test_a_move_is_taken_back(view: View, later: Callable[[], None]) -> None:
    memory = view.add("Use tabs")
    later()
    view.move(memory.id, layer="project")
    later()
    view.undo(layers=["user", "project"])
    found = view.get(memory.id)
    assert found is not None
    assert found.layer.value == "user"
    assert view.count() == 1


def homes(memories: Memories, id: str) -> list[str]:
    """The layers in which a memory can be read."""
    view = memories.view(user="ada", project="api")
    return [layer for layer in ("user", "project") for one in view.list(layers=[layer]) if one.id == id]


@pytest.fixture(params=["ram", "jsonl", "one owner at a time"])
def ticking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memories]:
    """A database whose clock goes on with every look at it, as clocks do."""
    started, looks = datetime(2026, 1, 7, tzinfo=UTC), count()

    def clock() -> datetime:
        return started + timedelta(milliseconds=next(looks))

    url = "ram:" if request.param == "ram" else f"jsonl:{tmp_path / 'notes'}"
    store = OneOwnerStore.from_url(url) if request.param == "one owner at a time" else None
    with wellkept.open(url if store is None else None, store=store, embedder=None, clock=clock) as memories:
        yield memories


@pytest.mark.req("N3")
def test_a_move_is_taken_back_in_both_places(ticking: Memories) -> None:
    view = ticking.view(user="ada", project="api")
    memory = view.add("Use tabs", key="style")
    view.move(memory.id, layer="project")
    assert [one.operations for one in view.undoable(limit=1)] == [(Operation.MOVED,)]
    assert view.undo().ids == (memory.id,)
    assert homes(ticking, memory.id) == ["user"]
    assert view.get(key="style") is not None
    assert [one.operations for one in view.undoable()] == [(Operation.ADDED,)]
    assert view.undoable(layers=["project"]) == []
    view.move(memory.id, layer="project")
    view.move(memory.id, layer="user")
    view.undo()
    assert homes(ticking, memory.id) == ["project"]
    view.undo()
    assert homes(ticking, memory.id) == ["user"]
    view.undo()
    assert homes(ticking, memory.id) == []


@pytest.mark.req("N3")
def test_those_who_got_a_memory_can_send_it_back(ticking: Memories) -> None:
    view = ticking.view(user="ada", project="api")
    memory = view.add("Use tabs")
    view.update(memory.id, content="Use spaces")
    view.move(memory.id, layer="project")
    assert ticking.view(project="api").undoable()[0].blocked is not None, "its former owner is out of reach"
    with pytest.raises(Conflict):
        ticking.view(project="api").undo()
    assert homes(ticking, memory.id) == ["project"]
    view.undo(layers=["project"])
    assert homes(ticking, memory.id) == ["user"]
    assert [one.operations for one in view.undoable()] == [(Operation.UPDATED,), (Operation.ADDED,)]


@pytest.mark.req("N3")
def test_a_move_to_where_the_caller_may_not_write_stays(ticking: Memories) -> None:
    view, alone = ticking.view(user="ada", project="api"), ticking.view(user="ada")
    memory = view.add("Use tabs")
    view.move(memory.id, layer="project")
    [last, *_] = alone.undoable()
    assert last.blocked is not None
    assert "project api" in last.blocked
    with pytest.raises(Conflict, match="project api"):
        alone.undo()
    assert homes(ticking, memory.id) == ["project"]


@pytest.mark.req("N3")
def test_a_move_stays_after_a_change_in_the_new_place(ticking: Memories) -> None:
    view = ticking.view(user="ada", project="api")
    memory = view.add("Use tabs")
    view.move(memory.id, layer="project")
    view.update(memory.id, content="Use spaces")
    assert view.undoable()[0].blocked == f"changed since: {memory.id}"
    with pytest.raises(Conflict, match="changed since") as refused:
        view.undo()
    assert refused.value.details["changed"] == memory.id
    assert homes(ticking, memory.id) == ["project"]
    view.undo(layers=["project"])
    assert [one.content for one in view.list(layers="project")] == ["Use tabs"], "the change is a write of its own"
    view.undo()
    assert homes(ticking, memory.id) == ["user"], "a change that was taken back is none"


@pytest.mark.req("N3")
def test_what_was_moved_back_is_found_when_it_is_added_again(ticking: Memories) -> None:
    view = ticking.view(user="ada", project="api")
    memory = view.add("Use tabs")
    view.move(memory.id, layer="project")
    view.undo()
    assert view.add("Use tabs").id == memory.id


@pytest.mark.req("N3")
def test_what_others_write_is_not_taken_back(view: View, memories: Memories, later: Callable[[], None]) -> None:
    mine = view.add("Mine")
    later()
    memories.view(user="bob", project="api").add("Everybody's", layer="project")
    assert view.undo().ids == (mine.id,)
    assert view.count(layers="project") == 1
    assert len(view.undo(layers="project").ids) == 1
    assert view.count() == 0


@pytest.mark.req("N3")
def test_a_former_text_is_found_again(opener: Opener) -> None:
    view = opener(embedder="hashing-64").view(user="ada")
    memory = view.add("Prefers green tea")
    view.update(memory.id, content="Owns a boat")
    view.undo()
    [hit, *_] = view.search("green tea")
    assert (hit.memory.id, hit.memory.content) == (memory.id, "Prefers green tea")


STEPS = st.lists(st.sampled_from(["add", "update", "forget", "restore", "undo"]), max_size=12)


@pytest.mark.req("N3")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(STEPS)
def test_undo_gives_back_what_was_there(steps: list[str]) -> None:
    clock = HandClock()
    with wellkept.open("ram:", embedder=None, clock=clock) as memories:
        view = memories.view(user="ada")
        past: list[list[Any]] = []
        for number, step in enumerate(steps):
            clock.time += timedelta(seconds=1)
            if step == "undo":
                if past:
                    view.undo()
                    assert visible(view) == past.pop()
                continue
            before = visible(view)
            if acted(view, step, number):
                past.append(before)
        for before in reversed(past):
            clock.time += timedelta(seconds=1)
            view.undo()
            assert visible(view) == before


def visible(view: View) -> list[Any]:
    return sorted((one.id, one.content) for one in view.list())


def acted(view: View, step: str, number: int) -> bool:
    active = view.list(sort_by="oldest").memories
    if step == "add":
        return bool(view.add(f"Memory {number}"))
    if step == "restore":
        gone = [one for one in view.list(filter=EVERYTHING) if one.state is State.FORGOTTEN]
        return bool(gone) and view.restore(gone[0].id)
    if not active:
        return False
    memory: Memory = active[number % len(active)]
    if step == "update":
        return bool(view.update(memory.id, content=f"Text {number}"))
    return view.forget(memory.id)


def test_it_is_on_the_command_line(terminal: Terminal) -> None:
    id = terminal.add("Likes tea")
    assert "added" in terminal("undo", "--list").out
    assert terminal.json("undo")["ids"] == [id]
    assert terminal.json("count")["count"] == 0
    assert terminal("undo").code != 0
