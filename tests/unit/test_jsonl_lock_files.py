"""The files of the locks: what stands in them, who may read them, and what may stand in their place."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.stand_ins import HandClock
from tests.unit.lock_holders import MODES, Waiter, is_free, is_free_elsewhere
from wellkept.errors import ConfigurationError, NotAStore, StoreError, StoreReadOnly
from wellkept.stores.jsonl import locks
from wellkept.stores.jsonl.locks import Lock

fcntl = pytest.importorskip("fcntl", reason="there is no flock here")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@pytest.mark.req("J3")
def test_the_note_says_who_writes_and_is_cleared(path: Path, clock: HandClock) -> None:
    lock = Lock(path, clock=clock)
    with lock.exclusive("write"):
        start = clock.time.strftime("%Y-%m-%dT%H:%M:")
        note: dict[str, Any] = json.loads(path.read_text())
        assert list(note) == ["pid", "timestamp", "operation", "expires_at"]
        assert (note["pid"], note["operation"]) == (os.getpid(), "write")
        assert note["timestamp"] == f"{start}00.000Z"
        assert note["expires_at"] == f"{start}05.000Z"
    assert path.read_text() == ""
    with lock.shared("read"):
        assert path.read_text() == "", "readers are many, and leave no note"


@pytest.mark.req("J12")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_lock_files_are_private_whatever_the_umask(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with Lock(path).exclusive("write"):
            pass
    finally:
        os.umask(before)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"lock": 0o600, "lock.turn": 0o600}


@pytest.mark.req("J12")
@pytest.mark.parametrize("name", ["lock", "lock.turn"])
def test_a_link_in_the_place_of_the_lock_is_refused_and_left_alone(path: Path, name: str) -> None:
    target = path.with_name("precious")
    target.write_text("content")
    path.with_name(name).symlink_to(target)
    with pytest.raises(NotAStore), Lock(path).exclusive("write"):
        pass
    assert target.read_text() == "content"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
@pytest.mark.parametrize("mode", MODES)
def test_what_is_no_file_is_refused(path: Path, make: Callable[[Path], None], mode: str) -> None:
    make(path)
    with pytest.raises(NotAStore, match="not a plain file"), getattr(Lock(path), mode)("write"):
        pass


def test_a_folder_that_is_not_there_is_told(path: Path) -> None:
    with pytest.raises(StoreReadOnly, match="is not there"), Lock(path.parent / "missing" / "lock").shared("read"):
        pass


@pytest.mark.req("J3")
def test_a_folder_that_was_deleted_and_made_again_is_locked_anew(tmp_path: Path) -> None:
    path = tmp_path / "session" / "lock"
    path.parent.mkdir()
    first = Waiter(path, "exclusive")
    first.has.wait()
    second = Waiter(path, "exclusive")
    second.waits.wait()
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    third = Waiter(path, "exclusive")
    third.has.wait()
    first.end()
    assert not second.has.is_set(), "its file is gone: the lock on it protects nothing"
    third.end()
    second.has.wait()
    assert not is_free(path, "shared")
    second.end()


@pytest.mark.req("J3")
def test_who_may_only_read_can_lock_for_reading(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner of this process may be above permissions, so the system's refusal is played."""
    with Lock(path).exclusive("write"):
        pass
    real = os.open

    def read_only(file: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR:
            raise OSError(errno.EROFS, "read-only file system")
        return real(file, flags, mode)

    monkeypatch.setattr(os, "open", read_only)
    with Lock(path).shared("read"):
        pass
    with pytest.raises(StoreReadOnly, match="cannot be opened"), Lock(path).exclusive("write"):
        pass


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOLCK, ConfigurationError), (errno.EOPNOTSUPP, ConfigurationError), (errno.EIO, StoreError)],
)
def test_a_file_system_that_cannot_lock_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    real = fcntl.flock

    def refuse(descriptor: int, operation: int) -> None:
        if operation & fcntl.LOCK_NB:
            raise OSError(number, os.strerror(number))
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(kind) as caught, Lock(path).shared("read"):
        pass
    assert type(caught.value) is kind


def test_a_system_without_flock_is_refused_clearly(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    with pytest.raises(ConfigurationError, match="no flock"):
        Lock(path)
    assert not path.exists()


def test_no_descriptor_is_left_open(path: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    with Lock(path).exclusive("write"):
        for _ in range(3):
            assert not is_free_elsewhere(path, "shared")
    assert len(list(Path("/dev/fd").iterdir())) == before
