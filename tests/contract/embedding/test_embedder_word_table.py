"""The built-in embedder: always the same vectors, for whatever text there is."""

import gzip
import random
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import wellkept
from wellkept.embedders import word_table
from wellkept.embedders.word_table import Vocabulary, WordTableEmbedder
from wellkept.ports import Embedder, Lexicon
from wellkept.testing.cases import Cases

SENTENCES = ("I like tea", "She enjoys coffee", "The build is broken")
LARGEST = 10_000_000


@cache
def embedder() -> WordTableEmbedder:
    return WordTableEmbedder()


def cosine(left: str, right: str) -> float:
    one, other = embedder().embed([left, right])
    return float(one @ other)


@pytest.mark.req("L1")
def test_it_is_an_embedder_and_a_lexicon() -> None:
    assert isinstance(embedder(), Embedder)
    assert isinstance(embedder(), Lexicon)
    rows = embedder().embed(SENTENCES)
    assert (rows.shape, rows.dtype) == ((3, 160), np.float32)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)
    assert embedder().embed([]).shape == (0, 160)


@pytest.mark.req("L4")
@pytest.mark.parametrize(
    ("near", "far"),
    [
        (("I like tea", "She enjoys coffee"), ("I like tea", "The build is broken")),
        (("a dark theme", "colour scheme"), ("a dark theme", "fresh fish")),
        (("the car broke down", "an engine failure"), ("the car broke down", "a poem about spring")),
        (("she cannot stand fish", "seafood disgusts her"), ("she cannot stand fish", "the rent is due")),
    ],
)
def test_like_meanings_are_near(near: tuple[str, str], far: tuple[str, str]) -> None:
    assert cosine(*near) > cosine(*far) + 0.1


@pytest.mark.req("L1")
def test_vectors_are_the_same_in_every_process_and_for_ever() -> None:
    """They are kept in files: whoever changes them must change the name."""
    row = embedder().embed(["The user prefers dark mode"])[0]
    assert row[:4].tolist() == pytest.approx([-0.291300, -0.013664, -0.079878, -0.081488], abs=1e-5)
    again = WordTableEmbedder().embed(["something else", "The user prefers dark mode"])[1]
    assert again.tolist() == row.tolist()


def test_the_table_is_small_and_complete() -> None:
    """Lexicons know a word by two bytes."""
    files = list(word_table.FOLDER.iterdir())
    assert {file.name for file in files} == {"rows.bin", "words.txt.gz"}
    assert sum(file.stat().st_size for file in files) <= LARGEST
    named = gzip.decompress((word_table.FOLDER / "words.txt.gz").read_bytes()).decode("ascii").split("\n")
    assert len(set(named)) == len(named)
    count = 1 + word_table.HASHED + len(named)
    assert count < 1 << 16
    assert (word_table.FOLDER / "rows.bin").stat().st_size == count * (2 + word_table.DIMENSION)


SAID: tuple[tuple[str, str], ...] = (
    ("Maya's dog", "maya dog"),
    ("the dog isn\u2019t here", "the dog not here"),
    ("it's late", "it late"),
    ("CAFÉ, Café", "cafe cafe"),
    (" two \n\t words  ", "two words"),
)


def test_possessives_contractions_case_and_space_change_nothing() -> None:
    with Cases() as cases:
        for said, meant in SAID:
            with cases.case(said):
                rows = embedder().embed([said, meant])
                assert rows[0].tolist() == rows[1].tolist()


def test_a_form_of_a_word_has_the_row_of_its_base() -> None:
    named = Vocabulary({"onboard": 1, "carry": 2, "plan": 3, "bake": 4})
    said = ["onboarded", "onboarding", "carries", "planned", "planning", "baking", "bakes", "xyzzy", "as"]
    assert [named.row(word) for word in said] == [1, 1, 2, 3, 3, 4, 4, 0, 0]


