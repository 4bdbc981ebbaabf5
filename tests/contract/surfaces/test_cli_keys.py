"""Making keys on the command line, in whatever state the settings and the files are."""

from pathlib import Path

import pytest

from tests.support.terminal import Terminal

_REFUSED = 6
SECRET = ("add", "The door code is blue", "--sensitive")


@pytest.mark.req("L10")
def test_keys_are_made_where_everything_is_to_be_encrypted(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WELLKEPT_ENCRYPT", "all")
    assert "wellkept keys init" in terminal("add", "Likes tea").err
    assert terminal("keys", "init").code == 0
    terminal.add("Likes tea")
    assert b"Likes tea" not in terminal.database.read_bytes()
    copy = terminal.folder / "copy.db"
    assert terminal.json("convert", str(terminal.database), str(copy))["memories"] == 1
    assert b"Likes tea" not in copy.read_bytes()


@pytest.mark.req("L10")
def test_keys_are_made_where_the_settings_say(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    named = terminal.folder / "safe.keys"
    monkeypatch.setenv("WELLKEPT_KEYRING", str(named))
    monkeypatch.setenv("WELLKEPT_AUDIT_FILE", str(terminal.folder / "audit.jsonl"))
    assert "wellkept keys init" in terminal(*SECRET).err
    assert terminal.json("keys", "init")["keyring"] == str(named)
    assert terminal(*SECRET).code == 0
    assert terminal.json("keys", "check")["encrypted"] == 1


@pytest.mark.req("L10")
def test_a_database_that_lost_its_keyring_gets_no_other(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal("keys", "init")
    terminal(*SECRET)
    plain = terminal.add("Likes tea")
    beside = Path(f"{terminal.database}.keys")
    beside.rename(terminal.folder / "moved")
    told = terminal("keys", "init")
    assert (told.code, beside.exists()) == (_REFUSED, False)
    assert "put its file back" in told.err
    assert terminal.json("show", plain)["content"] == "Likes tea"
    monkeypatch.setenv("WELLKEPT_KEYRING", str(beside))
    assert (terminal("keys", "init").code, beside.exists()) == (_REFUSED, False)
