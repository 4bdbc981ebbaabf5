"""The indexes of the embedded store: kept in step with the file, stored in it as images, and never trusted blindly."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from recollect import codec, words
from recollect.errors import EmbedderMismatch, StoreError
from recollect.ports import Embedded, Write
from recollect.recall import kernel
from recollect.stores.sqlite import SqliteStore, connections, embedding, indexes
from recollect.stores.sqlite.journal import Transaction
from recollect.testing.agreement import agree, values_of
from recollect.testing.builders import (
    added,
    by_words,
    erased,
    forgotten,
    later,
    memory,
    nearest,
    owner,
    probe,
    put,
    query,
    restored,
    updated,
    vector,
)
from recollect.testing.concurrency import at_once
from recollect.testing.recall import contents
from recollect.types import Memory, Owner, Vector

ADA = owner("ada")
BOB = owner("bob")
ROWS = 8
SEARCH = probe("number dark", vector(1, 2))
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


def filled(store: SqliteStore, count: int = ROWS, whose: Owner = ADA) -> list[Memory]:
    """So many memories, with words, authors, sessions and vectors."""
    memories = [
        memory(f"number {n} dark", whose, author=f"author{n}", session=f"s{n // 3}", vector=vector(1, n))
        for n in range(count)
    ]
    put(store, *memories)
    return memories


def search(store: SqliteStore, *owners: Owner) -> dict[int, object]:
    """What the store says now; the default, which uses no index, must say the same."""
    wanted = query(*(owners or (ADA,)))
    agree(store, wanted, SEARCH)
    agree(store, wanted, probe(near=vector(1, 2)))
    return dict(values_of(store.candidates(wanted, SEARCH)))


def table(path: Path, columns: str = "owner, part, data") -> list[tuple[object, ...]]:
    """The images in the file."""
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute(f"SELECT {columns} FROM images ORDER BY owner, part").fetchall()


@contextmanager
def watched(path: Path) -> Iterator[Callable[[], bool]]:
    """Tells whether anybody wrote to the file since: an index that is made anew is stored, a loaded one is not."""
    with closing(apsw.Connection(str(path))) as watcher:
        before = watcher.pragma("data_version")
        yield lambda: watcher.pragma("data_version") != before


def header(path: Path, whose: int = 1) -> dict[str, object]:
    """What the image of an owner says of itself."""
    [data] = [row[2] for row in table(path) if row[:2] == (whose, "header")]
    assert isinstance(data, bytes)
    found: dict[str, object] = codec.decode_json(data)
    return found


def change(path: Path, statement: str, *values: object) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(statement, values)


def raw(path: Path) -> bytes:
    """Everything that is on the disk."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


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


def test_a_file_cannot_get_two_embedders_in_one_transaction(store: SqliteStore) -> None:
    """Writes of several threads share one; whoever comes second in it must see what the first one settled."""
    one = memory("number one")
    put(store, one)
    vectors = [later(store, one, vector(1, 2))]

    def both(work: Transaction) -> None:
        embedding.embed(work.connection, vectors)
        work.append([added(memory("number two", vector=Vector.of("other", [1, 0, 0])))])

    with pytest.raises(EmbedderMismatch):
        store._write(both)
    assert len(store.unembedded("kit", 9)) == 0
    assert store.check().healthy


def test_a_memory_whose_first_version_is_damaged_can_be_embedded(store: SqliteStore, path: Path) -> None:
    """Else whoever embeds what has no vector would do so for ever."""
    one = memory("number one")
    put(store, one)
    changed = updated(one, content="number two")
    store.apply([changed])
    change(path, "UPDATE journal SET content = 'damaged' WHERE version = 1")
    assert all(finding.repaired for finding in store.check(repair=True).findings)
    [left] = store.unembedded("kit", 9)
    store.embed([Embedded(number=left.number, version=left.memory.version, vector=vector(1, 2))])
    assert store.unembedded("kit", 9) == []
    assert contents(nearest(store, query(ADA), vector(1, 2), 9)) == ["number two"]


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
    codes = kernel.encode(kernel.direction(secret.vector.data)[None, :]).tobytes()
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
    change(path, "UPDATE words SET terms = x'' WHERE number = 3")
    with closing(SqliteStore(path)) as other:
        wrong = dict(values_of(other.candidates(query(ADA), SEARCH)))
        assert wrong != before
        assert table(path) != []
        assert not store.check().healthy
        assert all(finding.repaired for finding in store.check(repair=True).findings)
        assert table(path) == []
        assert search(other) == search(store) == before


