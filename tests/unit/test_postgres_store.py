"""What is particular to the store on a PostgreSQL server: URLs, conversion, errors, epochs, operations."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import wellkept
from tests.contract.stores.test_postgres_privacy import PLANS
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import ConfigurationError, StoreError, WellkeptError
from wellkept.keyrings.ram import RamKeyring
from wellkept.settings import load, shown, with_options
from wellkept.stores.postgres import PostgresStore
from wellkept.stores.postgres.options import Options, PostgresSettings, parse
from wellkept.stores.postgres.server import Server, Session
from wellkept.testing.builders import where
from wellkept.testing.cases import Cases
from wellkept.types import EncryptName, Layer, Owner

SECRET = "s3cr3t-w0rd"


def text_of(view: wellkept.View, memory_id: str) -> str:
    found = view.get(memory_id)
    assert found is not None
    return found.content


def test_a_server_is_a_database_like_any_other(postgres_url: str) -> None:
    with wellkept.open(postgres_url) as memories:
        ada = memories.view(user="ada")
        tea = ada.add("Prefers green tea", tags=["food"])
        ada.update(tea.id, content="Prefers black tea")
        assert text_of(ada, tea.id) == "Prefers black tea"
        assert [hit.memory.id for hit in ada.search("which tea?")] == [tea.id]
        assert [version.memory.content for version in ada.history(tea.id) if version.memory] == [
            "Prefers green tea",
            "Prefers black tea",
        ]
        assert [one.id for one in ada.list()] == [tea.id]
        assert memories.doctor().healthy
        assert repr(memories).startswith("<Memories postgres:127.0.0.1/")
    with wellkept.open(postgres_url.replace("postgresql:", "postgres:")) as memories:
        assert memories.view(user="ada").count() == 1


def test_a_search_of_what_is_in_ram_takes_three_trips(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings, what changed, and the memories that were found."""
    trips, read = [], Server.read

    def counted(server: Server, work: Callable[[Session], object]) -> object:
        trips.append(work)
        return read(server, work)

    with wellkept.open(postgres_url) as memories:
        ada = memories.view(user="ada")
        ada.add("Prefers green tea")
        ada.search("which tea?")
        monkeypatch.setattr(Server, "read", counted)
        assert len(ada.search("which tea?")) == 1
    assert len(trips) == 3


