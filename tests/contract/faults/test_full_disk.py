"""A disk without room, made with a small tmpfs."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

import wellkept
from tests.contract.faults.script import content_of, new, view_of, word_of
from tests.contract.faults.soundness import assert_sound, everything, fill
from wellkept.stores.sqlite import SqliteStore

DISK_BYTES = 2 * 1024 * 1024


@pytest.fixture
def disk(tmp_path: Path, require_tool: Callable[[str], str], absent: Callable[[str], NoReturn]) -> Iterator[Path]:
    """A disk of two megabytes."""
    mount, umount = require_tool("mount"), require_tool("umount")
    place = tmp_path / "disk"
    place.mkdir()
    options = f"size={DISK_BYTES},mode=700"
    done = subprocess.run([mount, "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, check=False)
    if done.returncode != 0:
        absent(f"a tmpfs cannot be mounted here, which needs root: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run([umount, "--lazy", place], check=True)


def _occupy(disk: Path, leave_bytes: int = 0) -> Path:
    """Fill the disk with a file, up to some bytes."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    os.truncate(ballast, max(0, ballast.stat().st_size - leave_bytes))
    return ballast


def _fill_up(view: wellkept.View, prefix: str) -> tuple[dict[str, str], str, wellkept.errors.StoreFull]:
    """Add until the disk is full: what was acknowledged, what was refused, and how."""
    added: dict[str, str] = {}
    for number in range(10_000):
        key = f"{prefix}/{number}"
        try:
            added[key] = view.add_many([new(key)])[0].id
        except wellkept.errors.StoreFull as error:
            return added, key, error
    raise AssertionError("the disk did not become full")


@pytest.mark.req("L1", "L3", "H10")
def test_a_full_disk_refuses_writes_and_serves_reads(disk: Path) -> None:
    database = disk / "memory.db"
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(512 * 1024))
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        added, refused, error = _fill_up(view, "one")
        assert (error.code, error.retryable, error.operation) == ("STORE_FULL", True, "add_many")
        assert error.hint
        assert error.details["file"] == "memory.db"
        assert len(added) > 5
        # Nothing of the refused write is there, and everything else can be read.
        assert {memory.key: memory.id for memory in everything(view)} == added
        assert view.get(added["one/0"]) is not None
        assert [hit.memory.key for hit in view.search(word_of("one/3"))] == ["one/3"]
        assert len(view.changes(limit=10_000)) == len(added)
        assert memories.health().status == "healthy"
        ballast.unlink()
        again = view.add_many([new(refused)])[0]
        added[refused] = again.id
        more, _, _ = _fill_up(view, "two")
        assert len(more) > 2
        added |= more
        # A batch that does not fit leaves nothing behind.
        with pytest.raises(wellkept.errors.StoreFull):
            view.add_many(new(f"three/batch/{number}") for number in range(3_000))
        assert view.count() == len(added)
    with wellkept.open(database, embedder=None) as memories:
        assert {memory.key: memory.id for memory in everything(view_of(memories))} == added
        assert memories.doctor().findings == ()


@pytest.mark.req("L7")
def test_erasing_on_a_full_disk_is_refused_or_done(disk: Path) -> None:
    """It needs room in the log; if there is none, the memory stays and can be erased later."""
    database = disk / "memory.db"
    known = fill(database)
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        ballast = _occupy(disk)
        with pytest.raises(wellkept.errors.StoreFull):
            view.forget(known["base/0"], permanent=True)
        assert view.get(known["base/0"]) is not None
        ballast.unlink()
        assert view.forget(known["base/0"], permanent=True)
    assert_sound(database, known, erased=["base/0"])
    assert content_of("base/0").encode() not in database.read_bytes()


@pytest.mark.req("L1", "H10")
def test_a_new_database_on_a_full_disk(disk: Path, long_run: bool) -> None:
    """Wherever the room ends while a file is made, the error is typed and the file can be opened later."""
    opened = refused = 0
    step = 4 if long_run else 16
    for room in range(0, 320, step):
        database = disk / f"new{room}.db"
        ballast = _occupy(disk, room * 1024)
        added: dict[str, str] = {}
        try:
            with wellkept.open(database, embedder=None) as memories:
                opened += 1
                for number in range(4):
                    added[f"new/{number}"] = view_of(memories).add_many([new(f"new/{number}")])[0].id
        except wellkept.errors.StoreFull as error:
            refused += "free disk space" in error.hint or "room" in error.hint
        ballast.unlink()
        assert_sound(database, added | fill(database, "later", 2), note=f"{room} KiB")
        for file in disk.iterdir():
            file.unlink()
    assert opened > 0
    assert refused > 0


@pytest.mark.req("L3", "H10")
@pytest.mark.parametrize("room", [0, 8, 24, 40])
def test_opening_an_existing_file_on_a_full_disk(disk: Path, room: int) -> None:
    """Without room for the index of the log it can be read all the same, and says so."""
    database = disk / "memory.db"
    known = fill(database)
    ballast = _occupy(disk, room * 1024)
    with wellkept.open(database, embedder=None) as memories:
        assert {memory.key: memory.id for memory in everything(view_of(memories))} == known
        assert room > 24 or memories.health().components["writes"].status == "degraded"
        if room == 0:
            _assert_only_read(memories, known, wellkept.errors.StoreFull)
    ballast.unlink()
    assert_sound(database, known)


def _assert_only_read(memories: wellkept.Memories, known: dict[str, str], kind: type[wellkept.WellkeptError]) -> None:
    view = view_of(memories)
    assert {memory.key: memory.id for memory in everything(view)} == known
    assert view.get(known["base/0"]) is not None
    assert [hit.memory.key for hit in view.search(word_of("base/3"))] == ["base/3"]
    assert len(view.changes(limit=1_000)) == len(known)
    assert len(view.list(sort_by="recently_accessed")) == 10
    assert memories.doctor().healthy
    assert memories.health().status == "degraded"
    for call in (lambda: view.add("x"), lambda: view.forget(known["base/0"]), lambda: memories.doctor(repair=True)):
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.hint


@pytest.mark.req("L3", "H10")
def test_a_read_only_disk_can_be_read(
    disk: Path, require_tool: Callable[[str], str], later_release: pytest.MonkeyPatch
) -> None:
    database = disk / "memory.db"
    known = fill(database)
    older, logged = disk / "older.db", disk / "logged.db"
    older.write_bytes(database.read_bytes())
    SqliteStore.migrate(str(older), 1)
    logged.write_bytes(database.read_bytes())
    (disk / "logged.db-wal").write_bytes(b"frames")
    before = {file.name: file.read_bytes() for file in disk.iterdir()}
    subprocess.run([require_tool("mount"), "-o", "remount,ro", disk], check=True)
    with wellkept.open(database, embedder=None) as memories:
        _assert_only_read(memories, known, wellkept.errors.StoreReadOnly)
    for path, advice in ((older, "older schema"), (logged, "copy both files"), (disk / "new.db", "")):
        with pytest.raises(wellkept.errors.StoreReadOnly) as caught:
            wellkept.open(path, embedder=None)
        assert advice in caught.value.hint
    assert {file.name: file.read_bytes() for file in disk.iterdir()} == before
