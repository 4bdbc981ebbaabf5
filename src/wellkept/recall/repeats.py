"""Repeats: a stored question that repeats the one that is asked comes behind what answers it.

A signal among the candidates of one search. A stored question has the words of the same question, but not its answer,
and is nearer to it than any statement can be. It is lowered to just behind the best statement that is not far behind
it, no further: nothing is hidden.
"""

from collections.abc import Mapping

import numpy as np

from wellkept.recall import ranking
from wellkept.recall.arrays import Array
from wellkept.recall.candidates import Candidates
from wellkept.recall.entries import ASKS, ONLY_ASKS, SAYS_NOTHING

REPEATS = "repeats"
"""The name of the signal."""

_REPEATED = 0.6  # the share of the question's words that a repetition has
_ANSWERED = 0.4  # the same of a statement that may answer it
_FARTHEST = 8.0  # log-odds: a statement that matches worse by more is about something else
_BEHIND = 0.05  # log-odds


def lowered(parts: Mapping[str, Array], found: Candidates, rows: Array, heard: Array) -> Mapping[str, Array]:
    """The parts of the sums, with stored questions lowered behind the best statement that may answer.

    ``heard`` is the share of the question's words that each row has.
    """
    marks = found.marks[rows]
    repeats = ((marks & ONLY_ASKS) > 0) & (heard >= _REPEATED)
    states = ((marks & (ASKS | ONLY_ASKS | SAYS_NOTHING)) == 0) & (heard >= _ANSWERED)
    if not repeats.any() or not states.any():
        return parts
    odds = ranking.total(parts).astype(np.float64)
    best = odds[states].max()
    above = np.flatnonzero(repeats & (odds >= best) & (odds < best + _FARTHEST))
    if not len(above):
        return parts
    drop = np.zeros(len(rows))
    ordered = above[np.argsort(-odds[above], kind="stable")]
    drop[ordered] = best - _BEHIND * np.arange(1, len(ordered) + 1) - odds[ordered]
    return {**parts, REPEATS: drop}
