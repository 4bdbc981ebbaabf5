"""An id of white space alone is refused as an empty one is: it comes from a variable that was not set."""

from __future__ import annotations

from itertools import product

import pytest

import wellkept
from tests.support.terminal import Terminal
from wellkept.errors import InvalidInput

BLANK = ["", " ", "\u2003 "]
IDS = ("agent", "user", "session", "project", "team", "org", "company")


@pytest.mark.req("H1")
def test_a_blank_id_is_refused_wherever_it_comes_from(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: dict[tuple[str, str, str], object] = {}
    for name, blank in product(IDS, BLANK):
        flagged = terminal("count", f"--{name}", blank)
        if flagged.code != 2 or f"--{name}" not in flagged.err:
            wrong[name, blank, "as an option"] = flagged
        (terminal.folder / "wellkept.toml").write_text(f'[identity]\n{name} = "{blank}"\n')
        configured = terminal("count")
        if configured.code == 0:
            wrong[name, blank, "in a file"] = configured
        (terminal.folder / "wellkept.toml").unlink()
        with monkeypatch.context() as variables:
            variables.setenv(f"WELLKEPT_{name.upper()}", blank)
            done = terminal("count")
        if done.code == 0 or f"WELLKEPT_{name.upper()}" not in done.err:
            wrong[name, blank, "in a variable"] = done
    assert wrong == {}


def test_the_library_refuses_it_too() -> None:
    taken = []
    with wellkept.open("ram:", embedder=None) as memories:
        for blank in BLANK:
            for ids in ({"user": blank}, {"user": "ada", "project": blank}, {"user": "ada", "session": blank}):
                try:
                    taken.append((ids, memories.view(**ids)))  # type: ignore[arg-type]  # only ids
                except InvalidInput:
                    continue
    assert taken == []


def test_a_listing_has_as_many_memories_as_in_the_library(terminal: Terminal) -> None:
    terminal("add", "-", stdin="".join(f"memory {n}\n" for n in range(120)).encode())
    assert len(terminal.json("list")["memories"]) == 50
    assert len(terminal.json("list", "--contains", "memory")["memories"]) == 100
    assert len(terminal.json("list", "--sort", "important")["memories"]) == 10
    assert len(terminal.json("list", "--contains", "memory", "--limit", "7")["memories"]) == 7
