"""A file survives every way between the schemas, with everything in it. The newer schema exists only in these tests."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

import wellkept
from tests.support.sqlite_files import bring_to_schema, schema_of
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.transfer.migration import migrate

TOPICS = ("tea", "cake", "rain", "music", "chess")
FORMER_NAME = 0x52434C54  # the mark of files that were made before the first release
TITLE = "Breakfast habits"
LONG = "\n".join(f"Paragraph {number} of a long letter about the garden." * 9 for number in range(6))


def _embedder() -> HashingEmbedder:
    return HashingEmbedder(dimension=16)


def fill(database: Path, *, with_vectors: bool) -> None:
    """Something of everything that a file can hold."""
    with wellkept.open(database, embedder=_embedder() if with_vectors else None) as memories:
        view = memories.view(user="ada", project="api")
        for topic in TOPICS:
            memory = view.add(f"Ada likes {topic}", tags=[f"likes.{topic}"], key=topic, metadata={"topic": topic})
            view.get(memory.id)
        view.add("Porridge with honey", title=TITLE, layer="project", type="preference", importance=0.9)
        view.add(LONG, author="Ada", role="user", session="monday")
        changed = view.add("Lives in Paris")
        view.update(changed.id, content="Lives in Rome")
        view.forget(view.add("A secret wish").id, reason="asked to")
        view.forget(view.add("Gone for good").id, permanent=True)
        memories.view(user="bob").add("Bob likes tea")
        session = view.sessions.create("monday", preferences={"language": "de"})
        session.view.add("Talked about OAuth")


def _picture(database: Path) -> dict[str, object]:
    """All that can be seen of a file, apart from vectors, scores and the counting of this very look."""
    with wellkept.open(database, embedder=None) as memories:
        view = memories.view(user="ada", project="api")
        stored = view.list(limit=100, filter=wellkept.Filter(include_forgotten=True)).memories
        return {
            "memories": [_plain(memory) for memory in stored],
            "changes": [(v.memory_id, v.version, v.operation, v.recorded_at, v.reason) for v in view.changes()],
            "histories": [[v.memory and v.memory.content for v in view.history(memory.id)] for memory in stored],
            "words": {topic: _words(view, topic) for topic in (*TOPICS, "Rome", "Paris", "secret", "honey", "garden")},
            "titles": _words(view, "habits"),
            "tags": [memory.id for memory in view.list(filter=wellkept.Filter(tags=["likes"]))],
            "bob": [memory.content for memory in memories.view(user="bob").list()],
            "session": [
                memory.content for memory in memories.view(user="ada", session="monday").list(layers="session")
            ],
            "past": [memory.content for memory in view.list(as_of=view.changes()[2].recorded_at)],
        }


def _plain(memory: wellkept.Memory) -> tuple[object, ...]:
    return (
        *(memory.id, memory.content, memory.owner, memory.created_at, memory.updated_at, memory.tags, memory.key),
        *(dict(memory.metadata), memory.title, memory.type, memory.importance, memory.state, memory.version),
        *(memory.author, memory.role, memory.session, memory.access_count),
    )


def _words(view: wellkept.View, word: str) -> list[str]:
    """What probably answers."""
    return sorted(hit.memory.content for hit in view.search(word, min_score=0.3))


def _nearest(view: wellkept.View, text: str) -> str:
    """By the vectors alone."""
    [hit] = view.search(text, limit=1, ranking="similarity")
    return hit.memory.content


def _assert_usable(database: Path) -> None:
    """It is sound, keeps its keys, and takes vectors and writes, also for what came from the older file."""
    with wellkept.open(database, embedder=None) as memories:
        assert memories.doctor().findings == ()
    with wellkept.open(database) as memories:
        memories.reembed()
        assert memories.doctor().findings == ()
        assert memories.doctor().facts["schema"] == str(schema_of(database))
        view = memories.view(user="ada", project="api")
        old = next(iter(view.search("tea"))).memory
        again = view.add("Ada likes tea", tags=["likes.tea"], key="tea", metadata={"topic": "tea"})
        assert again.id == old.id
        for memory in view.list():
            view.update(memory.id, content=f"{memory.content} still")
        assert len(view.search("still", limit=50, min_score=0)) == view.count()
        assert _nearest(view, "Lives in Rome still") == "Lives in Rome still"
        assert _words(view, "honey") == ["Porridge with honey still"]
        assert next(iter(view.search("habits"))).memory.content == "Porridge with honey still"  # by its title
        assert view.forget(old.id, permanent=True)
        # In doubt the gate shows what is near; what was erased is not even among all that there is.
        left = view.search("tea", limit=50, min_score=0)
        assert [hit.memory.content for hit in left if hit.memory.id == old.id or "tea" in hit.memory.content] == []
        assert len(left) == view.count()
        assert memories.doctor().findings == ()
    with wellkept.open(database, embedder=None) as memories:  # by words alone
        view = memories.view(user="ada", project="api")
        assert _words(view, "tea") == []
        assert _words(view, "cake") == ["Ada likes cake still"]
        assert memories.doctor().findings == ()


@pytest.mark.req("L14")
@pytest.mark.parametrize("with_vectors", [False, True], ids=["words", "vectors"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.usefixtures("later_release")
def test_a_file_of_each_schema_opens(number: int, with_vectors: bool, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    fill(database, with_vectors=with_vectors)
    before = _picture(database)
    assert before["titles"] == ["Porridge with honey"]
    bring_to_schema(database, number)
    after = _picture(database)
    for part in before:
        assert after[part] == before[part], part
    _assert_usable(database)


@pytest.mark.req("L14")
@pytest.mark.usefixtures("later_release")
def test_down_and_up_again_and_again(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    fill(database, with_vectors=True)
    before = _picture(database)
    for _ in range(3):
        for number in (1, 2):
            bring_to_schema(database, number)
        assert _picture(database) == before
    _assert_usable(database)


@pytest.mark.req("L14", "H10")
def test_a_file_of_the_former_name_is_refused_and_left_alone(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    fill(database, with_vectors=False)
    for number in (1, 6):
        with closing(apsw.Connection(str(database))) as connection:
            connection.pragma("application_id", FORMER_NAME)
            connection.pragma("user_version", number)
        before = database.read_bytes()
        for refused in (wellkept.open, migrate):
            with pytest.raises(wellkept.errors.NotAStore, match="before the first release") as caught:
                refused(database)
            assert caught.value.hint
            assert caught.value.details == {"file": "memory.db", "schema": number}
        assert database.read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]


@pytest.mark.req("L14", "H10")
def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path, later_release: pytest.MonkeyPatch) -> None:
    database = tmp_path / "memory.db"
    fill(database, with_vectors=False)
    later_release.undo()
    before = database.read_bytes()
    with pytest.raises(wellkept.errors.SchemaTooNew, match="has schema 2, this release reads up to 1") as caught:
        wellkept.open(database)
    assert caught.value.hint
    assert caught.value.details["file"] == "memory.db"
    assert database.read_bytes() == before


@pytest.mark.req("L14", "H10")
@pytest.mark.parametrize("change", ["ALTER TABLE heads RENAME TO tails", "CREATE TABLE more (number INTEGER)"])
def test_a_file_that_a_later_release_migrates_while_it_is_open_here_is_neither_misread_nor_written(
    tmp_path: Path, change: str
) -> None:
    database = tmp_path / "memory.db"
    with wellkept.open(database, embedder=None) as memories:
        ada = memories.view(user="ada")
        tea = ada.add("Likes tea")
        later = apsw.Connection(str(database))
        later.execute(change)
        later.pragma("user_version", 2)
        with pytest.raises(wellkept.errors.SchemaTooNew, match="2") as caught:
            ada.add("Likes cake")
        assert caught.value.hint == "install a newer release of Wellkept"
        with pytest.raises(wellkept.errors.SchemaTooNew):
            ada.update(tea.id, content="Likes rain")
        if "RENAME" in change:  # what cannot be read any more is told as well
            with pytest.raises(wellkept.errors.SchemaTooNew):
                ada.list()
        assert later.execute("SELECT count(*) FROM journal").get == 1
        later.close()
