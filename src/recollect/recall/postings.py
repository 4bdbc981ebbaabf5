"""Which rows have a term, and how often: sorted arrays for most rows, a plain scan for those added since."""

from dataclasses import dataclass

import numpy as np

from recollect.recall.columns import Array, Column

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
