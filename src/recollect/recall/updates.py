"""Updates: of two memories about one subject, the later one comes first.

A signal among the candidates of one search. A later memory is taken to be an update of an earlier one if it has most of
its words, or a good part of them and a word that tells of a change. It is lifted just above the earlier one, no
further: which of the two is better known to match the question matters less than which of them still holds. Turns of a
conversation are left alone: they are ordered by their conversation.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from recollect.recall import ranking
from recollect.recall.arrays import Array, best
from recollect.recall.candidates import Candidates
from recollect.recall.entries import ASKS, TELLS_CHANGE
from recollect.recall.ranking import Scores
from recollect.text import words

LATER = "later"
"""The name of the signal."""

_LOOKED_AT = 30  # candidates, the best ones
_FIRST = 0.05  # log-odds by which the later one comes first
_FARTHEST = 6.0  # log-odds: what matches worse by more is about something else
_TOLD = ((0.4, 0.35), (0.25, 0.8))
"""Where a change is told: how much of the earlier text, by the rarity of its words, and how much of what that has of
the question the later one must have. One of the pairs is enough."""
_UNTOLD = ((0.6, 0.9),)
"""The same where none is told."""
_APART_S = 60.0  # what happened at one time is no update, unless a change is told
_PSEUDO_MEMORIES = 20
_PASSED_OVER = words.STOP_TERMS | {words.term(str(number)) for number in range(61)}  # numbers are what changes
_PAST = frozenset("first before previous previously earlier original originally former formerly old initially".split())


def asks_for_past(said: Sequence[str]) -> bool:
    """Whether words of a question ask for how something was before.

    >>> asks_for_past(["where", "lived", "before"]), asks_for_past(["where", "lives"])
    (True, False)
    """
    return not _PAST.isdisjoint(said)


def lifted(scores: Scores, found: Candidates, rows: Array, heard: Array) -> Scores:
    """The scores with later memories lifted above the earlier ones that they update.

    ``heard`` is the share of the question's words that each row has.
    """
    alone = np.flatnonzero(found.size[rows] == 1)
    odds = ranking.total(scores.parts).astype(np.float64)
    chosen = alone[best(odds[alone], _LOOKED_AT)]
    if len(chosen) < 2:
        return scores
    order = np.lexsort((found.born[rows[chosen]], found.occurred[rows[chosen]]))
    places = chosen[order].tolist()  # the earliest first, so that a chain of updates ends with the last of them
    told, weights = _told(found, rows[places])
    lift = np.zeros(len(odds))
    for later, place in enumerate(places):
        row = int(rows[place])
        if found.marks[row] & ASKS:
            continue
        changes = bool(found.marks[row] & TELLS_CHANGE)
        enough = _TOLD if changes else _UNTOLD
        latest = found.occurred[row] - (0.0 if changes else _APART_S)
        for earlier, other in enumerate(places[:later]):
            gap = odds[other] + lift[other] - odds[place] - lift[place]
            if not -_FIRST < gap < _FARTHEST or found.owner[row] != found.owner[rows[other]]:
                continue
            if found.occurred[rows[other]] > latest:
                continue
            share = _share(told[earlier], told[later], weights)
            if any(share >= much and heard[place] >= least * heard[other] for much, least in enough):
                lift[place] += gap + _FIRST
    if not lift.any():
        return scores
    return Scores(1 / (1 + np.exp(-(odds + lift))), {**scores.parts, LATER: lift})


def _told(found: Candidates, rows: Array) -> tuple[list[frozenset[int]], dict[int, float]]:
    """The terms of rows without stop words, and what each term weighs: those that few rows have weigh most."""
    ends = np.cumsum(found.length)
    told = [
        frozenset(found.terms[end - length : end].tolist()) - _PASSED_OVER
        for end, length in zip(ends[rows].tolist(), found.length[rows].tolist(), strict=True)
    ]
    counts = Counter(term for one in told for term in one)
    weights = {
        term: math.log(1 + (len(told) + _PSEUDO_MEMORIES - count) / (count + 1)) for term, count in counts.items()
    }
    return told, weights


def _share(earlier: frozenset[int], later: frozenset[int], weights: dict[int, float]) -> float:
    """How much of the earlier text the later one has as well."""
    whole = sum(weights[term] for term in earlier)
    return sum(weights[term] for term in earlier & later) / whole if whole else 0.0
