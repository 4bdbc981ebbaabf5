"""Which database and as whom: flags, then the environment, then the file, then the user's own folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import ConfigurationError, Identity
from recollect.cli import discovery
from recollect.cli.constants import IDS, variable_of
from recollect.cli.discovery import Config, Found, config_file, read_config, settle, user_folder
from tests.unit.terminal import Terminal

NAMES = st.none() | st.sampled_from(["ada", "bob", "a/b", "ünï"])


def place(**parts: str) -> Config:
    database = parts.pop("database", None)
    return Config(path=Path("recollect.toml"), database=database, identity=parts)


@given(st.fixed_dictionaries({name: st.tuples(NAMES, NAMES, NAMES) for name in ("database", *IDS)}))
def test_flags_win_over_the_environment_and_that_over_the_file(
    given: dict[str, tuple[str | None, str | None, str | None]],
) -> None:
    flags = {name: flag for name, (flag, _, _) in given.items()}
    variables = {"database": "RECOLLECT_DB", **{name: variable_of(name) for name in IDS}}
    environment = {variables[name]: value for name, (_, value, _) in given.items() if value}
    config = place(**{name: value for name, (_, _, value) in given.items() if value})
    found = settle(flags, environment, config, Path("share"))
    for name, values in given.items():
        first = next((value for value in values if value), None)
        if name == "database":
            assert found.database == (first or str(Path("share/memory.db")))
        elif first or name != "user":
            assert getattr(found.identity, name) == first


def test_without_any_id_the_user_is_the_default_one() -> None:
    found = settle({}, {}, None, Path("share"))
    assert found.identity == Identity(user="default")
    assert found.origins == {"user": "the default", "database": "the default"}
    assert settle({"team": "core"}, {}, None, Path("share")).identity == Identity(team="core")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("memory.db", "memory.db"),
        ("sqlite:memory.db", "memory.db"),
        ("SQLite:memory.db", "memory.db"),
        ("folder/a:b.db", "folder/a:b.db"),
        ("ram:", None),
        ("postgresql://host/db", None),
        ("jsonl:folder", None),
        ("C:\\memory.db", "C:\\memory.db"),
    ],
)
def test_files_are_told_from_urls(url: str, path: str | None) -> None:
    found = Found(database=url, identity=Identity(), origins={}).path
    assert found == (None if path is None else Path(path))


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {}, "home/.local/share/recollect"),
        ("linux", {"XDG_DATA_HOME": "/x"}, "/x/recollect"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "home/.local/share/recollect"),
        ("darwin", {"XDG_DATA_HOME": "/x"}, "home/Library/Application Support/recollect"),
        ("win32", {}, "home/AppData/Local/recollect"),
        ("win32", {"LOCALAPPDATA": "L"}, "L/recollect"),
    ],
)
def test_every_system_has_its_own_folder(platform: str, environment: dict[str, str], folder: str) -> None:
    assert user_folder(environment, Path("home"), platform) == Path(folder)


def test_the_nearest_file_upwards_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    outer = tmp_path / "recollect.toml"
    outer.write_text('database = "all.db"\n[identity]\nproject = "api"\n', encoding="utf-8")
    assert config_file(inner) == outer
    nearer = tmp_path / "a" / "recollect.toml"
    nearer.write_text("", encoding="utf-8")
    assert config_file(inner) == nearer


def test_a_file_of_somebody_else_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recollect.toml").write_text("", encoding="utf-8")
    owner = (tmp_path / "recollect.toml").stat().st_uid
    assert config_file(tmp_path) is not None
    if owner == 0:
        os.chown(tmp_path / "recollect.toml", 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert config_file(tmp_path) is None


def test_paths_in_the_file_are_meant_from_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "recollect.toml"
    file.write_text('database = "data/m.db"\n[identity]\nuser = "ada"\n', encoding="utf-8")
    assert read_config(file) == Config(path=file, database=str(tmp_path / "data/m.db"), identity={"user": "ada"})
    file.write_text('database = "ram:"\n', encoding="utf-8")
    assert read_config(file).database == "ram:"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"database = ", "TOML"),
        (b"\xff", "TOML"),
        (b"database = 3", "database"),
        (b'database = ""', "database"),
        (b"databse = 'my.db'", "'databse'"),
        (b"[identiy]\nuser = 'ada'", "'identiy'"),
        (b"identity = 3", "identity"),
        (b"[identity]\nusr = 'ada'", "'usr'"),
        (b"[identity]\nuser = 3", "'user'"),
        (b"[identity]\nuser = ''", "'user'"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(text: bytes, named: str, tmp_path: Path) -> None:
    file = tmp_path / "recollect.toml"
    file.write_bytes(text)
    with pytest.raises(ConfigurationError, match=named) as raised:
        read_config(file)
    assert raised.value.hint
    assert raised.value.details == {"file": str(file)}


def test_where_tells_what_is_used_and_why(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    (terminal.folder / discovery.FILE).write_text('[identity]\nuser = "ada"\nproject = "api"\n', encoding="utf-8")
    monkeypatch.setenv("RECOLLECT_PROJECT", "web")
    told = terminal.json("--team", "core", "where")
    assert told["identity"] == {"user": "ada", "project": "web", "team": "core"}
    assert told["origins"]["project"] == "RECOLLECT_PROJECT"
    assert told["origins"]["team"] == "--team"
    assert told["origins"]["database"] == "RECOLLECT_DB"
    assert "ada" in terminal("where").out


def test_options_stand_before_the_command_or_behind_it(terminal: Terminal) -> None:
    terminal.json("--user", "ada", "add", "Likes tea")
    assert terminal.json("count", "--user", "ada")["count"] == 1
    assert terminal.json("--user", "ada", "count", "--user", "bob")["count"] == 0


def test_without_any_name_the_database_is_the_users_own(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECOLLECT_DB")
    own = Path(terminal.json("where")["database"])
    missing = terminal("list")
    assert (missing.code, own.exists()) == (6, False)
    assert str(own) in missing.err
    assert "recollect add" in missing.err
    terminal.add("Likes tea")
    assert own.exists()
    assert own.parent.stat().st_mode & 0o777 == 0o700


def test_what_a_database_is_opened_with_is_said_in_the_file_or_the_environment(terminal: Terminal) -> None:
    (terminal.folder / "recollect.toml").write_text('embedder = "hashing-64"\nplan = "core"\n', encoding="utf-8")
    new = ("--db", "new.db")
    assert terminal("add", "Likes tea", *new).code == 5  # the plan has no long-term memory
    (terminal.folder / "recollect.toml").write_text('embedder = "hashing-64"\n', encoding="utf-8")
    terminal.json("add", "Likes tea", *new)
    assert terminal.json("config", *new)["settings"]["embedder"] == "hashing-64"
    place = terminal.json("where")
    assert place["opening"] == {"embedder": "hashing-64"}
    assert place["origins"]["embedder"].endswith("recollect.toml")
    (terminal.folder / "recollect.toml").write_text("embedder = 7\n", encoding="utf-8")
    assert terminal("list").code == 6


def test_the_environment_can_say_that_words_must_do(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
    terminal.json("add", "Likes tea", "--db", "new.db")
    assert terminal.json("search", "tea", "--db", "new.db")["semantic"] is False
