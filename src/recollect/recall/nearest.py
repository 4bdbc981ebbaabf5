"""Comparing by vectors: all rows in 8 bits, and those that come first exactly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.calibration import Calibration
from recollect.recall import kernel
from recollect.recall.columns import Array, joined
from recollect.recall.index import Index, spread
from recollect.recall.parts import Part, best, eligible
from recollect.recall.probes import Candidates, Probe
from recollect.types import Vector

_FEW = 4  # a filter that lets less than one in so many through is worth comparing only those

Exact = Callable[[Array], Sequence[bytes]]
"""The stored vectors of memories with these numbers, in their order."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A question compared in 8 bits with the rows of an index, each by its best passage.

    ``products`` stand for cosines, see ``kernel``: one for each row, and minus infinity for rows that may not be found,
    have no vector, or were not worth a look. ``by_passage`` has one for each passage, if these are not the same.
    """

    index: Index
    question: kernel.Question
    products: Array
    by_passage: Array | None
    every: bool

    def similarity(self, rows: Array, scale: Calibration) -> Array:
        """What the cosines of rows mean: 0 for nothing in common, 1 for a good match. Rows without a vector have 0."""
        products = self.products[rows] if self.every else _products(self.index, self.question, rows)
        similar = calibrated(self.question.cosines(products), scale).astype(np.float32)
        similar[products == -np.inf] = 0
        return similar

    def nearest_passages(self, rows: Array) -> Array:
        """Which passage of each row came nearest; -1 where there is but one."""
        found = np.full(len(rows), -1, np.int32)
        if self.by_passage is None:
            return found
        firsts, counts = self.index["first"], self.index["passages"]
        for place in np.flatnonzero(counts[rows] > 1).tolist():
            first, count = int(firsts[rows[place]]), int(counts[rows[place]])
            found[place] = int(np.argmax(self.by_passage[first : first + count]))
        return found


def compared(index: Index, vector: Vector, may: Array | None) -> Compared:
    """Compare a question with every row that may be found; of very many, with those whose signs agree."""
    question = kernel.question(vector.data)
    some, products = _some(index, question, may)
    by_passage = products
    if some is not None:
        by_passage = np.full(len(index.codes), -np.inf)
        by_passage[some] = products
    found = by_passage
    if not index.single:
        have = np.flatnonzero(index["passages"] > 0)
        found = np.full(len(index), -np.inf)
        if len(have):
            found[have] = np.maximum.reduceat(by_passage, index["first"][have])
    if may is not None:
        found = np.where(may, found, -np.inf)
    every = some is None or may is not None
    return Compared(index, question, found, None if index.single else by_passage, every)


def _some(index: Index, question: kernel.Question, may: Array | None) -> tuple[Array | None, Array]:
    """Which passages were compared (all, if none is said), and their products.

    Under a narrow filter only what it lets through is compared; of very many, only those whose signs agree.
    """
    some = None
    if may is not None and np.count_nonzero(may) * _FEW < len(may):
        rows = np.flatnonzero(may)
        some = spread(index["first"][rows], index["passages"][rows])
    elif may is None and len(index.codes) >= kernel.MANY:
        some = kernel.likely(index.signs, question.unit)
    if some is None:
        return None, question.products(index.codes, index.weights)
    return some, question.products(index.codes[some], index.weights[some])


def _products(index: Index, question: kernel.Question, rows: Array) -> Array:
    """Some rows compared by themselves."""
    counts = index["passages"][rows]
    some = spread(index["first"][rows], counts)
    products = question.products(index.codes[some], index.weights[some])
    found = np.full(len(rows), -np.inf)
    have = counts > 0
    if have.any():
        found[have] = np.maximum.reduceat(products, (np.cumsum(counts) - counts)[have])
    return found


def nearest(parts: Sequence[Part], probe: Probe, now: float, exact: Exact) -> Candidates:
    """The rows whose vectors are nearest, with their exact similarity and nothing else."""
    assert probe.vector is not None  # noqa: S101  # without one, nobody asks what is nearest
    numbers, passages, cosines = [], [], []
    for part in parts:
        found = compared(part.index, probe.vector, eligible(part, now))
        rows = best(found.products, probe.pool)
        rows = rows[found.products[rows] > -np.inf]
        numbers.append(part.index["number"][rows])
        passages.append(found.nearest_passages(rows))
        cosines.append(_exactly(part.index, rows, found.question.unit, exact) if len(rows) else np.zeros(0))
    similar = calibrated(joined(cosines), probe.calibration)
    return Candidates(joined(numbers), joined(passages), {"similarity": similar})


def _exactly(index: Index, rows: Array, query: Array, exact: Exact) -> Array:
    """The cosines of rows, which were compared in 8 bits, compared anew with the vectors themselves."""
    if index.exact is not None:
        counts = index["passages"][rows]
        vectors = index.exact[rows if index.single else spread(index["first"][rows], counts)]
    else:
        stored = exact(index["number"][rows])
        vectors = np.frombuffer(b"".join(stored), "<f4").reshape(-1, len(query))
        counts = np.array([len(data) // (4 * len(query)) for data in stored])
    cosines = kernel.exact(vectors, query)
    if len(cosines) == len(rows):
        return cosines
    return np.maximum.reduceat(cosines, np.cumsum(counts) - counts)


def calibrated(cosines: Array, scale: Calibration) -> Array:
    """What cosines mean: 0 for nothing in common, 1 for a good match."""
    low, span = np.float32(scale.low), np.float32(scale.high - scale.low)
    found: Array = (cosines - low) / span
    return found
