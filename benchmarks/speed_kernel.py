"""What a search costs at least, and what it costs with a real embedder: Wellkept's own yardsticks.

    python -m benchmarks.speed_kernel kernels INPUT FOLDER
    python -m benchmarks.speed_kernel model INPUT FOLDER

The kernel compares one vector with all others and takes the best ten, on a matrix that lies ready in memory, on one
core: the harness tells numpy so.
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wellkept
from benchmarks.peers import MANY, Item
from benchmarks.peers.worker import BATCH, K, Load, median, p95, questions_of, say, searched, seconds

MODEL_SIZE = 10_100
"""The most memories that are embedded by a real model here; 10,000 and the other owner's."""


def best(scores: NDArray[Any]) -> NDArray[np.intp]:
    """The places of the highest."""
    return np.argpartition(-scores, K)[:K]


def kernel_ms(scores_of: Callable[[Any], NDArray[Any]], questions: list[Any]) -> float:
    """The median time of scoring all rows and choosing."""
    for question in questions[:3]:
        best(scores_of(question))
    return median([seconds(partial(lambda one: best(scores_of(one)), question)) for question in questions])


def kernels(load: Load, questions: list[Item], folder: Path) -> None:  # noqa: ARG001 (it leaves no files)
    """32-bit floats with numpy; bytes with simsimd, with a sign and without, if that is installed."""
    matrix = np.array(load.vectors[[owner == MANY for owner in load.owners]])
    vectors = [np.asarray(question.vector, dtype=np.float32) for question in questions]
    say(kernel_f32_ms=kernel_ms(lambda one: matrix @ one, vectors))
    try:
        simsimd = import_module("simsimd")
    except ImportError:
        return
    small = np.round(matrix * 127).astype(np.int8)
    asked = [np.round(one * 127).astype(np.int8) for one in vectors]
    say(kernel_i8_ms=kernel_ms(lambda one: np.asarray(simsimd.dot(one, small)), asked))
    # Wellkept's own codes have no sign. What the shift adds to each product has to be taken away again.
    codes = small.view(np.uint8) ^ 0x80
    weights = 128.0 * codes.sum(axis=1, dtype=np.int64)
    unsigned = [one.view(np.uint8) ^ 0x80 for one in asked]
    say(kernel_u8_ms=kernel_ms(lambda one: np.asarray(simsimd.dot(one, codes)) - weights, unsigned))


def model(load: Load, questions: list[Item], folder: Path) -> None:
    """Everything as it comes: the default embedder, the default ranking."""
    if len(load.texts) > MODEL_SIZE:
        return
    with wellkept.open(folder / "model.db") as memories:
        view = memories.view(user=MANY)
        spent = 0.0
        for start in range(0, len(load.texts), BATCH):
            spent += seconds(partial(view.add_many, load.texts[start : start + BATCH]))
        times, _ = searched(lambda question: [hit.memory.id for hit in view.search(question.text)], questions)
        embedder = memories.settings().get("embedder", "none")
    say(model=embedder, model_batch_per_s=len(load.texts) / spent)
    say(model_search_p50_ms=median(times), model_search_p95_ms=p95(times))


if __name__ == "__main__":
    given = Path(sys.argv[2])
    {"kernels": kernels, "model": model}[sys.argv[1]](Load(given), questions_of(given), Path(sys.argv[3]))
