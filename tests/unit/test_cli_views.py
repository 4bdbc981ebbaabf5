"""What people see of histories, facts and hits in a terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import HandClock
from wellkept import Memories
from wellkept.cli import renderers, widgets
from wellkept.cli.renderers import RENDERERS, field_by_field, renderer
from wellkept.cli.screen import Screen, screen_of
from wellkept.cli.show_memories import live_table
from wellkept.operations import VERBS, Caller
from wellkept.operations.maintenance import Reembedded
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


def test_renderers_are_of_verbs() -> None:
    assert set(RENDERERS) <= set(VERBS)
    assert all(callable(renderer(name)) for name in RENDERERS)


def test_an_answer_without_one_is_shown_field_by_field(capsys: pytest.CaptureFixture[str]) -> None:
    field_by_field(screen_of(sys.stdout), Reembedded(embedded=3, embedder="x\x1b"), None)
    assert capsys.readouterr().out == "embedded\t3\nembedder\tx␛\n"


def test_a_table_shows_control_characters_instead_of_sending_them(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(out=sys.stdout, terminal=True, colour=False, width=80, plain=False)
    widgets.table(screen, ("become", "why"), [("evil \x1b[2J\x07", "two\nlines")])
    assert capsys.readouterr().out.split() == ["become", "why", "evil", "␛[2J␇", "two", "lines"]
