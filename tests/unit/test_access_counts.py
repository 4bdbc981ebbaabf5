"""Reads are counted, and neither fail nor wait because of it: not for writers, not on a full disk."""

import logging
import resource
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import psycopg
import pytest

import wellkept
from tests.support.stand_ins import ONCE
from tests.unit.lock_holders import other_process
from wellkept.engine import core
from wellkept.errors import StoreBusy, StoreError
from wellkept.stores.ram import RamStore
from wellkept.stores.sqlite import connections
from wellkept.testing import FaultyStore
from wellkept.types import Access

BUFFERED = 10
FOR_EVER_MS = 3_600_000
"""So long a writer may hold a store: a read that waits for it hangs, and the test with it."""

pytestmark = pytest.mark.req("L3")


class Place:
    """A database, and how somebody else gets hold of it so that nobody can write."""

    def __init__(self, kind: str, folder: Path, url: str) -> None:
        self.kind, self.path, self.url = kind, folder / "memory", url

    def open(self) -> wellkept.Memories:
        return wellkept.open(self.url, embedder=None, retry=ONCE)

    @contextmanager
    def held(self) -> Iterator[None]:
        if self.kind == "sqlite":
            with closing(apsw.Connection(str(self.path))) as other:
                other.execute("BEGIN IMMEDIATE")
                yield
        elif self.kind == "jsonl":
            with other_process(self.path / "lock", "exclusive") as process:
                yield
                process.kill()
        else:
            with psycopg.connect(self.url.partition("?")[0]) as other:
                other.execute("LOCK TABLE wellkept.accesses IN EXCLUSIVE MODE")
                yield


