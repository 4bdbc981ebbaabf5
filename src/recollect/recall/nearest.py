"""Comparing by vectors: all rows in 8 bits, and those that come first exactly."""

from collections.abc import Callable, Sequence

import numpy as np

from recollect.calibration import Calibration
from recollect.recall import kernel
from recollect.recall.columns import Array
from recollect.recall.index import Index, spread
from recollect.recall.parts import Part, best, eligible
from recollect.recall.probes import Candidates, Probe

_FEW = 4  # a filter that lets less than one in so many through is worth comparing only those

UNLIKE = np.float32(-2)
"""Less than any cosine."""

Exact = Callable[[Array], Sequence[bytes]]
"""The stored vectors of memories with these numbers, in their order."""


def nearest(parts: Sequence[Part], probe: Probe, now: float, exact: Exact) -> Candidates:
    """The rows whose vectors are nearest, with their exact similarity and nothing else."""
    assert probe.vector is not None  # noqa: S101  # without one, nobody asks what is nearest
    query = kernel.direction(probe.vector.data)
    numbers, passages, cosines = [], [], []
    for part in parts:
        index = part.index
        rows, by_passage = _first(index, query, eligible(part, now), probe.pool)
        numbers.append(index["number"][rows])
        passages.append(nearest_passages(index, rows, by_passage))
        cosines.append(_exactly(index, rows, query, exact) if len(rows) else np.zeros(0))
    similar = calibrated(np.concatenate(cosines), probe.calibration)
    return Candidates(np.concatenate(numbers), np.concatenate(passages), {"similarity": similar})


def _first(index: Index, query: Array, may: Array | None, count: int) -> tuple[Array, Array | None]:
    """The rows that come first in 8 bits, and the cosines of all passages if some row has not exactly one."""
    some, cosines = _cosines(index, query, may)
    if index.single and some is not None:  # no need to look at the others even once
        return some[best(cosines, count)], None
    found, by_passage = _of_rows(index, may, some, cosines)
    rows = best(found, count)
    return rows[found[rows] > UNLIKE], by_passage


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


def similarity(index: Index, probe: Probe, may: Array | None) -> tuple[Array, Array | None]:
    """The calibrated similarity of every row, and the cosine of every passage if these are not the same."""
    if probe.vector is None or not len(index.codes):
        return np.zeros(len(index), np.float32), None
    found, by_passage = compared(index, kernel.direction(probe.vector.data), may)
    similar = calibrated(found, probe.calibration)
    if by_passage is not None:
        similar[index["passages"] == 0] = 0
    return similar, by_passage


def calibrated(cosines: Array, scale: Calibration) -> Array:
    """What cosines mean: 0 for nothing in common, 1 for a good match."""
    low, span = np.float32(scale.low), np.float32(scale.high - scale.low)
    found: Array = (cosines - low) / span
    return found


def compared(index: Index, query: Array, may: Array | None) -> tuple[Array, Array | None]:
    """The cosine of every row by its best passage, in 8 bits; and of every passage if these are not the same.

    Rows that may not be found, or have no vector, are as unlike as can be.
    """
    some, cosines = _cosines(index, query, may)
    return _of_rows(index, may, some, cosines)


def _of_rows(index: Index, may: Array | None, some: Array | None, cosines: Array) -> tuple[Array, Array | None]:
    by_passage = cosines
    if some is not None:
        by_passage = np.full(len(index.codes), UNLIKE)
        by_passage[some] = cosines
    found = by_passage
    if not index.single:
        have = np.flatnonzero(index["passages"] > 0)
        found = np.full(len(index), UNLIKE)
        if len(have):
            found[have] = np.maximum.reduceat(by_passage, index["first"][have])
    if may is not None:
        found = np.where(may, found, UNLIKE)
    return found, None if index.single else by_passage


def _cosines(index: Index, query: Array, may: Array | None) -> tuple[Array | None, Array]:
    """Which passages were compared (all, if none is said), and their cosines in 8 bits.

    Under a narrow filter only what it lets through is compared; of very many, only those whose signs agree.
    """
    codes, some = index.codes, None
    if may is not None and np.count_nonzero(may) * _FEW < len(may):
        rows = np.flatnonzero(may)
        some = spread(index["first"][rows], index["passages"][rows])
    elif may is None and len(codes) >= kernel.MANY:
        some = kernel.likely(index.signs, query)
    return some, kernel.cosines(codes if some is None else codes[some], query)


def nearest_passages(index: Index, rows: Array, by_passage: Array | None) -> Array:
    """Which passage of each row came nearest; -1 where there is but one."""
    found = np.full(len(rows), -1, np.int32)
    if by_passage is None:
        return found
    for place in np.flatnonzero(index["passages"][rows] > 1).tolist():
        first, count = int(index["first"][rows[place]]), int(index["passages"][rows[place]])
        found[place] = int(np.argmax(by_passage[first : first + count]))
    return found
