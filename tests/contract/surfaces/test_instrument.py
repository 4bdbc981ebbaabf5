"""Watchers hear of every operation, are told no secrets, and cannot break anything."""

import gc
import inspect
import subprocess
import sys
import weakref
from typing import Any

import pytest

from tests.support.stand_ins import Opener, Switched
from tests.support.workload import PLANTED, everything
from wellkept import AgentMemory, Memories, View, WellkeptError
from wellkept.errors import InvalidInput
from wellkept.memories import ApiKeys, Privacy, Session, SessionPreferences, Sessions, Upkeep
from wellkept.types import Layer, OperationCompleted
from wellkept.window import ContextWindow
from wellkept.working import WorkingMemory, WorkingScope


def heard(memories: Memories) -> list[OperationCompleted]:
    told: list[OperationCompleted] = []
    memories.watch(told.append)
    return told


def verbs(kind: type) -> set[tuple[str, str]]:
    """The operations of a class of the engine: what ``verb`` marked."""
    members = inspect.getmembers(kind, inspect.isfunction)
    return {(kind.__name__, name) for name, member in members if hasattr(member, "__wrapped__")}


def public(kind: type) -> set[tuple[str, str]]:
    return {(kind.__name__, name) for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}


@pytest.fixture(scope="module")
def told() -> list[OperationCompleted]:
    found: list[OperationCompleted] = []
    everything(lambda memories: memories.watch(found.append))
    return found


@pytest.mark.req("H15")
def test_every_operation_is_told_of(told: list[OperationCompleted]) -> None:
    wanted = verbs(View) | verbs(Memories) | verbs(AgentMemory)
    wanted |= verbs(Sessions) | verbs(Session) | verbs(SessionPreferences)
    wanted |= verbs(Upkeep) | verbs(Privacy) | verbs(ApiKeys)
    assert len(wanted) > 20
    wanted |= public(WorkingMemory) | public(WorkingScope) | public(ContextWindow) | {("Embedder", "embed")}
    assert wanted - {(done.component, done.operation) for done in told} == set()


@pytest.mark.req("H15")
def test_failures_are_told_by_their_code(told: list[OperationCompleted]) -> None:
    codes = {(done.component, done.operation, done.code) for done in told if done.code}
    assert {
        ("View", "add", "INVALID_LAYER"),
        ("View", "add", "CONFLICT"),
        ("View", "add", "STORE_BUSY"),
        ("View", "get", "STORE_CORRUPT"),
        ("View", "search", "QUERY_TOO_LONG"),
        ("View", "update", "MEMORY_NOT_FOUND"),
        ("WorkingScope", "get", "SCOPE_DISPOSED"),
        ("ContextWindow", "compose", "INVALID_INPUT"),
        ("Embedder", "embed", "EmbedderDown"),
    } <= codes


def test_watchers_are_told_no_content_keys_or_queries(told: list[OperationCompleted]) -> None:
    assert PLANTED not in repr(told)
    assert {(done.agent_id, done.session_id) for done in told} == {
        (None, None),
        ("debugger", None),
        ("debugger", "monday"),
        (None, "tuesday"),
        (None, "ended"),
    }


def test_layer_and_count_are_told_where_they_are_known(memories: Memories) -> None:
    told = heard(memories)
    ada, many = memories.view(user="ada"), memories.view(user="ada", project="api")
    memory = many.add("Use tabs", layer="project")
    ada.count()
    ada.list()
    many.search("tabs", min_score=0)
    many.get(memory.id)
    many.get_many([memory.id])
    assert [(done.operation, done.layer, done.count) for done in told if done.component == "View"] == [
        ("add", Layer.PROJECT, None),
        ("count", Layer.USER, None),
        ("list", Layer.USER, 0),
        ("search", None, 1),
        ("get", Layer.PROJECT, None),
        ("get_many", None, 1),
    ]
    assert all(done.duration_ms > 0 for done in told)


