"""What a PostgreSQL server can refuse: each time a typed error that says what to do, and nothing half done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

import wellkept
from tools.postgres_server import PostgresServer
from wellkept.errors import (
    ConfigurationError,
    NotAStore,
    SchemaTooNew,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    WellkeptError,
)
from wellkept.stores.postgres import PostgresStore
from wellkept.testing.builders import Writer, owner
from wellkept.transfer.migration import migrate

ADA = owner("ada")
PATIENCE_S = 30
PASSWORD = "right-password"
pytestmark = pytest.mark.req("L14")

Execute = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
def execute(postgres_server: PostgresServer, postgres_url: str) -> Execute:
    """Run a statement in the database of the test, as its superuser."""
    return lambda statement: postgres_server.execute(statement, name_of(postgres_url))


@pytest.fixture
def plain(postgres_server: PostgresServer, postgres_url: str) -> Iterator[str]:
    """The URL of the same database for a user who may create nothing."""
    role = f"plain_{name_of(postgres_url)}"
    postgres_server.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    yield postgres_url.replace("postgres@", f"{role}@")
    postgres_server.execute(f"DROP OWNED BY {role}", name_of(postgres_url))
    postgres_server.execute(f"DROP ROLE {role}")


def name_of(url: str) -> str:
    return urlsplit(url).path[1:]


def refused(url: str, kind: type[WellkeptError], words: str) -> WellkeptError:
    with pytest.raises(kind) as caught:
        wellkept.open(url)
    assert type(caught.value) is kind
    assert words in caught.value.message
    assert caught.value.hint
    return caught.value


def test_a_server_that_is_not_there() -> None:
    refused("postgresql://127.0.0.1:1/db", StoreError, "cannot be reached")
    refused("postgresql://no-such-host.invalid/db", StoreError, "cannot be reached")


def test_a_database_and_a_user_that_are_not_there(postgres_url: str) -> None:
    refused(postgres_url + "_not", ConfigurationError, "no such database")
    refused(postgres_url.replace("postgres@", "nobody_at_all@"), ConfigurationError, "the user or the password")


@pytest.mark.req("H13")
def test_a_wrong_password(postgres_server: PostgresServer, plain: str) -> None:
    rules = Path(postgres_server.data) / "pg_hba.conf"
    before = rules.read_text()
    role = urlsplit(plain).username
    try:
        rules.write_text(f"host all {role} 127.0.0.1/32 scram-sha-256\n{before}")
        postgres_server.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + PATIENCE_S
        while answers(plain):
            assert time.monotonic() < deadline
        error = refused(plain, ConfigurationError, "the user or the password")
        wrong = refused(plain.replace("@", ":wrong-password@"), ConfigurationError, "the user or the password")
        assert "wrong-password" not in f"{wrong!r} {wrong} {wrong.__cause__} {error.details}"
        assert answers(plain.replace("@", f":{PASSWORD}@"))
    finally:
        rules.write_text(before)
        postgres_server.execute("SELECT pg_reload_conf()")


def answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def test_no_connection_left(postgres_server: PostgresServer, plain: str) -> None:
    role = urlsplit(plain).username
    postgres_server.execute(f"ALTER ROLE {role} CONNECTION LIMIT 1")
    with psycopg.connect(plain):
        refused(f"{plain}?reconnect_ms=0", StoreBusy, "no connection left")


def test_all_connections_of_the_process_in_use(postgres_url: str) -> None:
    store = PostgresStore.from_url(f"{postgres_url}?pool_size=2&lock_timeout_ms=50")
    store.journal.append([Writer().add(ADA)])
    scans = [iter(store.journal.scan({ADA})) for _ in range(2)]
    for one in scans:
        next(one)
    with pytest.raises(StoreBusy, match="pool_size"):
        store.journal.settings()
    assert [list(one) for one in scans] == [[], []]
    assert store.journal.settings()
    store.close()


def test_without_pgvector(postgres_server: PostgresServer, execute: Execute, postgres_url: str) -> None:
    execute("DROP EXTENSION vector")
    execute(f"ALTER DATABASE {name_of(postgres_url)} SET extension_control_path = '/nowhere'")
    refused(postgres_url, ConfigurationError, "pgvector")
    assert not PostgresStore.exists(postgres_url)
    execute(f"ALTER DATABASE {name_of(postgres_url)} RESET extension_control_path")
    wellkept.open(postgres_url).close()


def test_with_an_older_pgvector(execute: Execute, postgres_url: str) -> None:
    execute("UPDATE pg_extension SET extversion = '0.5.1' WHERE extname = 'vector'")
    error = refused(postgres_url, ConfigurationError, "0.5.1")
    assert "ALTER EXTENSION" in error.hint
    assert not PostgresStore.exists(postgres_url)


def test_a_read_only_server_is_read(postgres_server: PostgresServer, postgres_url: str) -> None:
    execute = postgres_server.execute
    setting = f"ALTER DATABASE {name_of(postgres_url)} SET default_transaction_read_only"
    execute(f"{setting} = on")
    refused(postgres_url, StoreReadOnly, "takes no writes")
    execute(f"{setting} = off")
    with wellkept.open(postgres_url) as memories:
        tea = memories.view(user="ada").add("Likes tea")
    execute(f"{setting} = on")
    with wellkept.open(postgres_url) as memories:
        ada = memories.view(user="ada")
        assert ada.get(tea.id) is not None
        assert len(ada.search("tea")) == 1
        with pytest.raises(StoreReadOnly):
            ada.add("Likes cake")
        health = memories.health()
        assert (health.status, health.components["store"].message) == ("degraded", "the server takes no writes")


def test_a_newer_schema(execute: Execute, postgres_url: str) -> None:
    store = PostgresStore.from_url(postgres_url)
    store.journal.append([Writer().add(ADA)])
    execute("INSERT INTO wellkept.migrations VALUES (99)")
    refused(postgres_url, SchemaTooNew, "schema 99")
    with pytest.raises(SchemaTooNew):  # also if it was open before
        store.journal.append([Writer().add(ADA)])
    with pytest.raises(SchemaTooNew):
        migrate(postgres_url)
    store.close()


@pytest.mark.parametrize("statement", ["COMMENT ON TABLE {} IS NULL", "DROP TABLE {0}; CREATE TABLE {0} (name text)"])
def test_tables_of_others_or_of_the_former_name(execute: Execute, postgres_url: str, statement: str) -> None:
    PostgresStore.from_url(postgres_url).close()
    execute(statement.format("wellkept.migrations"))
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'wellkept' ORDER BY 1"
    before = execute(tables)
    assert "before its first release" in refused(postgres_url, NotAStore, "did not make").message
    with pytest.raises(NotAStore):
        migrate(postgres_url)
    assert execute(tables) == before


_STRIKE = """CREATE FUNCTION strike() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_terminate_backend(pg_backend_pid()); END $$"""


def test_a_migration_that_was_interrupted(execute: Execute, postgres_url: str) -> None:
    execute(_STRIKE)
    execute("CREATE EVENT TRIGGER struck ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION strike()")
    refused(postgres_url, StoreError, "connection to the server was lost")
    assert not PostgresStore.exists(postgres_url)
    execute("DROP EVENT TRIGGER struck")
    with wellkept.open(postgres_url) as memories:
        assert memories.view(user="ada").add("Likes tea").content == "Likes tea"


@pytest.mark.parametrize(("old", "new"), [(1, 2), (2, 1)])
@pytest.mark.usefixtures("later_release")
def test_a_step_that_was_interrupted(execute: Execute, postgres_url: str, old: int, new: int) -> None:
    with wellkept.open(postgres_url) as memories:
        tea = memories.view(user="ada").add("Likes tea")
    migrate(postgres_url, to=old)
    columns = (
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'wellkept' ORDER BY 1"
    )
    before = execute(columns)
    execute(_STRIKE)
    execute("CREATE EVENT TRIGGER struck ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION strike()")
    with pytest.raises(StoreError, match="connection to the server was lost"):
        migrate(postgres_url, to=new)
    execute("DROP EVENT TRIGGER struck")
    assert sorted(map(repr, execute(columns))) == sorted(map(repr, before))
    report = migrate(postgres_url, to=new)
    assert (report.before, report.after) == (old, new)
    with wellkept.open(postgres_url) as memories:
        assert memories.view(user="ada").get(tea.id) is not None


def test_a_full_disk(execute: Execute, postgres_url: str) -> None:
    """The server tells it by a code, whatever the reason; filling a disk would hurt the neighbours."""
    with wellkept.open(postgres_url, retry=wellkept.settings.RetryPolicy(attempts=1)) as memories:
        ada = memories.view(user="ada")
        tea = ada.add("Likes tea")
        execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full'; END $$"
        )
        execute("CREATE TRIGGER full_disk BEFORE INSERT ON wellkept.journal EXECUTE FUNCTION full_disk()")
        with pytest.raises(StoreFull) as caught:
            ada.add("Likes cake")
        assert caught.value.hint
        assert ada.get(tea.id) is not None
        execute("DROP TRIGGER full_disk ON wellkept.journal")
        ada.add("Likes cake")
        assert ada.count() == 2


def test_a_full_disk_lets_search_load_an_owner(execute: Execute, postgres_url: str) -> None:
    """Nothing of it is put on the server's disk: there may be no room."""
    with wellkept.open(postgres_url, embedder=None) as memories:
        memories.view(user="ada").add_many(
            [wellkept.NewMemory(content=f"note{number} {'about tea ' * 150}") for number in range(4_000)]
        )
    execute(f"ALTER DATABASE {name_of(postgres_url)} SET temp_file_limit = 0")
    with wellkept.open(postgres_url, embedder=None) as memories:
        [best] = memories.view(user="ada").search("note1234", limit=1)
        assert best.memory.content.startswith("note1234 ")


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_in_another_encoding(postgres_server: PostgresServer, postgres_url: str, encoding: str) -> None:
    name = f"{name_of(postgres_url)}_{encoding.lower()}"
    postgres_server.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
    refused(postgres_server.url(name), ConfigurationError, encoding)
    postgres_server.drop(postgres_server.url(name))


