"""Comparing one vector with many: 8-bit codes for the scan, 1-bit codes before it where there are very many."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import simsimd

from wellkept.recall.arrays import Array

SCALE = 127.0
"""What a coordinate of 1 becomes in 8 bits."""

ZERO = 128
"""What a coordinate of 0 becomes: bytes without a sign are compared in half the time of those with one."""

MANY = 250_000
"""Codes: from here on, signs alone choose what is compared in 8 bits."""

WIDE = 256
"""Columns: the signs of fewer lose a hundredth of the nearest, or take longer to choose from than the full scan."""

_SHARE = 100  # of very many codes, the best hundredth by sign
_FEWEST = 4_000
_SAMPLE = 60_000  # are enough to tell how far apart the best hundredth is


@dataclass(frozen=True, slots=True)
class Question:
    """A vector that others are compared with: one unit long, and as a code."""

    unit: npt.NDArray[np.float32]
    code: npt.NDArray[np.uint8]

    def products(self, codes: Array, weights: Array) -> npt.NDArray[np.float64]:
        """Numbers that grow with the cosines of all codes: whole ones, and exact."""
        if not len(codes):
            return np.zeros(0)
        found = np.asarray(simsimd.dot(self.code, codes))
        found -= weights
        return found

    def cosines(self, products: Array) -> npt.NDArray[np.float64]:
        """The cosines, to about two hundredths, that products stand for."""
        excess = ZERO * (int(self.code.sum(dtype=np.int64)) - ZERO * len(self.code))  # zero is not 0
        found: npt.NDArray[np.float64] = (products - excess) * (1 / SCALE**2)
        return found


def question(values: bytes) -> Question:
    """A stored vector as a question."""
    unit = direction(values)
    return Question(unit, _coded(unit * np.float32(SCALE)))


def encode(rows: Array) -> npt.NDArray[np.uint8]:
    """Vectors as 8-bit codes of their directions.

    >>> encode(np.array([[3.0, -4.0, 0.0]], dtype=np.float32)).tolist()
    [[204, 26, 128]]
    """
    # Lengths in 64 bits: the squares of large and of tiny 32-bit numbers are beyond 32 bits.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return _coded(rows / np.where(lengths == 0, 1, lengths)[:, None] * SCALE)


def _coded(scaled: Array) -> npt.NDArray[np.uint8]:
    codes: npt.NDArray[np.uint8] = (np.rint(scaled) + ZERO).astype(np.uint8)
    return codes


def weights(codes: Array) -> npt.NDArray[np.int32]:
    """What each code adds to all of its products because zero is ``ZERO``."""
    if not len(codes):
        return np.zeros(0, np.int32)
    zeros = np.full(codes.shape[1], ZERO, np.uint8)
    found: npt.NDArray[np.int32] = np.asarray(simsimd.dot(zeros, codes)).astype(np.int32)
    return found


def signs(codes: Array) -> Array:
    """The signs of codes, eight to a byte."""
    return np.packbits(codes > ZERO, axis=1)


def between(left: Array, right: Array) -> npt.NDArray[np.float32]:
    """The cosines of codes with codes: a row for each on the left."""
    if not len(left) or not len(right):
        return np.zeros((len(left), len(right)), np.float32)
    dots = np.asarray(simsimd.cdist(left, right, metric="dot"))
    dots -= weights(right)
    dots -= weights(left)[:, None] - float(ZERO**2 * left.shape[1])
    cosines = dots.astype(np.float32)
    cosines *= np.float32(1 / SCALE**2)
    return cosines


def by_signs(codes: Array) -> bool:
    """Whether signs choose what is compared in 8 bits: only among very many codes, and only if these are wide."""
    return len(codes) >= MANY and codes.shape[1] >= WIDE


def likely(marks: Array, query: Array) -> Array:
    """The places of the codes whose signs agree best with the query's: the best hundredth, at least some thousands."""
    wanted = max(_FEWEST, len(marks) // _SHARE)
    asked = np.packbits(query > 0)[None, :]
    apart = np.asarray(simsimd.cdist(asked, marks, metric="hamming", dtype="bin8", out_dtype="float32"))[0]
    step = max(1, len(marks) // _SAMPLE)
    counted = step * np.cumsum(np.bincount(apart[::step].astype(np.int32)))
    return np.flatnonzero(apart <= np.searchsorted(counted, wanted))


def exact(rows: Array, query: Array) -> npt.NDArray[np.float64]:
    """The cosines of a unit vector with vectors, exactly."""
    wide = rows.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    lengths[lengths == 0] = 1
    found: npt.NDArray[np.float64] = wide @ query / lengths
    return found


def direction(values: bytes) -> npt.NDArray[np.float32]:
    """A stored vector, one unit long."""
    wide = np.frombuffer(values, dtype="<f4").astype(np.float64)
    unit: npt.NDArray[np.float32] = (wide / (math.sqrt(wide @ wide) or 1.0)).astype(np.float32)
    return unit


def of_rows(products: Array, firsts: Array, counts: Array) -> npt.NDArray[np.float64]:
    """The best product of each row, from those of its passages; minus infinity for rows that have none.

    >>> of_rows(np.array([1.0, 3.0, 2.0]), np.array([0, 2, 2]), np.array([2, 0, 1])).tolist()
    [3.0, -inf, 2.0]
    """
    found = np.full(len(firsts), -np.inf)
    have = np.flatnonzero(counts > 0)
    if len(have):
        found[have] = np.maximum.reduceat(products, firsts[have])
    return found
