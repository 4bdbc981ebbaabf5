"""Search judged on every kind of memory that agents keep: the sets in benchmarks/data, as shipped and by order alone.

Each question is put twice: with the product's defaults, where silence is an answer, and without a threshold, where only
the order counts. Intervals are of a bootstrap over questions; figures are also given for each world, so that what is
fitted on some worlds can be judged on the others.
"""

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

import wellkept
from benchmarks import facts
from benchmarks.facts import FactSet, Question
from wellkept.recall import ranking, repeats, updates, weights
from wellkept.recall.ranking import Model, Weights
from wellkept.recall.weights import Fitted

LIMIT = 10
AMONG = {"facts among 300": 300, "facts among 10,000": 10_000}
"""Stores in which the facts of a world are a part, and how many memories they have in all."""
BINS = 10
SAMPLES = 1_000
SEED = 7
UNANSWERABLE = ("near", "foreign")

Pair = tuple[float, bool]
"""A hit's score, and whether the hit is an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a question got: the hits as shipped with their scores, and the order without a threshold."""

    question: Question
    found: Sequence[str]
    scores: Sequence[float] = ()
    ordered: Sequence[str] = ()

    def hit(self, places: int) -> float:
        """Whether one of the first places is an answer."""
        return _hit(self.question, self.found, places)

    @property
    def recall(self) -> float:
        """The share of the answers among the first ten."""
        return _recall(self.question, self.found)

    @property
    def pairs(self) -> list[Pair]:
        """Each hit's score, and whether it is an answer."""
        return [(score, one in self.question.expected) for score, one in zip(self.scores, self.found, strict=True)]


def _hit(question: Question, found: Sequence[str], places: int) -> float:
    return float(any(one in question.expected for one in found[:places]))


def _recall(question: Question, found: Sequence[str]) -> float:
    return len(question.expected & set(found[:LIMIT])) / len(question.expected)


METRICS: dict[str, Callable[[Outcome], float]] = {
    "hit@1": lambda one: one.hit(1),
    "hit@3": lambda one: one.hit(3),
    "R@10": lambda one: one.recall,
    "emptied": lambda one: float(not one.found),
    "hit@1 by order": lambda one: _hit(one.question, one.ordered, 1),
    "R@10 by order": lambda one: _recall(one.question, one.ordered),
}


@contextmanager
def without(signal: str | None) -> Iterator[None]:
    """Ranking without one of its signals, as long as this lasts."""
    if signal is None:
        yield
        return
    of = weights.of
    if signal not in signals():
        raise SystemExit(f"no signal is called {signal}; there are {', '.join(signals())}")

    def fewer(embedder: str | None) -> Fitted:
        fitted = of(embedder)
        return replace(fitted, model=Model(weights=_but(fitted.model.weights), first=_but(fitted.model.first)))

    def _but(some: Weights) -> Weights:
        return {name: pair for name, pair in some.items() if name != signal}

    def unmoved(parts: Mapping[str, ranking.Array], *_: object) -> Mapping[str, ranking.Array]:
        return parts

    with ExitStack() as patched:  # the engine looks these up at each search
        patched.enter_context(mock.patch.object(weights, "of", fewer))
        if signal == updates.LATER:
            patched.enter_context(mock.patch.object(updates, "lifted", unmoved))
        if signal == repeats.REPEATS:
            patched.enter_context(mock.patch.object(repeats, "lowered", unmoved))
        yield


def signals() -> list[str]:
    """The names of the signals that an order is made of."""
    named = dict.fromkeys(name for one in weights.known().values() for name in one.model.weights)
    return [*(name for name in named if name != ranking.BASE), updates.LATER, repeats.REPEATS]


def stores(turns: Sequence[str] = ()) -> Iterator[tuple[str, FactSet, Sequence[str]]]:
    """Every kind of store with its world, and what else is in it: ``turns`` of conversations, then made-up sentences.

    Worlds are not put into one store: what is asked about one of them may be answered by another.
    """
    for folder in sorted(path for path in facts.DATA.iterdir() if path.is_dir()):
        for one in facts.load([folder]):
            yield folder.name, one, ()
    for kind, size in AMONG.items():
        chosen = [*turns, *facts.others(size)]
        for one in facts.load([facts.OWN]):
            yield kind, one, chosen[: size - len(one.memories)]


def ask(world: FactSet, others: Sequence[str], **options: Any) -> list[Outcome]:
    """Every question of a set, put to a store of its own."""
    with facts.remembered(world, others, **options) as (view, places):
        return [_asked(view, places, question) for question in world.questions]