@pytest.mark.req("L10", "N7")
def test_nothing_is_beside_a_server(postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keyring is named, and its ledger is in the database alone: no file appears where nobody asked for one."""
    monkeypatch.chdir(tmp_path)
    with wellkept.open(postgres_url, embedder=None) as memories:
        with pytest.raises(ConfigurationError) as caught:
            memories.encryption.init(master_key_file="master.key")
        assert caught.value.details["field"] == "keyring"
        ada = memories.view(user="ada")
        ada.add("Likes tea")
        memories.privacy.erase(user="ada")
        assert len(memories.privacy.ledger()) == 1
        assert list(tmp_path.iterdir()) == []
        memories.encryption.init(keyring="ring.keys", master_key_file="master.key")
        kept = ada.add("The code is 4711", sensitive=True)
    where = {"encryption": {"keyring": "ring.keys", "master_key_file": "master.key"}}
    with wellkept.open(postgres_url, embedder=None, settings=where) as memories:
        assert text_of(memories.view(user="ada"), kept.id) == "The code is 4711"


@pytest.mark.req("L14")
def test_a_file_goes_to_a_server_and_back(postgres_url: str, tmp_path: Path) -> None:
    source, back = tmp_path / "memory.db", tmp_path / "back.db"
    with wellkept.open(source) as memories:
        ada = memories.view(user="ada")
        kept = [ada.add(f"Note {number} about tea") for number in range(100)]
        ada.update(kept[0].id, content="Changed")
        ada.forget(kept[1].id, permanent=True)
        memories.agent("debugger").long_term.add("An agent's own")
    there = wellkept.convert(source, postgres_url)
    again = wellkept.convert(postgres_url, back)
    assert there.checksum == again.checksum
    assert (there.versions, there.memories, there.owners) == (again.versions, again.memories, again.owners)
    with wellkept.open(back) as copy, wellkept.open(postgres_url) as memories:
        for one in (copy, memories):
            view = one.view(user="ada")
            assert text_of(view, kept[0].id) == "Changed"
            assert len(view.history(kept[0].id)) == 2
            assert view.count() == 99
    assert wellkept.convert(source, postgres_url).copied == 0


def test_a_conversion_that_fails_at_once_leaves_no_tables(postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no database"):
        wellkept.convert(f"{postgres_url}?schema=nothing", tmp_path / "memory.db")
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database at all" * 100)
    with pytest.raises(WellkeptError):
        wellkept.convert(broken, postgres_url)
    assert not PostgresStore.exists(postgres_url)


def test_a_place_is_not_converted_into_itself(postgres_url: str) -> None:
    with pytest.raises(ConfigurationError, match="the same"):
        wellkept.convert(postgres_url, postgres_url.replace("postgresql://postgres@", "postgres://other:pw@"))


def test_the_command_line_takes_a_url(postgres_url: str) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "wellkept", *words, "--db", postgres_url]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    empty = run("list")
    assert empty.returncode != 0
    assert "there is no database at postgresql://***@" in empty.stderr
    assert run("add", "Prefers tea").returncode == 0
    assert "Prefers tea" in run("list").stdout
    assert "***@" in run("where").stdout


WRONG_URLS = [
    ("postgresql://host/db?colour=blue", "colour"),
    ("postgresql://host/db?pool_size=1", "pool_size"),
    ("postgresql://host/db?pool_size=many", "pool_size"),
    ("postgresql://host/db?schema=Drop%20table", "schema"),
    (f"postgresql://ada:{SECRET}@[::1/db", "url"),
]


def test_a_wrong_url_is_refused_with_a_reason() -> None:
    with Cases() as cases:
        for url, field in WRONG_URLS:
            with cases.case(url):
                _refused_with_a_reason(url, field)


def _refused_with_a_reason(url: str, field: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(url)
    assert field in str(caught.value) or caught.value.details["field"] == field
    assert caught.value.hint
    assert SECRET not in f"{caught.value} {caught.value.details} {caught.value.__cause__}"


def test_parameters_of_libpq_are_passed_on() -> None:
    chosen = parse(
        "postgresql://ada:pw@one:1,two:2/db?sslmode=verify-full&sslrootcert=ca.pem&channel_binding=require"
        "&target_session_attrs=prefer-standby&schema=mine&pool_size=3"
    )
    given = chosen.connecting(writes=False)
    assert (given["sslmode"], given["sslrootcert"], given["channel_binding"]) == ("verify-full", "ca.pem", "require")
    assert (given["password"], given["host"], given["port"]) == ("pw", "one,two", "1,2")
    assert given["target_session_attrs"] == "prefer-standby"
    assert chosen.connecting(writes=True)["target_session_attrs"] == "read-write"
    assert (chosen.schema, chosen.pool_size) == ("mine", 3)


def test_options_of_the_url_come_before_those_of_the_settings() -> None:
    url = with_options("postgresql://host/db?schema=a", {"schema": "b", "pool_size": 4, "lock_timeout_ms": None})
    assert url == "postgresql://host/db?schema=a&pool_size=4"


def test_every_option_can_stand_in_the_settings(postgres_url: str) -> None:
    assert sorted(Options.__dataclass_fields__) == sorted(["parameters", *PostgresSettings.__dataclass_fields__])
    given = {"database": {"url": postgres_url, "postgres": {"schema": "mine"}}}
    with wellkept.open(settings=given) as memories:
        memories.view(user="ada").add("Likes tea")
    assert PostgresStore.exists(f"{postgres_url}?schema=mine")
    assert not PostgresStore.exists(postgres_url)


@pytest.mark.req("H13")
def test_a_password_shows_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    url = f"postgresql://ada:{SECRET}@127.0.0.1:1/db?connect_timeout=2"
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StoreError) as caught:
        wellkept.open(url)
    error = caught.value
    told = f"{error!r} {error} {error.details} {error.__cause__} {parse(url)!r} {parse(url)} {shown(url)}"
    told += repr(load({"database": {"url": url}}, environment={})) + caplog.text
    assert SECRET not in told
    assert "cannot be reached" in error.message


@pytest.mark.req("H2", "L14")
@pytest.mark.parametrize("encrypted", [False, True])
def test_memories_with_an_access_policy_are_asked_for_as_such(postgres_url: str, encrypted: bool) -> None:
    embedder, keyring = HashingEmbedder(16), RamKeyring() if encrypted else None
    encrypt: EncryptName | None = "all" if encrypted else None
    with wellkept.open(postgres_url, embedder=embedder, keyring=keyring, encrypt=encrypt) as memories:
        ada = memories.view(user="ada", team="core")
        made = {one: ada.add(text, layer="team", author="ada", access_policy=one) for one, text in PLANS.items()}
        for wanted in (True, False):
            asked = where(now=datetime.min.replace(tzinfo=UTC), states=None, has_access_policy=wanted)
            found = memories._engine.journal.ids({Owner(Layer.TEAM, ("core",))}, asked)
            assert {id for _, id in found} == {memory.id for one, memory in made.items() if (one is not None) is wanted}
