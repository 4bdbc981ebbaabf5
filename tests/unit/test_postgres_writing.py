"""Writing to a PostgreSQL server: group commit, COPY, order, the feed, epochs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tools.postgres_server import PostgresServer
from wellkept.errors import ConfigurationError, Conflict, PositionLost, QuotaExceeded
from wellkept.stores.postgres import PostgresStore, append, rows, statements
from wellkept.stores.ram import RamStore
from wellkept.testing.basics import check_usage
from wellkept.testing.builders import Writer, owner, vector
from wellkept.testing.concurrency import at_once
from wellkept.types import Access, Position, Quota, Status, Write

ADA, BOB = owner("ada"), owner("bob")
PATIENCE_S = 30
pytestmark = pytest.mark.req("L14")


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    opened = PostgresStore.from_url(postgres_url)
    yield opened
    opened.close()


def transactions(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(DISTINCT xid) FROM wellkept.journal").fetchone()
    return row[0] if row else 0


def test_threads_that_write_to_one_owner_share_transactions(store: PostgresStore, postgres_url: str) -> None:
    writes = Writer()
    batches = [[writes.add(ADA) for _ in range(20)] for _ in range(16)]

    def append(batch: Sequence[Write]) -> None:
        for one in batch:
            store.journal.append([one])

    at_once([partial(append, batch) for batch in batches])
    assert [one.seq for one in store.journal.versions({ADA})] == list(range(1, 321))
    assert transactions(postgres_url) < 320
    check_usage(store.journal, [ADA])


@pytest.mark.req("L12")
def test_each_write_of_a_group_is_refused_by_itself(store: PostgresStore) -> None:
    """While the lock of the owner is held elsewhere, everything queues; then it is one group."""
    writes = Writer()
    first = writes.add(ADA, "first", key="k")
    store.journal.append([first])
    size = int(writes.add(ADA, "x").facets["bytes"])
    quota = Quota(owners=frozenset({ADA}), limit_bytes=int(first.facets["bytes"]) + 3 * size)
    outcomes: list[type[BaseException] | None] = []

    def append(one: Write) -> None:
        try:
            store.journal.append([one], quotas=[quota])
        except (Conflict, QuotaExceeded) as error:
            outcomes.append(type(error))
        else:
            outcomes.append(None)

    jobs = [writes.add(ADA, "x") for _ in range(8)] + [writes.add(ADA, "x", id=first.id) for _ in range(4)]
    at_once([partial(append, one) for one in jobs])
    assert outcomes.count(None) == 3
    assert outcomes.count(Conflict) == 4
    assert outcomes.count(QuotaExceeded) == 5
    assert [one.seq for one in store.journal.versions({ADA})] == [1, 2, 3, 4]
    check_usage(store.journal, [ADA])


def test_owners_never_wait_for_each_other(store: PostgresStore, postgres_url: str) -> None:
    writes = Writer()
    store.journal.append([writes.add(ADA), writes.add(BOB)])
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT 1 FROM wellkept.owners WHERE name = %s FOR UPDATE", ('["user","ada"]',))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(store.journal.append, [writes.add(ADA)])
            for _ in range(3):
                store.journal.append([writes.add(BOB)])
            assert not waiting.done()
            other.rollback()
            waiting.result(PATIENCE_S)
    assert [one.seq for one in store.journal.versions({BOB})] == [1, 2, 3, 4]


def rows_read(plan: dict[str, Any]) -> int:
    """The most rows that a part of a plan went through."""
    passed = sum(plan.get(name, 0) for name in ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Join Filter"))
    return max([int(passed), *map(rows_read, plan.get("Plans", ()))])


@pytest.mark.parametrize("analyzed", [False, True])
def test_a_memory_is_looked_up_without_reading_its_owner(
    store: PostgresStore, postgres_url: str, *, analyzed: bool
) -> None:
    """Most owners are small: the planner takes the large one for small too."""
    writes = Writer()
    large = [writes.add(ADA, key=f"k{number}") for number in range(2_000)]
    store.journal.append(large)
    store.journal.append([writes.add(owner(f"small{number}")) for number in range(100)])
    digest, one = rows.named(ADA).digest, large[1_000]
    asked: list[tuple[str, Sequence[object]]] = [
        (append.HEADS, ([digest], [one.id])),
        (append.KEYS, ([digest], ["k1000"])),
        (statements.by_id(payload=True, vectors=True), ([one.id], [digest])),
    ]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET search_path TO wellkept")
        if analyzed:
            connection.execute("ANALYZE")
        for statement, values in asked:
            [(plan,)] = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}".encode(), values).fetchall()
            assert plan[0]["Plan"]["Actual Rows"] == 1
            assert rows_read(plan[0]["Plan"]) <= 101  # the owners may be read whole


@pytest.mark.parametrize("count", [63, 64, 1_000])
def test_many_writes_leave_the_same_as_one_by_one(store: PostgresStore, count: int) -> None:
    """A large batch goes by COPY."""
    writes = Writer()
    old = [writes.add(ADA, f"old {number}", key=f"k{number}", write={"vector": vector(1, 0)}) for number in range(9)]
    new = [
        writes.add(ADA, f"new {number}", tags=["a", "b"], write={"vector": vector(0, 1), "payload": b"\x00\xff"})
        for number in range(count)
    ]
    changed = [writes.update(one, "changed", key=f"k{8 - number}") for number, one in enumerate(old[:4])]
    moved = [writes.update(one, key=None) for one in old[4:]]
    batch = [*moved, *new, *(writes.erase(one) for one in new[:3]), writes.update(new[4], "again")]
    batch += [writes.update(new[5], "no vector", write={"keeps_vector": False}), *changed]
    plain = RamStore()
    for one in (store, plain):
        one.journal.append(old)
        one.journal.append(batch)
        check_usage(one.journal, [ADA])
    assert list(store.journal.scan({ADA}, vectors=True)) == list(plain.journal.scan({ADA}, vectors=True))
    assert list(store.journal.versions({ADA})) == list(plain.journal.versions({ADA}))
    keys = [f"k{number}" for number in range(9)]
    assert store.journal.keyed(ADA, keys) == plain.journal.keyed(ADA, keys)


def test_a_hanging_transaction_of_others_holds_the_feed_back_and_is_named(
    store: PostgresStore, postgres_server: PostgresServer
) -> None:
    """It may be in another database. Views go on, and in the end nothing is missed, doubled or reordered."""
    writes = Writer()
    store.journal.append([writes.add(ADA, "1")])
    followed = list(store.journal.feed())
    place: Position = store.journal.feed().next
    with psycopg.connect(postgres_server.url(), application_name="sleeper") as other:
        other.execute("SELECT pg_current_xact_id()")
        for number in range(5):
            store.journal.append([writes.add((ADA, BOB)[number % 2], str(number))])
        assert list(store.journal.feed(after=place)) == []
        assert [one.seq for one in store.journal.versions({ADA})] == [1, 2, 3, 4]
        deadline = time.monotonic() + PATIENCE_S
        while (health := store.health()).status is Status.HEALTHY:
            assert time.monotonic() < deadline
        feed = health.components["feed"]
        assert feed.status is Status.DEGRADED
        assert f"process {other.info.backend_pid} of database postgres" in feed.message
        assert "sleeper" in feed.message
    page = store.journal.feed(after=place, limit=2)
    followed += page
    followed += store.journal.feed(after=page.next)
    for one in (ADA, BOB):
        seen = [each.seq for each in followed if each.owner == one]
        assert seen == list(range(1, len(seen) + 1))
    assert len(followed) == 6
    assert store.health().components["feed"].status is Status.HEALTHY


def lost(store: PostgresStore, position: Position, feed: Position) -> None:
    for read in (
        lambda: store.journal.versions({ADA}, after=position),
        lambda: list(store.journal.scan({ADA}, at=position)),
        lambda: store.journal.feed(after=feed),
    ):
        with pytest.raises(PositionLost):
            read()


def test_a_dump_restored_over_an_open_store_is_noticed(
    store: PostgresStore, postgres_server: PostgresServer, postgres_url: str
) -> None:
    writes = Writer()
    store.journal.append([writes.add(ADA, "kept")])
    dump = postgres_server.dump(postgres_url)
    store.journal.append([writes.add(ADA, "lost")])
    position, feed = store.journal.position({ADA}), store.journal.feed().next
    postgres_server.execute("DROP SCHEMA wellkept CASCADE", urlsplit(postgres_url).path[1:])
    postgres_server.execute("DROP EXTENSION vector", urlsplit(postgres_url).path[1:])
    postgres_server.restore(dump, postgres_url)
    lost(store, position, feed)
    store.journal.append([writes.add(ADA, "new")])
    lost(store, position, feed)
    assert [one.facets["text"] for one in store.journal.feed()] == ["kept", "new"]
    assert [one.seq for one in store.journal.versions({ADA})] == [1, 2]
    position = store.journal.position({ADA})
    assert list(store.journal.versions({ADA}, after=position)) == []


@pytest.mark.parametrize("part", [0, 1, 2])
def test_another_server_timeline_or_database_is_another_epoch(
    store: PostgresStore, postgres_server: PostgresServer, postgres_url: str, part: int
) -> None:
    """As after a failover: the tables tell where they were, and that is somewhere else."""
    store.journal.append([Writer().add(ADA)])
    position, feed = store.journal.position({ADA}), store.journal.feed().next
    database = urlsplit(postgres_url).path[1:]
    [(text,)] = postgres_server.execute("SELECT incarnation FROM wellkept.epochs", database)
    parts = str(text).split("/")
    parts[part] = "1"
    postgres_server.execute(f"UPDATE wellkept.epochs SET incarnation = '{'/'.join(parts)}'", database)
    again = PostgresStore.from_url(postgres_url)
    lost(again, position, feed)
    lost(store, position, feed)
    assert len(list(again.journal.feed())) == 1
    again.journal.append([Writer().add(ADA)])
    assert [one.seq for one in again.journal.feed()] == [1, 2]
    again.close()


def setting(store: PostgresStore, name: str) -> str:
    with store.server.writers.session() as session:
        return str(session.rows("SELECT current_setting(%s)", (name,))[0][0])


@pytest.mark.parametrize(("durability", "commit"), [("full", "on"), ("relaxed", "off")])
def test_a_store_remembers_how_durable_it_is(postgres_url: str, durability: str, commit: str) -> None:
    PostgresStore.from_url(postgres_url, durability=durability).close()
    again = PostgresStore.from_url(postgres_url)
    assert again.durability == durability
    assert ("relaxed" in again.health().components["durability"].message) == (durability == "relaxed")
    assert setting(again, "synchronous_commit") == commit
    again.close()
    other = "full" if durability == "relaxed" else "relaxed"
    with pytest.raises(ConfigurationError, match=durability):
        PostgresStore.from_url(postgres_url, durability=other)


def test_connections_have_the_timeouts_of_the_url(postgres_url: str) -> None:
    store = PostgresStore.from_url(
        f"{postgres_url}?statement_timeout_ms=7000&idle_timeout_ms=8000&lock_timeout_ms=9000"
    )
    assert setting(store, "statement_timeout") == "7s"
    assert setting(store, "idle_in_transaction_session_timeout") == "8s"
    assert setting(store, "lock_timeout") == "9s"
    store.close()


def test_connections_that_the_server_ended_are_replaced(store: PostgresStore, postgres_url: str) -> None:
    """Nobody notices: neither who reads, nor who writes, nor who follows."""
    writes = Writer()
    store.journal.append([writes.add(ADA)])
    position = store.journal.position({ADA})
    calls: list[Callable[[], object]] = [
        lambda: store.journal.append([writes.add(ADA)]),
        lambda: store.journal.versions({ADA}, after=position),
        lambda: store.records.list({ADA}),
        lambda: store.journal.count_accesses([Access(ADA, "nothing", 1, 1)]),
    ]
    for call in calls:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'wellkept'"
            )
        call()
    assert [one.seq for one in store.journal.versions({ADA}, after=position)] == [2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_uses_connections_of_its_own(store: PostgresStore) -> None:
    store.journal.append([Writer().add(ADA)])
    child = os.fork()
    if child == 0:
        try:
            store.journal.append([Writer().add(ADA)])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    store.journal.append([Writer().add(ADA)])
    assert [one.seq for one in store.journal.versions({ADA})] == [1, 2, 3]
