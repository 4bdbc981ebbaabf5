"""Several processes with several threads each, on one file."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import IO

import pytest

import recollect
from tests.faults import processes
from tests.faults.processes import Told
from tests.faults.script import view_of
from tests.faults.soundness import assert_sound, fill


def _start(place: Path, what: str, *arguments: object, **options: object) -> tuple[subprocess.Popen[str], IO[str]]:
    """A child that tells into a file, so that nobody has to read along."""
    output = (place / f"{what}{len(list(place.iterdir()))}.log").open("w+")
    return processes.start(what, *arguments, stdout=output, **options), output


def _told(child: subprocess.Popen[str], output: IO[str]) -> Told:
    returncode = child.wait(timeout=processes.PATIENCE_S)
    output.seek(0)
    with output:
        told = Told.parse(returncode, output.read())
    assert returncode == 0
    assert told.of("failed") == []
    return told


@pytest.mark.req("L1", "L2", "L3", "L15")
def test_two_writers_and_a_reader(tmp_path: Path, long_run: bool) -> None:
    seconds = 60 if long_run else 5
    database = tmp_path / "memory.db"
    base = fill(database)
    reader, seen = _start(tmp_path, "follow", database, "", stdin=subprocess.PIPE)
    writers = [_start(tmp_path, "write_with_threads", database, name, 3, seconds) for name in ("left", "right")]
    told = [_told(*writer) for writer in writers]
    assert reader.stdin is not None
    reader.stdin.close()  # the reader goes on to the end of the feed
    watched = _told(reader, seen)

    added = base | {key: id for one in told for key, id in one.added.items()}
    assert len(added) == len(base) + sum(len(one.added) for one in told)
    forgotten = {line["id"] for one in told for line in one.of("forgotten")}
    hidden = [key for key, id in added.items() if id in forgotten]
    found = assert_sound(database, added, erased=hidden)
    assert {memory.key for memory in found} == set(added) - set(hidden)

    versions = [tuple(line["at"]) for line in watched.of("saw")]
    assert versions == _feed(database), "followed while it grew, the feed is what it is afterwards"
    assert [sequence for sequence, *_ in versions] == sorted({sequence for sequence, *_ in versions})
    kinds = Counter(operation for *_, operation in versions)
    assert kinds["added"] == len(added)
    assert kinds["updated"] == sum(len(one.of("updated")) for one in told)
    assert kinds["forgotten"] == len(forgotten)
    assert len(watched.of("paged")) > 3, "the reader was read while others wrote"


def _feed(database: Path) -> list[tuple[int, str, int, str]]:
    with recollect.open(database) as memories:
        view, after = view_of(memories), 0
        found: list[tuple[int, str, int, str]] = []
        while versions := view.changes(after=after, limit=1_000):
            found += [(one.sequence, one.memory_id, one.version, one.operation.value) for one in versions]
            after = versions[-1].sequence
        return found


@pytest.mark.req("L1")
def test_many_processes_make_one_file(tmp_path: Path, long_run: bool) -> None:
    """All of them find no file, and all of them make it: one wins, nobody fails, nothing is lost."""
    for attempt in range(10 if long_run else 2):
        place = tmp_path / str(attempt)
        place.mkdir()
        database = place / "memory.db"
        children = [_start(place, "add_some", database, f"child{number}", 3) for number in range(6)]
        added: dict[str, str] = {}
        for child in children:
            added |= _told(*child).added
        assert len(added) == 18
        assert_sound(database, added)


@pytest.mark.req("L1")
def test_one_key_from_many_processes_is_one_memory(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    fill(database)
    children = [_start(tmp_path, "add_some", database, "same", 5) for _ in range(4)]
    told = [_told(*child).added for child in children]
    assert all(added == told[0] for added in told)
    assert_sound(database, told[0])
