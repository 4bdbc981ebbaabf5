"""kill -9 in the middle of an erasure: the next one who opens the database finishes it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.contract.faults import processes
from tests.support.erased_person import MARKS, fill, found, open_database
from tests.support.stand_ins import store_of
from tools.postgres_server import PostgresServer
from wellkept import Memory

INTENT = 4
"""The step after which an erasure is promised: its intent is recorded."""


@pytest.mark.req("N7")
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["memory.db", "jsonl:notes"])
def test_a_killed_erasure_is_finished_when_the_database_is_opened(tmp_path: Path, name: str, long_run: bool) -> None:
    plain = name.removeprefix("jsonl:")
    original = tmp_path / "original"
    original.mkdir()
    with open_database(name.replace(plain, str(original / plain))) as memories:
        hers = fill(memories)
    killed = 0
    for step in range(1, 200, 1 if long_run else 4):
        place = tmp_path / f"step{step}"
        shutil.copytree(original, place)
        url = name.replace(plain, str(place / plain))
        told = processes.run("erase_person", url, step)
        assert told.killed or told.of("erased"), told.errors
        killed += told.killed
        check_finished(url, hers, partial(marks_below, place), begun=step >= INTENT)
        shutil.rmtree(place)
        if not told.killed:
            break
    assert killed > (20 if long_run else 5)


@pytest.mark.req("N7", "L14")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_erasure_is_finished_on_a_server(postgres_server: PostgresServer, long_run: bool) -> None:
    original = postgres_server.create()
    with open_database(original) as memories:
        hers = fill(memories)
    killed = 0
    for step in range(2, 200, 1 if long_run else 6):
        url = postgres_server.create(template=original.rpartition("/")[2])
        told = processes.run("erase_person", url, step)
        assert told.killed or told.of("erased"), told.errors
        killed += told.killed
        check_finished(url, hers, partial(marks_dumped, postgres_server, url), begun=step >= INTENT)
        postgres_server.drop(url)
        if not told.killed:
            break
    assert killed > (20 if long_run else 3)
    assert marks_dumped(postgres_server, original) != [], "a dump would show what is left"
    postgres_server.drop(original)


def marks_below(place: Path) -> list[str]:
    return [name for _, name in found(place)]


def marks_dumped(server: PostgresServer, url: str) -> list[str]:
    data = server.dump(url)
    return [name for name, mark in MARKS.items() if mark.encode() in data]


def check_finished(url: str, hers: Memory, left: Callable[[], list[str]], *, begun: bool) -> None:
    """Opening finishes what was begun: nothing is left of bob, one receipt tells of it, and others keep theirs."""
    with open_database(url) as memories:
        if not begun:
            assert memories.privacy.ledger() == ()
            assert left() != []
        else:
            assert left() == []
            [receipt] = memories.privacy.receipts()
            assert receipt.counts.memories == 5
            assert memories.privacy.verify(receipt).valid
            assert len(memories.privacy.ledger()) == 1
            assert store_of(memories).journal.settings()["erasing"] == ""
        assert memories.view(user="ada").get_many([hers.id])[hers.id].content == hers.content
        assert memories.doctor().healthy
