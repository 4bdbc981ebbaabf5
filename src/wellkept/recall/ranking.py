"""Scores as pure functions: signals in, an order and its reasons out.

The weights stand in :mod:`wellkept.recall.weights` and are fitted by benchmarks/fit.py on every kind of memory: facts,
notes, chats and long conversations. Signals are values of the memory, its conversation and the question; none is about
a benchmark.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


BASE, OTHERS, KNOWN = "base", "others", "known"
"""The names of the parts of a score that are no signals."""

Weights = Mapping[str, tuple[float, float]]
"""What each signal counts, in log-odds: in a memory that stands alone, and in a turn of a conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What signals weigh, and how the quick ones are weighed for a first look. ``base`` is what everything has."""

    weights: Weights
    first: Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """How the sum of a memory's signals becomes the chance that it answers: a logistic of its own sum, of what the
    ``others`` have (the logarithm of the sum of their exponentials, beside ``nothing``, which is always there), of the
    log-odds that there is an answer at all (``known``), and of how far the list is one of ``linked`` memories.
    """

    base: float
    own: float
    others: float
    known: float
    linked: float
    nothing: float


LEAST = 0.005
"""The chance below which a memory is no hit, unless the caller says otherwise, or no hit has more."""

FAINTER = 20.0
"""Where the best chance is low, hits are shown down to so small a part of it."""

COMPETING = 50
"""Memories that compete with each other for being the answer: fewer than are ever ranked, so that a score does not
depend on how many hits are wanted."""

_UNSURE = 4.0  # log-odds: what the gate says is never more certain than this


@dataclass(frozen=True, slots=True)
class Scores:
    """A score from 0 to 1 for each candidate, and the parts that it was made of."""

    values: Array
    parts: Mapping[str, Array]

    def reasons(self, place: int) -> dict[str, float]:
        """The parts of one candidate's score that are not nothing."""
        return {name: round(float(part[place]), 4) for name, part in self.parts.items() if part[place]}


def weighed(signals: Mapping[str, Array], linked: Array, weights: Weights) -> dict[str, Array]:
    """What each signal counts, of those that are there. ``linked`` says which memories are turns of a conversation.

    >>> weighed({"words": np.array([1.0, 1.0])}, np.array([False, True]), {"words": (5.0, 6.0)})["words"].tolist()
    [5.0, 6.0]
    """
    mixed = linked.any() and not linked.all()
    kind = int(len(linked) > 0 and linked[0])
    parts = {}
    for name, pair in weights.items():
        weight = np.where(linked, pair[1], pair[0]) if mixed else pair[kind]
        if name == BASE:
            parts[name] = np.full(len(linked), 1.0) * weight
        elif name in signals:
            parts[name] = weight * signals[name]
    return parts


def total(parts: Mapping[str, Array]) -> Array:
    """The sum of parts.

    >>> total({"words": np.array([1.0, 2.0]), "date": np.array([0.0, 1.0])}).tolist()
    [1.0, 3.0]
    """
    return np.asarray(sum(parts.values(), np.float64(0)))  # one by one: a third of the time of stacking them


def chances(parts: Mapping[str, Array], linked: Array, known: float, chance: Chance) -> Scores:
    """The chance of each memory to answer, with its parts in log-odds. The order is that of the sums.

    >>> fair = Chance(base=0.0, own=1.0, others=1.0, known=1.0, linked=0.0, nothing=0.0)
    >>> scores = chances({"words": np.array([3.0, 1.0])}, np.zeros(2, np.bool_), 0.5, fair)
    >>> scores.values.round(2).tolist(), scores.reasons(0)
    ([0.84, 0.11], {'words': 3.0, 'others': -1.3133})
    """
    sums = total(parts).astype(np.float64)
    if not len(sums):
        return Scores(sums, parts)
    highest = max(float(sums.max()), chance.nothing)
    masses = np.exp(sums - highest)
    counted = masses if len(masses) <= COMPETING else np.partition(masses, -COMPETING)[-COMPETING:]
    whole = counted.sum() + np.exp(chance.nothing - highest)
    others = highest + np.log(np.maximum(whole - np.where(masses >= counted.min(), masses, 0), 1e-12))
    told = _odds(known) * chance.known
    base = chance.base + chance.linked * float(masses[linked].sum() / masses.sum())
    made = {name: chance.own * part for name, part in parts.items() if name != BASE}
    made[BASE] = base + chance.own * parts.get(BASE, np.zeros(len(sums)))
    made[OTHERS] = -chance.others * others
    made[KNOWN] = np.full(len(sums), told)
    return Scores(1 / (1 + np.exp(-np.clip(total(made), -_SURE, _SURE))), made)


def _odds(known: float) -> float:
    """The log-odds of the gate's chance, within what it can be sure of."""
    kept = min(1 - 1e-9, max(1e-9, known))
    return max(-_UNSURE, min(_UNSURE, math.log(kept / (1 - kept))))


def of_one(name: str, values: Array) -> Scores:
    """Scores that have one reason, which is told in log-odds like all others.

    >>> of_one("date", np.array([0.5, 0.9])).reasons(1)
    {'date': 2.1972}
    """
    kept = np.clip(values, 1e-6, 1 - 1e-6)
    return Scores(values, {name: np.log(kept / (1 - kept))})


def similarity(signals: Mapping[str, Array]) -> Scores:
    """The calibrated similarity and nothing else."""
    values = np.minimum(np.maximum(signals.get("similarity", np.zeros(0)), 0), 1)
    return Scores(values, {"similarity": values})


def least(scores: Scores) -> float:
    """The score from which on a hit is shown, where the caller gives no minimum.

    >>> least(Scores(np.array([0.98, 0.2]), {})), least(Scores(np.array([0.04, 0.01]), {}))
    (0.005, 0.002)
    """
    return min(LEAST, float(scores.values.max(initial=0.0)) / FAINTER)


_SURE = 500.0  # log-odds beyond any doubt, and within what can be computed

RERANKED = 0.15
"""What the log-odds of a reranker count beside the others: more than this makes it worse again, as measured."""


def moved(score: float, odds: float) -> float:
    """A score moved by log-odds.

    >>> moved(0.5, 0.0), round(moved(0.5, 2.0), 3)
    (0.5, 0.881)
    """
    kept = min(1 - 1e-9, max(1e-9, score))
    total = math.log(kept / (1 - kept)) + odds
    return 1 / (1 + math.exp(-max(-_SURE, min(_SURE, total))))
