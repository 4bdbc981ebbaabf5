"""Which database and as whom: flags, then the environment, then the file, then the user's own folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.terminal import Terminal
from wellkept.errors import ConfigurationError
from wellkept.settings import FILE, load, nearest_file


def test_a_project_adds_to_what_the_default_user_sees(terminal: Terminal) -> None:
    for text in ("Likes tea", "Lives in Rome"):
        terminal.add(text)
    terminal.add("Uses tabs", "--project", "api", "--layer", "project")
    assert terminal.json("count")["count"] == 2
    assert terminal.json("count", "--project", "api")["count"] == 3


@pytest.mark.req("H1")
def test_the_default_user_cannot_be_named(terminal: Terminal) -> None:
    terminal.add("Likes tea")
    done = terminal("count", "--user", "default")
    assert (done.code, "--user 'default' is reserved" in done.err) == (2, True)
    with pytest.raises(ConfigurationError):
        load(environment={"WELLKEPT_USER": "default"})
    assert terminal.json("count")["count"] == 1


def test_a_blank_id_in_the_environment_is_called_blank() -> None:
    with pytest.raises(ConfigurationError, match="not blank text"):
        load(environment={"WELLKEPT_USER": " "})


IDS = ("agent", "user", "session", "project", "team", "org", "company")


def test_an_empty_flag_is_refused(terminal: Terminal) -> None:
    ended = {flag: terminal("add", "Likes tea", flag, "") for flag in ("--db", *(f"--{name}" for name in IDS))}
    assert {flag: done for flag, done in ended.items() if done.code != 2 or f"{flag} is empty" not in done.err} == {}
    assert terminal.json("count")["count"] == 0


def test_an_empty_id_in_the_environment_or_the_file_is_refused(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {}
    for name in IDS:
        variable = f"WELLKEPT_{name.upper()}"
        with monkeypatch.context() as variables:
            variables.setenv(variable, "")
            empty, overridden = terminal("add", "Likes tea"), terminal("add", "Likes tea", f"--{name}", "x")
        file = terminal.configure(f'[identity]\n{name} = ""\n')
        configured = terminal("add", "Likes tea")
        file.unlink()
        # The flag takes precedence over the variable.
        if (empty.code, overridden.code, configured.code) != (2, 0, 6) or f"{variable} is empty" not in empty.err:
            wrong[name] = (empty, overridden, configured)
    assert wrong == {}


def test_the_nearest_file_upwards_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    outer = tmp_path / FILE
    outer.write_text("", encoding="utf-8")
    assert nearest_file(inner) == outer
    nearer = tmp_path / "a" / FILE
    nearer.write_text("", encoding="utf-8")
    assert nearest_file(inner) == nearer


def test_a_file_of_somebody_else_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE).write_text("", encoding="utf-8")
    owner = (tmp_path / FILE).stat().st_uid
    assert nearest_file(tmp_path) is not None
    if owner == 0:
        os.chown(tmp_path / FILE, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert nearest_file(tmp_path) is None


@pytest.mark.parametrize("text", ["[identity]\nusr = 'ada'", "database = 3", "x = "])
def test_a_wrong_file_is_named_by_every_command_that_reads_it(text: str, terminal: Terminal) -> None:
    terminal.configure(text)
    done = terminal("count")
    assert done.code == 6
    assert str(terminal.folder / FILE) in done.err
    assert ", line " in done.err


def test_where_tells_what_is_used_and_why(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.configure('[identity]\nuser = "ada"\nproject = "api"\n')
    monkeypatch.setenv("WELLKEPT_PROJECT", "web")
    told = terminal.json("--team", "core", "where")
    assert told["identity"] == {"user": "ada", "project": "web", "team": "core"}
    assert told["origins"]["project"] == "WELLKEPT_PROJECT"
    assert told["origins"]["team"] == "--team"
    assert told["origins"]["database"] == "WELLKEPT_DB"
    assert "ada" in terminal("where").out


def test_options_stand_before_the_command_or_behind_it(terminal: Terminal) -> None:
    terminal.json("--user", "ada", "add", "Likes tea")
    assert terminal.json("count", "--user", "ada")["count"] == 1
    assert terminal.json("--user", "ada", "count", "--user", "bob")["count"] == 0


def test_without_any_name_the_database_is_the_users_own(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WELLKEPT_DB")
    own = Path(terminal.json("where")["database"])
    missing = terminal("list")
    assert (missing.code, own.exists()) == (6, False)
    assert str(own) in missing.err
    assert "wellkept add" in missing.err
    terminal.add("Likes tea")
    assert own.exists()
    assert own.parent.stat().st_mode & 0o777 == 0o700


def test_what_a_database_is_opened_with_is_said_in_the_file_or_the_environment(terminal: Terminal) -> None:
    terminal.configure('embedder.name = "hashing-64"\nplan.name = "core"\n')
    new = ("--db", "new.db")
    assert terminal("add", "Likes tea", *new).code == 5  # the plan has no long-term memory
    terminal.configure('embedder.name = "hashing-64"\n')
    terminal.json("add", "Likes tea", *new)
    assert terminal.json("config", *new)["settings"]["embedder"] == "hashing-64"
    place = terminal.json("where")
    assert place["opening"] == {"embedder.name": "hashing-64"}
    assert place["origins"]["embedder.name"].endswith(FILE)
    terminal.configure("embedder.name = 7\n")
    assert terminal("list").code == 6


def test_the_environment_can_say_that_words_must_do(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WELLKEPT_EMBEDDER", "none")
    terminal.json("add", "Likes tea", "--db", "new.db")
    assert terminal.json("search", "tea", "--db", "new.db")["semantic"] is False
