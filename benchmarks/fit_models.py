"""The fits: weights by a listwise softmax, the gate and the chance of a hit by logistics. All by Newton's method."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.fit_cases import FOLDS, NAMES, STRANGE, Case
from wellkept.recall import gate, ranking
from wellkept.recall.gate import Gate, Logistic
from wellkept.recall.ranking import BASE, Chance, Model, Weights

Array = npt.NDArray[Any]

FIXED: Mapping[str, float] = {"echo": -2.0, "empty": -3.0, "phrase": 4.0, "settled": 5.5, "importance": 0.5}
"""Signals that the questions say too little about: set by hand."""
TIED = ("author", "role", "opening")
"""Signals of what somebody said, which weigh the same in every memory that has them: fitted on turns."""
SLOW = ("words", "exact", "echo", "settled", "told", "period")
"""Signals that the first look has not."""
VECTORS = ("similarity", "conversation_similarity")
HEAVY: Mapping[str, float] = {"LoCoMo": 3.0, "LongMemEval": 3.0}
"""Groups that weigh more than one: these two are all that tells of long conversations."""
PULL = 0.0005
"""How strongly weights are drawn to nothing."""
SHRINK = 0.0003
FOREIGN = ("foreign", STRANGE)
SHOWN = 10
FEWEST = 8
"""The memories of the smallest store here: smaller ones are judged as one of so many."""
NOTHINGS = (0.0, 2.0, 4.0, 6.0)
EVIDENCE = ("best", "similarity", "size", "unseen_name", "heard")
SIZE = 1 + EVIDENCE.index("size")


# -- weights of signals ---------------------------------------------------------------------------------------


def columns(one: Case, used: Sequence[str]) -> tuple[Array, Array]:
    """The free columns of a case (each signal for memories alone and linked, then the base of linked ones), and what
    the fixed signals count.
    """
    chosen = one.values[:, [NAMES.index(name) for name in used]]
    linked = one.linked[:, None].astype(np.float64)
    own = np.array([name not in TIED for name in used], np.float64)
    free = np.concatenate([chosen * (1 - linked) * own, chosen * linked, linked], axis=1)
    return free, np.asarray(sum(weight * one.values[:, NAMES.index(name)] for name, weight in FIXED.items()))


def balanced(keys: Sequence[object]) -> Array:
    """Weights by which every key counts the same, 1 in all."""
    counts = Counter(keys)
    return np.array([1.0 / counts[key] for key in keys]) / len(counts)


def softmax(found: Sequence[Case], used: Sequence[str]) -> Array:
    """Factors for the free columns: each answer against all candidates that are none, groups weighing the same."""
    some = [one for one in found if one.right.any() and not one.right.all()]
    weights, free, fixed, lengths = [], [], [], []
    for one, weight in zip(some, balanced([one.group for one in some]).tolist(), strict=True):
        values, offsets = columns(one, used)
        for row in np.flatnonzero(one.right).tolist():
            those = np.concatenate([[row], np.flatnonzero(~one.right)])
            weights.append(HEAVY.get(one.group, 1.0) * weight / int(one.right.sum()))
            free.append(values[those])
            fixed.append(offsets[those])
            lengths.append(len(those))
    return newton(np.array(weights), np.concatenate(free), np.concatenate(fixed), np.array(lengths))


def newton(weights: Array, free: Array, fixed: Array, lengths: Array) -> Array:
    """The factors that make the first row of each list as likely as can be; lists stand one behind the other."""
    starts, size = np.cumsum(lengths) - lengths, free.shape[1]
    factors = np.zeros(size)
    for _ in range(15):
        sums = free @ factors + fixed
        shares = np.exp(sums - np.repeat(np.maximum.reduceat(sums, starts), lengths))
        shares /= np.repeat(np.add.reduceat(shares, starts), lengths)
        means = np.add.reduceat(free * shares[:, None], starts)
        slope = weights @ (free[starts] - means) - PULL * factors
        weighed = free * (np.repeat(weights, lengths) * shares)[:, None]
        bend = weighed.T @ free - (means * weights[:, None]).T @ means + PULL * np.eye(size)
        step = np.linalg.solve(bend, slope)
        factors = factors + step * min(1.0, 5.0 / float(np.abs(step).max()))
        if np.abs(step).max() < 1e-2:
            break
    return factors


def named(factors: Array, used: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Factors as weights."""
    rounded, count = np.round(factors, 2).tolist(), len(used)
    made = {BASE: (0.0, rounded[-1])} | {
        name: (rounded[count + place if name in TIED else place], rounded[count + place])
        for place, name in enumerate(used)
    }
    return {name: pair for name, pair in made.items() if pair != (0.0, 0.0)}


