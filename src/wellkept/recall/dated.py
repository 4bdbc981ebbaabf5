"""Questions of time alone: how near each candidate is to the time, and whether it is within."""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from wellkept.recall.arrays import Array
from wellkept.recall.candidates import Candidates
from wellkept.recall.entries import ANNOUNCES
from wellkept.recall.signals import DATED
from wellkept.text import periods, tense
from wellkept.text.dates import DateRange

_TOLD = 0.6  # what the time of telling counts where a text tells of another


class Asking(NamedTuple):
    """How a question asks about a time: for what was ``told`` then, of whatever time, or for what ``happened``."""

    told: bool = False
    happened: bool = False


def asking(question: str) -> Asking:
    """How a question asks.

    >>> asking("What did we decide last week?"), asking("What did I do yesterday?")
    (Asking(told=True, happened=False), Asking(told=False, happened=False))
    """
    return Asking(told=tense.asks_what_was_told(question), happened=tense.asks_what_happened(question))


def chosen(found: Candidates, may: Array, ranges: Sequence[DateRange], asks: Asking, now: float) -> tuple[Array, Array]:
    """The rows that answer, of those that may, and how near they are. What is only near is for where none is within."""
    near, within = _nearness(found, ranges, asks, now)
    rows = np.flatnonzero(may & (near > DATED))
    if within[rows].any():
        rows = rows[within[rows]]
    return rows, near[rows]


def _nearness(found: Candidates, ranges: Sequence[DateRange], asks: Asking, now: float) -> tuple[Array, Array]:
    """How near candidates are to the times that a question of nothing else is about, and which are within them.

    What a text tells of counts more than when it was told, unless the question is for that; and what is announced was
    not done when it was told.
    """
    near, within = [], []
    times = (found.occurred.tolist(), found.told_from.tolist(), found.told_to.tolist(), found.marks.tolist())
    for occurred, start, end, marks in islice(zip(*times, strict=True), found.count):
        own = periods.nearness(occurred, occurred, ranges, now)
        then = periods.within(occurred, occurred, ranges)
        if start <= end:  # not a number, otherwise
            own = max(own if asks.told else _TOLD * own, periods.nearness(start, end, ranges, now))
            then = then and (any(asks) or not marks & ANNOUNCES)
            then = then or periods.within(start, end, ranges)
        near.append(own)
        within.append(then)
    return np.array(near, np.float64), np.array(within, np.bool_)
