"""Comparing a query with many memories, in numpy. Imported when the first search needs it."""

from collections.abc import Sequence

import numpy as np

from recollect import words
from recollect.ranking import K1, B
from recollect.types import Vector

Scores = list[tuple[int, float]]
"""Numbers of memories and their scores, best first."""


def nearest(stored: Sequence[tuple[int, bytes]], wanted: Vector, limit: int) -> Scores:
    """The vectors with the highest cosines."""
    if not stored:
        return []
    matrix = np.frombuffer(b"".join(data for _, data in stored), dtype="<f4").reshape(len(stored), -1)
    query = np.frombuffer(wanted.data, dtype="<f4")
    # Lengths in 64 bits: the squares of large and of tiny 32-bit numbers are beyond 32 bits.
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    direction = (query / np.linalg.norm(query.astype(np.float64))).astype("<f4")
    return _best(stored, (matrix @ direction) / np.where(lengths == 0, 1, lengths), limit)


def bm25(stored: Sequence[tuple[int, bytes]], asked: Sequence[int], limit: int) -> Scores:
    """The memories with the highest BM25, as ``ranking.bm25`` defines it."""
    if not stored or not asked:
        return []
    lengths = np.array([len(data) // words.TERM_BYTES for _, data in stored])
    terms = np.frombuffer(b"".join([data for _, data in stored]), dtype="<u4")
    documents = np.repeat(np.arange(len(stored)), lengths)
    norms = K1 * (1 - B + B * lengths / max(1.0, float(lengths.mean())))
    totals = np.zeros(len(stored))
    for term in asked:
        having, times = np.unique(documents[terms == term], return_counts=True)
        weight = np.log(1 + (len(stored) - len(having) + 0.5) / (len(having) + 0.5))
        totals[having] += weight * times * (K1 + 1) / (times + norms[having])
    return [one for one in _best(stored, totals, limit) if one[1] > 0]


def _best(
    stored: Sequence[tuple[int, bytes]], scores: "np.ndarray[tuple[int], np.dtype[np.floating]]", limit: int
) -> Scores:
    first = np.argsort(-scores, kind="stable")[: max(0, limit)]
    return [(stored[index][0], float(scores[index])) for index in first]
