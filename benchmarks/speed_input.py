"""What every store gets: the same texts, vectors and questions, made from fixed seeds and written to files."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.worker import DIMENSION

SEED = 7
CLUSTERS = 200
SPREAD = 0.7
"""The length of what is added to the centre of a cluster, which has length 1."""
COMMON = 0.6
"""The length of what all centres share, against 1 of their own: real embeddings are never quite unlike each other."""
VOCABULARY = 20_000
QUESTIONS, QUESTION_WORDS = 100, 20
SLICE = 50_000

Matrix = NDArray[np.float32]


def write(folder: Path, size: int) -> None:
    """So many memories of one owner, and one per cent more of another, in between."""
    total = size + size // 100
    dice = np.random.default_rng([SEED, size])
    shared = _unit(dice.standard_normal((1, DIMENSION), dtype=np.float32))
    centres = _unit(COMMON * shared + _unit(dice.standard_normal((CLUSTERS, DIMENSION), dtype=np.float32)))
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=(total, DIMENSION))
    for start in range(0, total, SLICE):
        count = min(SLICE, total - start)
        vectors[start : start + count] = _near(dice, centres[dice.integers(CLUSTERS, size=count)])
    vectors.flush()
    chosen = np.array(vectors[dice.integers(total, size=QUESTIONS)])
    (folder / "questions.f32").write_bytes(_near(dice, chosen).tobytes())
    words = _vocabulary(dice)
    lengths = dice.integers(8, 26, size=total)
    _write_lines(folder / "texts.txt", _texts(dice, words, lengths))
    _write_lines(folder / "questions.txt", _texts(dice, words, np.full(QUESTIONS, QUESTION_WORDS)))


def _unit(rows: Matrix) -> Matrix:
    scaled: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled.astype(np.float32)


def _near(dice: np.random.Generator, rows: Matrix) -> Matrix:
    return _unit(rows + SPREAD * _unit(dice.standard_normal(rows.shape, dtype=np.float32)))


def _vocabulary(dice: np.random.Generator) -> NDArray[np.str_]:
    letters = np.array(list("aeioulnrstdmkgb"))
    return np.array(["".join(dice.choice(letters, size=dice.integers(2, 10))) for _ in range(VOCABULARY)])


def _texts(dice: np.random.Generator, words: NDArray[np.str_], lengths: NDArray[np.int64]) -> Iterator[str]:
    """Words are as frequent as in a language (Zipf's law). Texts serve as ids, so that no two are the same."""
    shares = 1 / np.arange(1, VOCABULARY + 1)
    bounds = np.cumsum(shares / shares.sum())
    seen = set()
    for number, length in enumerate(lengths):
        places = np.searchsorted(bounds, dice.random(length))
        text = " ".join(words[np.minimum(places, VOCABULARY - 1)])
        text = f"{text} {number}" if text in seen else text
        seen.add(text)
        yield text


def _write_lines(file: Path, lines: Iterator[str]) -> None:
    with file.open("w", encoding="utf-8") as target:
        target.writelines(f"{line}\n" for line in lines)
