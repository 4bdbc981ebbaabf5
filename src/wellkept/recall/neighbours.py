"""Which vectors of many are near each other, in time that grows with their number and not with its square.

Few vectors are all compared. Of more, neighbours are looked for in several orders: an order puts vectors side by side
that lie on the same sides of the same pairs of pivots, and only what stands in the same block of an order is compared.
Of two vectors at a cosine of 0.95, one in some twenty pairs is missed, of nearer ones fewer.
"""

from collections.abc import Iterator

import numpy as np

from wellkept.recall import quantized
from wellkept.recall.arrays import Array

FEW = 1_024
"""Vectors: up to so many are all compared."""

ORDERS = 16
BLOCK = 64
NEAREST = 3
"""So many neighbours of each vector are told of a block on average, if there are more."""

_STRIDE = 7_919  # a prime: pivots of one pair come from far apart


def pairs(codes: Array, least: float) -> Iterator[tuple[int, int, float]]:
    """Pairs of 8-bit codes, the lower row first, whose cosine is at least so high, each once.

    >>> found = pairs(quantized.encode(np.array([[1, 0], [0, 1], [1, 0]], np.float32)), 0.9)
    >>> [(low, high, round(cosine, 2)) for low, high, cosine in found]
    [(0, 2, 1.0)]
    """
    seen: set[tuple[int, int]] = set()
    for members in _blocks(codes):
        for low, high, cosine in _near(codes[members], members, least):
            if (low, high) not in seen:
                seen.add((low, high))
                yield low, high, cosine


def _blocks(codes: Array) -> Iterator[Array]:
    """What is compared with each other: everything, or the blocks of all orders."""
    count = len(codes)
    if count <= FEW:
        yield np.arange(count)
        return
    bits = max(1, (count // BLOCK).bit_length() + 1)
    for number in range(ORDERS):
        firsts = (np.arange(bits) * _STRIDE + number * 2 * _STRIDE * bits) % count
        seconds = (firsts + _STRIDE * bits + number + 1) % count
        sides = quantized.between(codes, codes[firsts]) > quantized.between(codes, codes[seconds])
        order = np.argsort(sides @ (1 << np.arange(bits, dtype=np.int64)), kind="stable")
        for start in range(0, count, BLOCK):
            yield order[start : start + BLOCK]


def _near(some: Array, members: Array, least: float) -> Iterator[tuple[int, int, float]]:
    """The pairs of a block that are near enough; where there are very many, the nearest of each member."""
    cosines = quantized.between(some, some)
    near = np.triu(cosines >= least, 1)
    if np.count_nonzero(near) > NEAREST * len(members):
        near &= cosines >= np.partition(cosines, -NEAREST - 1, axis=1)[:, -NEAREST - 1, None]
    lefts, rights = np.nonzero(near)
    crowded = slice(NEAREST * len(members))
    lefts, rights = lefts[crowded], rights[crowded]
    one, other = members[lefts], members[rights]
    values = cosines[lefts, rights].tolist()
    yield from zip(np.minimum(one, other).tolist(), np.maximum(one, other).tolist(), values, strict=True)
