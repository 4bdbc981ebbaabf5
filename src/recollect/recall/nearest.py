"""Comparing by vectors: all rows in 8 bits, and those that come first exactly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.recall import quantized
from recollect.recall.calibration import Calibration
from recollect.recall.columns import Array, joined
from recollect.recall.index import Index, spread
from recollect.recall.parts import Part, best, eligible
from recollect.recall.probes import Candidates, Probe
from recollect.types import Vector

_FEW = 4  # a filter that lets less than one in so many through is worth comparing only those
_CROWDED = 3  # where there are many vectors, more of them are too near to each other to be told apart in 8 bits

Exact = Callable[[Array], Sequence[bytes]]
"""The stored vectors of memories with these numbers, in their order."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A question compared in 8 bits with some rows of an index (all, if none are named), each by its best passage.

    ``products`` stand for cosines, see ``kernel``; those of rows that may not be found, or have no vector, are minus
    infinity.
    """

    index: Index
    question: quantized.Question
    rows: Array | None
    products: Array

    def nearest(self, count: int) -> Array:
        """The rows that come first, in no order."""
        places = best(self.products, count)
        places = places[self.products[places] > -np.inf]
        return places if self.rows is None else self.rows[places]

    def similarity(self, rows: Array, scale: Calibration) -> Array:
        """What the cosines of rows mean: 0 for nothing in common, 1 for a good match. Rows without a vector have 0."""
        products = self.products[rows] if self.rows is None else _products(self.index, self.question, rows)
        similar = calibrated(self.question.cosines(products), scale).astype(np.float32)
        similar[products == -np.inf] = 0
        return similar

    def nearest_passages(self, rows: Array) -> Array:
        """Which passage of each row came nearest; -1 where there is but one."""
        found = np.full(len(rows), -1, np.int32)
        if self.index.single:
            return found
        firsts, counts = self.index["first"][rows], self.index["passages"][rows]
        for place in np.flatnonzero(counts > 1).tolist():
            passages = np.arange(firsts[place], firsts[place] + counts[place])
            found[place] = int(np.argmax(_compared(self.index, self.question, passages)))
        return found


def compared(index: Index, vector: Vector, may: Array | None) -> Compared:
    """Compare a question with the rows that may be found. Under a narrow filter only what it lets through is compared;
    of very many rows, only those whose signs agree.
    """
    question = quantized.question(vector.data)
    rows = None
    if may is not None and np.count_nonzero(may) * _FEW < len(may):
        rows = np.flatnonzero(may)
    elif may is None and len(index.codes) >= quantized.MANY:
        rows = _owning(index, quantized.likely(index.signs, question.unit))
    if rows is not None:
        return Compared(index, question, rows, _products(index, question, rows))
    products: Array = question.products(index.codes, index.weights)
    if not index.single:
        products = _of_rows(products, index["first"], index["passages"])
    if may is not None:
        products = np.where(may, products, -np.inf)
    return Compared(index, question, None, products)


def _owning(index: Index, passages: Array) -> Array:
    """The rows that some passages belong to, each once."""
    return passages if index.single else np.unique(np.searchsorted(index["first"], passages, side="right") - 1)


def _products(index: Index, question: quantized.Question, rows: Array) -> Array:
    """The products of some rows."""
    if index.single:
        return _compared(index, question, rows)
    counts = index["passages"][rows]
    products = _compared(index, question, spread(index["first"][rows], counts))
    return _of_rows(products, np.cumsum(counts) - counts, counts)


def _compared(index: Index, question: quantized.Question, passages: Array) -> Array:
    return question.products(index.codes[passages], index.weights[passages])


def _of_rows(products: Array, firsts: Array, counts: Array) -> Array:
    """The best product of each row, from those of its passages."""
    found = np.full(len(firsts), -np.inf)
    have = np.flatnonzero(counts > 0)
    if len(have):
        found[have] = np.maximum.reduceat(products, firsts[have])
    return found


def nearest(parts: Sequence[Part], probe: Probe, now: float, exact: Exact) -> Candidates:
    """The rows whose vectors are nearest, with their exact similarity and nothing else."""
    assert probe.vector is not None  # noqa: S101  # without one, nobody asks what is nearest
    numbers, passages, cosines = [], [], []
    for part in parts:
        found = compared(part.index, probe.vector, eligible(part, now))
        many = part.index.exact is None
        rows = found.nearest(probe.pool * _CROWDED if many else probe.pool)
        exactly = _exactly(part.index, rows, found.question.unit, exact) if len(rows) else np.zeros(0)
        if many:
            first = best(exactly, probe.pool)
            rows, exactly = rows[first], exactly[first]
        numbers.append(part.index["number"][rows])
        passages.append(found.nearest_passages(rows))
        cosines.append(exactly)
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
    cosines = quantized.exact(vectors, query)
    if len(cosines) == len(rows):
        return cosines
    return np.maximum.reduceat(cosines, np.cumsum(counts) - counts)


def calibrated(cosines: Array, scale: Calibration) -> Array:
    """What cosines mean: 0 for nothing in common, 1 for a good match."""
    low, span = np.float32(scale.low), np.float32(scale.high - scale.low)
    found: Array = (cosines - low) / span
    return found