def test_unknown_words_are_like_themselves_alone() -> None:
    assert cosine("qwrtzk", "qwrtzk") == pytest.approx(1)
    assert cosine("qwrtzk", "bnvxcf") < 0.6
    assert cosine("ask qwrtzk about it", "qwrtzk") > cosine("ask bnvxcf about it", "qwrtzk") + 0.1
    assert cosine("\u043f\u0440\u0438\u0432\u0435\u0442", "\u043c\u043e\u0441\u043a\u0432\u0430") < 0.6


@given(st.text(max_size=200))
@example("")
@example(" ")
@example("\x00")
@example("\u2581" * 100)
@example("\u0f73" * 100)
@example("<s></s><unk>")
@example("\U0001f600")
def test_no_text_is_too_strange(text: str) -> None:
    [row] = embedder().embed([text])
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-4)


def test_a_memory_is_stored_without_loading_numpy_and_many_with_it() -> None:
    script = (
        "import sys, wellkept\n"
        "with wellkept.open('ram:') as memories:\n"
        "    view = memories.view(user='ada')\n"
        "    first = view.get(view.add('Likes tea').id, include_vector=True)\n"
        "    print('numpy' in sys.modules)\n"
        "    view.add_many([f'Likes tea {number}' for number in range(1_000)])\n"
        "    print('numpy' in sys.modules)\n"
        "    print(first.vector.data == view.get(view.add('Likes tea').id, include_vector=True).vector.data)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["False", "True", "True"]


@pytest.mark.slow
def test_very_long_texts_come_to_an_end() -> None:
    with Cases() as cases:
        for text in ("a" * 10**5, "ab" * 50_000, "é" * 10**5, "a " * 50_000, "日本" * 50_000):
            with cases.case(text[:2]):
                [row] = embedder().embed([text])
                assert np.linalg.norm(row) == pytest.approx(1, abs=1e-4)


def test_of_encoded_data_only_the_beginning_is_embedded() -> None:
    data = "".join(random.Random(7).choices("abcdefghABCDEFGH0123456789+/", k=5_000))
    long, short = embedder().embed([f"the key is {data}", f"the key is {data[:256]}"])
    assert long.tolist() == short.tolist()
    prose = "the user prefers dark mode, " * 50
    spaced, cut = embedder().embed([prose, prose[:256]])
    assert spaced.tolist() != cut.tolist()


def test_words_know_their_kin() -> None:
    lexicon = embedder()
    said = ["the", "cat", "vehicle", "fish", "qwrtzk"]
    pieces = np.frombuffer(lexicon.pieces(said), dtype="<u2")
    assert len(pieces) == len(said)
    assert [pieces[0], pieces[-1]] == [0, 0]
    near = lexicon.kin(["kitten", "automobile", "qwrtzk"])(pieces)
    assert near.shape == (3, 5)
    assert (near >= 0).all()
    assert (near < 1).all()
    assert near[:, 0].tolist() == [0, 0, 0]
    assert near[2].tolist() == [0] * 5
    assert near[0].argmax() == 1
    assert near[1].argmax() == 2
    assert near[:2].max(axis=1).tolist() > [0.3, 0.3]
    assert lexicon.kin([])(pieces).shape == (0, 5)


def test_words_that_are_spelled_alike_are_no_kin() -> None:
    """Pieces made them so: whole words do not."""
    lexicon = embedder()
    pieces = np.frombuffer(lexicon.pieces(["cupboard", "webhook"]), dtype="<u2")
    assert (lexicon.kin(["onboarded"])(pieces) < 0.3).all()


def test_threads_may_share_it() -> None:
    shared = WordTableEmbedder()
    expected = embedder().embed(SENTENCES).tolist()
    found: list[list[list[float]]] = []
    threads = [threading.Thread(target=lambda: found.append(shared.embed(SENTENCES).tolist())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


@pytest.mark.req("L1")
def test_a_new_file_is_filled_with_it(tmp_path: Path) -> None:
    with wellkept.open(tmp_path / "memory.db") as memories:
        memories.view(user="ada").add("Likes tea")
        kept = memories.settings()
    assert (kept["embedder"], kept["dimension"]) == (WordTableEmbedder.name, "160")
