"""From a URL to a store, and from a name to an embedder."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wellkept
from wellkept import plugins
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.embedders.word_table import WordTableEmbedder
from wellkept.errors import ConfigurationError, NotAStore
from wellkept.ports import Embedder, Lexicon, Store
from wellkept.settings.stores import GROUP
from wellkept.stores.ram import RamStore
from wellkept.stores.sqlite import SqliteStore

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


@pytest.mark.parametrize(("url", "name"), URLS)
def test_paths_lead_to_a_file(folder: Path, url: Callable[[Path], Any], name: str) -> None:
    store = plugins.open_store(url(folder))
    try:
        assert isinstance(store, SqliteStore)
        assert (folder / name).is_file()
    finally:
        store.close()


@pytest.mark.parametrize("url", ["ram:", "RAM:"])
def test_the_store_in_ram(folder: Path, url: str) -> None:
    assert isinstance(plugins.open_store(url), RamStore)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("url", ["", "sqlite:", ":memory:", "sqlite::memory:", None, 5, b"memory.db", ["a"]])
def test_what_names_no_database(folder: Path, url: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        plugins.open_store(url)
    assert caught.value.details["field"] == "url"
    assert caught.value.hint
    assert list(folder.iterdir()) == []


@pytest.mark.req("H5")
@pytest.mark.parametrize("url", ["mysql://host/base", "nope:", "no.pe+x-1:y"])
def test_an_unknown_scheme_is_named_with_those_known(folder: Path, url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        plugins.open_store(url)
    assert caught.value.details["scheme"] == url.partition(":")[0]
    assert "ram, sqlite" in caught.value.hint
    assert list(folder.iterdir()) == []


def test_stores_in_ram_have_no_name_and_no_durability() -> None:
    for url, durability in (("ram:x", None), ("ram:", "full")):
        with pytest.raises(ConfigurationError):
            plugins.open_store(url, durability=durability)


def test_an_unknown_durability_is_refused(folder: Path) -> None:
    for bad in ("eventual", "", 5):
        with pytest.raises(ConfigurationError) as caught:
            plugins.open_store("memory.db", durability=bad)  # type: ignore[arg-type]  # the point of the test
        assert caught.value.details["field"] == "durability"


def test_a_file_of_somebody_else_is_left_alone(folder: Path) -> None:
    (folder / "notes.txt").write_text("important")
    with pytest.raises(NotAStore):
        plugins.open_store("notes.txt")
    assert (folder / "notes.txt").read_text() == "important"


@pytest.mark.req("H5")
@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("url", ["note:here", "note+tls://host/x?y=1"])
def test_stores_of_other_packages_are_found_by_their_entry_point(url: str) -> None:
    store = plugins.open_store(url)
    assert isinstance(store, Store)
    assert store.name == "note"
    assert vars(store)["url"] == url
    with wellkept.open(url) as memories:
        view = memories.view(user="ada")
        memory = view.add("Likes tea")
        assert [hit.memory.id for hit in view.search("tea")] == [memory.id]


@pytest.mark.req("H5")
@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("url", ["wrong:x", "worse:x"])
def test_a_plug_in_must_be_a_store(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        plugins.open_store(url)
    assert caught.value.details["scheme"] == url.partition(":")[0]
    assert "Store" in caught.value.hint


@pytest.mark.usefixtures("plugin")
def test_the_hint_names_the_stores_of_other_packages() -> None:
    with pytest.raises(ConfigurationError) as caught:
        plugins.open_store("nope:x")
    assert "note, note+tls, postgres, postgresql, ram, sqlite" in caught.value.hint


def test_our_own_stores_are_named_in_both_places() -> None:
    points = importlib.metadata.entry_points(group=GROUP)
    assert {point.name: point.value for point in points} == dict(plugins.OWN)


# --- embedders ------------------------------------------------------------------------------------


@pytest.mark.req("L1")
@pytest.mark.parametrize("name", ["static", "wellkept-words-1"])
def test_the_built_in_embedder_has_two_names(name: str) -> None:
    embedder = plugins.open_embedder(name)
    assert isinstance(embedder, WordTableEmbedder)
    assert embedder.name == "wellkept-words-1"


@pytest.mark.parametrize("dimension", [1, 64, 4096])
def test_the_hashing_embedder_is_named_with_its_dimension(dimension: int) -> None:
    embedder = plugins.open_embedder(f"hashing-{dimension}")
    assert isinstance(embedder, HashingEmbedder)
    assert embedder.dimension == dimension


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
        plugins.open_embedder("wrong")
    assert caught.value.details == {"field": "embedder"}
    assert "Embedder" in caught.value.hint
    with pytest.raises(ConfigurationError) as caught:
        plugins.open_embedder("nope")
    known = "bge, hashing-64 (or another number of dimensions), model2vec:FOLDER, note, note-2, static, wrong;"
    assert known in caught.value.hint


def test_our_own_embedders_are_named_in_both_places() -> None:
    points = importlib.metadata.entry_points(group=plugins.EMBEDDERS)
    assert {point.name: point.value for point in points} == dict(plugins.OWN_EMBEDDERS)


def test_an_embedder_may_bring_a_lexicon_or_do_without() -> None:
    """Words of like meaning are found with the built-in one, unless the embedder says otherwise."""

    class Plain:
        name = "plain"
        dimension = 1

        def embed(self, texts: Any) -> Any:
            return [[1.0]] * len(texts)

    class Own(Plain):
        lexicon = WordTableEmbedder()

    class Without(Plain):
        lexicon = None

    static = WordTableEmbedder()
    assert plugins.lexicon_of(None) is None
    assert plugins.lexicon_of(static) is static
    assert isinstance(Plain(), Embedder)
    assert isinstance(plugins.lexicon_of(Plain()), Lexicon)
    assert plugins.lexicon_of(Own()) is Own.lexicon
    assert plugins.lexicon_of(Without()) is None
