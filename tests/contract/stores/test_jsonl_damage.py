"""Lines that a crash, a disk or a person changed: nothing intact is lost, and what is lost is told."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.support.jsonl_files import ADA, MEMORY, contents, edit, every_file, filled, opened, read
from wellkept.errors import SchemaTooNew, StoreCorrupt, StoreError
from wellkept.ports import DamagedRecord, Record, SettingRow
from wellkept.stores.jsonl import JsonlStore
from wellkept.testing.builders import START, Writer, owner, vector
from wellkept.testing.cases import Cases
from wellkept.types import Operation, Status

NEWER = json.dumps({"wellkept": ["3", SettingRow.sealed("wellkept", "3").checksum.hex()]})

LATER = START + timedelta(days=400)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


def more(store: JsonlStore, text: str = "more") -> None:
    store.journal.append([Writer(LATER).add(ADA, text)])


@pytest.mark.req("J11")
@pytest.mark.parametrize("cut", [2, 40, 300])
def test_a_torn_last_line_is_passed_over_and_set_aside_by_the_next_write(root: Path, cut: int) -> None:
    texts = filled(root)
    whole = (root / MEMORY).read_bytes()[:-cut]
    (root / MEMORY).write_bytes(whole)
    with opened(root) as store:
        assert contents(store) == texts[:-1]
        more(store)
        assert contents(store) == [*texts[:-1], "more"]
    [kept] = read(root / "users/ada/damaged.jsonl")
    assert kept["line"].encode() == whole.rsplit(b"\n", 1)[1]
    assert kept["reason"] == "torn by a crash"


@pytest.mark.req("J11")
def test_a_torn_last_line_is_set_aside_by_an_erasure_as_well(root: Path) -> None:
    """An erasure appends to another file and writes this one anew: half a line must not become a whole one."""
    texts = filled(root)
    with (root / MEMORY).open("ab") as file:
        file.write(b'{"id":"half')
    with opened(root) as store:
        store.journal.append([Writer(LATER).erase(store.journal.get({ADA}, ["m0"])[0])])
        assert contents(store) == texts[1:]
        assert store.health().status is Status.HEALTHY
        assert store.check().healthy
    [kept] = read(root / "users/ada/damaged.jsonl")
    assert kept["reason"] == "torn by a crash"


@pytest.mark.req("J4", "J11")
def test_health_tells_of_lines_that_are_gone_from_the_end(root: Path) -> None:
    filled(root)
    edit(root / MEMORY, lambda lines: lines.pop())
    with opened(root) as store:
        told = store.health()
        assert (told.status, told.components["folders_that_lost_lines"].message) == (Status.DEGRADED, "1")
        assert store.check(repair=True).healthy
        assert store.health().status is Status.HEALTHY


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda line: line[: len(line) // 2] + b"\n",
    "not JSON": lambda _: b"<<<<<<< HEAD\n",
    "zeros": lambda line: b"\0" * (len(line) - 1) + b"\n",
    "nesting": lambda _: b"[" * 100_000 + b"\n",
    "a huge number": lambda line: line.replace(b'"version":1', b'"version":' + b"9" * 50),
}


@pytest.mark.req("J4")
def test_a_damaged_line_is_passed_over_counted_reported_and_set_aside(tmp_path: Path) -> None:
    with Cases() as cases:
        for name in DAMAGES:
            with cases.case(name):
                _set_aside(Path(mkdtemp(dir=tmp_path)) / "memory", name)


def _set_aside(root: Path, name: str) -> None:
    texts = filled(root)
    edit(root / MEMORY, lambda lines: lines.__setitem__(2, DAMAGES[name](lines[2])))
    with opened(root) as store:
        assert contents(store) == [text for text in texts if text != "number 2"]
        assert store.health().status is Status.DEGRADED
        assert store.health().components["damaged_lines"].message == "1"
        diagnosis = store.check()
        assert not diagnosis.healthy
        assert f"{MEMORY} (line 3" in " ".join(finding.message for finding in diagnosis.findings)
        more(store)
        assert store.check(repair=True).healthy
        assert store.check().healthy
        assert store.health().status is Status.HEALTHY
        assert contents(store) == [*(text for text in texts if text != "number 2"), "more"]
    assert len(read(root / "users/ada/damaged.jsonl")) == 1


INDEXES = ("derived/users/ada/index.json", "derived/indices/global_index.json")


@pytest.mark.req("J11")
def test_an_index_that_is_missing_or_damaged_is_made_again(tmp_path: Path) -> None:
    with Cases() as cases:
        for name, damage in product(INDEXES, (None, b"", b"{", b"\xff")):
            with cases.case(f"{name}: {damage!r}"):
                _made_again(Path(mkdtemp(dir=tmp_path)) / "memory", name, damage)


def _made_again(root: Path, name: str, damage: bytes | None) -> None:
    filled(root)
    before = json.loads((root / name).read_text())["entries"]
    (root / name).unlink() if damage is None else (root / name).write_bytes(damage)
    with opened(root) as store:
        assert len(contents(store)) == 5
        assert store.check(repair=True).healthy
        store.rebuild()
    assert json.loads((root / name).read_text())["entries"] == before


@pytest.mark.req("J4")
def test_settings_that_cannot_be_read_stop_nobody_and_are_mended(tmp_path: Path) -> None:
    with Cases() as cases:
        for damage in (b"", b"{", b'{"origin": 7}', b'{"dimension": "many"}', b"\xff"):
            with cases.case(damage):
                _stops_nobody(Path(mkdtemp(dir=tmp_path)) / "memory", damage)


def _stops_nobody(root: Path, damage: bytes) -> None:
    writes = Writer()
    with opened(root) as store:
        store.journal.append([writes.add(ADA, "one", write={"vector": vector(1, 0)})])
    (root / "settings.json").write_bytes(damage)
    with opened(root) as store:
        assert contents(store) == ["one"]
        assert [one.vector for one in store.journal.scan({ADA}, vectors=True)] == [vector(1, 0)]
        store.check(repair=True)
        assert store.check().healthy
    with opened(root) as store:
        assert store.journal.settings()["embedder"] == "kit"


def test_a_folder_of_a_later_release_is_not_touched(root: Path) -> None:
    filled(root)
    (root / "settings.json").write_text(NEWER)
    before = every_file(root)
    with pytest.raises(SchemaTooNew):
        opened(root).__enter__()
    assert {name: data for name, data in every_file(root).items() if "lock" not in name} == {
        name: data for name, data in before.items() if "lock" not in name
    }


@pytest.mark.req("H10")
def test_a_folder_that_a_later_release_takes_over_while_it_is_open_is_refused_from_then_on(root: Path) -> None:
    writes = Writer()
    with opened(root) as store:
        store.journal.append([writes.add(ADA, "one")])
        sound = (root / "settings.json").read_text()
        (root / "settings.json").write_text(NEWER)
        before = every_file(root)
        for _ in range(2):
            with pytest.raises(SchemaTooNew):
                store.journal.append([writes.add(ADA, "two")])
            with pytest.raises(SchemaTooNew):
                contents(store)
        assert {name: data for name, data in every_file(root).items() if "lock" not in name} == {
            name: data for name, data in before.items() if "lock" not in name
        }
        (root / "settings.json").write_text(sound)
        assert contents(store) == ["one"]


@pytest.mark.req("J4")
def test_a_record_that_cannot_be_read_is_told_and_set_aside(root: Path) -> None:
    with opened(root) as store:
        for name in ("one", "two"):
            store.records.put(Record(owner=ADA, kind="note", name=name, body=b"{}", version=1, updated_at=START))
        [file] = list((root / "records/note/users/ada").glob("one*"))
        file.write_text("{")
        [damaged, _] = store.records.list({ADA}, "note")
        assert isinstance(store.records.get(ADA, "note", "one"), DamagedRecord)
        with pytest.raises(StoreCorrupt, match="'one'"):
            _ = damaged.body
        assert store.records.get(ADA, "note", "two") is not None
        assert [(finding.check, finding.repaired) for finding in store.check(repair=True).findings] == [
            ("records", True)
        ]
        assert file.with_name(f"{file.name}.damaged").read_text() == "{"
        assert [record.name for record in store.records.list({ADA}, "note")] == ["two"]


# -- lines that are missing, twice, or from elsewhere ---------------------------------------------------------


@pytest.mark.req("J4")
def test_a_removed_line_is_noticed_for_good(root: Path) -> None:
    texts = filled(root)
    edit(root / MEMORY, lambda lines: lines.pop(1))
    for _ in range(2):
        with opened(root) as store:
            assert contents(store)[:4] == [text for text in texts if text != "number 1"]
            [finding] = store.check().findings
            assert finding.check == "gaps"
            assert f"{MEMORY} (before line 2)" in finding.message
            more(store)
    with opened(root) as store:
        assert store.check(repair=True).healthy
        assert store.check().healthy


def test_lines_at_the_end_that_are_gone_are_noticed_by_who_read_them(root: Path) -> None:
    filled(root)
    with opened(root) as store:
        contents(store)
        edit(root / MEMORY, lambda lines: lines.pop())
        assert len(contents(store)) == 4
        assert [finding.check for finding in store.check().findings] == ["gaps"]


def test_a_line_that_stands_twice_counts_once(root: Path) -> None:
    texts = filled(root)
    edit(root / MEMORY, lambda lines: lines.insert(1, lines[0]))
    with opened(root) as store:
        assert contents(store) == texts
        more(store)
        assert contents(store) == [*texts, "more"]
        store.compact({ADA})
        assert contents(store) == [*texts, "more"]
    assert len(read(root / MEMORY)) == 6


def test_lines_of_another_owner_are_not_served(root: Path) -> None:
    filled(root)
    (root / "users/bob").mkdir()
    (root / "users/bob/memory.jsonl").write_bytes((root / MEMORY).read_bytes())
    with opened(root) as store:
        assert contents(store, owner("bob")) == []
        assert len(contents(store)) == 5
        assert not store.check().healthy


# -- people ---------------------------------------------------------------------------------------------------


@pytest.mark.req("J4")
@pytest.mark.parametrize("was_read", [True, False])
def test_an_edited_line_is_told_left_and_taken_over_when_accepted(root: Path, was_read: bool) -> None:
    filled(root)
    store = JsonlStore(root)
    if not was_read:
        store.close()
    edit(root / MEMORY, lambda lines: lines.__setitem__(0, lines[0].replace(b"number 0", b"by hand!")))
    store = store if was_read else JsonlStore(root)
    data = (root / MEMORY).read_bytes()
    assert "number 0" not in contents(store)
    assert "by hand!" not in contents(store)
    assert [finding.check for finding in store.check().findings] == ["handwritten"]
    more(store)
    assert (root / MEMORY).read_bytes().startswith(data)
    assert store.accept(LATER) == ["m0"]
    assert store.check().healthy
    [head] = store.journal.get({ADA}, ["m0"])
    assert (head.facets["text"], head.version, head.reason) == ("by hand!", 2, "edited by hand")
    assert head.operation is Operation.UPDATED
    former = [one.facets["text"] for one in store.journal.history(ADA, "m0")][:-1]
    assert former == (["number 0"] if was_read else [])
    store.close()
    with opened(root) as again:
        assert again.journal.get({ADA}, ["m0"])[0].facets["text"] == "by hand!"


@pytest.mark.req("J4")
@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_line_that_a_person_appended_waits_and_is_taken_over(root: Path, ending: bytes) -> None:
    filled(root)
    with (root / MEMORY).open("ab") as file:
        file.write(b'{"content": "written in an editor", "tags": ["by-hand"]}' + ending)
    with opened(root) as store:
        assert len(contents(store)) == 5
        more(store)
        assert [finding.check for finding in store.check().findings] == ["handwritten"]
        [new] = store.accept(LATER)
        [found] = store.journal.get({ADA}, [new])
        assert (found.facets["text"], found.facets["tags"], found.reason) == (
            "written in an editor",
            ["by-hand"],
            "added by hand",
        )
        assert store.check().healthy
        assert len(contents(store)) == 7


REFUSED: list[dict[str, Any]] = [
    {"importance": 7},
    {"type": "rumour"},
    {"owner": ["user", "bob"]},
    {"tags": ["x" * 1_000]},
    {"content": {"message": ""}},
    {"version": -1},
    {"timestamp": "yesterday"},
]


def test_what_the_engine_would_not_accept_is_not_taken_over(tmp_path: Path) -> None:
    with Cases() as cases:
        for change in REFUSED:
            with cases.case(change):
                _not_taken_over(Path(mkdtemp(dir=tmp_path)) / "memory", change)


def _not_taken_over(root: Path, change: dict[str, Any]) -> None:
    filled(root)
    edit(root / MEMORY, lambda lines: lines.__setitem__(4, json.dumps(json.loads(lines[4]) | change).encode() + b"\n"))
    with opened(root) as store:
        assert store.accept(LATER) == []
        assert not store.check().healthy
        assert len(contents(store)) == 4


def test_former_versions_and_erased_memories_are_not_taken_over(root: Path) -> None:
    filled(root)
    lines = (root / MEMORY).read_bytes().splitlines()
    with opened(root) as store:
        writes = Writer(LATER)
        [changed, gone] = store.journal.get({ADA}, ["m0", "m1"])
        store.journal.append([writes.update(changed, "newer"), writes.erase(gone)])
        edited = (lines[0].replace(b"number 0", b"forged 0"), lines[1].replace(b"number 1", b"forged 1"))
        with (root / MEMORY).open("ab") as file:
            file.write(b"\n".join(edited) + b"\n")
        assert store.accept(LATER) == []
        assert "newer" in contents(store)
        assert not any("forged" in text for text in contents(store))


@pytest.mark.req("J8")
def test_erasing_reaches_edited_lines_and_those_that_were_set_aside(root: Path) -> None:
    filled(root)
    edit(root / MEMORY, lambda lines: lines.append(lines[0].replace(b"number 0", b"secret 1")))
    edit(root / MEMORY, lambda lines: lines.append(lines[0].replace(b"number 0", b"secret 2")[:-20] + b"\n"))
    with opened(root) as store:
        store.check(repair=True)
        assert b"secret 2" in (root / "users/ada/damaged.jsonl").read_bytes()
        [known] = store.journal.get({ADA}, ["m0"])
        store.journal.append([Writer(LATER).erase(known)])
    kept = b"".join(every_file(root).values())
    assert b"secret" not in kept
    assert b"number 0" not in kept
    assert b"number 1" in kept


@pytest.mark.req("J4", "J11")
@pytest.mark.parametrize("known", [False, True])
def test_a_last_line_whose_end_an_editor_took_away_is_served_and_written_behind(root: Path, known: bool) -> None:
    texts = filled(root)
    with opened(root) as store:
        file = root / MEMORY
        if known:
            assert contents(store) == texts
        file.write_bytes(file.read_bytes().rstrip(b"\n"))
        assert contents(store) == texts
    with opened(root) as store, opened(root) as other:
        assert contents(store) == contents(other) == texts
        store.journal.append([Writer(LATER).add(ADA, "behind", id="m9")])
        assert contents(store) == contents(other) == [*texts, "behind"]
        assert store.check().healthy
    assert len(read(root / MEMORY)) == len(texts) + 1


@pytest.mark.req("J9")
def test_a_tombstone_whose_end_an_editor_took_away_still_keeps_a_copy_from_coming_back(root: Path) -> None:
    filled(root)
    former = (root / MEMORY).read_bytes()
    with opened(root) as store:
        head = next(iter(store.journal.scan({ADA})))
        store.journal.append([Writer(LATER).erase(head)])
    stones = root / "users/ada/tombstones.jsonl"
    stones.write_bytes(stones.read_bytes().rstrip(b"\n"))
    (root / MEMORY).write_bytes(former)
    with opened(root) as store:
        assert contents(store) == [f"number {number}" for number in range(1, 5)]


@pytest.mark.req("J11")
def test_a_file_that_could_not_be_read_once_is_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read of the other files until then is not taken for all there is."""
    texts = filled(root)
    with opened(root) as other, opened(root) as store:
        assert contents(store) == texts
        head = next(iter(store.journal.scan({ADA})))
        other.journal.append([Writer(LATER).archive(head)])
        other.compact({ADA})
        real = os.open

        def fails(path: Any, *args: Any, **more: Any) -> int:
            if path == "archive.jsonl":
                raise OSError(errno.EIO, "the disk failed")
            return real(path, *args, **more)

        with monkeypatch.context() as broken:
            broken.setattr(os, "open", fails)
            with pytest.raises(StoreError, match="the disk failed"):
                contents(store)
        assert contents(store) == texts
        assert len(store.journal.history(ADA, head.id)) == 2
