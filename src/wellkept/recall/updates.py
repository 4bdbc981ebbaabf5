"""Updates: of two memories about one subject, the later one comes first.

A signal among the candidates of one search. Whether a later memory updates an earlier one is judged by a sum of
log-odds, fitted by benchmarks/fit_updates.py: whether it tells of a change, how much of the earlier text it has, how
much of the question, how far behind it is, and how much nearer it is to the earlier one than to all others. If so, it
is lifted just above the earlier one, no further. Turns of a conversation are left alone: they are ordered by their
conversation.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wellkept.recall import quantized, ranking
from wellkept.recall.arrays import Array, best, spread
from wellkept.recall.calibration import Calibration
from wellkept.recall.candidates import Candidates
from wellkept.recall.entries import ASKS, TELLS_CHANGE
from wellkept.text import words

LATER = "later"
"""The name of the signal."""

WEIGHTS: Mapping[str, float] = {"base": -5.5, "change": 3.0, "share": 7.4, "heard": 2.4, "gap": -0.4, "near": 4.2}
"""What each reason counts, in log-odds."""

WEIGHTS_OF_WORDS: Mapping[str, float] = {"base": -3.9, "change": 2.6, "share": 10.7, "heard": 1.9, "gap": -0.5}
"""The same where there are no vectors."""

_LOOKED_AT = 40  # candidates, the best ones
_FIRST = 0.05  # log-odds by which the later one comes first
_FARTHEST = 12.0  # log-odds: what matches worse by more is about something else
_COUNTED = 8.0  # log-odds: being farther behind counts no more
_AT_ONCE = 128  # columns
_LONG = 60  # words: a longer text is a note of its own
_APART_S = 60.0  # what happened at one time is no update, unless a change is told
_PSEUDO_MEMORIES = 20
_PSEUDO_OTHERS = 5  # unlike everything, so that two memories alone are not nearest to each other for want of others
_NUMBERS = {words.term(str(number)) for number in range(61)}  # are what changes
_PASSED_OVER = np.array(sorted(words.STOP_TERMS | _NUMBERS), np.uint32)
_PAST = frozenset(
    "did were used first before previous previously earlier original originally former formerly old initially".split()
)
_NEWEST = frozenset("latest newest last recent recently current currently still now nowadays".split())


@dataclass(frozen=True, slots=True)
class Pairs:
    """Every two of some candidates, the earlier one in rows and the later one in columns: what speaks for an update,
    and whether it may be one. ``places`` are those of the candidates, the earliest first.
    """

    places: Array
    reasons: Mapping[str, Array]
    may: Array


def asks_for_past(question: str) -> bool:
    """Whether a question asks for how something was before.

    >>> asks_for_past("Where did Bo live?"), asks_for_past("Where does Bo live?")
    (True, False)
    >>> asks_for_past("How long did the latest drill take?")
    False
    """
    said = words.tokens(question)
    return not _PAST.isdisjoint(said) and _NEWEST.isdisjoint(said)


def lifted(
    parts: Mapping[str, Array], found: Candidates, rows: Array, heard: Array, scale: Calibration
) -> Mapping[str, Array]:
    """The parts of the sums, with later memories lifted above the earlier ones that they update.

    ``heard`` is the share of the question's words that each row has.
    """
    odds = ranking.total(parts).astype(np.float64)
    those = pairs(odds, found, rows, heard, scale)
    if those is None:
        return parts
    weights = WEIGHTS if "near" in those.reasons else WEIGHTS_OF_WORDS
    lift = raised(odds, those, weights) - odds
    return {**parts, LATER: lift} if lift.any() else parts


def raised(odds: Array, those: Pairs, weights: Mapping[str, float]) -> Array:
    """The sums, with later memories raised just above the earlier ones that they update."""
    sums = weights["base"] + sum(weights[name] * values for name, values in those.reasons.items())
    sums = np.where(those.may, sums, -np.inf)
    made, places = odds.copy(), those.places.tolist()
    for earlier in np.flatnonzero((sums > 0).any(axis=1)).tolist():  # so that a chain ends with the last update
        highest = made[places[earlier]]
        for later in np.argsort(sums[earlier], kind="stable").tolist():  # the likeliest one last, and so on top
            if sums[earlier, later] > 0 and made[places[later]] < highest + _FIRST:
                highest = made[places[later]] = highest + _FIRST
    return made


def pairs(odds: Array, found: Candidates, rows: Array, heard: Array, scale: Calibration) -> Pairs | None:
    """The pairs of the best candidates that stand alone; none if there are no two of them."""
    alone = np.flatnonzero(found.size[rows] == 1)
    chosen = alone[best(odds[alone], _LOOKED_AT)]
    if len(chosen) < 2:
        return None
    places = chosen[np.lexsort((found.born[rows[chosen]], found.occurred[rows[chosen]]))]
    those = rows[places]
    marks, occurred, owner = found.marks[those], found.occurred[those], found.owner[those]
    changes = (marks & TELLS_CHANGE) > 0
    gap = odds[places][:, None] - odds[places][None, :]
    may = np.triu(np.ones((len(those), len(those)), np.bool_), 1) & (owner[:, None] == owner[None, :])
    may &= (gap < _FARTHEST) & ((marks & ASKS) == 0) & (found.length[those] <= _LONG)
    may &= changes | (occurred[None, :] - occurred[:, None] >= _APART_S)
    reasons = {
        "change": 1.0 * changes[None, :],
        "share": _shares(found, those),
        "heard": heard[places][None, :],
        "gap": np.clip(gap, 0, _COUNTED),
    }
    near = _nearness(found, those, scale)
    return Pairs(places, reasons if near is None else {**reasons, "near": near}, may)


def _shares(found: Candidates, rows: Array) -> Array:
    """How much of each row's text each other has as well. Terms that few of the rows have weigh most."""
    lengths = found.length[rows]
    terms = found.terms[spread((np.cumsum(found.length) - found.length)[rows], lengths)]
    of = np.repeat(np.arange(len(rows)), lengths)
    kept = ~np.isin(terms, _PASSED_OVER)
    known, term = np.unique(terms[kept], return_inverse=True)
    has = np.zeros((len(rows), len(known)), np.float32)
    has[of[kept], term] = 1
    counts = has.sum(axis=0)
    weights = np.log(1 + (len(rows) + _PSEUDO_MEMORIES - counts) / (counts + 1))
    common = _products(has * weights, has)
    shares: Array = common / np.maximum(np.diag(common), 1e-6)[:, None]
    return shares


def _products(left: Array, right: Array) -> Array:
    """The products of all rows of two matrices. In parts so small that BLAS starts no threads for them: where other
    programs use the processors as well, waiting for these takes ten times as long as all the rest of a search.
    """
    found = np.zeros((len(left), len(right)), np.float32)
    for start in range(0, left.shape[1], _AT_ONCE):
        found += left[:, start : start + _AT_ONCE] @ right[:, start : start + _AT_ONCE].T
    return found


def _nearness(found: Candidates, rows: Array, scale: Calibration) -> Array | None:
    """How much nearer the later one of each pair is to the earlier one than to all others; none without vectors."""
    if not len(found.codes) or not found.passages[rows].all():
        return None
    firsts = (np.cumsum(found.passages) - found.passages)[rows]
    codes = found.codes[firsts].astype(np.float32) - np.float32(quantized.ZERO)
    codes /= np.maximum(np.linalg.norm(codes, axis=1), np.float32(1e-6))[:, None]
    similar = np.maximum((codes @ codes.T - scale.low) / (scale.high - scale.low), 0)
    np.fill_diagonal(similar, 0)
    nearer: Array = similar - similar.sum(axis=0) / (len(rows) - 1 + _PSEUDO_OTHERS)
    return nearer
