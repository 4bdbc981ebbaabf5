"""Paths that lead to something else than a database: a typed error that names the file, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import apsw
import pytest

import wellkept
from tests.contract.faults import processes
from tests.contract.faults.soundness import assert_sound, fill, raw
from tests.support.sqlite_files import pool_nothing
from wellkept.testing.cases import Cases


def _text(path: Path) -> None:
    path.write_text("Dear diary,\n" * 1_000)


def _picture(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 50)


def _short(path: Path) -> None:
    path.write_bytes(b"SQLite")


def _cut(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00")


def _foreign(path: Path, mode: str = "delete", mark: int = 0) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", mode)
    connection.pragma("application_id", mark)
    connection.execute("CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT)")
    connection.execute("INSERT INTO memories (content) VALUES ('not ours')")
    connection.close()


def _foreign_wal(path: Path) -> None:
    _foreign(path, "wal")


def _foreign_mark(path: Path) -> None:
    _foreign(path, mark=0x12345678)


def _foreign_version(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 7)
    connection.close()


FOREIGN = (_text, _picture, _short, _foreign, _foreign_wal, _foreign_mark, _foreign_version)


def _refuse(path: Path, kind: type[wellkept.WellkeptError]) -> wellkept.WellkeptError:
    with pytest.raises(kind) as caught:
        wellkept.open(path, embedder=None)
    error = caught.value
    assert type(error) is kind
    assert path.name in error.message
    assert error.details["file"] == path.name
    assert error.hint
    return error


@pytest.mark.req("H10")
def test_foreign_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    with Cases() as cases:
        for make in FOREIGN:
            with cases.case(make.__name__.strip("_")):
                _refused_and_left_alone(make, Path(mkdtemp(dir=tmp_path)))


def _refused_and_left_alone(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "notes"
    make(path)
    before, stat = path.read_bytes(), path.stat()
    assert _refuse(path, wellkept.errors.NotAStore).code == "NOT_A_STORE"
    assert path.read_bytes() == before
    assert (path.stat().st_mode, path.stat().st_mtime_ns) == (stat.st_mode, stat.st_mtime_ns)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.req("H10")
def test_the_head_of_a_database_alone_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    _cut(path)
    before = path.read_bytes()
    with pytest.raises((wellkept.errors.NotAStore, wellkept.errors.StoreCorrupt)) as caught:
        wellkept.open(path, embedder=None)
    assert path.name in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.req("L1")
def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    assert_sound(path, fill(path))


@pytest.mark.req("H10")
def test_a_folder_is_no_database(tmp_path: Path) -> None:
    folder = tmp_path / "memory.db"
    folder.mkdir()
    (folder / "keep").write_text("me")
    _refuse(folder, wellkept.errors.NotAStore)
    assert (folder / "keep").read_text() == "me"


@pytest.mark.req("H10")
def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    error = _refuse(tmp_path / "nowhere" / "memory.db", wellkept.errors.StoreReadOnly)
    assert "folder" in error.hint
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.req("H10")
def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    _refuse(tmp_path / "folder" / "memory.db", wellkept.errors.StoreReadOnly)
    assert (tmp_path / "folder").read_text() == "a file"


@pytest.mark.req("H10")
def test_a_broken_link(tmp_path: Path) -> None:
    link = tmp_path / "memory.db"
    link.symlink_to(tmp_path / "gone" / "memory.db")
    _refuse(link, wellkept.errors.StoreReadOnly)
    assert link.is_symlink()
    (tmp_path / "gone").mkdir()
    loop = tmp_path / "loop.db"
    loop.symlink_to(loop)
    _refuse(loop, wellkept.errors.StoreReadOnly)


@pytest.mark.req("H10")
def test_a_pipe_is_no_database(tmp_path: Path) -> None:
    """Opening a pipe for reading waits for a writer, for ever."""
    pipe = tmp_path / "memory.db"
    os.mkfifo(pipe)
    _refuse(pipe, wellkept.errors.NotAStore)
    _refuse(Path(os.devnull), wellkept.errors.NotAStore)


@pytest.mark.req("L1")
def test_a_link_to_a_database_is_the_database(tmp_path: Path) -> None:
    target, link = tmp_path / "target.db", tmp_path / "link.db"
    known = fill(target)
    link.symlink_to(target)
    known |= fill(link, "linked", 3)
    assert link.is_symlink()
    assert_sound(target, known)


@pytest.mark.req("L3", "H10")
def test_a_file_that_vanishes_while_it_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New connections cannot be made any more. That, too, is one of our errors, from every verb."""
    pool_nothing(monkeypatch)
    path = tmp_path / "memory.db"
    with wellkept.open(path, embedder=None) as memories:
        view = memories.view(user="ada")
        path.unlink()
        for call in (lambda: view.get("x"), view.list, view.changes, lambda: view.search("tea"), lambda: view.add("x")):
            with pytest.raises(wellkept.errors.StoreError) as caught:
                call()
            assert "memory.db" in str(caught.value)


# --- without the rights of root -------------------------------------------------------------------


@pytest.fixture
def commons() -> Iterator[Path]:
    """A folder that every user of the machine may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="wellkept-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


def _nobody(database: Path) -> dict[str, dict[str, Any]]:
    """What a user without rights can do there: what failed, by step; the rest under what it did."""
    told = processes.run("as_nobody", database, "nobody")
    assert told.returncode == 0, told.errors
    for line in told.of("failed"):
        assert line["code"] == "STORE_READ_ONLY", line
        assert database.name in line["message"], line
        assert line["hint"], line
    return {line.get("key") or line["did"]: line for line in told.lines}


@pytest.mark.req("H10")
def test_a_folder_that_may_not_be_written(commons: Path) -> None:
    assert set(_nobody(commons / "memory.db")) == {"open"}
    assert list(commons.iterdir()) == []


@pytest.mark.req("H10")
def test_a_file_of_somebody_else(commons: Path) -> None:
    database = commons / "memory.db"
    known = fill(database)
    before = database.read_bytes()
    assert set(_nobody(database)) == {"open"}
    assert database.read_bytes() == before
    assert_sound(database, known)


@pytest.mark.req("H10")
def test_a_file_that_may_only_be_read(commons: Path) -> None:
    """If the log can be made beside it, it can be read; writing is refused in any case."""
    database = commons / "memory.db"
    known = fill(database)
    commons.chmod(0o777)
    database.chmod(0o444)
    before = database.read_bytes()
    did = _nobody(database)
    assert did.keys() <= {"open", "read", "write"}
    assert ("open" in did) or "code" in did["write"]
    assert database.read_bytes() == before
    for side in ("-wal", "-shm"):
        database.with_name(database.name + side).unlink(missing_ok=True)
    commons.chmod(0o755)  # a folder that everybody may write is a finding
    database.chmod(0o600)
    assert_sound(database, known)


@pytest.mark.req("H10")
def test_a_writable_file_in_a_folder_that_is_not(commons: Path) -> None:
    database = commons / "memory.db"
    known = fill(database)
    database.chmod(0o666)
    assert set(_nobody(database)) <= {"open", "read", "write"}
    database.chmod(0o600)
    assert_sound(database, known)
    connection = raw(database)
    assert connection.execute("SELECT count(*) FROM journal WHERE facets LIKE '%nobody%'").get == 0
    connection.close()
