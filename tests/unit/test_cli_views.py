"""What people see of histories, facts and hits in a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import HandClock
from tests.support.terminal import Terminal
from wellkept import Memories
from wellkept.cli import renderers
from wellkept.cli.screen import Screen
from wellkept.cli.show_memories import live_table
from wellkept.operations import VERBS
from wellkept.operations.verb import Caller
from wellkept.types import Identity, Operation, RetentionPolicy

IDENTITY = Identity(user="ada", project="api", company="acme")
Shown = Callable[..., str]


@pytest.fixture
def memories(clock: HandClock) -> Iterator[Memories]:
    with wellkept.open("ram:", embedder=None, clock=clock) as memories:
        yield memories


@pytest.fixture
def screen() -> Screen:
    return Screen(out=io.StringIO(), terminal=True, colour=False, width=120, plain=True)


@pytest.fixture
def shown(memories: Memories) -> Shown:
    """Call a verb, and read what a terminal shows of it."""

    def call(name: str, **payload: Any) -> str:
        given, out = VERBS[name].input(**payload), io.StringIO()
        screen = Screen(out=out, terminal=True, colour=False, width=120, plain=True)
        renderers.render(screen, name, VERBS[name].run(Caller(memories, IDENTITY), given), given)
        return out.getvalue()

    return call


@pytest.mark.req("N2", "N3")
def test_a_history_shows_every_operation(memories: Memories, screen: Screen, shown: Shown, clock: HandClock) -> None:
    view = memories.view(user="ada", project="api")
    memory = view.add("Likes tea", author="bob")
    view.update(memory.id, content="Likes milk")
    view.forget(memory.id)
    view.restore(memory.id)
    view.release(view.quarantine(author="bob").id)
    memories.upkeep.set_retention(RetentionPolicy(archive_below=0.9, automatic=False))
    clock.time += timedelta(days=90)
    memories.upkeep.run(max_share=1.0)
    view.restore(memory.id)
    view.move(memory.id, layer="project")
    told = shown("history", id=memory.id)
    assert told.count("added") == 1, "of the new owner"
    versions = memories.view(user="ada").history(memory.id)
    assert {one.operation for one in versions} == set(Operation) - {Operation.ERASED}
    assert live_table(screen, versions, len(versions), 1).row_count == len(versions)


@pytest.mark.req("N2")
def test_a_fact_says_when_it_holds(shown: Shown) -> None:
    told = shown("facts.add", subject="Ada", predicate="lives in", object="Rome", kind="home")
    assert "kind" in told
    assert "home" in told
    assert "holds" in told
    assert "fact:" not in told, "the key of a fact is nobody's business"
    shown("facts.add", subject="Ada", predicate="lives in", object="Berlin", confidence=0.9)
    table = shown("facts")
    assert [word for word in table.splitlines()[0].split() if word] == [
        "subject",
        "predicate",
        "object",
        "confidence",
        "holds",
        "id",
    ]
    assert "Berlin" in table
    assert "\t" not in table


@pytest.mark.req("H4")
def test_a_search_says_what_overrides_what(memories: Memories, shown: Shown) -> None:
    view = memories.view(user="ada", project="api", company="acme")
    spaces = view.add("Use spaces for indentation", layer="company", key="indent")
    tabs = view.add("Indent with tabs", layer="project", key="indent")
    told = shown("search", query="Use spaces or tabs for indentation?")
    assert "overrides 1 memory of another layer; --overridden shows it" in told
    assert "--limit" not in told, "a limit is not what hides it"
    both = shown("search", query="Use spaces or tabs for indentation?", overridden=True)
    assert f"overridden by {tabs.id[:23]}" in both
    assert spaces.id[:23] in both
    assert "--overridden" not in both
    view.add("We use tabs for indentation in tables", layer="user")
    assert "--limit shows more" in shown("search", query="Use spaces or tabs for indentation?", limit=1)


@pytest.mark.req("N9")
def test_a_memory_points_to_a_file_from_the_command_line(terminal: Terminal) -> None:
    file = terminal.folder / "style.md"
    file.write_text("Indent with tabs.")
    id = terminal.add("Indent with tabs.", "--pointer", "style.md")
    assert terminal.json("show", id)["pointer"]["source_id"] == file.as_uri()
    assert terminal.json("search", "indent")["hits"][0]["stale"] is False
    file.write_text("Indent with spaces.")
    assert terminal.json("search", "indent")["hits"][0]["stale"] is True
    assert terminal.json("refresh", ".")["rewritten"] == [id]
    assert terminal.json("show", id)["content"] == "Indent with spaces."
    for wrong in ("nowhere.md", "{", "."):
        refused = terminal("add", "Likes tea", "--pointer", wrong)
        assert (refused.code, "--pointer" in refused.err) == (2, True)
    assert terminal.json("count")["count"] == 1
