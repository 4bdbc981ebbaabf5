"""Which database and as whom: flags, then the environment, then the file, then the user's own folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.terminal import Terminal
from wellkept import Identity
from wellkept.cli.constants import DATABASE_VARIABLE, IDS, variable_of
from wellkept.cli.discovery import settle
from wellkept.errors import ConfigurationError, InvalidInput
from wellkept.settings import FILE, load, nearest_file
from wellkept.settings.folders import user_folder

NAMES = st.none() | st.sampled_from(["ada", "bob", "a/b", "ünï"])


@given(st.fixed_dictionaries({name: st.tuples(NAMES, NAMES, NAMES) for name in ("database", *IDS)}))
def test_flags_win_over_the_environment_and_that_over_the_file(
    tmp_path_factory: pytest.TempPathFactory, given: dict[str, tuple[str | None, str | None, str | None]]
) -> None:
    flags = {name: flag for name, (flag, _, _) in given.items()}
    variables = {"database": DATABASE_VARIABLE, **{name: variable_of(name) for name in IDS}}
    environment = {variables[name]: value for name, (_, value, _) in given.items() if value}
    file = tmp_path_factory.mktemp("file") / FILE
    keys = {"database": "database.url", **{name: f"identity.{name}" for name in IDS}}
    said = {
        keys[name]: f"ram:{value}" if name == "database" else value for name, (_, _, value) in given.items() if value
    }
    file.write_text("".join(f'{key} = "{value}"\n' for key, value in said.items()), encoding="utf-8")
    found = settle(flags, load(config=file, environment=environment), Path("share"))
    for name, (flag, variable, _) in given.items():
        first = flag or variable or said.get(keys[name])
        if name == "database":
            assert found.database == (first or str(Path("share/memory.db")))
        else:
            assert getattr(found.identity, name) == (first or ("default" if name == "user" else None))


def test_without_a_user_it_is_the_default_one_whatever_else_is_given() -> None:
    found = settle({}, load(environment={}), Path("share"))
    assert found.identity == Identity(user="default")
    assert found.origins == {"user": "the default", "database": "the default"}
    for name in IDS:
        if name != "user":
            identity = settle({name: "x"}, load(environment={}), Path("share")).identity
            assert (identity.user, getattr(identity, name)) == ("default", "x")


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


@pytest.mark.parametrize("name", [*IDS, "database"])
def test_an_empty_flag_is_refused(name: str, terminal: Terminal) -> None:
    with pytest.raises(InvalidInput):
        settle({name: ""}, load(environment={}), Path("share"))
    flag = "--db" if name == "database" else f"--{name}"
    done = terminal("add", "Likes tea", flag, "")
    assert (done.code, f"{flag} is empty" in done.err) == (2, True)
    assert terminal.json("count")["count"] == 0


@pytest.mark.parametrize("name", IDS)
def test_an_empty_id_in_the_environment_or_the_file_is_refused(
    name: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable_of(name), "")
    done = terminal("add", "Likes tea")
    assert (done.code, f"{variable_of(name)} is empty" in done.err) == (2, True)
    assert terminal("add", "Likes tea", f"--{name}", "x").code == 0  # the flag takes precedence
    monkeypatch.delenv(variable_of(name))
    terminal.configure(f'[identity]\n{name} = ""\n')
    assert terminal("add", "Likes tea").code == 6


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {}, "home/.local/share/wellkept"),
        ("linux", {"XDG_DATA_HOME": "/x"}, "/x/wellkept"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "home/.local/share/wellkept"),
        ("darwin", {"XDG_DATA_HOME": "/x"}, "home/Library/Application Support/wellkept"),
        ("win32", {}, "home/AppData/Local/wellkept"),
        ("win32", {"LOCALAPPDATA": "L"}, "L/wellkept"),
    ],
)
def test_every_system_has_its_own_folder(platform: str, environment: dict[str, str], folder: str) -> None:
    assert user_folder(environment, Path("home"), platform) == Path(folder)


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
