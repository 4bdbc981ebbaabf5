"""Scores as pure functions: signals in, an order and its reasons out.

The weights were fitted on questions about long conversations: see docs/decisions/010-ranking.md for how, and for what
each signal is worth. Signals are values of the memory, its conversation and the question; none is about a benchmark.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What signals weigh, in log-odds, and how the quick ones are weighed for a first look."""

    base: float
    weights: Mapping[str, float]
    first: Mapping[str, float]


WITH_VECTORS = Model(
    base=-5.52,
    weights=MappingProxyType(
        {
            "similarity": 1.58,
            "words": 5.97,
            "conversation_similarity": 2.59,
            "conversation_keyword": 0.94,
            "author": 1.89,
            "role": 1.54,
            "opening": 1.44,
            "question": -0.45,
            "echo": -2.0,
            "empty": -3.0,
            "when": 1.22,
            "date": 3.02,
            "importance": 0.5,
        }
    ),
    first=MappingProxyType(
        {
            "similarity": 2.1,
            "keyword": 3.85,
            "conversation_similarity": 2.6,
            "conversation_keyword": 1.62,
            "author": 2.43,
            "role": 1.55,
            "opening": 1.99,
            "question": -0.69,
            "when": 2.11,
            "date": 3.70,
        }
    ),
)
WORDS_ALONE = Model(
    base=-3.68,
    weights=MappingProxyType(
        {
            "words": 5.67,
            "conversation_keyword": 2.45,
            "author": 1.90,
            "role": 1.36,
            "opening": 1.50,
            "question": -0.38,
            "echo": -2.0,
            "empty": -3.0,
            "when": 1.11,
            "date": 2.63,
            "importance": 0.5,
        }
    ),
    first=MappingProxyType(
        {
            "keyword": 3.85,
            "conversation_keyword": 1.62,
            "author": 2.43,
            "role": 1.55,
            "opening": 1.99,
            "question": -0.69,
            "when": 2.11,
            "date": 3.70,
        }
    ),
)

LEAST = 0.05
"""The score below which a hit is none, unless the caller says otherwise, or no hit has more."""

FAINTER = 20.0
"""Where the best score is low, hits are shown down to so small a part of it."""


@dataclass(frozen=True, slots=True)
class Scores:
    """A score from 0 to 1 for each candidate, and the parts that it was made of."""

    values: Array
    parts: Mapping[str, Array]

    def reasons(self, place: int) -> dict[str, float]:
        """The parts of one candidate's score that are not nothing."""
        return {name: round(float(part[place]), 4) for name, part in self.parts.items() if part[place]}


def best(signals: Mapping[str, Array], model: Model) -> Scores:
    """Weigh every signal.

    >>> scores = best({"words": np.array([1.0, 0.2])}, WORDS_ALONE)
    >>> bool(scores.values[0] > 0.8 > 0.2 > scores.values[1]), sorted(scores.reasons(0))
    (True, ['base', 'words'])
    """
    count = len(next(iter(signals.values()), ()))
    parts = {"base": np.full(count, model.base)} | weighed(signals, model.weights)
    return Scores(1 / (1 + np.exp(-total(parts))), parts)


def weighed(signals: Mapping[str, Array], weights: Mapping[str, float]) -> dict[str, Array]:
    """What each signal counts, of those that are there."""
    return {name: weight * signals[name] for name, weight in weights.items() if name in signals}


def total(parts: Mapping[str, Array]) -> Array:
    """The sum of parts.

    >>> total({"words": np.array([1.0, 2.0]), "date": np.array([0.0, 1.0])}).tolist()
    [1.0, 3.0]
    """
    return np.asarray(sum(parts.values(), np.float64(0)))  # one by one: a third of the time of stacking them


def similarity(signals: Mapping[str, Array]) -> Scores:
    """The calibrated similarity and nothing else."""
    values = np.minimum(np.maximum(signals.get("similarity", np.zeros(0)), 0), 1)
    return Scores(values, {"similarity": values})


def least(scores: Scores) -> float:
    """The score from which on a hit is shown, where the caller gives no minimum.

    >>> least(Scores(np.array([0.98, 0.2]), {})), least(Scores(np.array([0.04, 0.01]), {}))
    (0.049, 0.002)
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
