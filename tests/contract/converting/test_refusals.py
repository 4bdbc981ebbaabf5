"""What is not converted: nothing is mixed up, and each refusal says what to do."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.converted import ADA, BOB, CONVERSION, fill, for_all_stores, record, seen
from wellkept.errors import ConfigurationError, NotACopy, StoreFull
from wellkept.ports import Store
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.testing.builders import Writer, put
from wellkept.testing.cases import Cases


def refused(source: Any, target: Any, kind: type[wellkept.WellkeptError]) -> wellkept.WellkeptError:
    with pytest.raises(kind) as caught:
        wellkept.convert(source, target)
    assert caught.value.operation == "convert"
    assert caught.value.hint
    return caught.value


@for_all_stores()
def test_a_target_with_something_in_it_is_refused_and_left_alone(source: Store, target: Store) -> None:
    put(target, Writer().add(BOB, "mine"))
    before = seen(target)
    assert "not empty" in refused(source, target, NotACopy).message
    assert seen(target) == before
    assert CONVERSION not in target.journal.settings()


@for_all_stores()
def test_a_copy_of_another_source_is_refused(source: Store, target: Store) -> None:
    other = RamStore()
    fill(other)
    wellkept.convert(other, target)
    before = seen(target)
    assert "another source" in refused(source, target, NotACopy).message
    assert seen(target) == before


@for_all_stores(many=[1, 261])
def test_a_copy_that_others_wrote_to_is_refused(source: Store, target: Store, many: int) -> None:
    wellkept.convert(source, target)
    make = Writer()
    put(target, *(make.add(ADA, "mine") for _ in range(many)))
    put(source, make.add(ADA, "new"))
    before = seen(target)
    assert "by others" in refused(source, target, NotACopy).message
    assert seen(target) == before


@for_all_stores()
def test_a_copy_whose_memory_others_changed_is_refused_and_keeps_the_change(source: Store, target: Store) -> None:
    wellkept.convert(source, target)
    first = next(iter(source.journal.scan({ADA})))
    theirs = Writer().update(first, "theirs")
    put(target, theirs)
    put(source, Writer().update(first, "mine"))
    before = seen(target)
    assert "by others" in refused(source, target, NotACopy).message
    assert seen(target) == before


@for_all_stores()
def test_a_copy_in_which_others_keep_records_is_refused_and_keeps_them(source: Store, target: Store) -> None:
    source.records.put(record("monday"))
    wellkept.convert(source, target)
    target.records.put(record("mine", BOB))
    before = seen(target)
    assert "by others" in refused(source, target, NotACopy).message
    assert seen(target) == before
    target.records.drop(BOB, "session", "mine")
    target.records.put(record("monday", version=2))  # as loading a session does
    wellkept.convert(source, target)
    assert seen(target) == seen(source)


@for_all_stores()
def test_a_version_that_is_not_the_same_is_named(source: Store, target: Store) -> None:
    careless = FaultyStore(target)
    append = careless.journal.append

    def without_reason(writes: Any, **options: Any) -> Any:
        return append([one._replace(reason=None) for one in writes], **options)

    careless.journal.append = without_reason  # type: ignore[method-assign]  # a store that loses something
    error = refused(source, careless, NotACopy)
    first = next(one for one in source.journal.versions({ADA}) if one.reason)
    assert error.details == {"memory_id": first.id, "version": first.version}
    assert '"finished":false' in target.journal.settings()[CONVERSION]


@for_all_stores()
def test_a_setting_that_cannot_be_read_is_refused(source: Store, target: Store) -> None:
    for text in ("?", "", "[]", "{}", '{"source":5}', '{"source":"x","after":5}', "copying\n1\n1\n{\nx"):
        target.journal.set_settings({CONVERSION: text})
        assert "cannot be read" in refused(source, target, NotACopy).message


@for_all_stores(field=["after", "reached"])
def test_a_place_that_is_none_is_refused(source: Store, target: Store, field: str) -> None:
    """As if somebody had edited the setting: no position at all, and one of another store."""
    wellkept.convert(source, target)
    other = RamStore()
    put(other, Writer().add(ADA))
    for text in ("nonsense", other.journal.feed().next):
        place = json.loads(target.journal.settings()[CONVERSION]) | {field: text}
        target.journal.set_settings({CONVERSION: json.dumps(place)})
        refused(source, target, NotACopy)


@pytest.mark.parametrize("which", ["source", "target"])
def test_what_was_restored_from_an_older_copy_is_refused(which: str) -> None:
    """Neither side is behind what the note says unless somebody put an older state in its place."""
    stores = {"source": RamStore(), "target": RamStore()}
    fill(stores["source"])
    wellkept.convert(stores["source"], stores["target"])
    stores[which].journal.set_settings({"epoch": "another"})
    put(stores["source"], Writer().add(ADA, "new"))
    before = seen(stores["target"])
    assert "restored" in refused(stores["source"], stores["target"], NotACopy).message
    assert seen(stores["target"]) == before


@for_all_stores()
def test_a_target_with_records_is_not_empty(source: Store, target: Store) -> None:
    target.records.put(record("mine"))
    assert "not empty" in refused(source, target, NotACopy).message


BAD: list[tuple[Any, Any, str]] = [
    ("source.db", "source.db", "target"),
    ("source.db", "sqlite:../{folder}/source.db", "target"),
    ("source.db", "link.db", "target"),
    ("missing.db", "target.db", "source"),
    ("ram:", "target.db", "source"),
    ("source.db", "ram:", "target"),
    (None, "target.db", "url"),
    ("source.db", 5, "url"),
    ("source.db", "", "url"),
]


def test_what_cannot_be_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wellkept.open("source.db").close()
    Path("link.db").symlink_to("source.db")
    there = set(tmp_path.iterdir())
    with Cases() as cases:
        for source, form, field in BAD:
            with cases.case(f"{source} to {form}"):
                target = form.format(folder=tmp_path.name) if isinstance(form, str) else form
                assert refused(source, target, ConfigurationError).details["field"] == field
                assert set(tmp_path.iterdir()) == there


@for_all_stores()
def test_one_store_is_not_two(source: Store) -> None:
    assert refused(source, source, ConfigurationError).details["field"] == "target"


def test_places_that_cannot_be_opened(tmp_path: Path) -> None:
    wellkept.open(tmp_path / "source.db").close()
    (tmp_path / "notes.txt").write_text("not a database")
    assert "cellar" in refused(tmp_path / "source.db", "cellar:x", ConfigurationError).message
    refused(tmp_path / "source.db", tmp_path / "notes.txt", wellkept.errors.NotAStore)
    for nowhere in (tmp_path / "no" / "folder.db", f"jsonl:{tmp_path}/no/deep/folder"):
        refused(tmp_path / "source.db", nowhere, wellkept.errors.StoreReadOnly)
        assert not (tmp_path / "no").exists()
    wellkept.open(tmp_path / "newer.db").close()
    with closing(sqlite3.connect(tmp_path / "newer.db")) as newer:
        newer.execute("PRAGMA user_version = 999")
    refused(tmp_path / "source.db", tmp_path / "newer.db", wellkept.errors.SchemaTooNew)
    refused(tmp_path / "newer.db", tmp_path / "target.db", wellkept.errors.SchemaTooNew)


@for_all_stores(url=["{0}/target.db", "jsonl:{0}/target", "jsonl:{0}/configured"])
def test_a_conversion_that_copied_nothing_leaves_nothing_behind(source: Store, tmp_path: Path, url: str) -> None:
    (tmp_path / "configured").mkdir()
    (tmp_path / "configured" / "config.json").write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    failing = FaultyStore(source)
    failing.fail("feed", StoreFull("no space left", hint="free some"))
    with pytest.raises(StoreFull):
        wellkept.convert(failing, url.format(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


@for_all_stores(url=["{0}/target.db", "jsonl:{0}/target"])
def test_a_target_that_was_there_or_holds_something_stays(source: Store, tmp_path: Path, url: str) -> None:
    place = url.format(tmp_path)
    wellkept.open(place, embedder=None).close()
    failing = FaultyStore(source)
    failing.fail("feed", StoreFull("no space left", hint="free some"))
    with pytest.raises(StoreFull):
        wellkept.convert(failing, place)
    with wellkept.open(place, embedder=None) as memories:
        assert memories.sizes() == {}
    elsewhere = f"{place}.2"
    stopped = FaultyStore(source)
    stopped.fail("scan", StoreFull("no space left", hint="free some"))  # after the journals were copied
    with pytest.raises(StoreFull):
        wellkept.convert(stopped, elsewhere)
    with wellkept.open(elsewhere, embedder=None) as memories:
        assert memories.sizes()
    assert wellkept.convert(source, elsewhere).copied == 0  # it goes on where it was


@for_all_stores()
def test_the_source_is_only_read(source: Store, target: Store) -> None:
    """It is asked nothing that could write, not even by the way."""
    asked = FaultyStore(source)
    wellkept.convert(asked, target)
    reads = {"feed", "versions", "history", "owners", "marks", "scan", "get", "settings"}
    assert set(asked.calls) <= reads | {"records.list", "store.damaged"}
