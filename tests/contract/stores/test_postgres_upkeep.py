"""Keeping a PostgreSQL store in order: doctor, rebuild, scrub, replicas."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import psycopg
import pytest

import wellkept
from tests.support.memory_disk import IN_MEMORY
from tools.postgres_server import PostgresServer, ServerMissing
from wellkept.errors import (
    ConfigurationError,
    InvalidInput,
    PositionLost,
    SchemaTooNew,
    StoreBusy,
    StoreCorrupt,
    StoreReadOnly,
)
from wellkept.stores.postgres import PostgresStore
from wellkept.testing.basics import everything
from wellkept.testing.builders import Writer, owner, vector
from wellkept.testing.concurrency import at_once
from wellkept.transfer.migration import migrate
from wellkept.types import Access, Embedded, Status

ADA, BOB = owner("ada"), owner("bob")
PATIENCE_S = 30
pytestmark = pytest.mark.req("L14")

Execute = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
def execute(postgres_server: PostgresServer, postgres_url: str) -> Execute:
    return lambda statement: postgres_server.execute(statement, urlsplit(postgres_url).path[1:])


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    """Some history of two owners."""
    opened = PostgresStore.from_url(postgres_url)
    writes = Writer()
    one = writes.add(ADA, "one", key="k", tags=["a"], write={"vector": vector(1, 0)})
    gone, theirs = writes.add(ADA, "gone"), writes.add(BOB, "theirs")
    opened.journal.append([one, gone, theirs])
    opened.journal.append([writes.update(one, "two"), writes.erase(gone), writes.archive(theirs)])
    opened.journal.append([writes.add(ADA, f"memory {number}") for number in range(70)])
    yield opened
    opened.close()


def test_a_sound_store_is_healthy(store: PostgresStore) -> None:
    diagnosis = store.check()
    assert diagnosis.healthy
    assert diagnosis.findings == ()
    assert diagnosis.facts["versions"] == "75"


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        ("DELETE FROM heads WHERE state = 'active'", "heads"),
        ("UPDATE heads SET key = NULL, tags = '{}', size = 7", "heads"),
        ("INSERT INTO heads SELECT owner, 'zzz', 9999, born_at, seq, version, stamp, state, type, tier, importance,"
         " created_at, occurred_at, expires_at, author, source_type, has_pointer, tags, 'other', size, vector"
         " FROM heads WHERE key = 'k'", "heads"),
        ("UPDATE owners SET bytes = bytes + 1, memories = 0", "counters"),
        ("INSERT INTO vectors SELECT owner, 9999, embedder, data FROM vectors", "vectors"),
    ],
)  # fmt: skip
def test_what_differs_from_the_journal_is_found_and_repaired(
    store: PostgresStore, execute: Execute, damage: str, check: str
) -> None:
    before = everything(store.journal, ADA, BOB)[:4]
    execute(f"SET search_path = wellkept; {damage}")
    found = store.check()
    assert not found.healthy
    assert check in {one.check for one in found.findings}
    assert store.check(repair=True).healthy
    assert store.check().findings == ()
    assert everything(store.journal, ADA, BOB)[:4] == before


def test_a_damaged_version_is_told_and_not_repaired(store: PostgresStore, execute: Execute) -> None:
    execute("UPDATE wellkept.journal SET content = 'forged' WHERE content = 'two'")
    with pytest.raises(StoreCorrupt):
        store.journal.versions({ADA})
    with pytest.raises(StoreCorrupt):
        store.journal.feed()
    diagnosis = store.check(repair=True)
    assert [(one.check, one.repaired) for one in diagnosis.findings] == [("checksums", False)]
    assert "forged" not in str(diagnosis)


SECRET = b"a-secret-that-nobody-else-has"


def files(server: PostgresServer, url: str) -> bytes:
    """All table files of a database."""
    [(folder,)] = server.execute(
        "SELECT oid FROM pg_database WHERE datname = current_database()", urlsplit(url).path[1:]
    )
    server.execute("CHECKPOINT")
    found = sorted((Path(server.data) / "base" / str(folder)).iterdir())
    return b"".join(one.read_bytes() for one in found if one.is_file())


@pytest.mark.req("N7")
def test_nothing_of_what_was_erased_stays_in_the_tables_after_a_scrub(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    writes, store = Writer(), PostgresStore.from_url(postgres_url)
    text = SECRET.decode()
    one = writes.add(
        ADA,
        text,
        key=text,
        tags=[text],
        author=text,
        title=text,
        write={"payload": SECRET * 1_000, "reason": text, "vector": vector(1, 0), "digest": SECRET},
    )
    changed = writes.update(one, f"{text} again")
    store.journal.append([one, changed, writes.add(ADA, "kept")])
    store.journal.embed([Embedded(ADA, one.id, 2, vector(5, embedder="other"), SECRET)])
    store.journal.count_accesses([Access(ADA, one.id, 1, 1)])
    postgres_server.execute("ANALYZE", urlsplit(postgres_url).path[1:])
    assert SECRET in files(postgres_server, postgres_url)
    store.journal.append([writes.erase(changed)])
    postgres_server.execute("VACUUM", urlsplit(postgres_url).path[1:])
    assert any("write-ahead log" in line for line in store.scrub().remains)
    assert SECRET not in files(postgres_server, postgres_url)
    assert [one.facets["text"] for one in store.journal.scan({ADA})] == ["kept"]
    assert store.check().healthy
    store.close()


def test_a_scrub_does_not_pass_over_those_who_still_see_the_rows(postgres_url: str) -> None:
    with wellkept.open(f"{postgres_url}?lock_timeout_ms=100") as memories:
        ada = memories.view(user="ada")
        ada.forget(ada.add("Likes tea").id, permanent=True)
        with psycopg.connect(postgres_url) as other:
            other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            other.execute("SELECT 1")
            with pytest.raises(StoreBusy, match=f"process {other.info.backend_pid}"):
                memories.scrub()
        assert memories.scrub().remains


def test_a_scrub_needs_the_owner_of_the_tables(
    postgres_server: PostgresServer, execute: Execute, postgres_url: str
) -> None:
    PostgresStore.from_url(postgres_url).close()
    role = f"plain_{urlsplit(postgres_url).path[1:]}"
    execute(f"CREATE ROLE {role} LOGIN")
    execute(f"GRANT USAGE ON SCHEMA wellkept TO {role}")
    execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA wellkept TO {role}")
    store = PostgresStore.from_url(postgres_url.replace("postgres@", f"{role}@"))
    with pytest.raises(ConfigurationError, match="does not own"):
        store.scrub()
    store.close()
    execute(f"DROP OWNED BY {role}")
    postgres_server.execute(f"DROP ROLE {role}")


@pytest.fixture
def pair(absent: Callable[[str], NoReturn]) -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and its replica, which the test may stop."""
    try:
        primary = PostgresServer(parent=IN_MEMORY)
    except ServerMissing as error:
        absent(str(error))
    try:
        primary.execute("CREATE EXTENSION vector")
        replica = primary.replica()
        try:
            yield primary, replica
        finally:
            replica.close()
    finally:
        primary.close()