def _asked(view: wellkept.View, places: dict[str, str], question: Question) -> Outcome:
    hits = view.search(question.text, limit=LIMIT, asked_at=question.asked_at).hits
    ordered = view.search(question.text, limit=LIMIT, asked_at=question.asked_at, min_score=0)
    return Outcome(
        question=question,
        found=[places.get(hit.memory.id, "") for hit in hits],
        scores=[hit.score for hit in hits],
        ordered=[places.get(hit.memory.id, "") for hit in ordered],
    )


def outcomes(turns: Sequence[str] = (), largest: int | None = None, **options: Any) -> dict[str, list[Outcome]]:
    """The outcomes of all questions, by kind of store; without stores that have more than ``largest`` others."""
    found: dict[str, list[Outcome]] = defaultdict(list)
    for kind, world, others in stores(turns):
        if largest is not None and len(others) > largest:
            continue
        found[kind] += ask(world, others, **options)
        print(f"{kind}: {world.name}", file=sys.stderr, flush=True)
    return dict(found)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the mean of 95 % of the samples lies that are drawn from values, with the same seed each time."""
    if not values:
        return math.nan, math.nan
    numbers = np.array(values)
    drawn = np.random.default_rng(SEED).integers(0, len(numbers), (SAMPLES, len(numbers)))
    low, high = np.percentile(numbers[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def reliability(pairs: Sequence[Pair]) -> list[dict[str, float]]:
    """For each tenth of the scale: how many scores fell there, their mean, and the share of them that were right."""
    bins: list[list[Pair]] = [[] for _ in range(BINS)]
    for score, right in pairs:
        bins[min(BINS - 1, int(score * BINS))].append((score, right))
    return [
        {
            "hits": len(some),
            "score": sum(score for score, _ in some) / len(some) if some else math.nan,
            "right": sum(right for _, right in some) / len(some) if some else math.nan,
        }
        for some in bins
    ]


def calibration_error(pairs: Sequence[Pair]) -> float:
    """The expected calibration error: how far scores are from the share that is right, each hit weighing the same.

    >>> calibration_error([(0.8, True), (0.85, False)])
    0.325
    """
    if not pairs:
        return math.nan
    off = [one["hits"] * abs(one["score"] - one["right"]) for one in reliability(pairs) if one["hits"]]
    return round(sum(off) / len(pairs), 6)


def figures(some: Sequence[Outcome]) -> dict[str, Any]:
    """All figures of some questions, with intervals."""
    answerable = [one for one in some if one.question.expected]
    made: dict[str, Any] = {"questions": len(answerable)}
    for name, metric in METRICS.items():
        values = [metric(one) for one in answerable]
        made[name] = [sum(values) / len(values) if values else math.nan, *interval(values)]
    for kind in UNANSWERABLE:
        values = [float(bool(one.found)) for one in some if one.question.kind == kind]
        made[f"{kind} answered"] = [sum(values) / len(values) if values else math.nan, *interval(values)]
    made["calibration error"] = calibration_error([pair for one in some for pair in one.pairs])
    return made


def measure(found: dict[str, list[Outcome]]) -> dict[str, Any]:
    """The figures of one configuration: by kind of memory, by kind of question, by world; and the reliability."""
    alone = [one for kind, some in found.items() if kind not in AMONG for one in some]
    asked = sorted({one.question.kind for one in alone if one.question.expected})
    worlds = sorted({one.question.world for one in alone})
    return {
        "memories": {kind: figures(some) for kind, some in found.items()},
        "questions": {kind: figures([one for one in alone if one.question.kind == kind]) for kind in asked},
        "worlds": {name: figures([one for one in alone if one.question.world == name]) for name in worlds},
        "reliability": {
            kind: reliability([pair for one in some for pair in one.pairs]) for kind, some in found.items()
        },
    }


def ablated(turns: Sequence[str], chosen: Sequence[str | None], **options: Any) -> dict[str, Any]:
    """The order alone, by kind of memory, without each of the chosen signals in turn; None is with all of them."""
    made: dict[str, Any] = {}
    for signal in chosen:
        with without(signal):
            found = outcomes(turns, 0, **options)  # the worlds alone: there are many signals
        made[signal or "nothing"] = {
            kind: {name: figures(some)[name] for name in ("hit@1 by order", "R@10 by order")}
            for kind, some in found.items()
        }
    return made


def misses(found: dict[str, list[Outcome]]) -> Iterator[str]:
    """The questions without an answer in the first three."""
    for kind, some in found.items():
        for one in some:
            if one.question.expected and not one.hit(3):
                yield f"{kind}, {one.question.world}, {one.question.kind}: {one.question.text} -> {one.ordered[:3]}"
