"""The indexes of the embedded store: kept in step with the file, stored in it as images, and never trusted blindly."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from recollect.testing.agreement import values_of
from recollect.testing.recall import contents

from recollect import codec
from recollect.ports import Write
from recollect.recall import quantized
from recollect.stores.sqlite import SqliteStore, indexes
from recollect.testing.builders import (
    erased,
    forgotten,
    later,
    memory,
    nearest,
    probe,
    put,
    query,
    restored,
    updated,
    vector,
)
from recollect.text import words
from recollect.types import Memory, Vector
from tests.unit.index_files import ADA, BOB, ROWS, SEARCH, change, filled, header, raw, search, table, watched

PATIENCE_S = 60
# Runs in another process: opens the file, searches it, and says what it found and whether it wrote anything.
ELSEWHERE = """
import sys
from pathlib import Path
import apsw
from recollect.stores.sqlite import SqliteStore, indexes
from recollect.testing.builders import by_words, memory, owner, put, query
indexes.IMAGE_ROWS = 8
store = SqliteStore(Path(sys.argv[1]))
watcher = apsw.Connection(sys.argv[1])
before = watcher.pragma("data_version")
found = by_words(store, query(owner("ada")), "number", 99)
print(len(found), watcher.pragma("data_version") == before)
put(store, memory("number of another process"))
store.close()
"""


@pytest.fixture(autouse=True)
def _small_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "IMAGE_ROWS", ROWS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, durability="relaxed")) as store:
        yield store


# --- images ---------------------------------------------------------------------------------------


def test_an_image_is_written_once_an_index_is_large_enough(store: SqliteStore, path: Path) -> None:
    filled(store, ROWS - 1)
    search(store)
    assert table(path) == []
    put(store, memory("number of the last"))
    assert table(path) == []  # writing makes none, searching does
    search(store)
    assert {row[0] for row in table(path)} == {1}
    assert header(path)["sequence"] == store.sequence()


def test_an_image_is_renewed_when_an_eighth_is_new(store: SqliteStore, path: Path) -> None:
    filled(store, 4 * ROWS)
    search(store)
    made = header(path)["sequence"]
    put(store, memory("one more"))
    with watched(path) as written:
        search(store)
        assert not written()
    assert header(path)["sequence"] == made
    filled(store, ROWS)
    search(store)
    assert header(path)["sequence"] == store.sequence()


def test_another_store_loads_the_image(store: SqliteStore, path: Path) -> None:
    filled(store, whose=BOB)
    filled(store)
    before = search(store, ADA), search(store, ADA, BOB)
    stored = table(path)
    assert {row[0] for row in stored} == {1, 2}
    with closing(SqliteStore(path)) as second, watched(path) as written:
        assert (search(second, ADA), search(second, ADA, BOB)) == before
        assert not written()
    assert table(path) == stored


def test_another_process_loads_the_image_and_is_heard(store: SqliteStore, path: Path) -> None:
    filled(store, 2 * ROWS)
    search(store)
    other = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (other.returncode, other.stdout.split()) == (0, [str(2 * ROWS), "True"]), other.stderr
    assert len(search(store)) == 2 * ROWS + 1


CHANGES: dict[str, Callable[[Memory], list[Write]]] = {
    "update": lambda one: [updated(one, content="dark number, changed", author="carol", session="s0")],
    "vector": lambda one: [updated(one, write={"keeps_vector": False, "vector": vector(-1, 0.5)})],
    "no vector": lambda one: [updated(one, write={"keeps_vector": False, "vector": None})],
    "forget": lambda one: [forgotten(one)],
    "restore": lambda one: [forgotten(one), restored(forgotten(one).memory)],
    "erase": lambda one: [erased(one)],
    "expire": lambda one: [updated(one, expires_at=one.created_at)],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("loaded", [False, True])
def test_what_another_store_writes_is_seen_by_the_next_search(
    store: SqliteStore, path: Path, change: str, loaded: bool
) -> None:
    memories = filled(store)
    before = search(store)
    with closing(SqliteStore(path)) as writer, closing(SqliteStore(path)) as reader:
        if loaded:
            assert search(reader) == before
        for number, write in enumerate(CHANGES[change](memories[3]), 1):
            writer.apply([write])
            if number == 1 or loaded:
                search(reader)
                search(store)
        put(writer, memory("number of the writer"))
        assert search(reader) == search(store) == search(writer) != before


def test_vectors_that_come_later_are_seen_by_other_stores(store: SqliteStore, path: Path) -> None:
    memories = [memory(f"number {n}") for n in range(ROWS)]
    put(store, *memories)
    search(store)
    with closing(SqliteStore(path)) as writer:
        writer.embed([later(writer, memories[2], vector(1, 2))])
        assert contents(nearest(store, query(ADA), vector(1, 2), 9)) == ["number 2"]
        writer.embed([later(writer, one, Vector.of("other", [1, 0, n])) for n, one in enumerate(memories)])
        assert contents(nearest(store, query(ADA), vector(1, 2), 9)) == ["number 2"]
        search(store)
        assert writer.adopt("other", 3)
    found = nearest(store, query(ADA), Vector.of("other", [0, 0, 1]), 2)
    assert contents(found) == ["number 7", "number 6"]
    store.candidates(query(ADA), probe(near=Vector.of("other", [0, 0, 1])))
    assert header(path)["dimension"] == 3


# --- erasing --------------------------------------------------------------------------------------


@pytest.mark.req("L7")
@pytest.mark.parametrize("by_another", [False, True])
def test_erasing_drops_the_image_and_leaves_no_byte(store: SqliteStore, path: Path, by_another: bool) -> None:
    secret = memory(
        "zeppelin hangar zanzibar",
        author="secretauthor",
        session="secretsession",
        vector=vector(0.123456, 7.654321),
    )
    filled(store)
    put(store, secret)
    filled(store, whose=BOB)
    search(store, ADA, BOB)
    assert secret.vector is not None
    codes = quantized.encode(quantized.direction(secret.vector.data)[None, :]).tobytes()
    marks = {
        "terms": words.pack(words.terms("zeppelin hangar zanzibar")),
        "author": b"secretauthor",
        "session": b"secretsession",
        "vector": secret.vector.data,
    }
    image = b"".join(bytes(data) for whose, _, data in table(path) if whose == 1 and isinstance(data, bytes))
    assert all(marks[name] in image for name in ("terms", "author"))
    assert marks["vector"] in image or codes in image
    assert all(mark in raw(path) for mark in marks.values())
    with closing(SqliteStore(path)) as other:
        (other if by_another else store).apply([erased(secret)])
        # Bob's image has nothing to do with it, ada's must go.
        assert {row[0] for row in table(path)} == {2}
        assert [name for name, mark in marks.items() if mark in raw(path)] == []
        put(store, *(memory(f"filler {n}") for n in range(ROWS)))
        search(store)
        search(other)
        assert {row[0] for row in table(path)} == {1, 2}
        assert [name for name, mark in marks.items() if mark in raw(path)] == []
    store.close()
    assert [name for name, mark in marks.items() if mark in raw(path)] == []


@pytest.mark.req("L7")
def test_no_image_is_written_when_the_file_went_on(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a search and the writing of its image, another process may erase what is in it."""
    monkeypatch.setattr(indexes, "IMAGE_ROWS", 10_000)
    memories = filled(store)
    search(store)
    monkeypatch.setattr(indexes, "IMAGE_ROWS", ROWS - 1)
    with closing(SqliteStore(path)) as other:
        other.apply([erased(memories[0])])
        with store._indexes.locked():
            store._save_indexes()
        assert table(path) == []
        other.embed([later(other, memories[1], vector(0, 1))])
        with store._indexes.locked():
            store._save_indexes()
        assert table(path) == []
    search(store)
    assert header(path)["sequence"] == store.sequence()


