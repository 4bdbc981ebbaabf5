"""A writer that holds the file longer than others are willing to wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import wellkept
from tests.contract.faults.script import new, view_of, word_of
from tests.contract.faults.soundness import assert_sound, fill, raw
from tests.support.sqlite_files import wait_only

WAIT_MS = 200


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_only(monkeypatch, WAIT_MS)


@contextmanager
def _held(database: Path) -> Iterator[None]:
    """The file, locked for writing by somebody else."""
    connection = raw(database)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@pytest.mark.req("L1", "L3", "H10")
@pytest.mark.usefixtures("impatient")
def test_writing_gives_up_and_reading_goes_on(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    known = fill(database)
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        with _held(database):
            for call in (
                lambda: view.add_many([new("late/0")]),
                lambda: view.update(known["base/0"], importance=1.0),
                lambda: view.forget(known["base/1"]),
                lambda: view.forget(known["base/2"], permanent=True),
                memories.rebuild,
            ):
                with pytest.raises(wellkept.errors.StoreBusy) as caught:
                    call()
                error = caught.value
                assert (error.code, error.retryable, error.details["file"]) == ("STORE_BUSY", True, "memory.db")
                assert error.hint
                assert isinstance(error, TimeoutError)
            assert view.count() == len(known)
            assert view.get(known["base/0"]) is not None
            assert [hit.memory.id for hit in view.search(word_of("base/0"))] == [known["base/0"]]
        assert len(view.changes()) == len(known), "nothing was written"
        known["late/0"] = view.add_many([new("late/0")])[0].id
    assert_sound(database, known)


@pytest.mark.req("H10")
@pytest.mark.usefixtures("impatient")
def test_opening_a_file_that_is_being_made(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    database.touch()
    with _held(database), pytest.raises(wellkept.errors.StoreBusy) as caught:
        wellkept.open(database, embedder=None)
    assert caught.value.details["file"] == "memory.db"
    assert_sound(database, fill(database))


@pytest.mark.req("H10", "W7")
@pytest.mark.usefixtures("impatient")
def test_many_threads_do_not_wait_one_after_another(tmp_path: Path) -> None:
    """All that queued behind a lock give up together, not each after a waiting time of its own."""
    database = tmp_path / "memory.db"
    known = fill(database)
    errors: list[BaseException] = []
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)

        def write(number: int) -> None:
            try:
                view.add_many([new(f"late/{number}")])
            except wellkept.errors.StoreError as error:
                errors.append(error)

        with _held(database):
            threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert [type(error) for error in errors] == [wellkept.errors.StoreBusy] * 20
        # Two groups, the first thread's own and that of the others, each with one waiting time; one each would be 20.
        assert len({id(error.__cause__) for error in errors}) < 10
        assert view.count() == len(known)
    assert_sound(database, known)


@pytest.mark.req("L1")
def test_a_short_lock_is_waited_for(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    known = fill(database)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with _held(database):
            held.set()
            done.wait(0.3)

    thread = threading.Thread(target=hold)
    with wellkept.open(database, embedder=None) as memories:
        thread.start()
        held.wait()
        known["late/0"] = view_of(memories).add_many([new("late/0")])[0].id
        thread.join()
    assert_sound(database, known)
