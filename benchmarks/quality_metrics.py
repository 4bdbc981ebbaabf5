"""What the answers are worth: pure functions from rankings to numbers."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks import kinds
from benchmarks.quality_data import LONGMEMEVAL, Question

DEPTHS = (5, 10, 25, 50)
OVERALL = "overall"
Table = dict[str, dict[str, float]]
"""Metric by category: ``table["single-hop"]["recall@10"]``; ``questions`` counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a search gave: the turns and their sessions, best first, and the best score (0 if there was none)."""

    question: Question
    turns: tuple[str, ...]
    sessions: tuple[str, ...]
    score: float
    milliseconds: float
    scores: tuple[float, ...] = ()

    @property
    def pairs(self) -> list[tuple[float, bool]]:
        """The scores of the first ten hits, and whether each is an answer."""
        return [(score, turn in self.question.turns) for score, turn in zip(self.scores, self.turns, strict=False)][:10]


def recall(gold: frozenset[str], ranked: Sequence[str], depth: int) -> float:
    """The share of the wanted that is among the first."""
    return len(gold.intersection(ranked[:depth])) / len(gold)


def distinct(ranked: Iterable[str]) -> list[str]:
    """Each once, where it comes first: the rank of a session is that of its best turn."""
    return list(dict.fromkeys(ranked))


def mean(values: Iterable[float]) -> float:
    """The average; not a number if there is nothing to average."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else math.nan


def percentile(values: Iterable[float], share: float) -> float:
    """The value that so large a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def auc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """How often a number of the first kind is above one of the second; equal ones count half.

    0.5 is a coin, 1 a threshold that makes no mistake.
    """
    if not higher or not lower:
        return math.nan
    ordered = sorted([(value, True) for value in higher] + [(value, False) for value in lower])
    won, below, start = 0.0, 0, 0
    while start < len(ordered):
        end = start
        while end < len(ordered) and ordered[end][0] == ordered[start][0]:
            end += 1
        ups = sum(1 for _, up in ordered[start:end] if up)
        downs = end - start - ups
        won += ups * (below + downs / 2)
        below += downs
        start = end
    return won / (len(higher) * len(lower))


def quality(benchmark: str, answers: Sequence[Answer]) -> Table:
    """All metrics of a benchmark, by category and overall; adversarial questions have no right answer to find."""
    counted = [one for one in answers if not one.question.adversarial]
    groups = {OVERALL: counted}
    for one in counted:
        groups.setdefault(one.question.category, []).append(one)
    ordered = [OVERALL, *sorted(set(groups) - {OVERALL})]
    return {name: dict(_metrics(benchmark, groups[name])) for name in ordered}


def _metrics(benchmark: str, answers: Sequence[Answer]) -> Iterator[tuple[str, float]]:
    with_turns = [one for one in answers if one.question.turns]
    yield "questions", len(with_turns)
    for depth in DEPTHS:
        yield f"recall@{depth}", mean(recall(one.question.turns, one.turns, depth) for one in with_turns)
    if benchmark == LONGMEMEVAL:
        found = [recall(one.question.sessions, distinct(one.sessions), 5) for one in answers if one.question.sessions]
        yield "any@5", mean(share > 0 for share in found)
        yield "all@5", mean(share == 1 for share in found)


def recall_at_10(answers: Iterable[Answer]) -> float:
    """Over the questions that have an answer to find."""
    return mean(recall(one.question.turns, one.turns, 10) for one in answers if _answerable(one))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The answers to a benchmark's own questions and to foreign ones: about conversations that this one never saw.

    Each without a threshold, where only the order counts, and with the default one, where silence is an answer, too.
    """

    own: list[Answer]
    own_default: list[Answer]
    foreign: list[Answer]
    foreign_default: list[Answer]


def knowing(asked: Asked) -> dict[str, float]:
    """Whether it knows when it does not know."""
    before, after = recall_at_10(asked.own), recall_at_10(asked.own_default)
    answerable = [one for one in asked.own if _answerable(one)]
    adversarial = [one for one in asked.own if one.question.adversarial]
    return {
        "points of recall@10 lost by the threshold": before - after,
        "own questions left empty": mean(not one.turns for one in asked.own_default if _answerable(one)),
        "foreign questions left empty": mean(not one.turns for one in asked.foreign_default),
        "adversarial questions left empty": mean(
            not one.turns for one in asked.own_default if one.question.adversarial
        ),
        "calibration error": kinds.calibration_error(
            [pair for one in asked.own_default if _answerable(one) for pair in one.pairs]
        ),
        "AUC against foreign": auc([one.score for one in answerable], [one.score for one in asked.foreign]),
        "AUC against adversarial": auc([one.score for one in answerable], [one.score for one in adversarial]),
    }


def latency(asked: Asked) -> dict[str, float]:
    """How long a search took, in milliseconds, with everything that belongs to it."""
    times = [one.milliseconds for one in asked.own]
    return {"p50": percentile(times, 0.50), "p95": percentile(times, 0.95)}


def _answerable(answer: Answer) -> bool:
    return bool(answer.question.turns) and not answer.question.adversarial
