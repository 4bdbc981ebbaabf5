"""What is searched: the index of an owner, and which of its rows may be found."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recollect.recall.columns import Array
from recollect.recall.index import Index

_TALL, _WIDE = 64, 4  # values in a column at most, and columns for each of the best at least
_WORTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The index of one owner, the memories that a filter lets through (all, if none), and those with a wildcard."""

    index: Index
    allowed: Array | None = None
    wild: Sequence[Array] = ()


def eligible(part: Part, now: float) -> Array | None:
    """Which rows may be found: alive, not expired, and let through by the filter. None if all may."""
    index = part.index
    found: Array | None = None if index.alive == len(index) else index["alive"]
    if index.expiring:
        lasting = index["expires"] > now
        found = lasting if found is None else found & lasting
    if part.allowed is not None:
        allowed = np.zeros(len(index), np.bool_)
        allowed[index.rows(part.allowed)] = True
        found = allowed if found is None else found & allowed
    return found


def best(values: Array, count: int) -> Array:
    """The places of the highest values, in no order.

    >>> sorted(best(np.array([3, 1, 2]), 2).tolist())
    [0, 2]
    """
    if len(values) <= count or not count:
        return np.arange(min(len(values), count))
    tall = min(_TALL, len(values) // (_WIDE * count))
    if tall < _WORTH:
        return _best(values, count)
    # At least so many are as high as the last of the best columns, so what is lower cannot be among the best. Looking
    # for it takes a quarter of the time of partitioning everything.
    wide = len(values) // tall
    columns = values[: tall * wide].reshape(tall, wide).max(axis=0)
    likely = np.flatnonzero(values >= np.partition(columns, wide - count)[wide - count])
    return likely[_best(values[likely], count)]


def _best(values: Array, count: int) -> Array:
    return np.argpartition(values, len(values) - count)[len(values) - count :]
