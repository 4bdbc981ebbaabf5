"""The tool that makes the table: its sources, its templates, its training."""

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools.word_table import making, templates, texts, training, vocabulary, wordnet

DATA = Path(__file__).parents[2] / "benchmarks" / "data"
NOUNS = """\
  1 This line is of the licence
00000001 13 n 02 tea 0 cha 0 001 @ 00000002 n 0000 | a hot drink; made of leaves; "dark tea"; "she drinks tea at four"
00000002 13 n 01 drink 0 000 | something to drink
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """WordNet with two nouns."""
    for name in wordnet.PARTS.values():
        (tmp_path / f"data.{name}").write_text(NOUNS if name == "noun" else "", encoding="utf-8")
    (tmp_path / "cntlist.rev").write_text("drink%1:13:00:: 1 7\n", encoding="utf-8")
    return tmp_path


def test_wordnet_is_read_with_the_frequent_first(folder: Path) -> None:
    drink, tea = wordnet.read(folder).values()
    assert (drink.words, drink.count, tea.count) == (("drink",), 7, 0)
    assert (tea.words, tea.hypernyms, tea.part, tea.topic) == (("tea", "cha"), (drink.key,), "n", 13)
    assert (tea.gloss, tea.examples) == ("a hot drink; made of leaves", ("dark tea", "she drinks tea at four"))


def test_texts_of_wordnet(folder: Path) -> None:
    synsets = wordnet.read(folder)
    assert texts.definitions(synsets, {"tea", "drink"}) == ["drink: something to drink", "tea: a hot drink"]
    assert texts.definitions(synsets, {"drink"}) == ["drink: something to drink"]
    assert texts.examples(synsets) == ["she drinks tea at four"]


def test_no_question_and_no_memory_of_a_benchmark_fits_a_template() -> None:
    """What is measured must not be trained for."""
    said = []
    for file in sorted(DATA.glob("*/*.json")):
        world = json.loads(file.read_text(encoding="utf-8"))
        said += [one["question"] for one in world["questions"]] + [one["content"] for one in world["memories"]]
    assert len(said) > 1_000
    for _, *both in templates.TEMPLATES:
        for template in both:
            parts = re.split(r"\{\w+\}", template.rstrip("?").lower())
            pattern = re.compile(".{1,60}".join(map(re.escape, parts)) + r"\W*")
            assert [text for text in said if pattern.fullmatch(text.lower())] == []


def test_templates_are_filled_with_words_that_go_together(folder: Path) -> None:
    """The only noun has a more general one; without verbs there is nothing to fill in."""
    words = templates._Filler(wordnet.read(folder), {"tea", "cha", "drink"}, random.Random(1))
    assert words._above(wordnet.read(folder)["n00000001"]) == "drink"
    assert set(words._two(wordnet.read(folder)["n00000001"])) == {"tea", "cha"}
    assert templates._filled("a {x} and a {y}", {"x": "apple", "y": "pear"}) == "an apple and a pear"


def test_words_are_ranked_by_use_and_forms_come_after_them(tmp_path: Path) -> None:
    spelling = tmp_path / "words"
    spelling.write_text("tea\nteas\ncoffee\nTurin\ncat's\nknown\ncafé\n", encoding="utf-8")
    counts = vocabulary.counted(["Tea, tea and coffee", "Teas?"] * 5)
    assert vocabulary.ranked(spelling, counts, {"known"}) == ["tea", "coffee", "teas", "cafe", "turin"]


def test_training_brings_sums_to_where_the_teacher_points() -> None:
    chance = np.random.default_rng(3)
    truth = chance.standard_normal((50, 8)).astype(np.float32)
    said = [chance.integers(2, 50, 4).tolist() for _ in range(400)]
    targets = np.stack([truth[rows].sum(axis=0) for rows in said])
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    lesson = training.Lesson.of(said, targets, np.arange(400))
    first = chance.standard_normal((50, 8)).astype(np.float32)
    course = training.Course(epochs=80, batch=100, rate=0.05, listwise=0)
    table = training.trained(first.copy(), 2, lesson, course, lambda _: None)

    def cosine(rows: training.Floats) -> float:
        sums = np.stack([rows[some].sum(axis=0) for some in said])
        return float(((sums * targets).sum(axis=1) / np.linalg.norm(sums, axis=1)).mean())

    assert cosine(first) < 0.3
    assert cosine(table) > 0.9
    assert (table[:3] == first[:3]).all()


def test_slopes_are_those_of_the_loss() -> None:
    chance = np.random.default_rng(0)
    sums, targets = chance.standard_normal((12, 6)), chance.standard_normal((12, 6))
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    partner, places, warmth = np.arange(12) ^ 1, np.arange(12), 0.3
    lesson = training.Lesson(places, np.ones(12, np.int64), targets, partner)  # type: ignore[arg-type]  # in 64 bits
    _, slopes = training._slopes(sums, places, lesson, training.Course(temperature=warmth))  # type: ignore[arg-type]

    def divergence(units: Any) -> float:
        wanted, found = (one @ one.T / warmth for one in (targets, units))
        for one in (wanted, found):
            np.fill_diagonal(one, -np.inf)
        wanted, found = (np.exp(one) / np.exp(one).sum(axis=1, keepdims=True) for one in (wanted, found))
        some = wanted > 0
        return float((wanted[some] * np.log(wanted[some] / found[some])).sum() / 12)

    def confusion(asked: Any, answers: Any) -> float:
        products = asked @ answers.T / warmth
        return float((np.log(np.exp(products).sum(axis=1)) - np.diag(products)).mean() / 2)

    def loss(sums: Any) -> float:
        units = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        left, right = units[::2], units[1::2]
        apart = 1 - float((units * targets).sum(axis=1).mean())
        return apart + 0.5 * divergence(units) + 0.5 * (confusion(left, right) + confusion(right, left))

    for place in np.ndindex(sums.shape):
        step = np.zeros_like(sums)
        step[place] = 1e-5
        assert slopes[place] == pytest.approx((loss(sums + step) - loss(sums - step)) / 2e-5, abs=1e-6)


def test_whole_numbers_lose_little() -> None:
    table = np.random.default_rng(4).standard_normal((20, 160)).astype(np.float32)
    table[3] *= 0.01
    found = making.whole(table)
    back = found["row"] * found["scale"].astype(np.float32)[:, None]
    cosines = (back * table).sum(axis=1) / np.linalg.norm(back, axis=1) / np.linalg.norm(table, axis=1)
    assert (cosines > 0.999).all()
    assert np.linalg.norm(back[3]) / np.linalg.norm(back[4]) == pytest.approx(
        np.linalg.norm(table[3]) / np.linalg.norm(table[4]), rel=0.02
    )