def test_a_healthy_file_keeps_its_images(store: SqliteStore, path: Path) -> None:
    filled(store)
    search(store)
    before = table(path)
    assert store.check(repair=True).healthy
    assert table(path) == before


# --- many owners ----------------------------------------------------------------------------------


def test_the_index_not_used_for_longest_is_let_go(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "HELD_ROWS", 3 * ROWS)
    owners = [owner(f"user {n}") for n in range(5)]
    for whose in owners:
        filled(store, whose=whose)

    def held() -> list[int]:
        return list(store._indexes._held)

    for whose in owners[:3]:
        search(store, whose)
    assert held() == [1, 2, 3]
    search(store, owners[0])
    search(store, owners[3])
    assert held() == [3, 1, 4]
    search(store, owners[1], owners[2])
    assert sorted(held()) == [2, 3, 4]
    # What one search needs is held together, even if it is too much.
    assert len(search(store, *owners)) == 5 * ROWS
    assert len(held()) == 5
    search(store, owners[4])
    assert len(held()) == 3
    assert held()[-1] == 5
    for whose in owners:
        assert len(search(store, whose)) == ROWS


def test_a_search_of_nobody_holds_nothing(store: SqliteStore) -> None:
    filled(store)
    assert len(store.candidates(query(owner("nobody")), SEARCH)) == 0
    assert len(store.candidates(query(), SEARCH)) == 0
    assert not store._indexes._held


# --- at the same time -----------------------------------------------------------------------------


def test_searches_while_others_write_find_only_what_is_theirs(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "HELD_ROWS", ROWS)  # indexes come and go all the time
    owners = [owner(f"user {n}") for n in range(4)]
    for whose in owners:
        filled(store, whose=whose)
    done = threading.Event()

    def write(whose: Owner) -> Callable[[], int]:
        def work() -> int:
            try:
                for turn in range(15):
                    one = memory(f"number {turn} new", whose, vector=vector(turn, 1))
                    put(store, one)
                    store.apply([forgotten(one)] if turn % 2 else [erased(one)])
            finally:
                done.set()
            return 0

        return work

    def read(whose: Owner, reader: SqliteStore) -> Callable[[], int]:
        def work() -> int:
            searches = 0
            while not done.is_set() or not searches:
                found = reader.candidates(query(whose), SEARCH)
                picked = reader.pick(query(*owners), found.numbers.tolist())
                assert {one.owner for one in picked.values()} <= {whose}
                assert ROWS <= len(found) <= ROWS + 1
                searches += 1
            return searches

        return work

    with closing(SqliteStore(path)) as second:
        jobs = [write(owners[0]), write(owners[1])]
        jobs += [read(whose, reader) for whose in owners for reader in (store, second)]
        assert min(at_once(jobs)[2:]) >= 1
        for whose in owners:
            search(second, whose)
            search(store, whose)


def test_a_search_does_not_wait_for_a_file_that_others_hold(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image is written on behalf of a read, and reading works while somebody else writes."""
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 60_000)
    filled(store)
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        found: list[int] = []
        reader = threading.Thread(target=lambda: found.append(len(store.candidates(query(ADA), SEARCH))))
        reader.start()
        reader.join(timeout=5)
        waits = reader.is_alive()
        other.execute("ROLLBACK")
        reader.join(timeout=PATIENCE_S)
    assert found == [ROWS]
    assert not waits


def test_a_search_works_where_no_image_can_be_written(store: SqliteStore, path: Path) -> None:
    filled(store)
    change(path, "CREATE TRIGGER full BEFORE INSERT ON images BEGIN SELECT RAISE(ABORT, 'no room'); END")
    assert len(search(store)) == ROWS
    assert table(path) == []
    with pytest.raises(StoreError):  # the trigger does what it says
        store._write(lambda work: work.connection.execute("INSERT INTO images VALUES (1, 1, 'x', x'')"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_can_search_although_its_parent_was_searching(store: SqliteStore) -> None:
    filled(store)
    search(store)
    with store._indexes.locked():  # by a thread that does not exist in the child
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if len(by_words(store, query(ADA), "number", 99)) == ROWS else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(search(store)) == ROWS
