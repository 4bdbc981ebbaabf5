"""Several processes with several threads each, on one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import wellkept
from tests.contract.faults.conftest import Named
from tests.contract.faults.processes import Fork, Told
from tests.contract.faults.script import view_of
from tests.contract.faults.soundness import assert_sound, fill

Start = Callable[..., Fork]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts children; none of them outlives its test."""
    children: list[Fork] = []

    def start(what: str, *arguments: object) -> Fork:
        folder = tmp_path / f"child{len(children)}"
        folder.mkdir()
        children.append(Fork.start(folder, what, *arguments))
        return children[-1]

    yield start
    for child in children:
        child.end()


def well(told: Told) -> Told:
    """What a child told that ended well."""
    assert told.returncode == 0, told.errors
    assert told.of("failed") == []
    return told


@pytest.mark.req("L1", "L2", "L3", "L15", "J3", "J14", "N1", "N10")
@pytest.mark.parametrize("threads", [[3, 3], [1] * 10], ids=["two", "ten"])
def test_writers_and_a_reader(database: str, start: Start, tmp_path: Path, long_run: bool, threads: list[int]) -> None:
    """Nothing is lost or there twice, and the reader never sees half of anything."""
    seconds = (60 if len(threads) == 2 else 30) if long_run else 2
    base = fill(database)
    ending = tmp_path / "ending"
    reader = start("follow", database, ending)
    writers = [start("write_with_threads", database, f"of{one}x", many, seconds) for one, many in enumerate(threads)]
    told = [well(writer.told()) for writer in writers]
    ending.touch()  # the reader goes on to the end of the feed
    watched = well(reader.told())

    added = base | {key: id for one in told for key, id in one.added.items()}
    assert len(added) == len(base) + sum(len(one.added) for one in told)
    forgotten = {line["id"] for one in told for line in one.of("forgotten")}
    hidden = [key for key, id in added.items() if id in forgotten]
    found = assert_sound(database, added, erased=hidden)
    assert {memory.key for memory in found} == set(added) - set(hidden)

    versions = [tuple(line["at"]) for line in watched.of("saw")]
    assert versions == _feed(database), "followed while it grew, the feed is what it is afterwards"
    assert len({stamp for stamp, *_ in versions}) == len(versions)
    kinds = Counter(operation for *_, operation in versions)
    assert kinds["added"] == len(added)
    assert kinds["updated"] == sum(len(one.of("updated")) for one in told)
    assert kinds["forgotten"] == len(forgotten)
    assert len(watched.of("paged")) > 3, "the reader was read while others wrote"


def _feed(database: str) -> list[tuple[str, str, int, str]]:
    with wellkept.open(database, embedder=None) as memories:
        view, after = view_of(memories), None
        found: list[tuple[str, str, int, str]] = []
        while versions := view.changes(after=after, limit=1_000):
            found += [(one.stamp, one.memory_id, one.version, one.operation.value) for one in versions]
            after = versions.next
        return found


@pytest.mark.req("L1", "J3")
def test_many_processes_make_one_file(named: Named, start: Start, long_run: bool) -> None:
    """All of them find no file, and all of them make it: one wins, nobody fails, nothing is lost."""
    for attempt in range(10 if long_run else 1):
        database = named(f"memory{attempt}")
        children = [start("add_some", database, f"child{number}", 3) for number in range(6)]
        added: dict[str, str] = {}
        for child in children:
            added |= well(child.told()).added
        assert len(added) == 18
        assert_sound(database, added)


@pytest.mark.req("L1", "J3", "N2")
def test_one_key_from_many_processes_is_one_memory(database: str, start: Start) -> None:
    fill(database)
    children = [start("add_some", database, "same", 5) for _ in range(4)]
    told = [well(child.told()).added for child in children]
    assert all(added == told[0] for added in told)
    assert_sound(database, told[0])
