"""References lead to memories that the caller can see, unless the caller says that they need not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

import wellkept
from tests.support.stand_ins import HandClock
from tests.support.terminal import Terminal
from wellkept import Memories, NewMemory, View
from wellkept.errors import InvalidInput


def refused(id: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.details == {"field": "references", "memory_id": id}
    assert "dangling=True" in str(caught.value)


def invisible(memories: Memories, view: View, clock: HandClock) -> list[str]:
    """Ids of what does not exist, is somebody else's, forgotten, erased or expired."""
    gone = [view.add(name) for name in ("forgotten", "erased")]
    view.forget(gone[0].id)
    view.forget(gone[1].id, permanent=True)
    ended = view.add("expired", expires_at=clock.time + timedelta(hours=1))
    clock.forward(hours=2)
    return ["nope", memories.view(user="bob").add("his").id, *(one.id for one in (*gone, ended))]


@pytest.mark.req("H3", "J5", "L11")
def test_what_cannot_be_seen_cannot_be_referred_to(memories: Memories, view: View, clock: HandClock) -> None:
    known = view.add("known")
    for id in invisible(memories, view, clock):
        before = view.position()
        refused(id, partial(view.add, "new", references=[known.id, id]))
        refused(id, partial(view.add, "new", references=[id], key="k"))
        refused(id, partial(view.add_many, ["good", NewMemory(content="b", references=[id])]))
        refused(id, partial(view.update, known.id, references=[id]))
        assert view.position() == before, "nothing was written"
        assert view.add("new", references=[id], dangling=True, duplicates="keep").references == (id,)
        assert view.update(known.id, references=[id], dangling=True).references == (id,)


@pytest.mark.req("H3")
def test_what_can_be_seen_can_be_referred_to_from_every_layer(view: View) -> None:
    mine, ours = view.add("mine"), view.add("ours", layer="project")
    both = view.add("both", layer="project", references=[mine.id, ours.id])
    assert view.update(mine.id, references=[both.id, mine.id]).references == (both.id, mine.id)


@pytest.mark.req("N2")
def test_references_that_stand_already_are_not_asked_about_again(view: View) -> None:
    first, second = view.add("first"), view.add("second")
    linked = view.add("linked", references=[first.id], key="k")
    view.forget(first.id)
    assert view.add("linked", references=[first.id], key="k").id == linked.id, "a request may be repeated"
    assert view.update(linked.id, references=[first.id, second.id]).references == (first.id, second.id)
    assert view.update(linked.id, title="Link").references == (first.id, second.id)


@pytest.mark.req("N11")
def test_a_copy_keeps_references_that_lead_nowhere(tmp_path: Path) -> None:
    with wellkept.open(tmp_path / "memory.db", embedder=None) as memories:
        made = memories.view(user="ada").add("dangling", references=["nope"], dangling=True)
    wellkept.convert(str(tmp_path / "memory.db"), f"jsonl:{tmp_path / 'notes'}")
    with wellkept.open(f"jsonl:{tmp_path / 'notes'}", embedder=None) as copy:
        found = copy.view(user="ada").get(made.id)
    assert found is not None
    assert found.references == ("nope",)


def test_the_command_line_says_it_in_its_own_words(terminal: Terminal) -> None:
    done = terminal("add", "Likes tea", "--reference", "nope")
    assert done.code == 2
    assert "'nope'" in done.err
    assert "--dangling" in done.err
    assert "dangling=True" not in done.err
    id = terminal.add("Likes tea", "--reference", "nope", "--dangling")
    assert terminal("update", id, "--reference", "other").code == 2
    assert terminal.json("update", id, "--reference", "other", "--dangling")["references"] == ["other"]
