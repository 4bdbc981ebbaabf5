"""Branches: stores tell them apart (the kit says so); no call takes one yet."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import wellkept
from tests.support.stand_ins import one_store
from wellkept import Layer, Memories
from wellkept.errors import InvalidInput
from wellkept.types import Filter, Grant, Owner, RetentionPolicy, SessionEndPolicy

MAIN, DRAFT = Owner(Layer.USER, ("ada",)), Owner(Layer.USER, ("ada",), "draft")


@pytest.mark.req("N6")
@one_store
def test_every_call_that_takes_an_owner_refuses_a_branch(memories: Memories) -> None:
    upkeep = memories.upkeep
    calls: dict[str, Callable[[], object]] = {
        "a grant": lambda: memories.view(user="ada", grant=Grant(owners=(DRAFT,))),
        "an API key": lambda: memories.keys.create("key", owners=[DRAFT]),
        "a policy": lambda: upkeep.set_retention(RetentionPolicy(), owner=DRAFT),
        "the end of sessions": lambda: upkeep.set_session_end(SessionEndPolicy(), owner=DRAFT),
        "a run": lambda: upkeep.run(owner=DRAFT),
        "a hold": lambda: upkeep.hold(Filter(), reason="case 17", owner=DRAFT),
    }
    for name, call in calls.items():
        with pytest.raises(InvalidInput, match="names the branch 'draft'") as refused:
            call()
        assert "no branches yet" in refused.value.hint, name
    assert upkeep.holds() == ()
    assert upkeep.retention() is None


def test_a_line_by_hand_that_names_a_branch_is_not_accepted(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        memories.view(user="ada").add("Likes tea")
    file = folder / "users" / "ada" / "memory.jsonl"
    planted = {"content": "Likes cake", "owner": ["user", "ada", {"branch": "draft"}]}
    file.write_text(file.read_text() + json.dumps(planted) + "\n")
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        assert not memories.doctor(accept=True).healthy
        assert [one.content for one in memories.view(user="ada").list()] == ["Likes tea"]
        assert [one.owner for one in memories.owners().owners] == [MAIN]
