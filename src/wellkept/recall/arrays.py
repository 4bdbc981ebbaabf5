"""Arrays that an index is made of: columns that grow at their end, the ids of rows, and the rows of terms."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_TALL, _WIDE = 64, 4  # values in a column at most, and columns for each of the best at least
_WORTH = 4


class Column:
    """An array with room behind its last row; growing copies it, at most now and then.

    >>> column = Column(np.int32)
    >>> column.extend([1, 2]); column.extend([3])
    >>> column.rows.tolist()
    [1, 2, 3]
    """

    def __init__(self, dtype: npt.DTypeLike, width: int | None = None) -> None:
        self._kept: Array = np.empty(0 if width is None else (0, width), dtype)
        self.size = 0

    @property
    def rows(self) -> Array:
        """What is in it. Writing to it changes the column."""
        return self._kept[: self.size]

    @property
    def writable(self) -> Array:
        """The same, copied first if the array is somebody else's."""
        if not self._kept.flags.writeable:
            self._kept = self._kept.copy()
        return self.rows

    def replace(self, values: Array) -> None:
        """Take an array as it is; it is copied when the first row is added."""
        self._kept, self.size = values, len(values)

    def extend(self, values: npt.ArrayLike) -> None:
        """Add rows."""
        new = np.asarray(values, dtype=self._kept.dtype).reshape(-1, *self._kept.shape[1:])
        end = self.size + len(new)
        if end > len(self._kept) or not self._kept.flags.writeable:
            grown = np.empty((end + end // 8 + 16, *self._kept.shape[1:]), self._kept.dtype)
            grown[: self.size] = self._kept[: self.size]
            self._kept = grown
        self._kept[self.size : end] = new
        self.size = end


def joined(arrays: Sequence[Array]) -> Array:
    """Arrays one behind the other; a single one as it is.

    >>> joined([np.array([1, 2]), np.array([3])]).tolist()
    [1, 2, 3]
    """
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def distinct(values: Array) -> Array:
    """The values in their order, each once; for hundreds, a third of the time of ``np.unique``.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    kept = np.empty(len(ordered), np.bool_)
    kept[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=kept[1:])
    return ordered[kept]


def spread(starts: Array, lengths: Array) -> Array:
    """The places of many ranges, one behind the other.

    >>> spread(np.array([10, 20]), np.array([2, 3])).tolist()
    [10, 11, 20, 21, 22]
    """
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)


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


# -- ids ------------------------------------------------------------------------------------------------------

_WORD = 8
_WIDTH = 40  # a UUID has 36 characters
_BETWEEN = "\0"  # no id has it: all at once takes a third of the time of one by one
_MIXERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xFF51AFD7ED558CCD)


def packed(ids: Sequence[str]) -> Array:
    """Ids as an array of bytes, a multiple of eight each.

    >>> packed(["a", "b"]).dtype.itemsize
    40
    """
    data = _BETWEEN.join(ids).encode().split(_BETWEEN.encode()) if ids else []
    width = max(map(len, data), default=0)
    return np.array(data, f"S{max(_WIDTH, -(-width // _WORD) * _WORD)}")


def unpacked(names: Array) -> list[str]:
    """Packed ids as texts.

    >>> unpacked(packed(["a", "b"]))
    ['a', 'b']
    """
    return _BETWEEN.encode().join(names.tolist()).decode().split(_BETWEEN) if len(names) else []


class Ids:
    """The id of each row, and the newest row of each id.

    A million ids as text in a dictionary would take 130 MB and a third of a second to make. Here most are bytes in an
    array, found by a hash; only those that came after the last ``sort`` are in a dictionary.

    >>> ids = Ids()
    >>> ids.extend(["a", "b"]); ids.sort(); ids.extend(["c", "a"])
    >>> ids.rows(["a", "b", "d"]).tolist(), ids.of(np.array([1, 2]))
    ([3, 1, -1], ['b', 'c'])
    """

    def __init__(self) -> None:
        self.names = Column(f"S{_WIDTH}")
        self._hashes: Array = np.zeros(0, np.uint64)
        self._order: Array = np.zeros(0, np.int64)
        self._recent: dict[str, int] = {}
        self._sorted = True

    def extend(self, ids: Sequence[str]) -> None:
        """Add rows."""
        if not self._sorted:
            self.sort()
        new, first = packed(ids), self.names.size
        if new.dtype.itemsize > self.names.rows.dtype.itemsize:
            wider = Column(new.dtype)
            wider.extend(self.names.rows)
            self.names = wider
            self.sort()
        self.names.extend(new)
        self._recent.update(zip(ids, range(first, first + len(ids)), strict=True))

    def replace(self, names: Array) -> None:
        """Take packed ids as they are; they are sorted when the first one is looked up."""
        self.names.replace(names)
        self._sorted = False

    def sort(self) -> None:
        """Put what came since the last time into the arrays."""
        self._hashes = _hashes(self.names.rows)
        self._order = np.argsort(self._hashes, kind="stable")
        self._hashes = self._hashes[self._order]
        self._recent = {}
        self._sorted = True

    def of(self, rows: Array) -> list[str]:
        """The ids of rows."""
        return unpacked(self.names.rows[rows])

    def rows(self, ids: Sequence[str]) -> Array:
        """The newest row of each id; -1 if there is none."""
        found = np.full(len(ids), -1, np.int64)
        if not self._sorted:
            self.sort()
        if len(self._hashes) and len(ids):
            self._find(packed(ids), found)
        if self._recent:
            recent = np.fromiter(map(self._recent.get, ids, repeat(-1)), np.int64, len(ids))
            found = np.where(recent < 0, found, recent)
        return found

    def _find(self, wanted: Array, found: Array) -> None:
        names = self.names.rows
        hashes = _hashes(wanted.astype(names.dtype))
        first = self._hashes.searchsorted(hashes, "left")
        last = self._hashes.searchsorted(hashes, "right") - 1
        known = np.flatnonzero(first <= last)
        rows = self._order[last[known]]
        same = names[rows] == wanted[known]
        found[known[same]] = rows[same]
        for place in known[~same & (first[known] < last[known])].tolist():  # another id of the same hash
            for other in range(last[place] - 1, first[place] - 1, -1):
                if names[self._order[other]] == wanted[place]:
                    found[place] = self._order[other]
                    break


def _hashes(names: Array) -> Array:
    """A number of 64 bits for each id, the same in every process."""
    parts = np.ascontiguousarray(names).view(np.uint64).reshape(len(names), names.dtype.itemsize // _WORD)
    mixed = np.zeros(len(names), np.uint64)
    for place in range(parts.shape[1]):
        mixed ^= parts[:, place]
        mixed *= np.uint64(_MIXERS[place % len(_MIXERS)])
        mixed ^= mixed >> np.uint64(29)
    return mixed


# -- terms ----------------------------------------------------------------------------------------------------

_MOST = 65_535  # times: more of the same word in one text make no difference
_EMPTY: tuple[Array, Array] = (np.zeros(0, np.int32), np.zeros(0, np.uint16))


@dataclass(frozen=True)
class Postings:
    """The terms of many rows, sorted: ``rows`` and ``times`` of the term ``vocabulary[i]`` start at ``starts[i]``."""

    vocabulary: Array
    starts: Array
    rows: Array
    times: Array

    @classmethod
    def of(cls, terms: Array, rows: Array) -> "Postings":
        """From terms and the row of each.

        >>> found = Postings.of(np.array([7, 5, 7], np.uint32), np.array([0, 0, 0], np.int32))
        >>> [part.tolist() for part in found.find(np.array([7], np.uint32))[0]]
        [[0], [2]]
        """
        pairs = (terms.astype(np.uint64) << np.uint64(32)) | rows.astype(np.uint64)
        pairs.sort()
        first = np.flatnonzero(np.r_[True, pairs[1:] != pairs[:-1]][: len(pairs)])
        times = np.minimum(np.diff(np.append(first, len(pairs))), _MOST).astype(np.uint16)
        distinct = pairs[first]
        of_term = (distinct >> np.uint64(32)).astype(np.uint32)
        starts = np.flatnonzero(np.r_[True, of_term[1:] != of_term[:-1]][: len(of_term)])
        return cls(
            of_term[starts],
            np.append(starts, len(of_term)).astype(np.int64),
            (distinct & np.uint64(0xFFFFFFFF)).astype(np.int32),
            times,
        )

    def find(self, terms: Array) -> list[tuple[Array, Array]]:
        """For each term the rows that have it, in their order, and how often each."""
        if not len(self.vocabulary):
            return [_EMPTY] * len(terms)
        places = self.vocabulary.searchsorted(terms)
        known = self.vocabulary.take(places, mode="clip") == terms
        starts, ends = self.starts.take(places, mode="clip"), self.starts.take(places + 1, mode="clip")
        ranges = zip(known.tolist(), starts.tolist(), ends.tolist(), strict=True)
        return [(self.rows[start:end], self.times[start:end]) if one else _EMPTY for one, start, end in ranges]


class Recent:
    """The terms of the rows from ``since`` on, which the postings do not know yet."""

    def __init__(self, since: int = 0) -> None:
        self.since = since
        self._terms = Column(np.uint32)
        self._rows = Column(np.int32)

    def extend(self, terms: Array, rows: Array) -> None:
        """Add terms and the row of each."""
        self._terms.extend(terms)
        self._rows.extend(rows)

    def among(self, terms: Array) -> Postings:
        """The part that has some of the terms, sorted."""
        if not self._terms.size:
            return _NONE
        kept = np.isin(self._terms.rows, terms)
        return Postings.of(self._terms.rows[kept], self._rows.rows[kept])


_NONE = Postings.of(np.zeros(0, np.uint32), np.zeros(0, np.int32))
