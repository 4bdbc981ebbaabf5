"""A file of settings that comes with a folder: what it may say unasked, and how a user comes to trust it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import wellkept
from tests.support.terminal import Terminal
from wellkept.errors import ConfigurationError
from wellkept.settings import FILE, Settings, declared, load, schema_with, trust
from wellkept.stores.postgres.options import PostgresSettings

DECLARED = declared(schema_with({"postgres": PostgresSettings}))
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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that somebody cloned, in a home of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    (folder / "near").symlink_to("data")
    (folder / "linked.db").symlink_to(tmp_path / "mine.db")
    (folder / "loop").symlink_to("loop")
    return folder


def _value(name: str) -> str:
    default = DECLARED[name].default
    known = {bool: "false", int: "7", float: "0.5"}
    return VALUES.get(name) or known.get(type(default)) or ('"ada"' if name.startswith("identity") else "7")


def _found(folder: Path, text: str, **environment: str) -> Settings:
    (folder / FILE).write_text(text, encoding="utf-8")
    below = folder / "data"
    below.mkdir(exist_ok=True)
    return load(folder=below, environment=environment)


@pytest.mark.req("J12", "H10")
@pytest.mark.parametrize("name", [name for name in DECLARED if name != "database.url"])
def test_a_file_that_was_found_sets_nothing_but_the_database(name: str, folder: Path) -> None:
    text = f"{name} = {_value(name)}\n"
    with pytest.raises(ConfigurationError) as caught:
        _found(folder, text)
    assert name in caught.value.message
    assert caught.value.details["settings"] == [name]
    assert f"wellkept trust {folder}" in caught.value.hint
    trust.trust(folder / FILE, text)
    assert name in _found(folder, text).origins
    assert load(config=folder / FILE, environment={}).origins, "a file that a program names is the program's choice"


@pytest.mark.req("J12", "H10")
@pytest.mark.parametrize("url", OUTSIDE)
def test_a_database_outside_the_folder_is_refused(url: str, folder: Path) -> None:
    text = f'[database]\nurl = "{url}"\n'
    with pytest.raises(ConfigurationError, match="outside its folder"):
        _found(folder, text)
    assert _found(folder, text, WELLKEPT_DB="mine.db").database.url == "mine.db", "what is overridden does no harm"
    trust.trust(folder / FILE, text)
    assert _found(folder, text).database.url


@pytest.mark.req("J12", "H10")
@pytest.mark.parametrize("url", INSIDE)
def test_a_database_inside_the_folder_needs_no_trust(url: str, folder: Path) -> None:
    found = _found(folder, f'[database]\nurl = "{url}"\n').database.url or ""
    assert Path(found.removeprefix("jsonl:").removeprefix("sqlite:")).is_relative_to(folder)
    assert not (folder.parent / "config").exists()


@pytest.mark.req("J12")
def test_a_file_that_changed_or_moved_is_not_trusted_any_more(folder: Path) -> None:
    text = '[identity]\nuser = "ada"\n'
    (folder / FILE).write_text(text)
    trust.trust(folder / FILE, text)
    assert _found(folder, text).identity.user == "ada"
    with pytest.raises(ConfigurationError, match="has changed since you trusted it"):
        _found(folder, text + "# more\n")
    assert _found(folder, text).identity.user == "ada"
    moved = folder.with_name("moved")
    folder.rename(moved)
    with pytest.raises(ConfigurationError, match="until you trust it"):
        load(folder=moved, environment={})
    (moved / "inner").mkdir()
    (moved / "inner" / FILE).symlink_to(moved / FILE)
    trust.trust(moved / FILE, text)
    with pytest.raises(ConfigurationError, match="until you trust it"):
        load(folder=moved / "inner", environment={})


@pytest.mark.req("J12")
@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1}', "[" * 100_000])
def test_a_list_that_cannot_be_read_trusts_nothing(content: str, folder: Path) -> None:
    place = folder.parent / "config" / "wellkept" / "trusted.json"
    place.parent.mkdir(parents=True)
    place.write_text(content)
    with pytest.raises(ConfigurationError, match=r"trusted\.json"):
        _found(folder, "[limits]\nentries = 3\n")
    assert _found(folder, '[database]\nurl = "memory.db"\n').database.url


def test_every_system_has_its_own_folder() -> None:
    home = Path("home")
    assert trust.config_folder({"XDG_CONFIG_HOME": "/x"}, home, "linux") == Path("/x/wellkept")
    assert trust.config_folder({"XDG_CONFIG_HOME": "x"}, home, "linux") == home / ".config/wellkept"
    assert trust.config_folder({}, home, "darwin") == home / "Library/Application Support/wellkept"
    assert trust.config_folder({"APPDATA": "A"}, home, "win32") == Path("A/wellkept")
    assert trust.config_folder({}, home, "win32") == home / "AppData/Roaming/wellkept"


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