# --- images that cannot be trusted ----------------------------------------------------------------

OUTDATED: dict[str, Callable[[dict[str, object]], dict[str, object]]] = {
    "generation": lambda found: found | {"generation": 4711},
    "dimension": lambda found: found | {"dimension": 1},
    "sequence": lambda found: found | {"sequence": 10_000},
}
DAMAGES = {
    "no header": "DELETE FROM images WHERE part = 'header'",
    "a header that is no JSON": "UPDATE images SET data = x'00ff7b' WHERE part = 'header'",
    "a header that says nothing": "UPDATE images SET data = CAST('{}' AS BLOB) WHERE part = 'header'",
    "a part is missing": "DELETE FROM images WHERE part = 'terms'",
    "a part is cut off": "UPDATE images SET data = substr(data, 1, length(data) - 3) WHERE part = 'rows'",
    "a part is empty": "UPDATE images SET data = x'' WHERE part = 'number'",
    "a part says something else": "UPDATE images SET data = zeroblob(length(data)) WHERE part = 'rows'",
    "a part is too long": "UPDATE images SET data = zeroblob(2 * length(data)) WHERE part = 'marks'",
}


@pytest.mark.parametrize("field", OUTDATED)
def test_an_image_of_another_state_is_not_used(store: SqliteStore, path: Path, field: str) -> None:
    filled(store)
    before = search(store)
    wrong = codec.encode_json(OUTDATED[field](header(path)))
    change(path, "UPDATE images SET data = ? WHERE part = 'header'", wrong)
    with closing(SqliteStore(path)) as second, watched(path) as written:
        assert search(second) == before
        assert written()
    assert header(path)["sequence"] == store.sequence()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_image_is_not_used(store: SqliteStore, path: Path, damage: str) -> None:
    """It is only a copy: the search works without it, and replaces it."""
    filled(store)
    before = search(store)
    sound = table(path)
    change(path, DAMAGES[damage])
    with closing(SqliteStore(path)) as second:
        assert search(second) == before
    assert table(path) == sound


