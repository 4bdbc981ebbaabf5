"""From a URL to a store, and from a name to an embedder."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import store_of
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.embedders.word_table import WordTableEmbedder
from wellkept.errors import ConfigurationError, NotAStore
from wellkept.ports import Store
from wellkept.stores.ram import RamStore
from wellkept.stores.sqlite import SqliteStore
from wellkept.types import DurabilityName, Vector

PLUGIN = """
from wellkept.stores.ram import RamStore

class NoteStore(RamStore):
    name = "note"

    @classmethod
    def from_url(cls, url, *, durability=None):
        store = cls()
        store.url = url
        return store

not_a_class = 5

class NotAStore:
    pass

class NoteEmbedder:
    name = "note-2"
    dimension = 2
    lexicon = None

    def embed(self, texts):
        return [[float(len(text)), 1.0] for text in texts]
"""
ENTRY_POINTS = """
[wellkept.stores]
note = wellkept_note_plugin:NoteStore
note+tls = wellkept_note_plugin:NoteStore
wrong = wellkept_note_plugin:NotAStore
worse = wellkept_note_plugin:not_a_class

[wellkept.embedders]
note = wellkept_note_plugin:NoteEmbedder
note-2 = wellkept_note_plugin:NoteEmbedder
wrong = wellkept_note_plugin:NotAStore
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is installed as far as Python can tell."""
    site = tmp_path / "site"
    metadata = site / "wellkept_note-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "wellkept_note_plugin.py").write_text(PLUGIN)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: wellkept-note\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(site)
    importlib.invalidate_caches()


URLS: list[tuple[Callable[[Path], Any], str]] = [
    (lambda folder: "memory.db", "memory.db"),
    (lambda folder: "sqlite:memory.db", "memory.db"),
    (lambda folder: "SQLite:memory.db", "memory.db"),
    (lambda folder: str(folder / "memory.db"), "memory.db"),
    (lambda folder: f"sqlite:{folder / 'memory.db'}", "memory.db"),
    (lambda folder: f"sqlite://{folder / 'memory.db'}", "memory.db"),
    (lambda folder: folder / "memory.db", "memory.db"),
    (lambda folder: Path("memory.db"), "memory.db"),
    (lambda folder: "~/memory.db", "memory.db"),
    (lambda folder: "sqlite:~/memory.db", "memory.db"),
    (lambda folder: "./a:b.db", "a:b.db"),
    (lambda folder: "C:memory.db", "C:memory.db"),
    (lambda folder: "C:\\memory.db", "C:\\memory.db"),
    (lambda folder: "name with spaces é.db", "name with spaces é.db"),
    (lambda folder: Path("ram:"), "ram:"),
    (lambda folder: Path("nope:x"), "nope:x"),
]


def test_paths_lead_to_a_file(folder: Path) -> None:
    """Each in a folder that is the home of the user and where the program runs, and holds nothing else."""
    files = []
    for url, name in URLS:
        with wellkept.open(url(folder), embedder=None) as memories:
            files.append((name, type(store_of(memories)), (folder / name).is_file()))
        (folder / name).unlink()
    assert files == [(name, SqliteStore, True) for _, name in URLS]


@pytest.mark.parametrize("url", ["ram:", "RAM:"])
def test_the_store_in_ram(folder: Path, url: str) -> None:
    with wellkept.open(url, embedder=None) as memories:
        assert isinstance(store_of(memories), RamStore)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("url", ["", "sqlite:", ":memory:", "sqlite::memory:", None, 5, b"memory.db", ["a"]])
def test_what_names_no_database(folder: Path, monkeypatch: pytest.MonkeyPatch, url: Any) -> None:
    monkeypatch.delenv("WELLKEPT_DB", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        wellkept.open(url)
    assert caught.value.details["field"] == "url"
    assert caught.value.hint
    assert list(folder.iterdir()) == []


@pytest.mark.req("H5")
@pytest.mark.parametrize("url", ["mysql://host/base", "nope:", "no.pe+x-1:y"])
def test_an_unknown_scheme_is_named_with_those_known(folder: Path, url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        wellkept.open(url)
    assert caught.value.details["scheme"] == url.partition(":")[0]
    assert "ram, sqlite" in caught.value.hint
    assert list(folder.iterdir()) == []


def test_stores_in_ram_have_no_name_and_no_durability() -> None:
    cases: list[tuple[str, DurabilityName | None]] = [("ram:x", None), ("ram:", "full")]
    for url, durability in cases:
        with pytest.raises(ConfigurationError):
            wellkept.open(url, durability=durability)


def test_an_unknown_durability_is_refused(folder: Path) -> None:
    for bad in ("eventual", "", 5):
        with pytest.raises(ConfigurationError) as caught:
            wellkept.open("memory.db", durability=bad)  # type: ignore[arg-type]  # the point of the test
        assert caught.value.details["field"] == "durability"


def test_a_file_of_somebody_else_is_left_alone(folder: Path) -> None:
    (folder / "notes.txt").write_text("important")
    with pytest.raises(NotAStore):
        wellkept.open("notes.txt")
    assert (folder / "notes.txt").read_text() == "important"


@pytest.mark.req("H5")
@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("url", ["note:here", "note+tls://host/x?y=1"])
def test_stores_of_other_packages_are_found_by_their_entry_point(url: str) -> None:
    with wellkept.open(url) as memories:
        store = store_of(memories)
        assert isinstance(store, Store)
        assert store.name == "note"
        assert vars(store)["url"] == url
        view = memories.view(user="ada")
        memory = view.add("Likes tea")
        assert [hit.memory.id for hit in view.search("tea")] == [memory.id]


@pytest.mark.req("H5")
@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("url", ["wrong:x", "worse:x"])
def test_a_plug_in_must_be_a_store(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        wellkept.open(url)
    assert caught.value.details["scheme"] == url.partition(":")[0]
    assert "Store" in caught.value.hint


@pytest.mark.usefixtures("plugin")
def test_the_hint_names_the_stores_of_other_packages() -> None:
    with pytest.raises(ConfigurationError) as caught:
        wellkept.open("nope:x")
    assert "note, note+tls, postgres, postgresql, ram, sqlite" in caught.value.hint


# --- embedders ------------------------------------------------------------------------------------


def vector_by(embedder: str) -> Vector:
    """The vector that an embedder of a name makes."""
    with wellkept.open("ram:", embedder=embedder) as memories:
        view = memories.view(user="ada")
        memory = view.get(view.add("Likes tea").id, include_vector=True)
        assert memory is not None
        assert memory.vector is not None
        assert memories.settings()["embedder"] == memory.vector.embedder
        return memory.vector


@pytest.mark.req("L1")
@pytest.mark.parametrize("name", ["static", "wellkept-words-1"])
def test_the_built_in_embedder_has_two_names(name: str) -> None:
    vector = vector_by(name)
    expected = Vector.of("wellkept-words-1", WordTableEmbedder().embed(["Likes tea"])[0])
    assert (vector.embedder, vector.data) == (expected.embedder, expected.data)


@pytest.mark.parametrize("dimension", [1, 64, 4096])
def test_the_hashing_embedder_is_named_with_its_dimension(dimension: int) -> None:
    embedder = HashingEmbedder(dimension)
    assert vector_by(f"hashing-{dimension}") == Vector.of(embedder.name, embedder.embed(["Likes tea"])[0])


@pytest.mark.req("H10")
@pytest.mark.parametrize("name", ["", "nope", "STATIC", "hashing-", "hashing-x", "hashing-12345", "x" * 1000])
def test_an_unknown_embedder_is_named_with_those_known(folder: Path, name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        wellkept.open("memory.db", embedder=name)
    assert (caught.value.operation, caught.value.details) == ("open", {"field": "embedder"})
    assert "bge, hashing-64 (or another number of dimensions), model2vec:FOLDER, static;" in caught.value.hint
    assert len(str(caught.value)) < 300


@pytest.mark.req("H10")
@pytest.mark.parametrize("embedder", [5, object(), b"static", ["static"]])
def test_what_is_no_embedder(folder: Path, embedder: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        wellkept.open("memory.db", embedder=embedder)
    assert caught.value.details == {"field": "embedder"}
    assert caught.value.hint
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("plugin")
def test_embedders_of_other_packages_are_found_by_their_entry_point(folder: Path) -> None:
    with wellkept.open("memory.db", embedder="note") as memories:
        memories.view(user="ada").add("Likes tea")
        assert memories.settings()["embedder"] == "note-2"
    # Whoever opens the file later need not know: it says whose vectors it holds.
    with wellkept.open("memory.db") as memories:
        view = memories.view(user="ada")
        view.add("Likes cake")
        [one, two] = view.get_many([memory.id for memory in view.list()], include_vector=True).values()
        assert {memory.vector.embedder for memory in (one, two) if memory.vector} == {"note-2"}


@pytest.mark.req("H10")
@pytest.mark.usefixtures("plugin")
def test_a_plug_in_must_be_an_embedder() -> None:
    with pytest.raises(ConfigurationError) as caught:
        wellkept.open("ram:", embedder="wrong")
    assert caught.value.details == {"field": "embedder"}
    assert "Embedder" in caught.value.hint
    with pytest.raises(ConfigurationError) as caught:
        wellkept.open("ram:", embedder="nope")
    known = "bge, hashing-64 (or another number of dimensions), model2vec:FOLDER, note, note-2, static, wrong;"
    assert known in caught.value.hint
