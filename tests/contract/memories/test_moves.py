"""Moves: a memory changes its owner with its history, and a move that was killed is finished."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import wellkept
from tests.support.stand_ins import HandClock, OneOwnerStore, Opener, plain
from tests.support.terminal import Terminal
from wellkept import Layer, Memories, View
from wellkept.errors import Conflict, Held, InvalidLayer, NotFound
from wellkept.types import Filter, Operation, State


@pytest.mark.req("N2")
def test_a_memory_moves_with_its_history(view: View, clock: HandClock) -> None:
    memory = view.add("Use tabs", key="style", tags=["code"])
    clock.time += timedelta(days=1)
    view.update(memory.id, content="Use spaces")
    before = view.get(memory.id)
    clock.time += timedelta(days=1)
    moved = view.move(memory.id, layer="project")
    assert before is not None
    assert plain(moved) == plain(replace(before, owner=moved.owner, updated_at=clock.time))
    assert (moved.layer, moved.version, moved.created_at) == (Layer.PROJECT, 2, memory.created_at)
    assert [one.id for one in view.list(layers="project")] == [memory.id]
    assert view.count(layers="user") == 0
    found = view.get(memory.id)
    assert found is not None
    assert found.layer is Layer.PROJECT
    assert [one.memory.content for one in view.history(memory.id) if one.memory] == ["Use tabs", "Use spaces"]
    assert view.get(key="style") is not None
    assert [hit.memory.layer for hit in view.search("spaces", min_score=0)] == [Layer.PROJECT]
    assert view.update(memory.id, content="Use four spaces").layer is Layer.PROJECT


@pytest.mark.req("N2")
def test_the_old_owner_says_where_it_went(view: View, memories: Memories) -> None:
    memory = view.add("Use tabs")
    before = view.position()
    view.move(memory.id, layer="project")
    alone = memories.view(user="ada")
    [_, last] = alone.history(memory.id)
    assert (last.operation, last.reason) == (Operation.MOVED, "moved to project api")
    assert last.memory is not None
    assert last.memory.state is State.MOVED
    assert alone.get(memory.id) is None
    assert alone.restore(memory.id) is False
    assert alone.forget(memory.id) is False
    assert alone.stats().forgotten == 0
    assert view.get(memory.id, as_of=before) == memory, "then it was there"


@pytest.mark.req("N2")
def test_it_may_come_back(view: View) -> None:
    memory = view.add("Use tabs")
    view.move(memory.id, layer="project")
    view.update(memory.id, content="Use spaces")
    back = view.move(memory.id, layer="user")
    assert (back.layer, back.content, back.state) == (Layer.USER, "Use spaces", State.ACTIVE)
    assert view.count() == 1
    assert view.move(memory.id, layer="user") == back, "it is there already"


@pytest.mark.req("N2")
def test_erasing_leaves_nothing_with_the_old_owner(view: View) -> None:
    first, second = view.add("Use tabs"), view.add("Use tea")
    for memory in (first, second):
        view.move(memory.id, layer="project")
    view.forget(first.id, permanent=True)
    view.forget_many([second.id], permanent=True)
    assert view.count(filter=Filter(include_forgotten=True)) == 0
    assert [one.operation for one in view.history(first.id)] == [Operation.ERASED]


@pytest.mark.req("N2")
def test_what_cannot_move_stays(view: View, memories: Memories) -> None:
    memory = view.add("Use tabs", key="style")
    view.add("Use spaces", key="style", layer="project")
    with pytest.raises(Conflict) as refused:
        view.move(memory.id, layer="project")
    assert refused.value.details["field"] == "key"
    with pytest.raises(NotFound):
        view.move("nobody", layer="project")
    with pytest.raises(InvalidLayer):
        view.move(memory.id, layer="somewhere")  # type: ignore[arg-type]
    with pytest.raises(wellkept.errors.MissingIdentifier):
        view.move(memory.id, layer="team")
    gone = view.add("Gone")
    view.forget(gone.id)
    with pytest.raises(NotFound):
        view.move(gone.id, layer="project")
    held = view.add("Held", tags=["legal"])
    memories.upkeep.hold({"tags": ["legal"]}, reason="case 17")
    with pytest.raises(Held):
        view.move(held.id, layer="project")
    assert view.count(layers="user") == 2


@pytest.mark.req("N2")
def test_its_vector_and_its_reads_go_with_it(opener: Opener) -> None:
    view = opener().view(user="ada", project="api")
    memory = view.add("Use tabs", vector=[1.0, 0.0])
    view.get(memory.id)
    view.move(memory.id, layer="project")
    found = view.get(memory.id, include_vector=True)
    assert found is not None
    assert found.vector is not None
    assert found.vector.values == (1.0, 0.0)
    assert found.access_count >= 1


KILLED = """
import os, signal, sys
import wellkept
from tests.support.stand_ins import OneOwnerStore
store = OneOwnerStore.from_url("jsonl:" + sys.argv[1])
append, left = store.journal.append, [1 + int(sys.argv[2])]  # the first one adds the memory

def dying(*args, **more):
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    append(*args, **more)

store.journal.append = dying
with wellkept.open(store=store, embedder=None) as memories:
    view = memories.view(user="ada", project="api")
    memory = view.add("Use tabs")
    view.move(memory.id, layer="project")
"""


@pytest.mark.req("N2")
@pytest.mark.slow
@pytest.mark.parametrize("appends", [0, 1])
def test_a_move_that_was_killed_is_finished_by_the_next_opening(tmp_path: Path, appends: int) -> None:
    folder = tmp_path / "notes"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), str(appends)], capture_output=True, check=False, text=True
    )
    assert done.returncode == -9, done.stderr
    store = OneOwnerStore.from_url(f"jsonl:{folder}")
    with wellkept.open(store=store, embedder=None) as memories:
        view = memories.view(user="ada", project="api")
        assert [(one.content, one.layer) for one in view.list()] == [("Use tabs", Layer.PROJECT)]
        assert [one.operation for one in memories.view(user="ada").history(view.list().memories[0].id)] == [
            Operation.ADDED,
            Operation.MOVED,
        ]


@pytest.mark.req("N2")
def test_what_moved_away_needs_no_vector(opener: Opener) -> None:
    memories = opener(embedder="hashing-64")
    view = memories.view(user="ada", project="api")
    view.move(view.add("Use tabs").id, layer="project")
    assert memories.doctor().findings == ()
    assert memories.reembed() == 0
    assert memories.reembed("hashing-16") == 1


def test_it_is_on_the_command_line(terminal: Terminal) -> None:
    id = terminal.add("Use tabs")
    moved = terminal.json("move", id, "--project", "api", "--layer", "project")
    assert moved["owner"]["layer"] == "project"
    assert terminal.json("count")["count"] == 0