def test_an_older_image_is_brought_up_to_date(store: SqliteStore, path: Path) -> None:
    memories = filled(store, 4 * ROWS)
    search(store)
    made = header(path)
    store.apply([forgotten(memories[1]), updated(memories[2], content="number two, changed")])
    put(store, memory("number of the last"))
    with closing(SqliteStore(path)) as second, watched(path) as written:
        assert search(second) == search(store)
        assert not written()
    assert header(path) == made


# --- upkeep ---------------------------------------------------------------------------------------


def test_rebuilding_drops_all_images(store: SqliteStore, path: Path) -> None:
    filled(store)
    filled(store, whose=BOB)
    before = search(store, ADA, BOB)
    with closing(SqliteStore(path)) as other:
        assert search(other, ADA, BOB) == before
        store.rebuild()
        assert table(path) == []
        assert search(other, ADA, BOB) == search(store, ADA, BOB) == before
    assert {row[0] for row in table(path)} == {1, 2}


def test_repairing_drops_all_images(store: SqliteStore, path: Path) -> None:
    """An index that was made from damaged rows must not outlive them, neither in the file nor in RAM."""
    filled(store)
    before = search(store)
    change(path, "DELETE FROM images")
    change(path, "UPDATE heads SET expires_at = 0 WHERE number = 3")
    with closing(SqliteStore(path)) as other:
        wrong = dict(values_of(other.candidates(query(ADA), SEARCH)))
        assert wrong != before
        assert table(path) != []
        assert not store.check().healthy
        assert all(finding.repaired for finding in store.check(repair=True).findings)
        assert table(path) == []
        assert search(other) == search(store) == before


@pytest.mark.parametrize("damage", ["content = CAST(x'ff00' AS TEXT)", "content = NULL", "body = '{'", "body = NULL"])
def test_a_damaged_memory_does_not_keep_others_from_being_found(damage: str, store: SqliteStore, path: Path) -> None:
    filled(store)
    before = search(store)
    change(path, "DELETE FROM images")
    change(path, f"UPDATE journal SET {damage} WHERE number = 3")
    with closing(SqliteStore(path)) as other:
        assert set(before) - {3} <= set(dict(values_of(other.candidates(query(ADA), SEARCH))))


def test_a_healthy_file_keeps_its_images(store: SqliteStore, path: Path) -> None:
    filled(store)
    search(store)
    before = table(path)
    assert store.check(repair=True).healthy
    assert table(path) == before