def test_a_user_who_may_create_nothing(execute: Execute, postgres_url: str, plain: str) -> None:
    """Another one migrates; then the tables are enough."""
    assert "wellkept migrate" in refused(plain, ConfigurationError, "lacks a right").hint
    report = migrate(postgres_url)
    assert report.before == 0
    assert migrate(postgres_url).before == report.after
    role = urlsplit(plain).username
    assert "grant USAGE" in refused(plain, ConfigurationError, "lacks a right").hint  # the tables are there
    execute(f"GRANT USAGE ON SCHEMA wellkept TO {role}")
    execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA wellkept TO {role}")
    with wellkept.open(plain) as memories:
        ada = memories.view(user="ada")
        tea = ada.add("Likes tea")
        ada.forget(tea.id, permanent=True)
        assert memories.health().status == "healthy"


def test_a_writer_that_waits_too_long(postgres_url: str) -> None:
    first = PostgresStore.from_url(postgres_url)
    first.journal.append([Writer().add(ADA)])
    impatient = PostgresStore.from_url(f"{postgres_url}?lock_timeout_ms=50")
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE wellkept.journal IN EXCLUSIVE MODE")
        with pytest.raises(StoreBusy) as caught:
            impatient.journal.append([Writer().add(ADA)])
    assert "lock_timeout_ms" in caught.value.hint
    impatient.journal.append([Writer().add(ADA)])
    assert [one.seq for one in first.journal.versions({ADA})] == [1, 2]
    first.close()
    impatient.close()


def test_a_statement_that_takes_too_long(postgres_url: str) -> None:
    PostgresStore.from_url(postgres_url).close()
    store = PostgresStore.from_url(f"{postgres_url}?statement_timeout_ms=100&lock_timeout_ms=60000")
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE wellkept.journal IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreBusy) as caught:
            store.journal.feed()
    assert "statement_timeout_ms" in caught.value.hint
    assert list(store.journal.feed()) == []
    store.close()


def test_a_schema_that_something_else_uses(execute: Execute, postgres_url: str) -> None:
    execute("CREATE SCHEMA wellkept")
    execute("CREATE TABLE wellkept.journal (entry text)")
    refused(postgres_url, ConfigurationError, "something else")
    assert execute("SELECT count(*) FROM wellkept.journal") == [(0,)]
    with wellkept.open(f"{postgres_url}?schema=another", embedder=None) as memories:
        assert memories.view(user="ada").add("Likes tea").version == 1