def model(found: Sequence[Case]) -> Model:
    """All weights."""
    return Model(weights=slow(found), first=quick(found))


def slow(found: Sequence[Case]) -> Weights:
    """The weights of the order. Without vectors, their signals are left out."""
    used = _used(found)
    return named(softmax(found, used), used) | {name: (weight, weight) for name, weight in FIXED.items()}


def quick(found: Sequence[Case]) -> Weights:
    """The weights of the first look."""
    used = [name for name in _used(found) if name not in SLOW]
    fixed = {name: (weight, weight) for name, weight in FIXED.items() if name not in SLOW}
    return named(softmax(found, used), used) | fixed


def _used(found: Sequence[Case]) -> list[str]:
    vectors = any(one.values[:, NAMES.index("similarity")].any() for one in found)
    return [name for name in NAMES if name not in FIXED and (vectors or name not in VECTORS)]


def sums(one: Case, weights: Weights) -> Array:
    """The sums of a case's candidates."""
    values = {name: one.values[:, place] for place, name in enumerate(NAMES)}
    return ranking.total(ranking.weighed(values, one.linked, weights)).astype(np.float64)


# -- the gate -------------------------------------------------------------------------------------------------


def logistic(values: Array, labels: Array, weights: Array) -> Array:
    """Factors of a logistic; the first column is 1 and not shrunk."""
    used = values.std(axis=0) > 0
    used[0] = True
    chosen = values[:, used]
    shrink = np.diag([0.0] + [SHRINK] * (chosen.shape[1] - 1))
    factors = np.zeros(chosen.shape[1])
    for _ in range(50):
        chances = 1 / (1 + np.exp(-np.clip(chosen @ factors, -50, 50)))
        slope = chosen.T @ (weights * (labels - chances)) - shrink @ factors
        bend = (chosen * (weights * chances * (1 - chances))[:, None]).T @ chosen + shrink
        step = np.linalg.solve(bend + 1e-9 * np.eye(len(factors)), slope)
        factors = factors + step * min(1.0, 5.0 / float(np.abs(step).max() + 1e-9))
    every = np.zeros(values.shape[1])
    every[used] = factors
    return every


def evidence(one: Case, summed: Array) -> tuple[gate.Evidence | None, gate.Evidence | None]:
    """What the gate sees of a case."""
    similar = one.values[:, NAMES.index("similarity")]
    size, name = one.memories, one.unseen_name
    return gate.evidence(summed, similar, one.linked, memories=size, unseen_name=name, heard=one.heard)


