"""The change feed: read on from anywhere, its arguments checked; and the history of one memory."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.refusals import refusal
from tests.support.stand_ins import one_store, somebody
from wellkept import Memories, View
from wellkept.types import Version


def feed(view: View, limit: int) -> list[Version]:
    """All changes, as a reader collects them who remembers the last position."""
    found: list[Version] = []
    while batch := view.changes(after=found[-1].position if found else None, limit=limit):
        assert len(batch) <= limit
        assert batch.next == batch[-1].position
        assert batch.more == bool(view.changes(after=batch.next))
        found += batch
    return found


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["add", "update", "forget", "restore", "erase"]), st.integers(0, 5)), max_size=12
)


@pytest.mark.req("J8", "N10")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(ACTIONS, st.integers(1, 4))
def test_the_feed_can_be_resumed_anywhere(memories: Memories, actions: list[tuple[str, int]], limit: int) -> None:
    view, bob = somebody(memories), somebody(memories)
    ids: list[str] = []
    for turn, (action, number) in enumerate(actions):
        bob.add(f"noise {turn}")
        if action == "add" or not ids:
            ids.append(view.add(f"memory {turn}").id)
            continue
        id = ids[number % len(ids)]
        if action == "update" and view.get(id):
            view.update(id, content=f"changed {turn}")
        elif action == "restore":
            view.restore(id)
        elif action in ("forget", "erase"):
            view.forget(id, permanent=action == "erase")
    everything = list(view.changes())
    assert feed(view, limit) == everything
    assert len({version.stamp for version in everything}) == len(everything)
    assert {version.owner.ids for version in everything} <= {(view.identity.user,)}
    by_memory: dict[str, list[Version]] = {}
    for version in everything:
        by_memory.setdefault(version.memory_id, []).append(version)
    for id, versions in by_memory.items():
        assert view.history(id) == [replace(version, position=None) for version in versions]
        assert [one.replaced for one in versions[1:]] == [one.stamp for one in versions[:-1]]
    # What the feed says is what is there: a reader can keep a copy by it.
    copy = {version.memory_id: version.memory for version in everything}
    alive = {id: memory for id, memory in copy.items() if memory and memory.state == "active"}
    assert {id: memory.content for id, memory in view.get_many(ids).items()} == {
        id: memory.content for id, memory in alive.items()
    }


@pytest.mark.req("N10")
def test_a_feed_starts_behind_a_position(view: View) -> None:
    view.add_many(["one", "two", "three"])
    first = view.changes(limit=1)
    assert [version.memory.content for version in view.changes(after=first.next) if version.memory] == ["two", "three"]
    assert first.more
    assert list(view.changes(after=view.position())) == []


@one_store
def test_the_arguments_of_a_feed_are_checked(view: View) -> None:
    afters: list[Any] = [-1, True, "1", 0, "nonsense", "W10", 2**63, 1.0]
    limits: list[Any] = [0, -1, 10_001, True, "1", None]
    refusals = {f"after={after!r}": refusal(view.changes, after=after) for after in afters}
    assert refusals == dict.fromkeys(refusals, "changes: InvalidInput of after")
    refusals = {f"limit={limit!r}": refusal(view.changes, limit=limit) for limit in limits}
    assert refusals == dict.fromkeys(refusals, "changes: InvalidInput of limit")


def test_history_of_what_is_missing_is_empty(memories: Memories, view: View) -> None:
    memory = view.add("tea")
    assert view.history("missing") == []
    assert memories.view(user="bob").history(memory.id) == []
