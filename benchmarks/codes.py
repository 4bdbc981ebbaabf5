"""Where 1-bit codes pay: the time and the recall of the ten nearest when signs choose what is compared in 8 bits.

    python benchmarks/codes.py /a/folder --sizes 50000,100000 --columns 160,256

Two inputs, embedded by the built-in embedder: the sentences of LoCoMo and LongMemEval from the folder, asked by their
questions; and random texts. Fewer columns than the embedder has are the leading principal components. Times are of the
processor, the lower quartile of many; recall is against the exact 8-bit scan.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started as a script, it knows its own folder only

from benchmarks import quality_data, speed_input
from benchmarks.speed_input import Matrix
from wellkept.embedders.word_table import WordTableEmbedder
from wellkept.recall import quantized
from wellkept.recall.arrays import best

QUESTIONS, SEED, REPEATS, NEAREST = 200, 7, 40, 10
SLICE = 5_000


def embedded(texts: list[str]) -> Matrix:
    """The vectors of texts."""
    embedder = WordTableEmbedder()
    parts = [embedder.embed(texts[start : start + SLICE]) for start in range(0, len(texts), SLICE)]
    return np.concatenate([np.asarray(part, np.float32) for part in parts])


def sentences(folder: Path, size: int) -> tuple[list[str], list[str]]:
    """Different sentences of the conversations, and questions about them."""
    stacks = [
        one for name in (quality_data.LOCOMO, quality_data.LONGMEMEVAL) for one in quality_data.load(folder, name)
    ]
    split = (part for one in stacks for turn in one.turns for part in re.split(r"(?<=[.!?])\s+|\n+", turn.text))
    said = list(dict.fromkeys(part for part in split if 20 < len(part) < 300))
    asked = [question.text for one in stacks for question in one.questions]
    dice = np.random.default_rng(SEED)
    dice.shuffle(said)
    dice.shuffle(asked)
    return said[:size], asked[:QUESTIONS]


def milliseconds(work: Callable[[], object]) -> float:
    """The processor's time of some work."""
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return sorted(times)[REPEATS // 4] * 1000


def judged(vectors: Matrix, asked: Matrix, counts: list[int]) -> Iterator[str]:
    """A cell for the full scan, and one for each number of candidates."""
    codes = quantized.encode(vectors)
    weights, signs = quantized.weights(codes), quantized.signs(codes)
    questions = [quantized.question(one.astype("<f4").tobytes()) for one in asked]
    every = [one.products(codes, weights) for one in questions]
    yield f"{milliseconds(lambda: best(questions[0].products(codes, weights), NEAREST)):.2f} ms"

    def chosen() -> object:
        rows = quantized.likely(signs, questions[0].unit)
        return best(questions[0].products(codes[rows], weights[rows]), NEAREST)

    for count in counts:
        with mock.patch.multiple(quantized, _FEWEST=count, _SHARE=len(codes)):  # other settings than the product's
            shares = []
            for one, products in zip(questions, every, strict=True):
                least = products[best(products, NEAREST)].min()
                found = np.count_nonzero(products[quantized.likely(signs, one.unit)] >= least)
                shares.append(min(1.0, found / NEAREST))
            yield f"{milliseconds(chosen):.2f} ms, {np.mean(shares):.4f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where LoCoMo and LongMemEval are")
    parser.add_argument("--sizes", default="50000,100000,240000", help="numbers of vectors")
    parser.add_argument("--columns", default="160,256", help="numbers of columns")
    parser.add_argument("--candidates", default="4000,8000,16000", help="how many the signs choose")
    arguments = parser.parse_args()
    sizes, columns, counts = (
        [int(one) for one in text.split(",")] for text in (arguments.sizes, arguments.columns, arguments.candidates)
    )
    dice = np.random.default_rng(SEED)
    vocabulary = speed_input._vocabulary(dice)
    random = [
        list(speed_input._texts(dice, vocabulary, dice.integers(8, 26, size=size))) for size in (max(sizes), QUESTIONS)
    ]
    print("| input | columns | vectors | full scan | " + " | ".join(f"{one:,} candidates" for one in counts) + " |")
    print("| --- | --- | --- |" + " --- |" * (1 + len(counts)))
    for name, (texts, asked) in (("sentences", sentences(arguments.folder, max(sizes))), ("random texts", random)):
        vectors, questions = embedded(texts), embedded(asked)
        _, _, axes = np.linalg.svd(vectors[:SLICE], full_matrices=False)
        for width in columns:
            some, those = (
                (vectors, questions)
                if width >= vectors.shape[1]
                else (vectors @ axes[:width].T, questions @ axes[:width].T)
            )
            for size in sizes:
                cells = " | ".join(judged(some[:size], those, counts))
                print(f"| {name} | {some.shape[1]} | {len(some[:size]):,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
