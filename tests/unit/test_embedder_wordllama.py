"""The former built-in embedder: always the same vectors, for whatever text there is."""

import importlib.util
import random
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import wellkept
from wellkept.embedders.wordllama import WordllamaEmbedder
from wellkept.errors import ConfigurationError
from wellkept.ports import Embedder, Lexicon

SENTENCES = ("I like tea", "She enjoys coffee", "The build is broken")
# Special pieces are read as text here, as nobody means them; the other differences are about space.
UNSPACED = st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc"), exclude_characters="\u2581<")
WORDS = st.text(UNSPACED, min_size=1, max_size=40) | st.sampled_from(
    [
        "The",
        "user",
        "prefers",
        "dark",
        "mode",
        "indentation",
        "don't",
        "naïve",
        "日本語",
        "😀",
        "e\u0301",
        "x" * 60,
        "1999",
    ]
)


@cache
def embedder() -> WordllamaEmbedder:
    return WordllamaEmbedder()


def cosine(left: str, right: str) -> float:
    one, other = embedder().embed([left, right])
    return float(one @ other)


@pytest.mark.req("L1")
def test_it_is_an_embedder_and_a_lexicon() -> None:
    assert isinstance(embedder(), Embedder)
    assert isinstance(embedder(), Lexicon)
    rows = embedder().embed(SENTENCES)
    assert (rows.shape, rows.dtype) == ((3, 256), np.float32)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)
    assert embedder().embed([]).shape == (0, 256)


@pytest.mark.req("L4")
@pytest.mark.parametrize(
    ("near", "far"),
    [
        (("I like tea", "She enjoys coffee"), ("I like tea", "The build is broken")),
        (("a dark theme", "colour scheme"), ("a dark theme", "fresh fish")),
        (("the car broke down", "an engine failure"), ("the car broke down", "a poem about spring")),
    ],
)
def test_like_meanings_are_near(near: tuple[str, str], far: tuple[str, str]) -> None:
    assert cosine(*near) > cosine(*far) + 0.1


@pytest.mark.req("L1")
def test_vectors_are_the_same_in_every_process_and_for_ever() -> None:
    """They are kept in files: whoever changes them must change the name."""
    row = embedder().embed(["The user prefers dark mode"])[0]
    assert row[:4].tolist() == pytest.approx([0.127167, -0.101751, 0.037034, 0.038695], abs=1e-5)
    again = WordllamaEmbedder().embed(["something else", "The user prefers dark mode"])[1]
    assert again.tolist() == row.tolist()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("The user prefers dark mode", [450, 1404, 758, 25534, 6501, 4464]),
        ("indentation", [1399, 9233]),
        ("日本語", [29871, 30325, 30346, 30968]),
        ("😀", [29871, 243, 162, 155, 131]),
    ],
)
def test_texts_come_apart_into_the_pieces_of_the_vocabulary(text: str, pieces: list[int]) -> None:
    assert embedder()._pieces(text) == pieces


@cache
def reference() -> Callable[[str], list[int]]:
    """The tokenizer that the vectors were made with."""
    tokenizers = pytest.importorskip("tokenizers")
    spec = importlib.util.find_spec("wordllama")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0])
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))

    def pieces(text: str) -> list[int]:
        found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return found

    return pieces


@given(st.lists(WORDS, min_size=1, max_size=6))
@example(["internationalisation", "Indentation", "re-embedding", "https://example.com/a?b=c"])
@example(["aaaa", "....", "----", "======", "\u00e9\u00e9\u00e9"])
def test_pieces_are_those_of_the_tokenizer(said: list[str]) -> None:
    text = " ".join(said)
    assert embedder()._pieces(text) == reference()(text)


@given(st.text(max_size=200))
@example("")
@example(" ")
@example("\x00")
@example("\u2581" * 100)
@example("\u0f73" * 100)
@example("<s></s><unk>")
def test_no_text_is_too_strange(text: str) -> None:
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return  # refused before it gets here
    [row] = embedder().embed([text])
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-4)


