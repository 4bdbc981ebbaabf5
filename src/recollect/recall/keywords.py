"""Comparing by words: BM25 over all rows, phrases, and how much of a question a few rows say or mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.recall.columns import Array
from recollect.recall.conversations import NOBODY
from recollect.recall.index import Index
from recollect.recall.parts import Part
from recollect.recall.probes import Probe
from recollect.text import words

K1 = 1.2
B = 0.9  # high: long answers of assistants would swamp short remarks

_PSEUDO_MEMORIES = 100  # make the weights of words nearly equal where there are few memories to count in
_BESIDE = 0.5  # what a neighbour's keyword score counts
_HEARD_BESIDE = 0.6  # what a word counts that a neighbour says
_PIECES = 65_536


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the rows of one part have of a question: its BM25, with half of the neighbours', and for each word the rows
    that say it, in their order.
    """

    keyword: Array
    having: Sequence[Array]

    def by(self, rows: Array) -> Array:
        """Which of some rows say which word: a row for each word."""
        said = np.zeros((len(self.having), len(rows)), np.bool_)
        wanted = rows.astype(np.int32)  # of the same kind, or else all that are looked through are copied
        for place, having in enumerate(self.having):
            if len(having):
                np.equal(having.take(having.searchsorted(wanted), mode="clip"), wanted, out=said[place])
        return said


def spoken(parts: Sequence[Part], probe: Probe) -> tuple[list[Spoken], Array, Mapping[str, float]]:
    """The keyword score of every row as a share of what the question weighs; the weights of its words; and what there
    is to answer it from. The statistics are those of all memories in sight, so that owners can be compared.
    """
    found = [_postings(part, probe.asked.terms) for part in parts]
    count = sum(part.index.alive for part in parts)
    average = max(1.0, sum(part.index.words for part in parts) / max(1, count))
    having = np.array([sum(len(postings[place][0]) for postings in found) for place in range(len(found[0]))])
    weights = np.log(1 + (count + _PSEUDO_MEMORIES - having - 0.5) / (having + 1.5)).astype(np.float32)
    shares = weights / np.float32(weights.sum() or 1.0)
    spoken = [_spoken(part.index, postings, shares, average) for part, postings in zip(parts, found, strict=True)]
    unseen = {term for term, times in zip(probe.asked.terms, having.tolist(), strict=False) if not times}
    named = float(any(name in unseen for name in probe.asked.names))
    return spoken, shares, {"memories": float(count), "unseen_name": named}


def _postings(part: Part, terms: Sequence[int]) -> list[tuple[Array, Array]]:
    """For each term, and each wildcard behind them, the rows that have it and how often."""
    index = part.index
    wanted = np.array(terms, np.uint32)
    found = index.recent.among(wanted).find(wanted)
    if index.postings is not None:
        old = index.postings.find(wanted)
        found = [_behind(one, other) if len(other[0]) else one for one, other in zip(old, found, strict=True)]
    if index.alive < len(index):
        kept = [index["alive"][rows] for rows, _ in found]
        found = [(rows[those], times[those]) for (rows, times), those in zip(found, kept, strict=True)]
    for numbers in part.wild:
        rows = np.sort(index.rows(numbers))
        found.append((rows, np.ones(len(rows), np.uint16)))
    return found