def both(primary: PostgresServer, replica: PostgresServer, options: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{replica.port},127.0.0.1:{primary.port}/postgres?{options}"


def reads(store: PostgresStore) -> list[tuple[object, ...]]:
    """Whether what is read comes from a replica."""
    return store.server.read(lambda session: session.rows("SELECT pg_is_in_recovery()"))


def test_a_replica_is_read_once_it_has_what_was_written(pair: tuple[PostgresServer, PostgresServer]) -> None:
    primary, replica = pair
    store = PostgresStore.from_url(both(primary, replica, "target_session_attrs=prefer-standby"))
    writes = Writer()
    replica.execute("SELECT pg_wal_replay_pause()")
    for number in range(3):
        one = writes.add(ADA, str(number))
        store.journal.append([one])
        assert [found.id for found in store.journal.get({ADA}, [one.id])] == [one.id]
        assert len(list(store.journal.scan({ADA}))) == number + 1
        assert reads(store) == [(False,)]
    replica.execute("SELECT pg_wal_replay_resume()")
    deadline = time.monotonic() + PATIENCE_S
    while reads(store) == [(False,)]:
        assert time.monotonic() < deadline
    assert [one.seq for one in store.journal.versions({ADA})] == [1, 2, 3]
    assert len(store.journal.feed()) == len(list(store.journal.scan({ADA}))) == 3
    store.close()


def test_a_replica_alone_is_read(pair: tuple[PostgresServer, PostgresServer]) -> None:
    primary, replica = pair
    with wellkept.open(primary.url(), embedder=None) as memories:
        tea = memories.view(user="ada").add("Likes tea")
        place = primary.execute("SELECT pg_current_wal_lsn()::text")[0][0]
    deadline = time.monotonic() + PATIENCE_S
    while replica.execute(f"SELECT pg_last_wal_replay_lsn() >= '{place}'") != [(True,)]:
        assert time.monotonic() < deadline
    with wellkept.open(replica.url(), embedder=None) as memories:
        ada = memories.view(user="ada")
        assert [one.id for one in ada.list()] == [hit.memory.id for hit in ada.search("tea")] == [tea.id]
        with pytest.raises(StoreReadOnly):
            ada.add("Likes cake")
        assert memories.health().status is Status.DEGRADED
        assert memories.health().components["store"].message == "the server takes no writes"


def test_a_durability_that_the_server_does_not_keep_is_told(pair: tuple[PostgresServer, PostgresServer]) -> None:
    primary, _ = pair
    store = PostgresStore.from_url(primary.url())
    told = store.health()
    assert told.status is Status.DEGRADED
    assert "a failover can lose acknowledged writes" in told.components["durability"].message
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("SELECT pg_reload_conf()")
    deadline = time.monotonic() + PATIENCE_S
    while store.health().status is not Status.HEALTHY:
        assert time.monotonic() < deadline
    primary.execute("ALTER SYSTEM SET fsync = off")
    primary.execute("SELECT pg_reload_conf()")
    while (told := store.health()).status is Status.HEALTHY:
        assert time.monotonic() < deadline
    assert "fsync is off" in told.components["durability"].message
    store.close()


def test_a_failover_goes_on_and_is_noticed(pair: tuple[PostgresServer, PostgresServer]) -> None:
    primary, replica = pair
    store = PostgresStore.from_url(both(primary, replica, "reconnect_ms=30000"))
    writes = Writer()
    store.journal.append([writes.add(ADA, "kept")])
    position, feed = store.journal.position({ADA}), store.journal.feed().next
    [(written,)] = primary.execute("SELECT pg_current_wal_lsn()::text")
    deadline = time.monotonic() + PATIENCE_S
    while replica.execute(f"SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn") != [(True,)]:
        assert time.monotonic() < deadline
    replica.execute("SELECT pg_wal_replay_pause()")
    store.journal.append([writes.add(ADA, "lost with the primary")])
    primary.kill()
    replica.execute("SELECT pg_wal_replay_resume()")
    replica.execute("SELECT pg_promote()")
    store.journal.append([writes.add(ADA, "after")])
    with pytest.raises(PositionLost):
        store.journal.versions({ADA}, after=position)
    with pytest.raises(PositionLost):
        store.journal.feed(after=feed)
    assert list(store.journal.versions({ADA}, after=store.journal.position({ADA}))) == []
    found = [one.facets["text"] for one in store.journal.feed()]
    assert (found[0], found[-1]) == ("kept", "after")
    assert [one.seq for one in store.journal.versions({ADA})] == list(range(1, len(found) + 1))
    store.close()


def test_schemas_are_migrated_down_and_up(postgres_url: str, later_release: pytest.MonkeyPatch) -> None:
    with wellkept.open(f"{postgres_url}?ram_rows=0") as memories:
        tea = memories.view(user="ada").add("Prefers green tea")
        assert [hit.memory.id for hit in memories.view(user="ada").search("tea")] == [tea.id]
    assert migrate(postgres_url, to=1).losses == ()
    assert (migrate(postgres_url, to=1).before, migrate(postgres_url, to=2).before) == (1, 1)
    report = migrate(postgres_url, to=1, dry_run=True)
    assert (report.before, report.after, report.losses) == (2, 1, ("1 labels are dropped",))
    assert migrate(postgres_url, to=1).before == 2
    for wrong in (0, 3):
        with pytest.raises(InvalidInput):
            migrate(postgres_url, to=wrong)
    with wellkept.open(f"{postgres_url}?ram_rows=0") as memories:
        assert [hit.memory.id for hit in memories.view(user="ada").search("tea")] == [tea.id]
    assert migrate(postgres_url).before == 2
    later_release.undo()
    with pytest.raises(SchemaTooNew):
        wellkept.open(postgres_url)


def test_processes_that_open_a_new_store_at_once_make_one(postgres_url: str) -> None:
    stores = at_once([partial(PostgresStore.from_url, postgres_url)] * 6)
    assert len({store.journal.settings()["origin"] for store in stores}) == 1
    assert len({store.journal.settings()["epoch"] for store in stores}) == 1
    for store in stores:
        store.close()
