"""Forgetting many memories by their ids: what cannot be forgotten is told, and does not stop the rest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.terminal import Terminal
from wellkept import Memories, View
from wellkept.errors import InvalidInput
from wellkept.events import MemoryForgotten


@pytest.mark.req("H5", "H3")
@pytest.mark.parametrize("permanent", [False, True])
def test_bad_ids_do_not_stop_the_rest(memories: Memories, view: View, permanent: bool) -> None:
    first, second, stays = view.add_many(["first", "second", "stays"])
    gone = view.add("gone")
    view.forget(gone.id, permanent=True)
    foreign = memories.view(user="bob").add("his")
    heard: list[MemoryForgotten] = []
    memories.on(MemoryForgotten, heard.append)
    bad: Any = ["nope", "", "a\nb", "\ud800", 5, foreign.id, gone.id]
    ids = [first.id, *bad, second.id, first.id]
    dry = view.forget_many(ids, permanent=permanent, dry_run=True)
    assert (dry.ids, dry.deleted, dry.count, heard) == ((first.id, second.id), 0, 2, [])
    removal = view.forget_many(ids, permanent=permanent, reason="asked to")
    assert removal.ids == (first.id, second.id)
    assert (removal.deleted, removal.failed, removal.permanent) == (2, tuple(map(str, bad)), permanent)
    assert [(one.memory_id, one.permanent, one.reason) for one in heard] == [
        (id, permanent, "asked to") for id in (first.id, second.id)
    ]
    assert [one.id for one in view.list()] == [stays.id]
    assert view.restore(first.id) is not permanent
    assert memories.view(user="bob").get(foreign.id) is not None


@pytest.mark.req("L7")
def test_what_was_forgotten_can_be_erased_but_not_forgotten_again(view: View) -> None:
    memory = view.add("tea")
    assert view.forget_many([memory.id]).deleted == 1
    assert view.forget_many([memory.id]).failed == (memory.id,)
    assert view.forget_many([memory.id], permanent=True).deleted == 1
    assert view.forget_many([]).deleted == 0


def test_ids_or_a_filter_but_not_both(view: View) -> None:
    memory = view.add("tea")
    with pytest.raises(InvalidInput, match="both"):
        view.forget_many([memory.id], filter={"tags": ["a"]})
    assert view.count() == 1


def test_the_command_line_tells_how_many_and_which_not(terminal: Terminal) -> None:
    id = terminal.add("Likes tea")
    done = terminal("forget", id, "00000000-nope", "--json")
    assert done.code == 1
    assert (done.answer["result"]["deleted"], done.answer["result"]["failed"]) == (1, ["00000000-nope"])