def test_a_failing_watcher_fails_nothing(memories: Memories) -> None:
    def fail(done: OperationCompleted) -> None:
        raise ZeroDivisionError(done.operation)

    memories.watch(fail)
    after = heard(memories)
    me = memories.agent("debugger")
    me.working.set("step", 3)
    assert me.working.get("step") == 3
    assert me.long_term.add("Likes tea").content == "Likes tea"
    assert [done.operation for done in after] == ["view", "agent", "set", "get", "add"]
    assert "calls failed" in memories.health().components["handlers"].message


def test_watching_can_end_and_begin_again(memories: Memories) -> None:
    told: list[OperationCompleted] = []
    stop = memories.watch(told.append)
    again = memories.watch(told.append)
    view = memories.view(user="ada")
    assert len(told) == 1, "a watcher is told once"
    stop()
    again()
    view.count()
    assert len(told) == 1
    memories.watch(told.append)
    view.count()
    assert len(told) == 2


def test_what_cannot_be_called_is_refused(memories: Memories) -> None:
    watchers: list[Any] = [None, 5, "print"]
    for watcher in watchers:
        with pytest.raises(InvalidInput) as caught:
            memories.watch(watcher)
        assert (caught.value.operation, caught.value.details["field"]) == ("watch", "watcher"), watcher
    memories.view(user="ada").add("still works")


def test_foreign_exceptions_pass_and_are_named(memories: Memories) -> None:
    told = heard(memories)
    me = memories.agent("debugger")

    def interrupt() -> object:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        me.working.get_or_set("plan", interrupt)
    assert (told[-1].operation, told[-1].code) == ("get_or_set", "KeyboardInterrupt")


def test_methods_of_agents_that_nobody_watches_stay_as_they_are(memories: Memories) -> None:
    me = memories.agent("debugger")
    scope = me.working.create_scope("task")
    for thing in (me.working, scope, me.context):
        assert [name for name in vars(thing) if name[0] != "_"] == []


def test_watched_agents_are_let_go(memories: Memories) -> None:
    memories.watch(lambda done: None)
    me = memories.agent("debugger")
    gone = [weakref.ref(one) for one in (me, me.working, me.working.create_scope("task"), me.context)]
    assert [one.agent_id for one in memories.agents()] == ["debugger"]
    del me
    gc.collect()
    assert [one() for one in gone] == [None] * 4
    assert memories.agents() == ()


@pytest.mark.req("H15")
def test_sizes_by_layer_count_whoever_it_is(opener: Opener) -> None:
    memories = opener(embedder=Switched())
    assert memories.sizes() == {}
    ada, bob = memories.view(user="ada", team="core"), memories.view(user="bob")
    forgotten = ada.add("Likes tea")
    ada.add_many(["Likes cake"])
    erased = bob.add("Likes coffee")
    ada.add("Ship on Friday", layer="team")
    ada.forget(forgotten.id)
    bob.forget(erased.id, permanent=True)
    sizes = memories.sizes()
    assert {layer: size.active for layer, size in sizes.items()} == {Layer.USER: 1, Layer.TEAM: 1}
    for layer in sizes:
        assert sizes[layer].bytes_used == ada.stats(layers=[layer]).bytes_used


def test_a_closed_database_has_no_size(memories: Memories) -> None:
    memories.close()
    with pytest.raises(WellkeptError) as caught:
        memories.sizes()
    assert (caught.value.code, caught.value.operation) == ("STORE_CLOSED", "sizes")


def test_opentelemetry_does_not_come_in_unasked() -> None:
    script = (
        "import sys, wellkept\n"
        "memories = wellkept.open('ram:', embedder=None)\n"
        "me = memories.agent('debugger')\n"
        "me.long_term.add('Likes tea'); me.working.set('a', 1); me.context.compose()\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "wellkept" in loaded
    assert "opentelemetry" not in loaded
