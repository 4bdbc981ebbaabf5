"""Locks of the JSON Lines store, between threads and between real processes."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.unit.lock_holders import AT_ONCE, MODES, PATIENT, Waiter, is_free, is_free_elsewhere, other_process, run
from wellkept.errors import LockTimeout, StoreBusy
from wellkept.stores.jsonl.locks import Lock, LockSettings
from wellkept.testing.cases import Cases

fcntl = pytest.importorskip("fcntl", reason="there is no flock here")

COUNT = """
import sys
from pathlib import Path
from wellkept.stores.jsonl.locks import Lock, LockSettings
lock, counter = Lock(Path(sys.argv[1]), LockSettings(timeout_ms=120_000)), Path(sys.argv[2])
for _ in range(int(sys.argv[3])):
    with lock.exclusive("count"):
        number = int(counter.read_text())
        counter.write_text(str(number + 1))
    with lock.shared("look"):
        assert counter.read_text().isdigit()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


# --- who excludes whom ----------------------------------------------------------------------------


@pytest.mark.req("J3")
def test_readers_share_and_writers_are_alone_among_processes(path: Path) -> None:
    with Cases() as cases:
        for held, asked in product(MODES, MODES):
            with cases.case(f"held {held}, asked {asked}"):
                _alone_among_processes(path, held, asked)


def _alone_among_processes(path: Path, held: str, asked: str) -> None:
    with other_process(path, held):
        assert is_free(path, asked) is (held == asked == "shared")
    assert is_free(path, asked)


@pytest.mark.req("J3")
def test_readers_share_and_writers_are_alone_among_threads(path: Path) -> None:
    with Cases() as cases:
        for held, asked in product(MODES, MODES):
            with cases.case(f"held {held}, asked {asked}"):
                _alone_among_threads(path, held, asked)


def _alone_among_threads(path: Path, held: str, asked: str) -> None:
    thread = Waiter(path, held)
    thread.has.wait()
    assert is_free(path, asked) is (held == asked == "shared")
    thread.end()
    assert is_free(path, asked)


