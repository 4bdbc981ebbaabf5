"""A file of settings that comes with a folder: what it may say unasked, and how a user comes to trust it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import wellkept
from tests.support.terminal import Terminal
from wellkept.errors import ConfigurationError
from wellkept.settings import FILE, Settings, declared, load, schema_with
from wellkept.stores.postgres import PostgresStore

DECLARED = declared(schema_with({"postgres": PostgresStore.section}))
VALUES = {
    "database.postgres.schema": '"agents"',
    "database.durability": '"relaxed"',
    "audit.file": '"audit.jsonl"',
    "audit.on_failure": '"continue"',
    "embedder.name": '"some-plugin"',
    "embedder.url": '"https://example.com/v1"',
    "embedder.model": '"model"',
    "embedder.key_variable": '"PATH"',
    "encryption.keyring": '"memory.keys"',
    "encryption.master_key_file": '"master.key"',
    "encryption.encrypt": '"sensitive"',
    "encryption.sensitive": '"plain"',
    "encryption.recognize": "[]",
    "encryption.detectors": '"some-plugin"',
    "logging.format": '"json"',
    "logging.level": '"debug"',
    "plan.name": '"core"',
    "privacy.ledger": '"erasures.jsonl"',
    "recall.precedence": "[]",
    "retry.codes": "[]",
    "retry.multiplier": "3",
    "sessions.half_life_hours.fact": "1",
}
OUTSIDE = (
    "../memory.db",
    "a/../../memory.db",
    "/srv/memory.db",
    "sqlite:/srv/memory.db",
    "sqlite:///srv/memory.db",
    "sqlite:../memory.db",
    "jsonl:../notes",
    "jsonl:/srv/notes",
    "~/memory.db",
    "jsonl:~/notes",
    ".",
    "jsonl:.",
    "ram:",
    "postgresql://host/db",
    "plugin:memory.db",
    "C:memory.db",
    "link/memory.db",
    "jsonl:link",
    "linked.db",
    "loop/memory.db",
)
INSIDE = ("memory.db", "sqlite:memory.db", "data/memory.db", "jsonl:notes", "./notes/memory.db", "near/memory.db")


def repository(home: Path, name: str = "repository") -> Path:
    """A repository that somebody cloned."""
    folder = home / name
    folder.mkdir()
    (folder / "link").symlink_to(home)
    (folder / "near").symlink_to("data")
    (folder / "linked.db").symlink_to(home / "mine.db")
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.fixture
def folder(terminal: Terminal) -> Path:
    """A repository in a home of its own, whose user trusts files by the command line."""
    return repository(terminal.folder)


def _value(name: str) -> str:
    default = DECLARED[name].default
    known = {bool: "false", int: "7", float: "0.5"}
    return VALUES.get(name) or known.get(type(default)) or ('"ada"' if name.startswith("identity") else "7")


def trust(terminal: Terminal, folder: Path) -> None:
    done = terminal("trust", str(folder))
    assert done.code == 0, done.err


def _loaded(folder: Path, text: str, **environment: str) -> Settings:
    (folder / FILE).write_text(text, encoding="utf-8")
    below = folder / "data"
    below.mkdir(exist_ok=True)
    return load(folder=below, environment=environment)


@pytest.mark.req("J12", "H10")
def test_a_file_that_was_found_sets_nothing_but_the_database(terminal: Terminal) -> None:
    wrong: dict[str, object] = {}
    for name in DECLARED:
        if name == "database.url":
            continue
        folder, text = repository(terminal.folder, name), f"{name} = {_value(name)}\n"
        try:
            wrong[name] = _loaded(folder, text)
            continue
        except ConfigurationError as error:
            if (
                name not in error.message
                or error.details["settings"] != [name]
                or f"wellkept trust {folder}" not in error.hint
            ):
                wrong[name] = error
        trust(terminal, folder)
        if name not in _loaded(folder, text).origins:
            wrong[f"{name}, trusted"] = "not set"
        # A file that a program names is the program's choice.
        if not load(config=folder / FILE, environment={}).origins:
            wrong[f"{name}, named"] = "not set"
    assert wrong == {}


@pytest.mark.req("J12", "H10")
def test_a_database_outside_the_folder_is_refused(terminal: Terminal) -> None:
    wrong: dict[str, object] = {}
    for number, url in enumerate(OUTSIDE):
        folder, text = repository(terminal.folder, f"repository-{number}"), f'[database]\nurl = "{url}"\n'
        try:
            wrong[url] = _loaded(folder, text).database
            continue
        except ConfigurationError as error:
            if "outside its folder" not in str(error):
                wrong[url] = error
        if (place := _loaded(folder, text, WELLKEPT_DB="mine.db").database.url) != "mine.db":
            wrong[f"{url}, overridden, which does no harm"] = place
        trust(terminal, folder)
        if not _loaded(folder, text).database.url:
            wrong[f"{url}, trusted"] = "not set"
    assert wrong == {}


@pytest.mark.req("J12", "H10")
def test_a_database_inside_the_folder_needs_no_trust(terminal: Terminal) -> None:
    wrong = {}
    for number, url in enumerate(INSIDE):
        folder = repository(terminal.folder, f"repository-{number}")
        place = _loaded(folder, f'[database]\nurl = "{url}"\n').database.url or ""
        if not Path(place.removeprefix("jsonl:").removeprefix("sqlite:")).is_relative_to(folder):
            wrong[url] = place
    assert wrong == {}
    assert not (terminal.folder / "config").exists()


@pytest.mark.req("J12")
def test_a_file_that_changed_or_moved_is_not_trusted_any_more(terminal: Terminal, folder: Path) -> None:
    text = '[identity]\nuser = "ada"\n'
    (folder / FILE).write_text(text)
    trust(terminal, folder)
    assert _loaded(folder, text).identity.user == "ada"
    with pytest.raises(ConfigurationError, match="has changed since you trusted it"):
        _loaded(folder, text + "# more\n")
    assert _loaded(folder, text).identity.user == "ada"
    moved = folder.with_name("moved")
    folder.rename(moved)
    with pytest.raises(ConfigurationError, match="until you trust it"):
        load(folder=moved, environment={})
    (moved / "inner").mkdir()
    (moved / "inner" / FILE).symlink_to(moved / FILE)
    trust(terminal, moved)
    with pytest.raises(ConfigurationError, match="until you trust it"):
        load(folder=moved / "inner", environment={})


@pytest.mark.req("J12")
@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1}', "[" * 100_000])
def test_a_list_that_cannot_be_read_trusts_nothing(content: str, folder: Path) -> None:
    place = folder.parent / "config" / "wellkept" / "trusted.json"
    place.parent.mkdir(parents=True)
    place.write_text(content)
    with pytest.raises(ConfigurationError, match=r"trusted\.json"):
        _loaded(folder, "[limits]\nentries = 3\n")
    assert _loaded(folder, '[database]\nurl = "memory.db"\n').database.url


@pytest.mark.req("J12")
def test_the_command_trusts_lists_and_revokes(terminal: Terminal) -> None:
    file = terminal.configure('[identity]\nuser = "ada"\n', trusted=False)
    refused = terminal("add", "Likes tea")
    assert (refused.code, refused.out) == (6, "")
    assert "identity.user" in refused.err
    assert "wellkept trust" in refused.err
    told = terminal("trust")
    assert (told.code, "identity.user = ada" in told.out) == (0, True)
    terminal.add("Likes tea")
    with wellkept.open(terminal.database) as memories:
        assert memories.view(user="ada").count() == 1
    kept = terminal.folder / "config" / "wellkept" / "trusted.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert list(kept.parent.iterdir()) == [kept]
    assert terminal.json("trust", "--list")["trusted"] == {str(file): "current"}
    file.write_text('[identity]\nuser = "bob"\n')
    assert terminal.json("trust", "--list")["trusted"] == {str(file): "changed"}
    assert terminal("count").code == 6
    assert terminal.json("trust", str(terminal.folder))["settings"] == {"identity.user": "bob"}
    assert terminal.json("count")["count"] == 0
    assert terminal.json("trust", "--revoke")["trusted"] == {}
    assert terminal("count").code == 6
    assert terminal("trust", "--revoke").code == 6
    file.unlink()
    assert terminal("trust").code == 6
    assert terminal("trust", "--list", ".").code == 2


@pytest.mark.req("J12")
def test_a_wrong_file_is_not_trusted(terminal: Terminal) -> None:
    terminal.configure("[identity]\nusr = 'ada'\n", trusted=False)
    assert terminal("trust").code == 6
    assert terminal.json("trust", "--list")["trusted"] == {}