def judge(found: Sequence[Case], summed: Sequence[Array], least: float = 0.0) -> Gate:
    """Both logistics. Every group weighs the same, and so do questions with an answer and foreign ones."""
    made = []
    for kind in (False, True):
        rows: list[list[float]] = []
        keys: list[tuple[str, bool]] = []
        for one, values in zip(found, summed, strict=True):
            seen = evidence(one, values)[int(kind)]
            answers = bool((one.right & (one.linked == kind)).any())
            if seen is None or not (answers or one.kind in FOREIGN):
                continue  # where the other kind holds the answer, nothing is known of this one
            rows.append([1.0, *(getattr(seen, name) for name in EVIDENCE)])
            keys.append((one.group, answers))
        values, labels, weights = np.array(rows), np.array([float(key[1]) for key in keys]), balanced(keys)
        factors = logistic(values, labels, weights)
        if factors[SIZE] > 0:  # more memories never make an answer likelier
            values[:, SIZE] = values[:, SIZE].mean()
            factors = logistic(values, labels, weights)
        rounded = np.round(factors, 2).tolist()
        made.append(Logistic(base=rounded[0], **dict(zip(EVIDENCE, rounded[1:], strict=True))))
    return Gate(alone=made[0], linked=made[1], least=least, fewest=FEWEST)


# -- the chance of a hit --------------------------------------------------------------------------------------


def shown(summed: Array) -> Array:
    """The places of the first hits."""
    return np.argsort(-summed, kind="stable")[:SHOWN]


def chance(found: Sequence[Case], summed: Sequence[Array], known: Sequence[float]) -> Chance:
    """The logistic of hits, with the constant that fits best."""
    some = list(zip(found, summed, known, strict=True))
    tried = [_chance(some, nothing) for nothing in NOTHINGS]
    return min(tried, key=lambda one: one[0])[1]


def _chance(some: Sequence[tuple[Case, Array, float]], nothing: float) -> tuple[float, Chance]:
    rows, labels, keys = [], [], []
    plain = Chance(base=0.0, own=1.0, others=1.0, known=1.0, linked=1.0, nothing=nothing)
    for one, values, known in some:
        parts = ranking.chances({"sum": values}, one.linked, known, plain).parts
        those = shown(values)
        rows.append(
            np.stack(
                [np.ones(len(those)), *(parts[name][those] for name in ("sum", "others", "known", "base"))], axis=1
            )
        )
        labels.append(one.right[those])
        keys += [one.group if one.kind != STRANGE else STRANGE] * len(those)
    columns_, right, weights = np.concatenate(rows), np.concatenate(labels).astype(np.float64), balanced(keys)
    factors = np.round(logistic(columns_, right, weights), 3)
    odds = columns_ @ factors
    loss = float(weights @ (np.logaddexp(0, odds) - right * odds))
    base, own, others, told, linked = factors.tolist()
    return loss, Chance(base=base, own=own, others=others, known=told, linked=linked, nothing=nothing)


# -- cross-validation -----------------------------------------------------------------------------------------


Fit = TypeVar("Fit")
Made = TypeVar("Made")


def left_out(found: Sequence[Case], fit: Callable[[list[int]], Fit], use: Callable[[Fit, int], Made]) -> list[Made]:
    """What is made of each case by a fit to the cases of the other folds."""
    made: dict[int, Made] = {}
    for fold in range(FOLDS):
        inside = [place for place, one in enumerate(found) if one.fold != fold]
        outside = [place for place, one in enumerate(found) if one.fold == fold]
        if outside:
            fitted = fit(inside)
            made |= {place: use(fitted, place) for place in outside}
    return [made[place] for place in range(len(found))]


def recall(one: Case, summed: Array) -> float:
    """The share of the answers among the first ten."""
    return float(one.right[shown(summed)].sum()) / max(1, one.expected)


def first(one: Case, summed: Array) -> float:
    """Whether the best is an answer."""
    return float(one.right[int(np.argmax(summed))])


def percent(values: Sequence[float]) -> float:
    """The mean, as a percentage."""
    return 100 * sum(values) / len(values) if values else math.nan


def groups(found: Sequence[Case]) -> dict[str, list[int]]:
    """The places of the cases of each group."""
    ordered = sorted(range(len(found)), key=lambda place: found[place].group)
    return {name: list(some) for name, some in itertools.groupby(ordered, key=lambda place: found[place].group)}
