"""kill -9 in the middle of a conversion: started again, it makes the whole copy."""

from __future__ import annotations

import random
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

import wellkept
from tests.contract.faults import processes
from tests.contract.faults.script import new, view_of
from tests.contract.faults.soundness import assert_sound
from tests.support.converted import seen
from wellkept.ports import Journal
from wellkept.stores.sqlite import SqliteStore

MANY = 240


def prepare(database: Path) -> dict[str, str]:
    """Memories with histories; every eighth erased; the ids of the others by key."""
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        added = view.add_many(new(f"base/{number}") for number in range(MANY))
        for place, memory in enumerate(added):
            if place % 2:
                view.update(memory.id, importance=0.9)
            if place % 8 == 0:
                view.forget(memory.id, permanent=True, reason="asked for")
            view.get(memory.id)
    return {memory.key or "": memory.id for place, memory in enumerate(added) if place % 8}


def versions(journal: Journal) -> int:
    return len(journal.feed())


def _killed(source: Path, target: Path) -> bool:
    """Start a conversion and kill it at some moment; whether that came before its end."""
    # At any moment between two steps.
    return processes.kill_after(random.randint(0, 8), random.uniform(0, 0.004), "convert", source, target).killed


@pytest.mark.req("P3")
def test_a_killed_conversion_goes_on_where_it_was(tmp_path: Path, long_run: bool) -> None:
    source = tmp_path / "source.db"
    known = prepare(source)
    killed = 0
    for number in range(40 if long_run else 2):
        target = tmp_path / f"target{number}.db"
        for _ in range(8):
            if not _killed(source, target):
                break
            killed += 1
        told = processes.finish("convert", source, target)
        [converted] = told.of("converted")
        with closing(SqliteStore(source)) as one, closing(SqliteStore(target)) as other:
            assert converted["versions"] == versions(one.journal)
            assert seen(other) == seen(one)
        assert_sound(target, known, note=number)
    assert killed > 2


@pytest.mark.req("P3")
def test_a_conversion_follows_writers_in_other_processes(tmp_path: Path) -> None:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    prepare(source)
    with processes.start("write_with_threads", source, "more", 2, 1.5, stdout=subprocess.DEVNULL) as writer:
        copied = 0
        while writer.poll() is None:
            copied += wellkept.convert(source, target).copied
    copied += wellkept.convert(source, target).copied
    with closing(SqliteStore(source)) as one, closing(SqliteStore(target)) as other:
        assert seen(other) == seen(one)
        assert copied == versions(one.journal)
