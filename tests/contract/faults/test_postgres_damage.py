"""One damaged setting or record in the tables of a server: it is named and mended, and stops nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

import wellkept
from tools.postgres_server import PostgresServer
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import StoreCorrupt
from wellkept.ports import DamagedRecord
from wellkept.stores.postgres import PostgresStore
from wellkept.testing.builders import Writer, owner
from wellkept.testing.records import record
from wellkept.types import Guard

ADA = owner("ada")
RECORDS = {
    "body": "body = replace(convert_from(body, 'UTF8'), 'de', 'fr')::bytea",
    "no text": "body = '\\x7b22ff'",
    "version": "version = 7",
    "time": "updated_at = 9223372036854775807",
    "digest": "digest = '\\x00'",
}

Execute = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
def execute(postgres_server: PostgresServer, postgres_url: str) -> Execute:
    return lambda statement: postgres_server.execute(statement, urlsplit(postgres_url).path[1:])


def opened(url: str) -> wellkept.Memories:
    return wellkept.open(url, embedder=HashingEmbedder(dimension=64))


def damage(execute: Execute, table: str, change: str, name: str) -> str:
    """Change the one row of that name; the name that it has then."""
    [(left,)] = execute(f"UPDATE wellkept.{table} SET {change} WHERE name = '{name}' RETURNING name")
    return str(left)


def vectors(execute: Execute) -> list[tuple[object, ...]]:
    return execute("SELECT owner, born, embedder, data FROM wellkept.vectors ORDER BY owner, born")


@pytest.mark.req("L14", "J2")
@pytest.mark.parametrize("setting", ["origin", "durability"])
def test_an_empty_store_opens_with_a_damaged_setting(postgres_url: str, execute: Execute, setting: str) -> None:
    wellkept.open(postgres_url, embedder=None, durability="full").close()
    damage(execute, "settings", "value = 'ab', digest = '\\x00'", setting)
    with opened(postgres_url) as memories:
        memories.view(user="ada").add("Prefers green tea")
        assert memories.doctor(repair=True).healthy
        assert memories.doctor().findings == ()
        assert memories.settings()["durability"] == "full"


@pytest.mark.req("L14", "J2")
def test_the_first_vectors_name_an_embedder_that_nobody_can_tell(postgres_url: str, execute: Execute) -> None:
    store, writes = PostgresStore.from_url(postgres_url), Writer()
    store.journal.append([writes.add(ADA, "one")])
    for setting in ("embedder", "dimension"):
        store.journal.set_settings({"embedder": "hashing-64", "dimension": "64"})
        damage(execute, "settings", "value = 'ab', digest = '\\x00'", setting)
        assert store.journal.settings().get(setting) is None
        with opened(postgres_url) as memories:
            memories.view(user="bob").add(f"Knows the {setting}")
        assert store.journal.settings().damaged == ()
        assert store.journal.settings()["dimension"] == "64"
        assert store.check(repair=True).healthy
        execute("DELETE FROM wellkept.vectors")
    store.close()


@pytest.mark.req("L14", "J2")
def test_a_setting_that_nobody_can_guess_is_an_error_where_it_is_asked_for(postgres_url: str, execute: Execute) -> None:
    store = PostgresStore.from_url(postgres_url)
    store.journal.set_settings({"kit": "a value of the engine"})
    damage(execute, "settings", "value = 'a xalxe of the engine'", "kit")
    with pytest.raises(StoreCorrupt, match="'kit'"):
        store.journal.settings().get("kit")
    with opened(postgres_url) as memories:
        ada = memories.view(user="ada")
        tea = ada.add("Prefers green tea")
        assert [hit.memory.id for hit in ada.search("green tea")] == [tea.id]
        [finding] = memories.doctor(repair=True).findings
        assert (finding.check, finding.repaired) == ("settings", False)
        assert "'kit'" in finding.message
        store.journal.set_settings({"kit": "another value"})
        assert memories.doctor().findings == ()
    store.close()


@pytest.mark.req("L14", "J2")
def test_a_repair_leaves_what_was_set_since(postgres_url: str, execute: Execute) -> None:
    store = PostgresStore.from_url(postgres_url)
    store.journal.set_settings({"kit": "old"})
    damage(execute, "settings", "name = 'kid'", "kit")
    store.journal.set_settings({"kit": "new"})
    assert store.check(repair=True).healthy
    assert (store.journal.settings()["kit"], store.journal.settings().damaged) == ("new", ())
    store.close()


@pytest.mark.req("L14", "J2")
def test_vectors_of_another_embedder_go_whichever_setting_is_damaged(postgres_url: str, execute: Execute) -> None:
    with opened(postgres_url) as memories:
        memories.view(user="ada").add_many(["Prefers green tea", "Lives in a harbour town", "Plays chess"])
        execute("UPDATE wellkept.vectors SET embedder = 'other' WHERE born = 2")
        damage(execute, "settings", "value = reverse(value)", "embedder")
        assert {one.check for one in memories.doctor().findings} >= {"vectors", "settings"}
        memories.doctor(repair=True)
        assert {embedder for _, _, embedder, _ in vectors(execute)} == {"hashing-64"}
        assert memories.doctor().findings == ()


@pytest.mark.req("L14", "J2")
@pytest.mark.parametrize("setting", ["embedder", "dimension"])
def test_vectors_stay_when_nothing_of_a_setting_is_left(postgres_url: str, execute: Execute, setting: str) -> None:
    with opened(postgres_url) as memories:
        memories.view(user="ada").add("Prefers green tea")
        there = vectors(execute)
        damage(execute, "settings", "name = 'ab', value = 'cd'", setting)
        [finding] = memories.doctor(repair=True).findings
        assert (finding.check, finding.repaired) == ("settings", False)
    assert vectors(execute) == there


@pytest.mark.req("L14", "H5", "H10", "J2")
@pytest.mark.parametrize("what", RECORDS)
def test_a_damaged_record_is_set_aside_and_its_memories_stay(postgres_url: str, execute: Execute, what: str) -> None:
    with wellkept.open(postgres_url, embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        for day in ("monday", "tuesday"):
            sessions.create(day, preferences={"language": "de"}).view.add(f"Talked on {day}")
    damage(execute, "records", RECORDS[what], "monday")
    store = PostgresStore.from_url(postgres_url)
    with wellkept.open(postgres_url, embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        listed = {one.name: isinstance(one, DamagedRecord) for one in store.records.list(None, "session")}
        assert listed == {"monday": True, "tuesday": False}
        assert sessions.load("tuesday").preferences.language == "de"
        with pytest.raises(StoreCorrupt, match="'monday'") as caught:
            sessions.load("monday")
        assert "repair=True" in str(caught.value.hint)
        [finding] = memories.doctor().findings
        assert (finding.check, finding.message) == ("records", "1 records are damaged: session 'monday'")
        [finding] = memories.doctor(repair=True).findings
        assert finding.repaired
        assert memories.doctor().findings == ()
        assert execute("SELECT kind, name FROM wellkept.damaged_records") == [("session", "monday")]
        assert [memory.content for memory in sessions.create("monday").view.list()] == ["Talked on monday"]
        sessions.delete("monday", permanent=True)
        assert execute("SELECT * FROM wellkept.damaged_records") == []
    store.close()


@pytest.mark.req("L14", "H5")
def test_a_damaged_record_is_replaced_and_dropped_and_no_condition_can_be_on_it(
    postgres_url: str, execute: Execute
) -> None:
    store, writes = PostgresStore.from_url(postgres_url), Writer()
    for name in ("put over", "restored over", "dropped"):
        store.records.put(record(name))
        damage(execute, "records", "body = '\\x00'", name)
        kept = store.records.get(ADA, "kind", name)
        assert isinstance(kept, DamagedRecord)
        assert (kept.owner, kept.kind, kept.name, kept.version) == (ADA, "kind", name, 1)
    guard = Guard(owner=ADA, kind="kind", name="dropped", version=1)
    with pytest.raises(StoreCorrupt, match="'dropped'"):
        store.journal.append([writes.add(ADA)], guards=[guard])
    store.journal.append([writes.add(ADA)], guards=[replace(guard, name="none", version=0)])
    assert store.records.drop(ADA, "kind", "dropped")
    store.records.put(record("put over", version=2))
    store.records.restore(record("restored over", version=9))
    assert [(one.name, one.version) for one in store.records.list({ADA})] == [("put over", 2), ("restored over", 9)]
    assert store.check().findings == ()
    store.close()


@pytest.mark.req("L14", "J2")
def test_an_owner_without_a_readable_name_is_told(postgres_url: str, execute: Execute) -> None:
    store = PostgresStore.from_url(postgres_url)
    store.records.put(record("one"))
    execute("UPDATE wellkept.owners SET name = '['")
    with pytest.raises(StoreCorrupt, match="'one'"):
        store.records.get(ADA, "kind", "one")
    store.close()
