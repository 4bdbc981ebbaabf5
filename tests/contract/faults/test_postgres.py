"""The store on a PostgreSQL server: killed writers, a server that restarts, lost answers, dump and restore."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

import wellkept
from tests.contract.faults import processes
from tests.contract.faults.processes import Told
from tests.contract.faults.script import view_of
from tests.contract.faults.soundness import everything
from tests.contract.faults.tcp_proxy import TcpProxy
from tests.support.memory_disk import IN_MEMORY
from tools.postgres_server import PostgresServer, ServerMissing
from wellkept import aio
from wellkept.errors import PositionLost

WRITERS = 2
KILLS, UNSTRUCK = 8, 3  # after every third kill the server is restarted or crashes: counted, since machines may be slow
PATIENCE_S = 60


@pytest.fixture
def server(absent: Callable[[str], NoReturn]) -> Iterator[PostgresServer]:
    """A server that the test may stop and kill."""
    try:
        made = PostgresServer(parent=IN_MEMORY)
    except ServerMissing as error:
        absent(str(error))
    made.execute("CREATE EXTENSION vector", "template1")
    yield made
    made.close()


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[TcpProxy]:
    made = TcpProxy(postgres_server.port)
    yield made
    made.close()


class _Writer:
    """A child that adds memories until it is killed; it tells into a file, so that nobody has to read along."""

    def __init__(self, url: str, output: Path) -> None:
        self._output = output
        with output.open("w") as file:
            self.process = processes.start("add_without_keys", url, output.stem, stdout=file)

    @property
    def told(self) -> Told:
        text = self._output.read_text()
        return Told.parse(0, text[: text.rfind("\n") + 1])

    def wait_for(self, more: int) -> None:
        """Until it has added so many more. It is killed then, at whatever moment that may be. One that found no server
        when it started has ended.
        """
        wanted, deadline = len(self.told.added) + more, time.monotonic() + PATIENCE_S
        while len(self.told.added) < wanted and self.process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def kill(self) -> dict[str, str]:
        """End it; what it had acknowledged."""
        self.process.kill()
        with self.process:
            pass
        return self.told.added


@pytest.mark.req("L1", "L14", "N1")
def test_killed_writers_and_a_restarted_server_lose_and_double_nothing(
    server: PostgresServer, tmp_path: Path, long_run: bool
) -> None:
    """Two processes write to one owner and are killed again and again; the server is restarted, and killed, in the
    middle. What they acknowledged is there once, and what they did not at most once.
    """
    url, acknowledged = server.create(), dict[str, str]()
    outputs = (tmp_path / f"w{number}" for number in range(10_000))
    strikes = itertools.cycle((server.restart, server.crash))
    end = time.monotonic() + (60 if long_run else 0)
    writers = [_Writer(url, next(outputs)) for _ in range(WRITERS)]
    try:
        for kills in itertools.count(1):
            victim = random.randrange(WRITERS)
            writers[victim].wait_for(random.randint(1, 20))
            acknowledged |= writers[victim].kill()
            if kills >= KILLS and time.monotonic() >= end:
                break
            writers[victim] = _Writer(url, next(outputs))
            if kills % UNSTRUCK == 0:
                next(strikes)()
    finally:
        for writer in writers:
            acknowledged |= writer.kill()
    _check(url, acknowledged)


def _check(url: str, acknowledged: dict[str, str]) -> None:
    """Everything acknowledged is there, nothing is there twice, and the feed tells the same."""
    with wellkept.open(url, embedder=None) as memories:
        view = view_of(memories)
        found = everything(view)
        tokens = Counter(memory.content.split()[0] for memory in found)
        assert [token for token, times in tokens.items() if times > 1] == []
        ids = {memory.content.split()[0]: memory.id for memory in found}
        assert {token for token, id in acknowledged.items() if ids.get(token) != id} == set()
        assert len(acknowledged) > 0
        stamps, after = [], None
        while page := view.changes(after=after, limit=1_000):
            stamps += [version.stamp for version in page]
            after = page.next
        assert len(stamps) == len(set(stamps)) == len(found)


@pytest.mark.req("L1", "L14", "N1")
@pytest.mark.parametrize("count", [1, 100], ids=["statements", "COPY"])
def test_a_lost_answer_to_commit_is_no_conflict_and_doubles_nothing(
    postgres_url: str, proxy: TcpProxy, count: int
) -> None:
    direct = postgres_url.rpartition("/")[2]
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{direct}"
    with wellkept.open(url, embedder=None) as memories:
        view = view_of(memories)
        kept = view.add("before")
        proxy.losses = 1
        added = view.add_many([wellkept.NewMemory(content=f"note{number}") for number in range(count)])
        assert len(added) == count
        proxy.losses = 1
        changed = view.update(kept.id, content="after")
        proxy.losses = 1
        assert view.forget(added[0].id)
        assert (proxy.losses, proxy.lost) == (0, 3)
        assert (changed.version, view.get(kept.id).content) == (2, "after")  # type: ignore[union-attr]
        contents = [memory.content for memory in everything(view)]
        assert len(contents) == len(set(contents)) == count  # one was forgotten
        assert len(view.changes(limit=1_000)) == count + 3


@pytest.mark.req("L3", "L14")
def test_reads_whose_count_was_written_are_not_counted_again(postgres_url: str, proxy: TcpProxy) -> None:
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{postgres_url.rpartition('/')[2]}"
    with wellkept.open(url, embedder=None) as memories:
        view = view_of(memories)
        id = view.add("before").id
        view.get(id)
        proxy.losses = 1
        assert [one.access_count for one in view.list(sort_by="most_accessed")] == [1]
        assert proxy.lost == 1
    with wellkept.open(url, embedder=None) as memories:
        assert [one.access_count for one in view_of(memories).list(sort_by="most_accessed")] == [1]


@pytest.mark.req("L14")
def test_what_was_dumped_and_restored_is_the_same_and_old_positions_are_lost(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    with wellkept.open(postgres_url, embedder=None) as memories:
        view = view_of(memories)
        view.add_many([wellkept.NewMemory(content=f"note{number} about tea") for number in range(50)])
        gone = view.add("not for long")
        view.forget(gone.id, permanent=True)
        position = view.changes(limit=1_000).next
        before = [memory.content for memory in everything(view)]
        told = [(version.stamp, version.version) for version in view.changes(limit=1_000)]
        view.add("after the position")
        dump = postgres_server.dump(postgres_url)
        view.add("after the dump")
    copy = postgres_server.create("template0")
    try:
        postgres_server.restore(dump, copy)
        with wellkept.open(copy, embedder=None) as memories:
            view = view_of(memories)
            assert [memory.content for memory in everything(view)] == [*before, "after the position"]
            assert [(one.stamp, one.version) for one in view.changes(limit=1_000)][: len(told)] == told
            with pytest.raises(PositionLost):
                view.changes(after=position)
            assert view.add("goes on").version == 1
            assert len(view.search("tea", limit=100)) == 50
            assert memories.doctor().findings == ()
    finally:
        postgres_server.drop(copy)
    assert b"not for long" not in dump


def _edit(url: str, what: str, *more: str) -> str:
    """Have another process do something; the id of the memory."""
    [told] = processes.finish("edit", url, what, *more).of("edited")
    return str(told["id"])


@pytest.mark.req("L14", "N10")
@pytest.mark.parametrize("ram_rows", [200_000, 0], ids=["in RAM", "on the server"])
def test_a_process_never_serves_what_another_has_changed(postgres_url: str, ram_rows: int) -> None:
    url = f"{postgres_url}?ram_rows={ram_rows}"
    with wellkept.open(url, embedder=None) as memories:
        view = view_of(memories)
        view.add("the heron sleeps")
        after = view.position()

        def found(word: str) -> list[str]:
            return [hit.memory.content for hit in view.search(word)]

        def told() -> list[str]:
            nonlocal after
            page = view.changes(after=after)
            after = page.next
            return [version.operation.value for version in page]

        assert (found("juniper"), view.count(), view.stats().active) == ([], 1, 1)
        one = _edit(url, "add", "", "the juniper grows")
        assert (found("juniper"), told(), view.count()) == (["the juniper grows"], ["added"], 2)
        assert view.get(one).content == "the juniper grows"  # type: ignore[union-attr]
        _edit(url, "update", one, "the maple grows")
        assert (found("juniper"), found("maple"), told()) == ([], ["the maple grows"], ["updated"])
        assert view.get(one).content == "the maple grows"  # type: ignore[union-attr]
        _edit(url, "forget", one)
        assert (found("maple"), told(), view.count(), view.stats().active) == ([], ["forgotten"], 1, 1)
        _edit(url, "restore", one)
        assert (found("maple"), told(), view.count()) == (["the maple grows"], ["restored"], 2)
        _edit(url, "erase", one)
        assert (found("maple"), told(), view.get(one), view.count()) == ([], ["erased"], None, 1)
        assert found("heron") == ["the heron sleeps"]
        _edit(url, "configure")
        assert memories.settings()["durability"] == "relaxed"


@pytest.mark.req("L14", "L15")
def test_a_feed_that_is_followed_hears_of_other_processes(postgres_url: str) -> None:
    async def follow() -> list[str]:
        async with aio.open(postgres_url, embedder=None) as memories:
            view = memories.view(user="ada")
            heard = []
            async for version in view.changes(follow=True, poll_s=0.05):
                heard.append(version.memory.content if version.memory else "")
                if len(heard) == 1:
                    await asyncio.to_thread(_edit, postgres_url, "add", "", "second")
                elif len(heard) == 2:
                    return heard
        return heard

    _edit(postgres_url, "add", "", "first")
    assert asyncio.run(asyncio.wait_for(follow(), PATIENCE_S)) == ["first", "second"]
