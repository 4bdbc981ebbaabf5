"""A file as release 0.1 wrote it, with schema 5, and the way back to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from wellkept import codec
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.engine.sealing import seal
from wellkept.errors import StoreCorrupt
from wellkept.stores.sqlite import SqliteStore, connections, schema, schema_5
from wellkept.testing.builders import Writer, owner, put, vector
from wellkept.types import KnowledgePointer, Layer, Memory, MemoryType, Owner, PointerType, Source, SourceType, State

WRITTEN = Path(__file__).with_name("schema_5.sql")
ADA = owner("ada")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    path.touch(0o600)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(WRITTEN.read_text())
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "memory.db", durability="relaxed")) as store:
        yield store


def _change(path: Path, statement: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(statement)


@pytest.mark.req("L14")
def test_everything_in_it_is_there(file: Path) -> None:
    with wellkept.open(file, embedder=HashingEmbedder(dimension=16)) as memories:
        assert memories.doctor().findings == ()
        view = memories.view(user="ada", project="api")
        found = {one.content: one for one in view.list(limit=50, filter=wellkept.Filter(include_forgotten=True))}
        assert len(found) == 10
        porridge, rome, manual = (found[text] for text in ("Porridge with honey", "Lives in Rome", "See the manual"))
        assert (porridge.title, porridge.description, porridge.language) == ("Breakfast habits", "about food", "en")
        assert (porridge.importance, porridge.confidence, porridge.relevance) == (0.9, 0.5, 0.25)
        assert (porridge.type, porridge.owner.layer) == (MemoryType.PREFERENCE, Layer.PROJECT)
        assert porridge.source == Source(type=SourceType.CONVERSATION, reference="call 7")
        assert rome.occurred_at == datetime(2020, 1, 2, tzinfo=UTC)
        assert rome.expires_at == datetime(2050, 1, 2, tzinfo=UTC)
        assert manual.references == (rome.id,)
        assert manual.pointer is not None
        assert (manual.pointer.source_type, manual.pointer.source_id) == (PointerType.SPEC, "manual")
        assert found["A secret wish"].state is State.FORGOTTEN
        assert (found["Ada likes tea"].key, found["Ada likes tea"].access_count) == ("tea", 1)
        first, second = view.history(rome.id)
        assert (first.memory.content if first.memory else None, second.replaced) == ("Lives in Paris", first.stamp)
        stamps = [version.stamp for version in view.changes()]
        assert stamps == sorted(set(stamps))
        assert next(iter(view.search("tea"))).memory.content == "Ada likes tea"
        assert memories.view(user="bob").list().memories[0].content == "Bob likes tea \u2615"
        session = view.sessions.load("monday")
        assert session.preferences.language == "de"
        assert [one.content for one in session.view.list(layers="session")] == ["Talked about OAuth"]


@pytest.mark.req("L14")
def test_a_copy_of_the_older_file_stays_beside_it(file: Path) -> None:
    wellkept.open(file, embedder=None).close()
    copy = file.with_name("memory.db.schema-5.bak")
    assert copy.stat().st_mode & 0o077 == 0
    with closing(apsw.Connection(str(copy))) as connection:
        assert schema.version_of(connection) == 5
        assert connection.execute("SELECT count(*) FROM journal").get == 15
    with wellkept.open(file, embedder=None) as memories:
        assert memories.doctor().facts["copies of older schemas"] == copy.name
        assert sorted(path.name for path in file.parent.glob("memory.db.*")) == [copy.name]


@pytest.mark.req("L14")
def test_an_empty_file_is_not_copied(tmp_path: Path, file: Path) -> None:
    _change(file, "DELETE FROM heads; DELETE FROM journal")
    wellkept.open(file, embedder=None).close()
    assert list(tmp_path.glob("*.bak*")) == []


@pytest.mark.req("L14")
def test_times_that_ran_backwards_rise_per_owner(file: Path) -> None:
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("UPDATE journal SET recorded_at = 5 WHERE sequence = 3")
        [(*values, _)] = connection.execute("SELECT * FROM journal WHERE sequence = 3").fetchall()
        checksum = schema_5.old_checksum(tuple(values))
        connection.execute("UPDATE journal SET checksum = ? WHERE sequence = 3", (checksum,))
    with closing(SqliteStore(file)) as store:
        assert store.check().findings == ()
        for each in store.journal.owners():
            recorded = [one.recorded_at for one in store.journal.versions({each})]
            assert recorded == sorted(recorded)


@pytest.mark.req("L14")
@pytest.mark.parametrize("damage", ["content = 'made up'", "body = '{'", "content = CAST(x'ff' AS TEXT)"])
def test_damage_is_not_hidden_by_a_migration(damage: str, file: Path) -> None:
    """A damaged version must not get a valid checksum on its way."""
    with closing(apsw.Connection(str(file))) as connection:
        damaged = connection.execute("SELECT id FROM journal WHERE sequence = 3").get
    _change(file, f"UPDATE journal SET {damage} WHERE sequence = 3")
    with closing(SqliteStore(file)) as store:
        with pytest.raises(StoreCorrupt):
            store.journal.get(frozenset(store.journal.owners()), [damaged])
        assert "checksums" in [finding.check for finding in store.check().findings]
        assert all(finding.repaired for finding in store.check(repair=True).findings)
        assert store.check().findings == ()


@pytest.mark.req("L14")
def test_what_the_older_schema_cannot_hold_is_told_before(store: SqliteStore, tmp_path: Path) -> None:
    writes = Writer()
    one, sealed = writes.add(ADA, "archived"), writes.add(ADA, None, write={"payload": b"\x00sealed"})
    newer = writes.add(ADA, "newer", of_a_newer_release=[1])
    put(store, one, sealed, newer, writes.add(owner("bob"), "the same id", id=one.id), writes.add(ADA, "plain"))
    put(store, writes.archive(one))
    assert store.records.lease("upkeep", "me", 60_000) is not None
    store.close()
    path = tmp_path / "memory.db"
    with closing(connections.connect(path, "full")) as connection:
        assert schema.losses(connection, schema.LATEST) == []
        told = schema.losses(connection, 5)
        schema.migrate(connection, 5)
        assert schema.losses(connection, 5) == []
    assert told == [
        "1 archived memories become forgotten ones",
        "1 memories with a sealed text are dropped, with their history",
        "1 ids belong to memories of several owners: only one memory of each id stays",
        "1 memories lose facets that the older schema does not know",
        "1 leases are dropped",
        "the stamps of 6 versions are dropped: copies of this file no longer recognise each other, and positions of"
        " followers are lost",
    ]
    with closing(SqliteStore(path)) as again:
        found = {
            found.facets["text"]: found.facets["state"] for found in again.journal.scan(set(again.journal.owners()))
        }
        assert found == {"archived": "forgotten", "newer": "active", "plain": "active"}
        assert again.check().findings == ()


@pytest.mark.req("L14")
def test_further_down_more_is_told(store: SqliteStore, tmp_path: Path) -> None:
    put(store, Writer().add(ADA, write={"vector": vector(1, 0)}))
    store.close()
    with closing(connections.connect(tmp_path / "memory.db", "full")) as connection:
        assert "1 vectors are dropped" not in schema.losses(connection, 2)
        assert "1 vectors are dropped" in schema.losses(connection, 1)


times = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # given a zone
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
memories = st.builds(
    Memory,
    id=st.just("m"),
    content=texts,
    owner=st.just(Owner(Layer.USER, ("ada",))),
    version=st.just(1),
    created_at=times,
    updated_at=times,
    occurred_at=times,
    type=st.sampled_from(MemoryType),
    state=st.sampled_from([State.ACTIVE, State.FORGOTTEN]),
    importance=st.floats(0, 1),
    tags=st.lists(texts, max_size=3, unique=True).map(tuple),
    metadata=st.dictionaries(texts, st.integers() | texts | st.booleans(), max_size=3),
    expires_at=st.none() | times,
    source=st.none() | st.builds(Source, type=st.sampled_from(SourceType), reference=st.none() | texts),
    pointer=st.none()
    | st.builds(
        KnowledgePointer,
        source_type=st.sampled_from(PointerType),
        source_id=texts,
        content_hash=st.none() | texts,
        synced_at=st.none() | times,
    ),
    references=st.lists(texts, max_size=2).map(tuple),
    **{name: st.none() | texts for name in ("key", "title", "description", "language", "author", "role", "session")},
    **{name: st.none() | st.floats(0, 1) for name in ("confidence", "relevance", "decay_factor")},
)


@pytest.mark.req("L14")
@given(memories)
def test_a_memory_comes_back_as_the_engine_would_write_it(memory: Memory) -> None:
    """The migration maps fields by itself, as data: it must agree with the engine."""
    facets, payload = seal(memory)
    kept = {name: value for name, value in facets.items() if name != "text"}
    body = codec.decode_json(codec.encode_json(schema_5.old_body(kept, codec.decode_json(payload or b"{}"))))
    again, rest = schema_5.new_form(body, memory.content, facets["created_at"])
    assert again == kept
    assert codec.decode_json(rest or b"{}") == codec.decode_json(payload or b"{}")