@given(st.lists(st.text(max_size=80), min_size=1, max_size=4))
def test_without_numpy_the_numbers_are_the_same(texts: list[str]) -> None:
    pieces = [embedder()._pieces(text) for text in texts]
    plain = np.array([np.frombuffer(row, np.float32) for row in embedder()._summed(pieces)])
    np.testing.assert_array_max_ulp(plain, embedder().embed(texts), maxulp=1)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a" * 10**5, "ab" * 50_000, "é" * 10**5, "a " * 50_000, "\u2581" * 10**5])
def test_very_long_texts_come_to_an_end(text: str) -> None:
    """Joining the pieces of a word takes time that grows with the square of its length: words are cut for that."""
    [row] = embedder().embed([text])
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-4)


class LookUps(dict[str, int]):
    """Counts how often a pair of pieces is looked up."""

    count = 0

    def get(self, *args: Any) -> Any:
        self.count += 1
        return super().get(*args)


@pytest.mark.parametrize("unit", [".abc:def", "日本語を話す", "aB3,"])
def test_unspaced_text_takes_time_in_proportion_to_its_length(unit: str) -> None:
    own = WordllamaEmbedder()
    own.__dict__["_numbers"] = counted = LookUps(embedder()._numbers)
    chance = random.Random(7)
    text = "".join(chance.sample(unit, 1)[0] for _ in range(20_000))
    own.embed([text])
    assert counted.count < 4 * len(text)


def test_of_encoded_data_only_the_beginning_is_embedded() -> None:
    data = "".join(random.Random(7).choices("abcdefghABCDEFGH0123456789+/", k=5_000))
    long, short = embedder().embed([f"the key is {data}", f"the key is {data[:256]}"])
    assert long.tolist() == short.tolist()
    prose = "the user prefers dark mode, " * 50
    spaced, cut = embedder().embed([prose, prose[:256]])
    assert spaced.tolist() != cut.tolist()


def test_many_repeated_pieces_are_summed_to_the_same_numbers() -> None:
    texts = ["Green tea, please. " * 400, "the build is broken " * 900, "日本語" * 900]
    together = embedder().embed([*texts, *texts])
    assert together.tolist() == [*(row.tolist() for text in texts for row in embedder().embed([text]))] * 2
    pieces = [embedder()._pieces(text) for text in texts]
    assert np.array(embedder()._summed(pieces)) == pytest.approx(together[:3], abs=1e-7)


def test_the_longest_piece_of_a_very_long_word_is_found_among_its_first_letters() -> None:
    own = WordllamaEmbedder()
    own.__dict__["_numbers"] = counted = LookUps(embedder()._numbers)
    assert own.pieces(["indentation" * 10_000]) == own.pieces(["indentation"])
    assert counted.count < 1_000


def test_only_space_between_words_counts() -> None:
    rows = embedder().embed(["two words", " two \n\t words  "])
    assert rows[0].tolist() == rows[1].tolist()


def test_words_know_their_kin() -> None:
    lexicon = embedder()
    said = ["the", "cat", "vehicle", "fish"]
    pieces = np.frombuffer(lexicon.pieces(said), dtype="<u2")
    assert len(pieces) == len(said)
    assert pieces[0] == 0
    near = lexicon.kin(["kitten", "automobile"])(pieces)
    assert near.shape == (2, 4)
    assert (near >= 0).all()
    assert (near < 1).all()
    assert near[:, 0].tolist() == [0, 0]
    assert near[0].argmax() == 1
    assert near[1].argmax() == 2
    assert near.max(axis=1).tolist() > [0.3, 0.3]
    assert lexicon.kin([])(pieces).shape == (0, 4)


def test_threads_may_share_it() -> None:
    shared = WordllamaEmbedder()
    expected = embedder().embed(SENTENCES).tolist()
    found: list[list[list[float]]] = []
    threads = [threading.Thread(target=lambda: found.append(shared.embed(SENTENCES).tolist())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


@pytest.mark.req("H10")
def test_without_the_package_there_is_a_plain_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError) as caught:
        wellkept.open(tmp_path / "memory.db", embedder="wordllama")
    assert caught.value.operation == "open"
    assert caught.value.details == {"field": "embedder"}
    assert "wellkept[wordllama]" in caught.value.hint
    assert "wordllama" not in sys.modules
