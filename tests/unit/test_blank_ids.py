"""An id of white space alone is refused as an empty one is: it comes from a variable that was not set."""

from __future__ import annotations

import pytest

from tests.support.terminal import Terminal
from wellkept import Memories
from wellkept.cli.constants import IDS, variable_of
from wellkept.errors import InvalidInput

BLANK = ["", " ", "\u2003 "]


@pytest.mark.req("H1")
@pytest.mark.parametrize("blank", BLANK)
@pytest.mark.parametrize("name", IDS)
def test_a_blank_id_is_refused_wherever_it_comes_from(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, blank: str
) -> None:
    flagged = terminal("count", f"--{name}", blank)
    assert flagged.code == 2
    assert f"--{name}" in flagged.err
    (terminal.folder / "wellkept.toml").write_text(f'[identity]\n{name} = "{blank}"\n')
    assert terminal("count").code != 0
    (terminal.folder / "wellkept.toml").unlink()
    monkeypatch.setenv(variable_of(name), blank)
    told = terminal("count")
    assert told.code != 0
    assert variable_of(name) in told.err


@pytest.mark.parametrize("blank", BLANK)
def test_the_library_refuses_it_too(memories: Memories, blank: str) -> None:
    for ids in ({"user": blank}, {"user": "ada", "project": blank}, {"user": "ada", "session": blank}):
        with pytest.raises(InvalidInput):
            memories.view(**ids)  # type: ignore[arg-type]  # only ids


def test_a_listing_has_as_many_memories_as_in_the_library(terminal: Terminal) -> None:
    terminal("add", "-", stdin="".join(f"memory {n}\n" for n in range(120)).encode())
    assert len(terminal.json("list")["memories"]) == 50
    assert len(terminal.json("list", "--contains", "memory")["memories"]) == 100
    assert len(terminal.json("list", "--sort", "important")["memories"]) == 10
    assert len(terminal.json("list", "--contains", "memory", "--limit", "7")["memories"]) == 7
