"""What is searched: the index of an owner, and which of its rows may be found."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recollect.recall.columns import Array
from recollect.recall.index import Index


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
    return np.argpartition(values, len(values) - count)[len(values) - count :]
