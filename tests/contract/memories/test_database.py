"""Opening, closing, and what is not one identity's."""

from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.refusals import refusal
from tests.support.stand_ins import CountingEmbedder, HandClock, Opener, sequence
from wellkept import Memories
from wellkept.errors import ConfigurationError, MissingIdentifier, StoreClosed, StoreFull
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore


def test_the_environment_names_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WELLKEPT_DB", str(tmp_path / "named.db"))
    with wellkept.open() as memories:
        memories.view(user="ada").add("tea")
    with wellkept.open(tmp_path / "named.db") as memories:
        assert memories.view(user="ada").count() == 1
    with wellkept.open("ram:") as memories:
        assert memories.view(user="ada").count() == 0


@pytest.mark.req("H10")
def test_what_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WELLKEPT_DB", raising=False)
    monkeypatch.chdir(tmp_path)
    attempts: list[tuple[dict[str, Any], str]] = [
        ({}, "url"),
        ({"url": ""}, "url"),
        ({"url": 5}, "url"),
        ({"url": "ram:", "embedder": 5}, "embedder"),
        ({"url": "ram:", "embedder": lambda texts: texts}, "embedder"),  # it has no name
        ({"store": "ram:"}, "store"),
        ({"url": "memory.db", "durability": "eventual"}, "durability"),
    ]
    refusals = {str(arguments): refusal(wellkept.open, **arguments) for arguments, _ in attempts}
    assert refusals == {str(arguments): f"open: ConfigurationError of {field}" for arguments, field in attempts}


def test_errors_of_opening_name_the_operation(tmp_path: Path) -> None:
    for url in ("nope:x", tmp_path / "missing" / "memory.db", tmp_path):
        with pytest.raises(wellkept.WellkeptError) as caught:
            wellkept.open(url)
        assert caught.value.operation == "open"
        assert caught.value.hint


def test_a_store_of_ones_own() -> None:
    store = RamStore()
    with wellkept.open(store=store) as memories:
        memories.view(user="ada").add("tea")
        assert len(store.journal.feed()) == 1
    with pytest.raises(StoreClosed):
        store.journal.feed()


def test_a_store_is_closed_if_it_cannot_be_used() -> None:
    store = FaultyStore(RamStore())
    store.fail("settings", StoreFull("no space left"))
    with pytest.raises(StoreFull):
        wellkept.open(store=store, embedder=CountingEmbedder())
    with pytest.raises(StoreClosed):
        store.journal.feed()


@pytest.mark.req("H1")
def test_a_view_needs_somebody(memories: Memories) -> None:
    for ids in ({}, {"session": "s"}, {"session": "s", "project": "p"}):
        with pytest.raises(MissingIdentifier) as caught:
            memories.view(**ids)  # type: ignore[arg-type]  # only ids
        assert (caught.value.details["field"], caught.value.operation) == ("user", "view")


@pytest.mark.req("H5")
def test_health_and_settings(opener: Opener) -> None:
    memories = opener(embedder=CountingEmbedder())
    assert memories.health().status.value == "healthy"
    assert memories.health().latency_ms >= 0
    assert memories.health().components["handlers"].message == "ok"
    assert "embedder" not in memories.settings()
    memories.view(user="ada").add("tea")
    assert {"embedder": "hashing-16", "dimension": "16"}.items() <= memories.settings().items()


def test_durability_is_kept_in_the_file(file_opener: Opener, tmp_path: Path) -> None:
    memories = file_opener()
    assert memories.settings()["durability"] == "relaxed"
    memories.configure(durability="full")
    assert memories.settings()["durability"] == "full"
    for bad in ("eventual", "", None, 5):
        with pytest.raises(ConfigurationError) as caught:
            memories.configure(durability=bad)  # type: ignore[arg-type]  # the point of the test
        assert (caught.value.details["field"], caught.value.operation) == ("durability", "configure")
    memories.close()
    with pytest.raises(ConfigurationError):
        wellkept.open(tmp_path / "memory.db", durability="relaxed")


@pytest.mark.req("J11")
def test_doctor_and_rebuild_leave_a_sound_database_as_it_is(opener: Opener, clock: HandClock) -> None:
    memories = opener(clock=clock, embedder=CountingEmbedder())
    view = memories.view(user="ada")
    one, two, three = view.add_many(["green tea", "black tea", "cake"])
    view.update(one.id, content="white tea", add_tags=["t"])
    view.forget(two.id)
    view.forget(three.id, permanent=True)
    before = (view.list(), view.changes(), view.search("tea"), view.stats())
    diagnosis = memories.doctor()
    assert (diagnosis.healthy, diagnosis.findings) == (True, ())
    assert "embedder" in diagnosis.checks
    memories.rebuild()
    assert memories.doctor(repair=True).findings == ()
    assert (view.list(), view.changes(), view.search("tea")) == before[:3]
    assert view.stats().bytes_used == before[3].bytes_used


def test_closing_ends_everything(memories: Memories) -> None:
    view = memories.view(user="ada")
    view.add("tea")
    with memories:
        assert view.count() == 1
    memories.close()
    for call in (lambda: view.add("x"), view.list, view.stats, memories.settings, memories.doctor, memories.rebuild):
        with pytest.raises(StoreClosed):
            call()
    assert memories.health().status.value == "unhealthy"
    assert memories.health().components["store"].message == "STORE_CLOSED"


@pytest.mark.req("N2")
def test_two_open_databases_see_each_other(file_opener: Opener) -> None:
    first, second = file_opener(), file_opener()
    one, two = first.view(user="ada"), second.view(user="ada")
    memory = one.add("tea")
    assert two.get(memory.id) == memory
    two.update(memory.id, content="coffee")
    found = one.get(memory.id)
    assert found is not None
    assert (found.content, found.version) == ("coffee", 2)
    assert [hit.memory.content for hit in one.search("coffee")] == ["coffee"]
    one.add("x", key="k")
    assert two.add("x", key="k").id == one.list(limit=1).memories[0].id
    assert sequence(first) == sequence(second) == 3
