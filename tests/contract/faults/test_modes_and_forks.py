"""Who may read the files, and what a forked child may do with an open database."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import wellkept
from tests.contract.faults.script import new, view_of
from tests.contract.faults.soundness import assert_sound, fill


@contextmanager
def _umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("made_before", [False, True])
def test_files_are_private_whatever_the_umask(tmp_path: Path, made_before: bool) -> None:
    database = tmp_path / "memory.db"
    with _umask(0):
        if made_before:
            fill(database)
        with wellkept.open(database, embedder=None) as memories:
            view_of(memories).add_many([new("a/0")])
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {"memory.db": 0o600, "memory.db-wal": 0o600, "memory.db-shm": 0o600}


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_folder_that_everybody_may_write_is_told(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    url = str(folder / "memory.db") if kind == "sqlite" else f"jsonl:{folder}"
    with wellkept.open(url, embedder=None) as memories:
        assert memories.health().status.value == "healthy"
        assert memories.doctor().healthy or kind == "jsonl"  # others may read it: that is told by its own check
    assert not caplog.records
    folder.chmod(0o777)
    with wellkept.open(url, embedder=None) as memories:
        [record] = caplog.records
        assert (record.levelname, record.name) == ("WARNING", "wellkept")
        assert "everybody" in record.getMessage()
        health = memories.health()
        assert health.status.value == "degraded"
        assert "may write" in health.components["folder"].message
        [finding] = [one for one in memories.doctor().findings if one.check == "folder"]
        assert "700" in finding.repair
        memories.doctor(repair=True)
        mended = stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert mended == (kind == "jsonl")  # the folder of a single file may hold what is not ours
    folder.chmod(0o700)
    with wellkept.open(url, embedder=None) as memories:
        assert memories.health().status.value == "healthy"


def test_in_a_folder_like_tmp_a_file_is_safe_and_a_folder_of_files_is_not(tmp_path: Path) -> None:
    for name, status in (("file", "healthy"), ("files", "degraded")):
        folder = tmp_path / name
        folder.mkdir()
        folder.chmod(0o1777)
        url = str(folder / "memory.db") if name == "file" else f"jsonl:{folder}"
        with wellkept.open(url, embedder=None) as memories:
            assert memories.health().status.value == status


# --- fork -----------------------------------------------------------------------------------------

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


class Pipe:
    """One process waits until the other one says so."""

    def __init__(self) -> None:
        self._ends = os.pipe()

    def say(self) -> None:
        os.write(self._ends[1], b".")

    def wait(self) -> None:
        assert os.read(self._ends[0], 1) == b"."


def _fork(work: Callable[[], None]) -> int:
    """Run something in a forked child; the child's exit code says whether it raised."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:  # noqa: BLE001  # reason: whatever it is, the child must not become a second pytest
            os.write(2, f"in the child: {error!r}\n".encode())
        finally:
            os._exit(code)
    return child


def _succeeded(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.req("L1", "L3")
def test_a_forked_child_reads_and_writes(database: str) -> None:
    known = fill(database)
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        assert view.count() == len(known)
        known["parent/0"] = view.add_many([new("parent/0")])[0].id

        go = Pipe()

        def work() -> None:
            go.wait()
            assert view.count() == len(known) + 10, "what the parent wrote after the fork is seen"
            assert view.get(known["parent/0"]) is not None
            for number in range(10):
                view.add_many([new(f"child/{number}")])

        child = _fork(work)
        during = {f"during/{number}": view.add_many([new(f"during/{number}")])[0].id for number in range(10)}
        go.say()
        assert _succeeded(child)
        known |= during
        known["parent/1"] = view.add_many([new("parent/1")])[0].id
        assert view.count() == len(known) + 10
    found = assert_sound(database, known)
    assert {f"child/{number}" for number in range(10)} <= {memory.key for memory in found}


@pytest.mark.req("L1")
def test_a_child_that_outlives_its_parent_loses_nothing(database: str) -> None:
    """The last one to close a file removes its log. The parent must not take itself for the last one."""
    written, closed = Pipe(), Pipe()
    memories = wellkept.open(database, embedder=None)
    view = view_of(memories)
    view.add_many([new("parent/0")])
    assert view.count() == 1

    def work() -> None:
        view.add_many([new("child/0")])
        written.say()
        closed.wait()
        view.add_many([new("child/1")])
        assert view.count() == 4

    child = _fork(work)
    written.wait()
    view.add_many([new("parent/1")])
    memories.close()
    closed.say()
    assert _succeeded(child)
    found = assert_sound(database, {})
    assert {memory.key for memory in found} == {"parent/0", "parent/1", "child/0", "child/1"}


@pytest.mark.req("L3")
def test_accesses_counted_before_a_fork_are_counted_once(database: str) -> None:
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        memory = view.add_many([new("a/0")])[0]
        assert view.get(memory.id) is not None

        def work() -> None:
            assert view.get(memory.id) is not None
            memories.close()

        assert _succeeded(_fork(work))
    with wellkept.open(database, embedder=None) as memories:
        found = view_of(memories).get(memory.id)
        assert found is not None
        assert found.access_count == 2


@pytest.mark.req("L1", "W7")
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 and later warn of forks with threads")
def test_forks_while_other_threads_write(database: str) -> None:
    ended = threading.Event()
    known: dict[str, str] = {}
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)

        def write(name: str) -> None:
            number = 0
            while not ended.is_set():
                known[f"{name}/{number}"] = view.add_many([new(f"{name}/{number}")])[0].id
                view.get(known[f"{name}/{number}"])
                number += 1

        threads = [threading.Thread(target=write, args=(f"thread{number}",)) for number in range(3)]
        for thread in threads:
            thread.start()
        try:
            for number in range(10):

                def work(key: str = f"child/{number}") -> None:
                    view.add_many([new(key)])
                    assert view.count() > 0

                assert _succeeded(_fork(work))
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    found = assert_sound(database, known)
    assert {f"child/{number}" for number in range(10)} <= {memory.key for memory in found}
    assert len(found) == len(known) + 10
