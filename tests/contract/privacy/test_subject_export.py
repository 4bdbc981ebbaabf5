"""Whose memories there are, and everything about one person in one archive."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.erased_person import MARKS, fill, open_database
from tests.support.terminal import Terminal
from wellkept.errors import InvalidInput
from wellkept.keyrings.ram import RamKeyring


def lines(archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in archive.read(name).splitlines()]


@pytest.mark.req("N7")
def test_an_archive_holds_everything_about_a_person_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "bob.zip"
    with open_database(tmp_path / "memory.db") as memories:
        hers = fill(memories)
        made = memories.privacy.export(file, user="bob")
        with pytest.raises(InvalidInput, match="there already"):
            memories.privacy.export(file, user="bob")
        with pytest.raises(InvalidInput):
            memories.privacy.export(tmp_path / "nowhere" / "bob.zip", user="bob")
    assert file.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        whole = b"\n".join(archive.read(name) for name in archive.namelist())
        kept = lines(archive, "memories.jsonl")
        history = lines(archive, "history.jsonl")
        records = lines(archive, "records.jsonl")
        manifest = json.loads(archive.read("manifest.json"))
        assert b"memories.jsonl" in archive.read("README.txt")
    assert [name for name, mark in MARKS.items() if mark.encode() not in whole] == []
    assert hers.id.encode() not in whole
    assert {tuple(one["owner"]) for one in kept} == {
        ("user", "bob"),
        ("session", "bob", "monday"),
        ("agent", "bob", "helper"),
    }
    [first] = [one for one in kept if MARKS["content"] in one["content"]]
    assert (first["source"]["reference"], first["title"]) == (MARKS["reference"], MARKS["title"])
    told = [one for one in history if one["id"] == first["id"]]
    assert [one["operation"] for one in told][:2] == ["added", "updated"]
    assert {one["kind"] for one in records} >= {"session"}
    assert (made.memories, made.versions, made.records) == (len(kept), len(history), len(records))
    assert manifest["lines"] == {"memories": made.memories, "versions": made.versions, "records": made.records}


def test_what_is_encrypted_is_exported_in_the_clear_and_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    keyring = RamKeyring()
    with wellkept.open("ram:", embedder=None, keyring=keyring, encrypt="all") as memories:
        memory = memories.view(user="bob").add("Likes tea")
        memories.privacy.export(tmp_path / "bob.zip", user="bob")
        with zipfile.ZipFile(tmp_path / "bob.zip") as archive:
            assert lines(archive, "memories.jsonl")[0]["content"] == "Likes tea"
        keyring.destroy(memory.owner)
        memories.privacy.export(tmp_path / "gone.zip", user="bob")
        with zipfile.ZipFile(tmp_path / "gone.zip") as archive:
            [told] = lines(archive, "memories.jsonl")
            assert (told["id"], told["unreadable"]) == (memory.id, "KEY_UNAVAILABLE")


def test_owners_are_found_by_exact_ids_and_paged() -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        for number in range(5):
            memories.view(user="bob", session=f"s{number}").add("x", layer="session")
        memories.view(user="bob", agent="helper").add("x", layer="agent")
        memories.view(user="bob_").add("x")
        memories.view(user="BOB").add("x")
        memories.view(team="bob").add("x")
        found: list[str] = []
        cursor = None
        while True:
            page = memories.owners(user="bob", limit=2, cursor=cursor)
            found += ["/".join((one.owner.layer.value, *one.owner.ids)) for one in page]
            assert all(one.memories == 1 for one in page)
            cursor = page.next_cursor
            if cursor is None:
                break
        assert sorted(found) == ["agent/bob/helper", *(f"session/bob/s{number}" for number in range(5))]
        assert [one.owner.ids for one in memories.owners(agent="helper")] == [("bob", "helper")]
        assert len(memories.owners()) == 9
        for wrong in ({"cursor": "nonsense"}, {"limit": 0}, {"user": ""}):
            with pytest.raises(InvalidInput):
                memories.owners(**wrong)


def test_a_person_is_listed_exported_and_erased_on_the_command_line(terminal: Terminal) -> None:
    terminal.add("Bob likes tea", "--user", "bob")
    terminal.add("Ada likes tea", "--user", "ada")
    assert terminal("owners", "--user", "bob").out.split("\t")[:2] == ["user bob", "1"]
    assert terminal("owners", "export", "bob.zip", "--user", "bob").code == 0
    assert terminal("erase").code == 2  # whom?
    assert terminal("erase", "--user", "bob").code != 0  # nobody confirmed it
    dry = terminal.json("erase", "--user", "bob", "--dry-run")
    assert (dry["counts"]["memories"], dry["receipt"]) == (1, None)
    answer = terminal("erase", "--user", "bob", "--yes", "--json")
    (terminal.folder / "answer.json").write_text(answer.out, encoding="utf-8")
    assert terminal("erase", "verify", "answer.json").code == 0
    receipt = answer.result["receipt"]
    (terminal.folder / "receipt.json").write_text(json.dumps(receipt), encoding="utf-8")
    assert terminal("erase", "verify", "receipt.json").code == 0
    (terminal.folder / "receipt.json").write_text(json.dumps(receipt | {"ledger_seq": 2}), encoding="utf-8")
    assert terminal("erase", "verify", "receipt.json").code == 1
    assert terminal.json("count", "--user", "bob") == {"count": 0}
    assert terminal.json("count", "--user", "ada") == {"count": 1}
