"""Files that were filled with the former built-in embedder, with and without its package."""

import importlib.util
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

import wellkept
from wellkept import plugins
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.embedders.word_table import WordTableEmbedder
from wellkept.embedders.wordllama import WordllamaEmbedder
from wellkept.ports import Lexicon
from wellkept.types import Status

FORMER = plugins.FORMER_DEFAULT


class Foreign:
    """An embedder that uses the built-in lexicon."""

    name, dimension = "foreign", 64

    def embed(self, texts: Sequence[str]) -> Any:
        return HashingEmbedder(64).embed(texts)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of two memories with vectors of the former embedder."""
    path = tmp_path / "memory.db"
    with wellkept.open(path, embedder="wordllama") as memories:
        memories.view(user="ada").add_many(["Prefers the dark theme", "Lives in Rome"])
        assert memories.settings()["embedder"] == FORMER
    return path


@pytest.fixture
def removed(file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same file, where the package is not installed."""
    find = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "wordllama" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    return file


@pytest.mark.req("L1")
def test_with_its_package_nothing_changes(file: Path) -> None:
    with wellkept.open(file) as memories:
        view = memories.view(user="ada")
        view.add("Drinks tea")
        assert memories.settings()["embedder"] == FORMER
        assert memories.health().status is Status.HEALTHY
        assert memories.doctor().healthy
        assert view.search("Which colour scheme?", min_score=0).hits[0].memory.content == "Prefers the dark theme"
        assert memories.reembed() == 0


@pytest.mark.req("L1", "H10")
def test_without_its_package_the_file_opens_and_goes_by_words(removed: Path) -> None:
    with wellkept.open(removed) as memories:
        view = memories.view(user="ada")
        view.add("Drinks tea")
        assert [hit.memory.content for hit in view.search("Rome")] == ["Lives in Rome"]
        assert [hit.memory.content for hit in view.search("tea")] == ["Drinks tea"]
        health = memories.health()
        assert health.status is Status.DEGRADED
        assert FORMER in health.components["embedder"].message
        assert "reembed" in health.components["embedder"].message
        [finding] = memories.doctor().findings
        assert (finding.check, finding.repair, finding.repaired) == ("embedder", "run memories.reembed()", False)


@pytest.mark.req("L4", "L6")
@pytest.mark.parametrize("way", ["reembed", "doctor"])
def test_reembed_goes_over_to_the_built_in_one(removed: Path, way: str) -> None:
    with wellkept.open(removed) as memories:
        view = memories.view(user="ada")
        view.add("Drinks tea")
        if way == "reembed":
            assert memories.reembed() == 3
        else:
            assert memories.doctor(repair=True).findings[0].repaired
        assert memories.health().status is Status.HEALTHY
        assert memories.doctor().findings == ()
    with wellkept.open(removed) as memories:
        assert memories.settings()["embedder"] == WordTableEmbedder.name
        [hit] = memories.view(user="ada").search("Prefers the dark theme", ranking="similarity", limit=1)
        assert hit.score == pytest.approx(1, abs=0.02)


@pytest.mark.req("H10")
def test_who_asks_for_it_by_name_is_told_what_to_install(removed: Path) -> None:
    with pytest.raises(wellkept.errors.ConfigurationError) as caught:
        wellkept.open(removed, embedder="wordllama")
    assert "wellkept[wordllama]" in caught.value.hint


def test_without_any_embedder_nothing_is_amiss(removed: Path) -> None:
    with wellkept.open(removed, embedder=None) as memories:
        assert memories.health().status is Status.HEALTHY
        assert memories.doctor().findings == ()


def test_words_are_read_by_the_lexicon_that_wrote_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the vectors of another embedder stand words of the built-in lexicon: the file names it from now on."""
    other = Foreign()
    assert isinstance(plugins.lexicon_of(other), WordTableEmbedder)
    filled = {"embedder": other.name, "dimension": "64"}
    assert isinstance(plugins.lexicon_of(other, filled), WordllamaEmbedder)
    assert isinstance(plugins.lexicon_of(other, {**filled, "lexicon": WordTableEmbedder.name}), WordTableEmbedder)
    assert isinstance(plugins.lexicon_of(other, {"embedder": FORMER}), WordTableEmbedder)
    with wellkept.open(tmp_path / "memory.db", embedder=other) as memories:
        memories.view(user="ada").add("Likes tea")
        assert memories.settings()["lexicon"] == WordTableEmbedder.name
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    assert plugins.lexicon_of(other, filled) is None
    own = plugins.open_embedder("static")
    assert isinstance(own, Lexicon)
    assert plugins.lexicon_of(own, {"embedder": FORMER}) is own


@pytest.mark.req("L4")
def test_going_over_to_another_embedder_names_the_lexicon(tmp_path: Path) -> None:
    with wellkept.open(tmp_path / "memory.db", embedder="wordllama") as memories:
        memories.view(user="ada").add("Likes tea")
        assert "lexicon" not in memories.settings()
        memories.reembed(Foreign())
        assert memories.settings()["lexicon"] == WordTableEmbedder.name
