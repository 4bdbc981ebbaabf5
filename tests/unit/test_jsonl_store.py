"""The store in plain files: opening it, sharing it, and disks that fail."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import recollect
from recollect.errors import ConfigurationError, NotAStore
from recollect.stores.jsonl import JsonlStore, commits
from recollect.testing.builders import added, erased, memory, put, query, updated, vector
from recollect.types import Status
from tests.unit.jsonl_files import ADA, contents, filled, opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


# --- opening --------------------------------------------------------------------------------------


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NotAStore):
        JsonlStore(tmp_path)
    with pytest.raises(NotAStore):
        JsonlStore(tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_folder_remembers_its_durability(root: Path) -> None:
    with opened(root, durability="relaxed") as store:
        assert store.durability == "relaxed"
    with opened(root) as store:
        assert store.durability == "relaxed"
    with pytest.raises(ConfigurationError):
        JsonlStore(root, durability="full")
    with pytest.raises(ConfigurationError):
        JsonlStore(root, durability="some")
    with pytest.raises(ConfigurationError):
        JsonlStore.from_url("jsonl:")


@pytest.mark.req("J3")
def test_a_read_without_foreign_writes_reads_no_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(root)
    with opened(root) as store:
        assert len(contents(store)) == 5
        monkeypatch.setattr(store._disk, "read", lambda *_: pytest.fail("a file was read"))
        assert len(contents(store)) == 5
        monkeypatch.undo()


@pytest.mark.req("J3")
def test_a_log_that_became_long_is_replaced_under_open_stores(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "CHECKPOINT_BYTES", 2_000)
    with opened(root) as one, opened(root) as other:
        for number in range(40):
            put(one if number % 3 else other, memory(f"number {number}"))
            assert len(contents(other)) == len(contents(one)) == number + 1
        assert (root / commits.LOG).stat().st_size < 3_000
    with opened(root) as again:
        assert len(contents(again)) == 40


@pytest.mark.req("J3", "J8")
def test_other_open_stores_follow_an_erasure(root: Path) -> None:
    with opened(root) as one, opened(root) as other:
        first, second = memory("first", vector=vector(1, 0)), memory("second", vector=vector(0, 1))
        put(one, first)
        assert contents(other) == ["first"]
        put(one, second)
        one.apply([erased(first)])
        assert contents(other) == ["second"]
        other.apply([added(memory("third"))])
        assert contents(one) == contents(other) == ["second", "third"]
        assert one.versions({ADA}) == other.versions({ADA})


def test_a_read_that_fails_does_not_forget_what_was_known(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(root) as one, opened(root) as other:
        put(one, first := memory("first"))
        put(one, memory("second"))
        assert contents(other) == ["first", "second"]
        one.apply([erased(first)])  # the other one has to read everything again

        def fail(*_: object) -> None:
            raise recollect.errors.StoreError("the disk failed")

        monkeypatch.setattr("recollect.stores.jsonl.loading.load", fail)
        with pytest.raises(recollect.errors.StoreError):
            contents(other)
        monkeypatch.undo()
        assert contents(other) == ["second"]


# --- disks that fail ------------------------------------------------------------------------------


def broken(store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A disk that takes nothing, as one without room; returns what mends it."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", full)
    monkeypatch.setattr("recollect.stores.jsonl.disk._write", full)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return monkeypatch.undo


@pytest.mark.req("J10")
def test_a_full_disk_refuses_and_keeps_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = filled(root)
    with opened(root) as store:
        mend = broken(store, monkeypatch)
        with pytest.raises(recollect.errors.StoreFull):
            put(store, memory("refused"))
        assert contents(store) == known
        mend()
        put(store, memory("taken"))
    with opened(root) as store:
        assert contents(store) == [*known, "taken"]


@pytest.mark.req("J10")
def test_a_relaxed_store_buffers_says_so_and_writes_when_the_disk_is_well(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(root, durability="relaxed") as store, opened(root) as other:
        put(store, one := memory("one"))
        mend = broken(store, monkeypatch)
        put(store, memory("two"))
        store.apply([updated(one, content="one, changed")])
        assert contents(store) == ["one, changed", "two"]
        health = store.health()
        assert health.status is Status.DEGRADED
        assert health.components["buffered_writes"] == "2"
        with pytest.raises(recollect.errors.StoreFull):
            store.apply([erased(replace(one, version=2))])
        mend()
        assert contents(other) == ["one"]
        put(store, memory("three"))
        assert store.health().status is Status.HEALTHY
        assert contents(other) == contents(store) == ["one, changed", "two", "three"]
        assert store.versions({ADA}) == other.versions({ADA})


@pytest.mark.req("J10")
def test_what_waits_in_the_buffer_gives_way_to_what_others_wrote(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(root, durability="relaxed") as store, opened(root) as other:
        put(store, one := memory("one"))
        mend = broken(store, monkeypatch)
        put(store, memory("mine"))
        store.apply([updated(one, content="changed here")])
        mend()
        other.apply([updated(one, content="changed there")])
        assert contents(store) == ["changed there", "mine"]
        assert store.health().components == {"files": "ok", "buffered_writes": "1", "refused_writes": "1"}
        put(store, memory("next"))
        assert contents(other) == contents(store) == ["changed there", "mine", "next"]


@pytest.mark.req("J10")
def test_closing_with_writes_that_cannot_be_kept_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = JsonlStore(root, durability="relaxed")
    mend = broken(store, monkeypatch)
    put(store, memory("one"))
    with pytest.raises(recollect.errors.StoreFull):
        store.close()
    mend()
    with opened(root) as again:
        assert contents(again) == []


@pytest.mark.req("L5")
def test_equal_questions_may_ask_for_different_things(root: Path) -> None:
    """The last answer is kept; to Python, 1 and true are equal."""
    with opened(root) as store:
        put(store, memory("a number", metadata={"a": 1}), memory("a truth", metadata={"a": True}))
        for wanted, expected in ((1, "a number"), (True, "a truth")):
            asked = query(ADA, metadata={"a": wanted})
            assert [one.memory.content for one in store.select(asked)] == [expected]
            assert store.count(asked) == 1


@pytest.mark.req("L5")
def test_answers_that_are_kept_follow_what_changes(root: Path) -> None:
    contains = query(ADA, content_contains="oslo")
    says = query(ADA, text=("oslo",))
    with opened(root) as store, opened(root) as other:
        one, two = memory("Lives in Oslo"), memory("Works in OSLO")
        put(store, one, two)
        for asked in (contains, says):
            assert store.count(asked) == other.count(asked) == 2
        other.apply([updated(one, content="Lives in Rome")])
        for asked in (contains, says):
            assert store.count(asked) == other.count(asked) == 1
        store.apply([erased(two)])
        for asked in (contains, says):
            assert store.count(asked) == other.count(asked) == 0
