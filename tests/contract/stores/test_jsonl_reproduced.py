"""What went wrong with folders, case by case."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import stat
from contextlib import suppress
from itertools import product
from pathlib import Path
from tempfile import mkdtemp

import pytest

import wellkept
from tests.support.jsonl_files import edit, every_file, read
from wellkept import Memories
from wellkept.errors import NotAStore, QuotaExceeded, WellkeptError
from wellkept.testing.cases import Cases

MEMORY = "users/ada/memory.jsonl"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


def opened(root: Path) -> Memories:
    return wellkept.open(f"jsonl:{root}", embedder=None)


def filled(root: Path, count: int = 20) -> list[str]:
    texts = [f"note {number}" for number in range(count)]
    with opened(root) as memories:
        for text in texts:
            memories.view(user="ada").add(text)
    return texts


def contents(root: Path, user: str = "ada") -> list[str]:
    with opened(root) as memories:
        return [one.content for one in memories.view(user=user).list(sort_by="oldest", limit=100)]


@pytest.mark.req("J11")
@pytest.mark.parametrize("damage", ["emptied", "truncated", "deleted"])
def test_1_no_file_beside_the_lines_decides_which_of_them_count(root: Path, damage: str) -> None:
    texts = filled(root)
    for path in [path for path in (root / "derived").rglob("*") if path.is_file()]:
        if damage == "deleted":
            path.unlink()
        else:
            path.write_bytes(b"" if damage == "emptied" else path.read_bytes()[: path.stat().st_size // 2])
    assert contents(root) == texts
    with opened(root) as memories:
        memories.view(user="ada").add("one more")
    assert contents(root) == [*texts, "one more"]


@pytest.mark.req("J11")
def test_2_what_is_copied_in_is_served_and_what_a_person_appends_stays(root: Path, tmp_path: Path) -> None:
    filled(root, 2)
    with opened(tmp_path / "other") as memories:
        memories.view(user="bob").add("from elsewhere")
    shutil.copytree(tmp_path / "other/users/bob", root / "users/bob")
    with (root / MEMORY).open("a") as file:
        file.write('{"content": "by hand"}\n')
    with opened(root) as memories:
        memories.view(user="ada").add("written next")
        memories.view(user="bob").add("written next")
        [finding] = memories.doctor().findings
        assert "would become version 1" in finding.message
        assert "'by hand'" in finding.message
        assert memories.doctor(accept=True).healthy
    assert contents(root, "bob") == ["from elsewhere", "written next"]
    assert sorted(contents(root)) == ["by hand", "note 0", "note 1", "written next"]


@pytest.mark.req("J11")
def test_2_a_line_that_was_moved_from_another_owner_is_accepted_as_a_new_memory(root: Path) -> None:
    filled(root, 2)
    with opened(root) as memories:
        memories.view(user="bob").add("bob's")
    line = (root / "users/bob/memory.jsonl").read_bytes()
    with (root / MEMORY).open("ab") as file:
        file.write(line)
    assert contents(root) == ["note 0", "note 1"]
    with opened(root) as memories:
        assert "copied by hand" in memories.doctor().findings[0].message
        assert memories.doctor(accept=True).healthy
        [copied] = [one for one in memories.view(user="ada").list() if one.content == "bob's"]
        assert [one.reason for one in memories.view(user="ada").history(copied.id)] == ["copied by hand"]
    assert contents(root, "bob") == ["bob's"]


@pytest.mark.req("J11")
def test_2_a_folder_may_accept_what_people_write_at_once(root: Path) -> None:
    filled(root, 1)
    config = json.loads((root / "config.json").read_text())
    config["integrity"]["accept_edits"] = True
    (root / "config.json").write_text(json.dumps(config))
    with opened(root) as memories:
        view = memories.view(user="ada")
        edit(root / MEMORY, lambda lines: lines.append(b'{"content": "by hand"}\n'))
        assert sorted(one.content for one in view.list()) == ["by hand", "note 0"]
        edit(root / MEMORY, lambda lines: lines.__setitem__(0, lines[0].replace(b"note 0", b"edited")))
        assert sorted(one.content for one in view.list()) == ["by hand", "edited"]
        assert memories.doctor().healthy


@pytest.mark.req("J4")
def test_4_a_line_that_stands_twice_takes_nothing_away(root: Path) -> None:
    texts = filled(root, 5)
    edit(root / MEMORY, lambda lines: lines.insert(2, lines[2]))
    for _ in range(2):
        assert contents(root) == texts
        with opened(root) as memories:
            texts.append(memories.view(user="ada").add(f"later {len(texts)}").content)


@pytest.mark.req("H10")
@pytest.mark.parametrize("mark", ["settings", "log", "both"])
def test_a_folder_of_the_former_name_is_refused_and_left_alone(root: Path, mark: str) -> None:
    filled(root, 2)
    settings = root / "settings.json"
    if mark != "log":
        settings.write_text(re.sub('"wellkept": .*,', '"version": 2,', settings.read_text()))
    else:
        settings.unlink()
    if mark != "settings":
        (root / "journal").mkdir()
        (root / "journal/commits.jsonl").write_text("{}\n")
    before = every_file(root)
    with pytest.raises(NotAStore, match="before the first release") as caught:
        opened(root)
    assert caught.value.hint
    assert every_file(root) == before


@pytest.mark.req("J11")
def test_5_settings_that_were_edited_can_be_repaired(root: Path) -> None:
    texts = filled(root, 3)
    path = root / "settings.json"
    path.write_text(path.read_text().replace("durability", "durabilitX").replace("wellkept", "wellkepX"))
    for _ in range(2):
        with opened(root) as memories:
            memories.doctor(repair=True)
            assert memories.doctor().healthy
    assert contents(root) == texts


@pytest.mark.req("J12")
def test_6_a_hostile_folder_reaches_nothing_outside(tmp_path: Path) -> None:
    root, outside = tmp_path / "repository" / "memory", tmp_path / "outside"
    root.parent.mkdir()
    filled(root)
    with opened(root) as memories:
        memories.view(user="ada").sessions.create("monday").view.add("Talked about OAuth")
    outside.mkdir()
    (outside / "x").write_text("precious")
    (root / "users/eve").symlink_to(outside)
    (root / "sessions").rename(tmp_path / "elsewhere")
    (root / "sessions").symlink_to(tmp_path / "elsewhere")
    with opened(root) as memories:
        memories.view(user="ada").list()
        for user, session in (("eve", None), ("ada", "monday")):
            with pytest.raises(WellkeptError):
                memories.view(user=user, session=session).add("through a link", layer="session" if session else "user")
        assert "sessions (a link" in str(memories.doctor(repair=True))
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"x": "precious"}


FILES = ("memory.jsonl", "archive.jsonl", "tombstones.jsonl", "damaged.jsonl")
PLACES = (
    *(f"users/bob/{name}" for name in FILES),
    "derived/users/ada/vectors.jsonl",
    "derived/users/ada/accesses.jsonl",
    "derived/users/ada/numbers.json",
    "derived/users/ada/index.json",
    "derived/epoch.json",
    "derived",
    "settings.json",
    "records",
)
PLANTED = {
    "deep": b'{"content":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "large number": b'{"version":' + b"9" * 30 + b"}",
    "long number": b'{"version":' + b"9" * 5_000 + b"}",
    "infinity": b'{"importance": 1e999}',
    "no unicode": b'{"content": "\xff\xfe"}',
    "lone surrogate": b'{"content": "\\ud800"}',
    "no object": b"[1, 2]",
    "nothing": b"\x00" * 100,
}


@pytest.mark.req("J12")
def test_7_a_planted_line_is_one_damaged_line(tmp_path: Path) -> None:
    with Cases() as cases:
        for file, name in product(FILES, PLANTED):
            with cases.case(f"{name} in {file}"):
                _one_damaged_line(Path(mkdtemp(dir=tmp_path)) / "memory", name, file)


def _one_damaged_line(root: Path, name: str, file: str) -> None:
    texts = filled(root, 2)
    with (root / "users/ada" / file).open("ab") as planted:
        planted.write(PLANTED[name] + b"\n")
    (root / "users/ada" / file).chmod(0o600)
    assert contents(root) == texts
    with opened(root) as memories:
        memories.view(user="ada").add("later")
        assert memories.doctor().healthy == (file == "damaged.jsonl")
        assert memories.doctor(repair=True).healthy
    assert contents(root) == [*texts, "later"]


@pytest.mark.req("J12")
def test_7_what_is_no_file_stops_nobody_else(tmp_path: Path) -> None:
    with Cases() as cases:
        for name, kind in product(PLACES, ("pipe", "link", "folder")):
            with cases.case(f"{kind} as {name}"):
                _stops_nobody_else(Path(mkdtemp(dir=tmp_path)) / "memory", name, kind)


def _stops_nobody_else(root: Path, name: str, kind: str) -> None:
    texts = filled(root, 2)
    with opened(root) as memories:
        memories.view(user="bob").add("bob's")
    path = root / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(root.parent / "outside")
    else:
        path.mkdir()
    assert contents(root) == texts
    with opened(root) as memories:
        memories.view(user="ada").add("later")
        memories.health()
        memories.doctor()
        memories.doctor(repair=True)
    assert contents(root) == [*texts, "later"]
    assert not (root.parent / "outside").exists()


@pytest.mark.req("J4")
def test_8_removed_lines_are_noticed_for_good(root: Path) -> None:
    filled(root, 5)
    edit(root / MEMORY, lambda lines: lines.__delitem__(slice(3, None)))
    for number in range(2):
        with opened(root) as memories:
            assert [finding.check for finding in memories.doctor().findings] == ["gaps"]
            memories.view(user="ada").add(f"later {number}")
            assert [finding.check for finding in memories.doctor().findings] == ["gaps"]
    shutil.rmtree(root / "derived")
    with opened(root) as memories:
        assert [finding.check for finding in memories.doctor().findings] == ["gaps"]
        assert memories.doctor(repair=True).healthy
    assert contents(root) == ["note 0", "note 1", "note 2", "later 0", "later 1"]


@pytest.mark.req("J4")
def test_8_a_line_that_cannot_be_parsed_is_copied_at_once_and_logged(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled(root, 3)
    edit(root / MEMORY, lambda lines: lines.__setitem__(1, b'{"half": \n'))
    before = (root / MEMORY).read_bytes()
    with caplog.at_level(logging.ERROR, logger="wellkept"), opened(root) as memories:
        assert memories.view(user="ada").count() == 2
        assert memories.health().status == "degraded"
    assert (root / MEMORY).read_bytes() == before
    [line] = read(root / "users/ada/damaged.jsonl")
    assert (line["file"], line["line"], line["reason"]) == ("memory.jsonl", '{"half":', "damaged")
    assert "1 damaged lines" in caplog.text
    with opened(root) as memories:
        assert memories.view(user="ada").count() == 2
    assert len(read(root / "users/ada/damaged.jsonl")) == 1


@pytest.mark.req("J12")
def test_8_repairing_touches_no_file_of_others(root: Path) -> None:
    filled(root, 2)
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    (root / "users/ada/notes.txt").write_text("mine")
    (root / "users/ada/notes.txt").chmod(0o644)
    for path in (root / MEMORY, root / "users/ada"):
        path.chmod(path.stat().st_mode | 0o044)
    before = every_file(root)
    with opened(root) as memories:
        assert memories.doctor(repair=True).findings == (), "modes in a working tree are git's"
    shutil.move(root / ".git", root / "hooks")
    with opened(root) as memories:
        assert [finding.check for finding in memories.doctor(repair=True).findings] == ["modes"]
    assert stat.S_IMODE((root / "hooks/hooks/pre-commit").stat().st_mode) == 0o755
    assert stat.S_IMODE((root / "users/ada/notes.txt").stat().st_mode) == 0o644
    assert stat.S_IMODE((root / MEMORY).stat().st_mode) == 0o600
    assert before[MEMORY] == every_file(root)[MEMORY]


@pytest.mark.req("J9")
def test_9_the_limit_of_a_session_holds_for_its_file_too(root: Path) -> None:
    limit = 100_000
    with opened(root) as memories, opened(root) as other:
        session = memories.view(user="ada").sessions.create("monday", config={"limit_bytes": limit})
        memory, written = session.view.add("x" * 9_000), -1
        with suppress(QuotaExceeded):
            for number in range(60):
                session.view.update(memory.id, content=f"{number} " + "x" * 9_000)
                assert (root / "sessions/monday@ada/memory.jsonl").stat().st_size <= limit + 10_000
                written = number
        assert 5 < written < 59, "old versions count, so that an update is refused in the end"
        newest = other.view(user="ada", session="monday").get(memory.id)
        assert newest is not None
        assert newest.content.startswith(f"{written} ")
        assert len(session.view.history(memory.id)) == written + 2
        assert memories.doctor().healthy
    with opened(root) as memories:
        assert len(memories.view(user="ada", session="monday").history(memory.id)) == written + 2


@pytest.mark.req("J4")
def test_damage_is_told_in_the_statistics_of_the_session(root: Path) -> None:
    with opened(root) as memories:
        for name in ("monday", "tuesday"):
            session = memories.view(user="ada").sessions.create(name)
            session.view.add("one")
            session.view.add("two")
        edit(root / "sessions/monday@ada/memory.jsonl", lambda lines: lines.__setitem__(0, b"{half\n"))
        found = {one.id: (one.entries, one.damaged) for one in memories.view(user="ada").sessions.list()}
        assert found == {"monday": (1, 1), "tuesday": (2, 0)}


@pytest.mark.req("J8")
def test_the_folder_of_a_session_goes_with_it(root: Path) -> None:
    with opened(root) as memories, opened(root) as other:
        sessions = memories.view(user="ada").sessions
        for name in ("monday", "tuesday"):
            session = sessions.create(name)
            session.view.add_many(["one", "two"])
            session.view.get(session.view.add("three").id)
        assert other.view(user="ada", session="monday").count() == 3
        sessions.delete("monday", permanent=True)
        assert other.view(user="ada", session="monday").count() == 0
        assert [one.id for one in other.view(user="ada").sessions.list()] == ["tuesday"]
        assert memories.doctor().healthy
        sessions.create("monday").view.add("again")
        assert other.view(user="ada", session="monday").count() == 1
        sessions.delete("monday", permanent=True)
    assert [path.name for path in (root / "sessions").iterdir()] == ["tuesday@ada"]
    assert b"again" not in b"".join(every_file(root).values())
    with opened(root) as memories:
        assert memories.doctor().healthy
