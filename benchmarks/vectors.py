"""Vectors alone: how well the cosine of an embedder finds what answers a question, and how fast it embeds.

    python benchmarks/vectors.py                                   # the built-in embedder on every kind of memory
    python benchmarks/vectors.py /a/folder --embedder static bge   # others too; LoCoMo and LongMemEval there

hit@1 is the share of questions whose best hit is an answer, R@10 the share of the answers among the first ten. Nothing
else of the product takes part: no words, no dates, no weights.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started as a script, it knows its own folder only

from benchmarks import facts, quality_data
from wellkept import plugins

LIMIT = 10
ALONE = "facts, paraphrases"
"""The questions that share no word with their answer."""


class Store(NamedTuple):
    """Texts by key, and questions with the keys of their answers."""

    kind: str
    texts: dict[str, str]
    questions: Sequence[tuple[str, str, frozenset[str]]]


def stores(folder: Path | None) -> Iterator[Store]:
    """The worlds of benchmarks/data, then conversations."""
    for place in sorted(path for path in facts.DATA.iterdir() if path.is_dir()):
        for world in facts.load([place]):
            texts = {one["id"]: one["content"] for one in world.memories}
            asked = [(one.text, one.kind, one.expected) for one in world.questions if one.expected]
            yield Store(place.name, texts, asked)
    for benchmark in (quality_data.LOCOMO, quality_data.LONGMEMEVAL):
        for haystack in quality_data.load(folder, benchmark) if folder else ():
            texts = {turn.key: f"{turn.author}: {turn.text}" for turn in haystack.turns}
            wanted = [one for one in haystack.questions if one.turns and not one.adversarial]
            yield Store(benchmark, texts, [(one.text, one.category, one.turns) for one in wanted])


def judged(embedder: Any, some: Sequence[Store]) -> dict[str, list[tuple[float, float]]]:
    """hit@1 and R@10 of each question, by kind of store."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for store in some:
        keys = list(store.texts)
        rows = np.asarray(embedder.embed(list(store.texts.values())), np.float32)
        asked = np.asarray(embedder.embed([text for text, _, _ in store.questions]), np.float32)
        for (_, kind, expected), cosines in zip(store.questions, asked @ rows.T, strict=True):
            best = [keys[place] for place in np.argsort(-cosines, kind="stable")[:LIMIT]]
            figures = float(best[0] in expected), len(expected.intersection(best)) / len(expected)
            found[store.kind].append(figures)
            if store.kind == "facts" and kind == "paraphrase":
                found[ALONE].append(figures)
    return found


def speed(embedder: Any, some: Sequence[Store]) -> tuple[float, float]:
    """Texts per second in batches of 256, and microseconds for one question."""
    texts = [text for store in some for text in store.texts.values()][:1024]
    asked = [text for store in some for text, _, _ in store.questions][:200]
    started = time.perf_counter()
    for start in range(0, len(texts), 256):
        embedder.embed(texts[start : start + 256])
    took = time.perf_counter() - started
    times = []
    for text in asked:
        started = time.perf_counter()
        embedder.embed([text])
        times.append(time.perf_counter() - started)
    return len(texts) / took, 1e6 * float(np.median(times))


def report(names: Sequence[str], folder: Path | None, embedders: Sequence[Any]) -> Iterator[str]:
    """A table: kinds of stores down, embedders across."""
    some = list(stores(folder))
    results = [judged(embedder, some) for embedder in embedders]
    yield "| hit@1 / R@10 | questions | " + " | ".join(names) + " |"
    yield "| --- | --- |" + " --- |" * len(names)
    for kind, first in results[0].items():
        cells = (f"{one:.1f} / {ten:.1f}" for one, ten in (100 * np.mean(result[kind], axis=0) for result in results))
        yield f"| {kind} | {len(first)} | " + " | ".join(cells) + " |"
    speeds = [speed(embedder, some) for embedder in embedders]
    yield "| texts per second | | " + " | ".join(f"{each:,.0f}" for each, _ in speeds) + " |"
    yield "| one question, microseconds | | " + " | ".join(f"{each:,.0f}" for _, each in speeds) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where LoCoMo and LongMemEval are")
    parser.add_argument("--embedder", nargs="+", default=[plugins.DEFAULT_EMBEDDER], help="names that open() knows")
    chosen = parser.parse_args()
    print("\n".join(report(chosen.embedder, chosen.folder, [plugins.open_embedder(one) for one in chosen.embedder])))


if __name__ == "__main__":
    main()
