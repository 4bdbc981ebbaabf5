"""What is not converted: nothing is mixed up, and each refusal says what to do."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recollect.memories.converting import CONVERSION
from recollect.testing.records import record

import recollect
from recollect.errors import ConfigurationError, NotACopy, StoreFull
from recollect.memories import comparing
from recollect.ports import Store
from recollect.stores.ram import RamStore
from recollect.stores.sqlite import SqliteStore
from recollect.testing import FaultyStore
from recollect.testing.builders import memory, put
from tests.unit.converted import BOB, fill, seen


def refused(source: Any, target: Any, kind: type[recollect.RecollectError]) -> recollect.RecollectError:
    with pytest.raises(kind) as caught:
        recollect.convert(source, target)
    assert caught.value.operation == "convert"
    assert caught.value.hint
    return caught.value


def test_a_target_with_something_in_it_is_refused_and_left_alone(source: Store, target: Store) -> None:
    put(target, memory("mine", BOB))
    before = seen(target)
    assert "not empty" in refused(source, target, NotACopy).message
    assert seen(target) == before
    assert CONVERSION not in target.settings()


def test_a_copy_of_another_source_is_refused(source: Store, target: Store) -> None:
    other = RamStore()
    fill(other)
    recollect.convert(other, target)
    before = seen(target)
    assert "another source" in refused(source, target, NotACopy).message
    assert seen(target) == before


@pytest.mark.parametrize("many", [1, comparing.BATCH + 5])
def test_a_copy_that_others_wrote_to_is_refused(source: Store, target: Store, many: int) -> None:
    recollect.convert(source, target)
    put(target, *(memory("mine") for _ in range(many)))
    put(source, memory("new"))
    before = seen(target)
    assert "by others" in refused(source, target, NotACopy).message
    assert seen(target) == before


def test_a_copy_that_others_write_to_meanwhile_is_refused(source: Store, target: Store, small_batches: None) -> None:
    mine = iter([memory("mine")])

    def write(done: int, total: int) -> None:
        put(target, *mine)

    with pytest.raises(NotACopy) as caught:
        recollect.convert(source, target, progress=write)
    assert caught.value.details["memory_id"]


def test_a_version_that_is_not_the_same_is_named(source: Store, target: Store) -> None:
    class Careless(FaultyStore):
        def apply(self, writes: Any, **options: Any) -> list[int]:
            return super().apply([replace(one, reason=None) for one in writes], **options)

    error = refused(source, Careless(target), NotACopy)
    assert error.details == {"memory_id": source.journal()[0].memory_id, "version": 1}
    assert target.settings()[CONVERSION].startswith("copying")


def test_a_setting_that_cannot_be_read_is_refused(source: Store, target: Store) -> None:
    for text in ("?", "copying\n1\n1\n{\nx", "copying\nx\n1\n\n"):
        target.set_settings({CONVERSION: text})
        assert "cannot be read" in refused(source, target, NotACopy).message


def test_errors_of_the_target_leave_it_to_be_continued(source: Store, target: Store, small_batches: None) -> None:
    full = FaultyStore(target)
    full.fail("apply", StoreFull("no space left", hint="free space"), call=3)
    refused(source, full, StoreFull)
    assert recollect.convert(source, full).copied == 9
    assert seen(target) == seen(source)


def test_a_target_with_records_is_not_empty(source: Store, target: Store) -> None:
    target.put_record(record("mine"))
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


@pytest.mark.parametrize(("source", "target", "field"), BAD, ids=str)
def test_what_cannot_be_converted(
    source: Any, target: Any, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recollect.open("source.db").close()
    Path("link.db").symlink_to("source.db")
    there = set(tmp_path.iterdir())
    target = target.format(folder=tmp_path.name) if isinstance(target, str) else target
    assert refused(source, target, ConfigurationError).details["field"] == field
    assert set(tmp_path.iterdir()) == there


def test_one_store_is_not_two(source: Store) -> None:
    assert refused(source, source, ConfigurationError).details["field"] == "target"


def test_places_that_cannot_be_opened(tmp_path: Path) -> None:
    recollect.open(tmp_path / "source.db").close()
    (tmp_path / "notes.txt").write_text("not a database")
    assert "cellar" in refused(tmp_path / "source.db", "cellar:x", ConfigurationError).message
    refused(tmp_path / "source.db", tmp_path / "notes.txt", recollect.errors.NotAStore)
    refused(tmp_path / "source.db", tmp_path / "no" / "folder.db", recollect.errors.StoreReadOnly)
    with closing(SqliteStore(tmp_path / "newer.db")) as newer:
        newer._write(lambda work: work.connection.pragma("user_version", 999))
    refused(tmp_path / "source.db", tmp_path / "newer.db", recollect.errors.SchemaTooNew)
    refused(tmp_path / "newer.db", tmp_path / "target.db", recollect.errors.SchemaTooNew)


def test_the_source_is_only_read(source: Store, target: Store) -> None:
    """It is asked nothing that could write, not even by the way."""
    asked = FaultyStore(source)
    recollect.convert(asked, target)
    assert set(asked.calls) <= {"journal", "versions", "owners", "scan", "get", "settings", "sequence", "all_records"}
