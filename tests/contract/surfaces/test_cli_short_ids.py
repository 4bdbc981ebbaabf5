"""The beginning of an id stands for it, if it is long enough and no other id begins so."""

from __future__ import annotations

import pytest

import wellkept
from tests.support.terminal import Terminal

SHORTEST = 8  # of an id, that many characters are needed


def short(id: str) -> str:
    return id[:23]


@pytest.fixture
def ids(terminal: Terminal) -> list[str]:
    """Two memories whose ids begin alike, since they were added together, and what tells them apart."""
    return [one["id"] for one in terminal.json("add", "-", stdin=b"Likes tea\nLives in Rome\n")["memories"]]


def unique(ids: list[str]) -> list[str]:
    length = next(n for n in range(SHORTEST, 37) if len({id[:n] for id in ids}) == len(ids))
    return [id[:length] for id in ids]


def test_a_beginning_stands_for_the_id_in_every_command(terminal: Terminal, ids: list[str]) -> None:
    first, second = unique(ids)
    assert terminal.json("show", first)["content"] == "Likes tea"
    assert terminal.json("update", second, "--importance", "1")["id"] == ids[1]
    assert len(terminal.json("history", second)["versions"]) == 2
    linked = terminal.add("Her home", "--reference", second)
    assert terminal.json("show", linked)["references"] == [ids[1]]
    assert [one["id"] for one in terminal.json("list", "--reached-from", short(linked))["memories"]] == [ids[1]]
    assert {one["id"] for one in terminal.json("graph", short(linked))["nodes"]} == {linked, ids[1]}
    assert terminal.json("forget", first, second)["ids"] == ids
    assert terminal.json("show", first, "--forgotten")["id"] == ids[0]
    assert terminal.json("restore", first)["ids"] == ids[:1]
    assert terminal.json("forget", first, "--permanent", "--yes")["ids"] == ids[:1]


def test_an_ambiguous_beginning_changes_nothing_and_lists_what_it_may_mean(terminal: Terminal, ids: list[str]) -> None:
    done = terminal("forget", ids[0][:SHORTEST])
    assert done.code == 2
    for id in ids:
        assert id in done.err
    assert terminal.json("count")["count"] == 2


def test_a_short_or_unknown_beginning_is_an_unknown_id(terminal: Terminal, ids: list[str]) -> None:
    assert terminal("show", ids[0][: SHORTEST - 1]).code == 3
    assert terminal("show", "ffffffff-ffff").code == 3
    assert terminal("forget", "ffffffff").code == 1


def test_ids_of_others_do_not_count(terminal: Terminal) -> None:
    with wellkept.open(terminal.database, embedder=None) as memories:
        # An agent without a user belongs to the user of the command line.
        own = memories.view(agent="other").add("Likes tea", layer="user").id
        other = memories.view(user="eve").add("Likes tea").id
    assert terminal.json("show", unique([own, other])[0])["id"] == own
    assert terminal("show", short(other)).code == 3
    assert terminal.json("show", own[:SHORTEST])["id"] == own