@pytest.fixture(params=["sqlite", "jsonl", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(core, "_BUFFERED", BUFFERED)
    monkeypatch.setattr(core, "_CLOSING_MS", 0)
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", FOR_EVER_MS)
    if request.param == "postgres":
        url = f"{request.getfixturevalue('postgres_url')}?lock_timeout_ms={FOR_EVER_MS}"
    else:
        url = f"{request.param}:{tmp_path / 'memory'}"
    place = Place(request.param, tmp_path, url)
    with place.open() as memories:
        memories.view(user="ada").add("made")
    if request.param == "jsonl":
        (tmp_path / "memory" / "config.json").write_text(f'{{"concurrency": {{"lock_timeout_ms": {FOR_EVER_MS}}}}}')
    return place


def filled(memories: wellkept.Memories, count: int = 3 * BUFFERED + 1) -> list[str]:
    return [one.id for one in memories.view(user="ada").add_many([f"note {number}" for number in range(count)])]


def counts(memories: wellkept.Memories, ids: list[str]) -> list[int]:
    """As the store has them: these are asked for without being read."""
    listed = {one.id: one.access_count for one in memories.view(user="ada").list(limit=100, sort_by="most_accessed")}
    return [listed[id] for id in ids]


def test_a_writer_elsewhere_neither_stops_nor_delays_a_read_and_no_count_is_lost(place: Place) -> None:
    with place.open() as memories:
        view, ids = memories.view(user="ada"), filled(memories)
        with place.held():
            assert [view.get(id).id for id in ids] == ids  # type: ignore[union-attr]
            assert [view.get(id).access_count for id in ids[:3]] == [1, 1, 1]  # type: ignore[union-attr]
            for sort in ("most_accessed", "recently_accessed", "relevance"):
                assert sorted(one.access_count for one in view.list(limit=100, sort_by=sort))[-3:] == [2, 2, 2]
        with place.open() as other:
            assert sum(counts(other, ids)) == 0
        assert counts(memories, ids) == [2, 2, 2, *[1] * (len(ids) - 3)]
        with place.open() as other:
            assert counts(other, ids) == [2, 2, 2, *[1] * (len(ids) - 3)]


def test_closing_gives_up_and_says_so(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    with place.open() as memories:
        ids = filled(memories)
    memories = place.open()
    with place.held():
        for id in ids:
            memories.view(user="ada").get(id)
        memories.close()
    lines = [one.getMessage() for one in caplog.records if getattr(one, "component", "") == "Accesses"]
    code = "CONCURRENCY" if place.kind == "jsonl" else "STORE_BUSY"
    assert lines == [
        f"the reads of {BUFFERED} memories are counted later: {code}",
        f"the reads of {len(ids)} memories are not counted: CLOSED",
    ]
    with place.open() as memories:
        assert sum(counts(memories, ids)) == 0


@contextmanager
def no_room(size: int = 0) -> Iterator[None]:
    """No file grows beyond a size."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("place", ["jsonl", "sqlite"], indirect=True)
def test_a_full_disk_only_puts_counts_off(place: Place) -> None:
    with place.open() as memories:
        view, ids = memories.view(user="ada"), filled(memories)
        project = memories.view(project="api", user="ada")
        other = project.add("of another owner", layer="project").id
        view.get(ids[0])
        assert counts(memories, ids[:2]) == [1, 0]
        with no_room():
            assert project.get(other) is not None
            assert [view.get(id).id for id in ids] == ids  # type: ignore[union-attr]
            assert counts(memories, ids[:2]) == [2, 1]
        assert counts(memories, ids) == [2, *[1] * (len(ids) - 1)]
        assert project.get(other).access_count == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("place", ["jsonl"], indirect=True)
def test_where_one_owner_s_file_has_no_room_no_other_one_s_is_counted_twice(place: Place) -> None:
    with place.open() as memories:
        view = memories.view(user="ada", project="api")
        one, two = view.add("of ada", layer="user").id, view.add("of the project", layer="project").id
        for _ in range(5):
            view.get(two)
            counts(memories, [])
        [file] = place.path.glob("derived/projects/*/accesses.jsonl")
        with no_room(file.stat().st_size):
            view.get(one)
            view.get(two)
            counts(memories, [])
    with place.open() as memories:
        assert [memories.view(user="ada", project="api").get(id).access_count for id in (one, two)] == [1, 6]  # type: ignore[union-attr]


# -- on a store that fails when it is told to ---------------------------------------------------------------------


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> FaultyStore:
    monkeypatch.setattr(core, "_BUFFERED", BUFFERED)
    return FaultyStore(RamStore())


def test_threads_that_write_counts_at_once_lose_none_and_double_none(store: FaultyStore) -> None:
    with wellkept.open(store=store, embedder=None) as memories:
        ids = filled(memories)
        for call in range(1, 400, 2):
            store.fail("count_accesses", StoreBusy("held"), call=call)

        def read() -> None:
            for id in ids * 5:
                memories.view(user="ada").get(id)
                memories._engine.accesses.flush()

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        while any(memories._engine.accesses._pending):
            memories._engine.accesses.flush()
        assert counts(memories, ids) == [20] * len(ids)


def test_what_is_read_while_counts_are_refused_is_counted_too() -> None:
    store = RamStore()
    refused: list[Sequence[Access]] = []

    def refuse(accesses: Sequence[Access], *, wait_ms: int | None = None) -> None:
        if refused:
            return type(store.journal).count_accesses(store.journal, accesses, wait_ms=wait_ms)
        refused.append(accesses)
        memories.view(user="ada").get(ids[0])
        memories.view(user="ada").get(ids[1])
        raise StoreBusy("held")

    with wellkept.open(store=store, embedder=None) as memories:
        ids = filled(memories, 2)
        store.journal.count_accesses = refuse  # type: ignore[method-assign]
        memories.view(user="ada").get(ids[0])
        for _ in range(2):
            counts(memories, ids)
        assert counts(memories, ids) == [2, 1]


def test_what_waits_is_bounded_and_the_oldest_goes(
    store: FaultyStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(core, "_MOST_BUFFERED", 2 * BUFFERED)
    with wellkept.open(store=store, embedder=None) as memories:
        ids = filled(memories, 5 * BUFFERED)
        for call in range(1, 6):
            store.fail("count_accesses", StoreError("the disk failed"), call=call)
        for id in ids:
            memories.view(user="ada").get(id)
        assert store.calls["count_accesses"] == 5
        assert counts(memories, ids) == [*[0] * 3 * BUFFERED, *[1] * 2 * BUFFERED]
    assert [one.levelno for one in caplog.records if getattr(one, "component", "") == "Accesses"] == [
        logging.WARNING,  # put off
        logging.WARNING,  # lost
    ]


def test_a_move_takes_counts_along_that_cannot_be_written(store: FaultyStore) -> None:
    with wellkept.open(store=store, embedder=None) as memories:
        view = memories.view(user="ada", project="api")
        one = view.add("Likes tea", layer="user")
        view.get(one.id)
        for call in (1, 2):
            store.fail("count_accesses", StoreBusy("held"), call=call)
        assert view.move(one.id, layer="project").access_count == 1
        assert [one.access_count for one in view.list(sort_by="most_accessed")] == [1]