@pytest.mark.slow
@pytest.mark.req("J3")
def test_nothing_is_lost_when_processes_and_threads_count_together(path: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    processes = [run(COUNT, path, counter, 40) for _ in range(3)]
    lock = Lock(path, PATIENT)

    def count() -> None:
        for _ in range(40):
            with lock.exclusive("count"):
                counter.write_text(str(int(counter.read_text()) + 1))

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert counter.read_text() == "240"


@pytest.mark.req("J3")
def test_asking_twice_in_one_thread_is_an_error_and_not_a_deadlock(path: Path) -> None:
    with Cases() as cases:
        for outer, inner in product(MODES, MODES):
            with cases.case(f"{inner} in {outer}"):
                _asks_twice(path, outer, inner)


def _asks_twice(path: Path, outer: str, inner: str) -> None:
    with getattr(Lock(path, PATIENT), outer)("write"):
        with (
            pytest.raises(RuntimeError, match="not reentrant"),
            getattr(Lock(path, PATIENT), inner)("again"),
        ):
            pass
        assert not is_free_elsewhere(path, "exclusive"), "the refused one did not release the first"
        with Lock(path.with_name("other"), AT_ONCE).exclusive("write"):
            pass
    assert is_free(path, "exclusive")


def test_what_goes_wrong_inside_releases_the_lock(path: Path) -> None:
    for mode in MODES:
        with pytest.raises(KeyError), getattr(Lock(path), mode)("write"):
            raise KeyError
        assert is_free(path, "exclusive")
        assert path.read_text() == ""


# --- those who die --------------------------------------------------------------------------------


@pytest.mark.req("J3")
@pytest.mark.parametrize("held", MODES)
def test_a_killed_holder_leaves_no_lock_behind(path: Path, held: str) -> None:
    with other_process(path, held) as process:
        assert not is_free(path, "exclusive")
        process.kill()
        process.wait()
        assert (path.read_text() != "") is (held == "exclusive"), "the note of the dead is still there"
        assert is_free(path, "shared")
        assert is_free(path, "exclusive")


LEFT = ["", "{", "[]", '{"pid": 1}', "\ud800", "[" * 4_000, '{"pid":"1","operation":2}']


@pytest.mark.req("J3")
def test_what_stands_in_the_file_blocks_nobody(path: Path) -> None:
    with Cases() as cases:
        for left in LEFT:
            with cases.case(left):
                _blocks_nobody(path, left)


def _blocks_nobody(path: Path, left: str) -> None:
    text = left.encode("utf-8", "surrogatepass")
    path.write_bytes(text)
    with other_process(path, "shared"), pytest.raises(LockTimeout) as caught, Lock(path, AT_ONCE).exclusive("write"):
        pass
    assert "pid" not in caught.value.details
    path.write_bytes(text)
    assert is_free(path, "exclusive")


def test_a_note_of_the_dead_is_not_taken_for_the_readers_of_today(path: Path) -> None:
    path.write_text('{"pid": 1, "timestamp": "2026-01-10T14:30:00.000Z", "operation": "write"}')
    reader = Waiter(path, "shared")
    reader.has.wait()
    with pytest.raises(LockTimeout, match="by readers") as caught, Lock(path, AT_ONCE).exclusive("write"):
        pass
    reader.end()
    assert "pid" not in caught.value.details


# --- waiting --------------------------------------------------------------------------------------


class Time:
    """Passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.sleeps = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


@pytest.mark.req("J3")
def test_a_time_out_names_the_holder(path: Path) -> None:
    passing = Time()
    with other_process(path, "exclusive") as process:
        note = json.loads(path.read_text())
        lock = Lock(path, monotonic=passing.monotonic, sleep=passing.sleep)
        with pytest.raises(LockTimeout) as caught, lock.shared("read"):
            pass
    error = caught.value
    assert isinstance(error, StoreBusy)
    assert (error.code, error.retryable) == ("CONCURRENCY", True)
    assert error.details == {
        "file": f"{path.parent.name}/lock",
        "timeout_ms": 5_000,
        "pid": process.pid,
        "operation": "compact",
        "since": note["timestamp"],
    }
    assert f"process {process.pid} ('compact' since {note['timestamp']})" in str(error)
    assert error.hint
    assert passing.now == pytest.approx(5.0), "all of the time was waited, and no more"


@pytest.mark.req("J3")
@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_pauses_double_up_to_the_longest_and_are_cut_at_random(path: Path, chance: float) -> None:
    passing = Time()
    settings = LockSettings(timeout_ms=100, first_pause_ms=1, longest_pause_ms=8)
    holder = Waiter(path, "exclusive")
    holder.has.wait()
    lock = Lock(path, settings, monotonic=passing.monotonic, sleep=passing.sleep, chance=lambda: chance)
    with pytest.raises(LockTimeout), lock.exclusive("write"):
        pass
    holder.end()
    cut = 0.5 + chance / 2
    assert passing.sleeps[:6] == pytest.approx([pause * cut / 1000 for pause in (1, 2, 4, 8, 8, 8)])
    assert all(0 < pause <= 0.008 for pause in passing.sleeps)
    assert sum(passing.sleeps) == pytest.approx(0.1)


@pytest.mark.req("J3")
def test_a_waiting_writer_holds_new_readers_back(path: Path) -> None:
    reader = Waiter(path, "shared")
    reader.has.wait()
    assert is_free(path, "shared")
    writer = Waiter(path, "exclusive")
    writer.waits.wait()
    assert not is_free(path, "shared"), "a writer waits"
    reader.end()
    writer.has.wait()
    writer.end()
    assert is_free(path, "shared")


@pytest.mark.req("J3")
def test_a_waiting_reader_holds_new_writers_back_and_other_readers_come_with_it(path: Path) -> None:
    writer = Waiter(path, "exclusive")
    writer.has.wait()
    readers = [Waiter(path, "shared") for _ in range(3)]
    for reader in readers:
        reader.waits.wait()
    later = Waiter(path, "exclusive")
    later.waits.wait()
    writer.end()
    for reader in readers:
        reader.has.wait()
    assert not later.has.is_set()
    for reader in readers:
        reader.end()
    later.has.wait()
    later.end()


@pytest.mark.req("J3")
def test_a_writer_gets_its_turn_among_readers_who_never_stop(path: Path) -> None:
    """Each reader leaves only when the next one is in or waits: without a turnstile the lock would never be free."""
    reader = Waiter(path, "shared")
    reader.has.wait()
    writer = Waiter(path, "exclusive")
    writer.settled.wait()
    for _ in range(20):
        following = Waiter(path, "shared")
        following.settled.wait()
        reader.end()
        reader = following
        if not reader.has.is_set():
            break
    else:
        pytest.fail("twenty readers passed the writer")
    writer.has.wait()
    assert not reader.has.is_set()
    writer.end()
    reader.has.wait()
    reader.end()


# --- forks ----------------------------------------------------------------------------------------


def forked(work: Callable[[], None]) -> bool:
    """Run something in a forked child to its end, and say whether it succeeded."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:  # noqa: BLE001  # reason: the child must not become a second pytest
            os.write(2, f"in the child: {error!r}\n".encode())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.req("J3")
@pytest.mark.parametrize("mode", MODES)
def test_a_forked_child_does_not_have_its_parents_lock(path: Path, mode: str) -> None:
    with getattr(Lock(path), mode)("write"):
        before = path.read_text()

        def work() -> None:
            with pytest.raises(LockTimeout), Lock(path, AT_ONCE).exclusive("steal"):
                pass
            assert is_free(path, "shared") is (mode == "shared")
            assert is_free_elsewhere(path, "shared") is (mode == "shared"), "threads of the child go on as well"

        assert forked(work)
        assert not is_free_elsewhere(path, "exclusive")
        assert path.read_text() == before


@pytest.mark.req("J3")
def test_a_child_that_leaves_the_block_of_its_parent_releases_nothing(path: Path, tmp_path: Path) -> None:
    held = Lock(path).exclusive("write")
    held.__enter__()
    note = path.read_text()
    bystander = tmp_path / "bystander"
    bystander.write_text("content")

    def work() -> None:
        # Takes the number of the closed descriptor: were it still used, this file would be emptied and closed.
        with bystander.open("r+") as file:
            held.__exit__(None, None, None)
            assert file.read() == "content"

    assert forked(work)
    assert path.read_text() == note
    assert not is_free_elsewhere(path, "exclusive")
    held.__exit__(None, None, None)
    assert is_free(path, "exclusive")
    assert bystander.read_text() == "content"


@pytest.mark.req("J3")
def test_a_child_that_outlives_a_killed_holder_does_not_keep_its_lock(path: Path) -> None:
    with other_process(path, "exclusive", "fork") as process:
        assert not is_free(path, "shared")
        process.kill()
        process.wait()
        assert is_free(path, "exclusive")


@pytest.mark.slow
@pytest.mark.req("J3")
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 and later warn of forks with threads")
def test_forks_while_other_threads_lock(path: Path) -> None:
    ended = threading.Event()

    def work() -> None:
        lock = Lock(path, PATIENT)
        while not ended.is_set():
            with lock.exclusive("write"):
                pass

    def child() -> None:
        with Lock(path, PATIENT).exclusive("write"):
            assert json.loads(path.read_text())["pid"] == os.getpid()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert all(forked(child) for _ in range(20))
    finally:
        ended.set()
        for thread in threads:
            thread.join()