def _behind(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def _spoken(index: Index, postings: Sequence[tuple[Array, Array]], shares: Array, average: float) -> Spoken:
    """The BM25 of every row, of all words at once: rare ones take longer to begin with than to go through."""
    having = [rows for rows, _ in postings]
    if not having:
        return Spoken(np.zeros(len(index), np.float32), having)
    rows = np.concatenate(having)
    times = np.concatenate([times for _, times in postings]).astype(np.float32)
    norms = np.float32(K1 * B / average) * index["length"].astype(np.float32) + np.float32(K1 * (1 - B))
    scores = norms.take(rows)
    scores += times
    np.divide(times, scores, out=scores)
    scores *= np.repeat(np.float32(K1 + 1) * shares, [len(rows) for rows in having])
    own = np.bincount(rows, scores, len(index) + 1).astype(np.float32)
    keyword = own[:-1]
    if index.linked:  # the row of nobody is the last one, and says nothing
        keyword = keyword + np.float32(_BESIDE) * (own[index.before] + own[index.after])
    return Spoken(keyword, having)


def having(index: Index, spoken: Spoken, terms: Sequence[int], phrase: Sequence[int]) -> Array:
    """Which rows have the terms of a phrase one behind the other."""
    having_of = dict(zip(terms, spoken.having, strict=False))
    likely = np.arange(len(index))
    for rows in sorted((having_of[term] for term in set(phrase) if term in having_of), key=len):
        likely = np.intersect1d(likely, rows, assume_unique=True)
    wanted = words.pack(phrase)
    found = np.zeros(len(index), np.bool_)
    for row in likely.tolist():
        found[row] = _stands_in(wanted, index.terms(row).astype("<u4").tobytes())
    return found


def _stands_in(wanted: bytes, text: bytes) -> bool:
    """Whether packed terms contain others, at the border of a term."""
    place = text.find(wanted)
    while place >= 0 and place % words.TERM_BYTES:
        place = text.find(wanted, place + 1)
    return place >= 0


def coverage(index: Index, rows: Array, spoken: Spoken, shares: Array, probe: Probe) -> Array:
    """The weighted share of the question's words that a memory says or means, or nearly as good, its neighbour."""
    if not len(shares) or not len(rows):
        return np.zeros(len(rows), np.float32)
    if not index.linked:
        return np.asarray(shares @ _heard(index, rows, spoken, probe))
    before, after = index.before[rows], index.after[rows]
    wanted = np.zeros(len(index) + 1, np.bool_)
    wanted[rows] = wanted[before] = wanted[after] = True
    wanted[NOBODY] = False
    around = np.flatnonzero(wanted)
    heard = np.zeros((len(shares), len(around) + 1), np.float32)  # the last column is what nobody says
    heard[:, :-1] = _heard(index, around, spoken, probe)
    place = np.full(len(index) + 1, len(around), np.int32)
    place[around] = np.arange(len(around), dtype=np.int32)
    beside = np.maximum(heard[:, place[before]], heard[:, place[after]])
    share: Array = shares @ np.maximum(heard[:, place[rows]], np.float32(_HEARD_BESIDE) * beside)
    return share


def _heard(index: Index, rows: Array, spoken: Spoken, probe: Probe) -> Array:
    """How far rows say each word of the question, or mean it: a row for each word."""
    heard: Array = spoken.by(rows).astype(np.float32)
    if probe.kin is not None:
        worded = heard[: len(probe.asked.terms)]  # the others are wildcards
        np.maximum(worded, _meant(index, rows, probe), out=worded)
    return heard


def _meant(index: Index, rows: Array, probe: Probe) -> Array:
    """How nearly each row says each word of the question: by the one of its own words that is nearest in meaning."""
    assert probe.kin is not None  # noqa: S101  # said by the caller, for the type checker
    pieces, lengths = index.pieces(rows)
    used = np.zeros(_PIECES, np.bool_)
    used[pieces] = True
    known = np.flatnonzero(used)
    column = np.empty(_PIECES, np.int32)
    column[known] = np.arange(len(known), dtype=np.int32)
    # Long texts have many words, which are looked up faster in bytes, and with all of a piece side by side.
    near = (probe.kin(known).T * 255).astype(np.uint8, order="C")
    found = np.zeros((len(rows), near.shape[1]), np.uint8)
    some = lengths > 0
    if some.any():
        starts = (np.cumsum(lengths) - lengths)[some]
        found[some] = np.maximum.reduceat(near.take(column[pieces], axis=0), starts, axis=0)
    return found.T / np.float32(255)
