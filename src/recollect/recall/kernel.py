"""Comparing one vector with many: 8-bit codes for the scan, 1-bit codes before it where there are very many."""

import math

import numpy as np
import numpy.typing as npt
import simsimd

from recollect.recall.columns import Array

SCALE = 127.0
"""What a coordinate of 1 becomes in 8 bits."""

MANY = 250_000
"""Codes: from here on, signs alone choose what is compared in 8 bits."""

_SHARE = 100  # of very many codes, the best hundredth by sign
_FEWEST = 4_000


def encode(rows: Array) -> Array:
    """Vectors as 8-bit codes of their directions.

    >>> encode(np.array([[3.0, 4.0]], dtype=np.float32)).tolist()
    [[76, 102]]
    """
    # Lengths in 64 bits: the squares of large and of tiny 32-bit numbers are beyond 32 bits.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    unit = rows / np.where(lengths == 0, 1, lengths)[:, None]
    codes: Array = np.rint(unit * SCALE).astype(np.int8)
    return codes


def signs(codes: Array) -> Array:
    """The signs of codes, eight to a byte."""
    return np.packbits(codes > 0, axis=1)


def cosines(codes: Array, query: Array) -> npt.NDArray[np.float32]:
    """The cosines of a unit vector with all codes, to about two hundredths."""
    asked = np.rint(query * np.float32(SCALE)).astype(np.int8)
    found: npt.NDArray[np.float32] = between(asked[None, :], codes)[0]
    return found


def between(left: Array, right: Array) -> npt.NDArray[np.float32]:
    """The cosines of codes with codes: a row for each on the left."""
    if not len(left) or not len(right):
        return np.zeros((len(left), len(right)), np.float32)
    dots = np.asarray(simsimd.cdist(left, right, metric="dot", out_dtype="float32"))
    found: npt.NDArray[np.float32] = np.multiply(dots, np.float32(1 / SCALE**2), dtype=np.float32)
    return found


def likely(marks: Array, query: Array) -> Array:
    """The places of the codes whose signs agree best with the query's: the best hundredth, at least some thousands."""
    wanted = max(_FEWEST, len(marks) // _SHARE)
    asked = np.packbits(query > 0)[None, :]
    apart = np.asarray(simsimd.cdist(asked, marks, metric="hamming", dtype="bin8", out_dtype="float32"))[0]
    counted = np.cumsum(np.bincount(apart.astype(np.int32)))
    return np.flatnonzero(apart <= np.searchsorted(counted, wanted))


def exact(rows: Array, query: Array) -> npt.NDArray[np.float64]:
    """The cosines of a unit vector with vectors, exactly."""
    wide = rows.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    found: npt.NDArray[np.float64] = wide @ query / np.where(lengths == 0, 1, lengths)
    return found


def direction(values: bytes) -> npt.NDArray[np.float32]:
    """A stored vector, one unit long."""
    wide = np.frombuffer(values, dtype="<f4").astype(np.float64)
    unit: npt.NDArray[np.float32] = (wide / (math.sqrt(wide @ wide) or 1.0)).astype(np.float32)
    return unit
