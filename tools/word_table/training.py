"""Training: rows whose sums point where the teacher's vectors of the same texts do.

The loss of a batch is the cosine to the teacher's vectors, the divergence of how its texts are like each other from how
they are for the teacher, and, for pairs, that a remark is nearer to its question than to others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How the table is trained."""

    epochs: int = 3
    batch: int = 1024
    rate: float = 3e-3
    listwise: float = 0.5
    pairwise: float = 0.5
    temperature: float = 0.05
    seed: int = 5


@dataclass(frozen=True, slots=True)
class Lesson:
    """Texts as rows of the table, one after the other, and the teacher's vectors of them.

    ``partner`` is the number of the text that answers each one, itself if there is none.
    """

    rows: Numbers
    lengths: Numbers
    targets: Floats
    partner: Numbers

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], targets: Floats, partner: Numbers) -> "Lesson":
        """The lesson of texts that are given one by one."""
        lengths = np.array([len(one) for one in rows])
        return cls(np.concatenate([np.asarray(one, np.int64) for one in rows]), lengths, targets, partner)

    def some(self, places: Numbers) -> tuple[Numbers, Numbers]:
        """The rows of some texts, and how many rows each has."""
        starts = (np.cumsum(self.lengths) - self.lengths)[places]
        lengths = self.lengths[places]
        firsts = np.cumsum(lengths) - lengths
        return self.rows[np.arange(lengths.sum()) - np.repeat(firsts, lengths) + np.repeat(starts, lengths)], lengths


class Adam:
    """Adam for the rows of a table that a batch touches."""

    def __init__(self, table: Floats, rate: float) -> None:
        self._table = table
        self._rate = rate
        self._first = np.zeros_like(table)
        self._second = np.zeros_like(table)
        self._steps = np.zeros(len(table), np.int64)

    def step(self, rows: Numbers, slopes: Floats, share: float) -> None:
        """Move rows against their slopes, by ``share`` of the rate."""
        self._steps[rows] += 1
        steps = self._steps[rows][:, None].astype(np.float32)
        first = 0.9 * self._first[rows] + 0.1 * slopes
        second = 0.99 * self._second[rows] + 0.01 * slopes**2
        self._first[rows], self._second[rows] = first, second
        moved = (first / (1 - 0.9**steps)) / (np.sqrt(second / (1 - 0.99**steps)) + 1e-8)
        self._table[rows] -= np.float32(self._rate * share) * moved


def trained(table: Floats, fixed: int, lesson: Lesson, course: Course, report: Callable[[str], None]) -> Floats:
    """The table after training; the first ``fixed`` rows stay as they are."""
    chance = np.random.default_rng(course.seed)
    adam = Adam(table, course.rate)
    count = len(lesson.lengths)
    steps = course.epochs * -(-count // course.batch)
    done = 0
    for epoch in range(course.epochs):
        losses = []
        order = _together(chance.permutation(count), lesson.partner, course.batch)
        for places in order:
            rows, lengths = lesson.some(places)
            sums = np.add.reduceat(table[rows], np.cumsum(lengths) - lengths, axis=0)
            loss, slopes = _slopes(sums, places, lesson, course)
            losses.append(loss)
            touched, summed = _by_row(rows, np.repeat(slopes, lengths, axis=0))
            free = touched > fixed
            adam.step(touched[free], summed[free], 1 - done / steps)
            done += 1
        report(f"epoch {epoch + 1}: cosine to the teacher {1 - float(np.mean(losses)):.4f}")
    return table


def _together(order: Numbers, partner: Numbers, batch: int) -> list[Numbers]:
    """Batches of texts in which partners stand beside each other."""
    firsts = order[partner[order] >= order]  # a pair is drawn by its first text
    both = np.stack([firsts, partner[firsts]], axis=1).ravel()
    kept = np.ones(len(both), np.bool_)
    kept[1::2] = both[1::2] != both[::2]
    both = both[kept]
    return [both[start : start + batch] for start in range(0, len(both), batch)]


def _slopes(sums: Floats, places: Numbers, lesson: Lesson, course: Course) -> tuple[float, Floats]:
    """The distance from the teacher, and the slope of the loss for the sum of each text."""
    norms = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
    units = sums / norms
    targets = lesson.targets[places].astype(np.float32)
    slope: Floats = -targets / np.float32(len(places))
    slope += np.float32(course.listwise) * _listwise(units, targets, course.temperature)
    slope += np.float32(course.pairwise) * _pairwise(units, places, lesson.partner, course.temperature)
    slope -= np.einsum("ij,ij->i", slope, units)[:, None] * units
    distance = 1 - float(np.einsum("ij,ij->i", units, targets).mean())
    return distance, (slope / norms).astype(np.float32)


def _listwise(units: Floats, targets: Floats, temperature: float) -> Floats:
    wanted, found = (_softmax(_others(one @ one.T / temperature)) for one in (targets, units))
    wrong = (found - wanted) / len(units)
    slope: Floats = ((wrong + wrong.T) @ units / temperature).astype(np.float32)
    return slope


def _pairwise(units: Floats, places: Numbers, partner: Numbers, temperature: float) -> Floats:
    """Of pairs within the batch: each text must find its partner among all partners."""
    slope = np.zeros_like(units)
    left = np.flatnonzero(partner[places[:-1]] == places[1:])
    left = left[places[left] != places[left + 1]]
    if len(left) > 1:
        one, other = units[left], units[left + 1]
        for asked, answers, mine, theirs in ((one, other, left, left + 1), (other, one, left + 1, left)):
            wrong = _softmax(asked @ answers.T / temperature)
            wrong[np.arange(len(left)), np.arange(len(left))] -= 1
            wrong /= 2 * len(left) * temperature
            slope[mine] += wrong @ answers
            slope[theirs] += wrong.T @ asked
    return slope


def _others(products: Floats) -> Floats:
    np.fill_diagonal(products, -np.inf)
    return products


def _softmax(products: Floats) -> Floats:
    powers = np.exp(products - products.max(axis=1, keepdims=True))
    found: Floats = powers / powers.sum(axis=1, keepdims=True)
    return found


def _by_row(rows: Numbers, slopes: Floats) -> tuple[Numbers, Floats]:
    """The distinct rows, and the sum of the slopes of each."""
    order = np.argsort(rows, kind="stable")
    touched, starts = np.unique(rows[order], return_index=True)
    return touched, np.add.reduceat(slopes[order], starts, axis=0)


def principal(vectors: Any, columns: int) -> tuple[Floats, Floats]:
    """The mean of vectors, and the directions in which they differ most."""
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = vectors.astype(np.float32) - mean
    _, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    return mean, np.ascontiguousarray(directions[:, ::-1][:, :columns]).astype(np.float32)


def projected(vectors: Any, mean: Floats, directions: Floats) -> Floats:
    """Unit vectors of what differs from the mean."""
    found = (vectors.astype(np.float32) - mean) @ directions
    length = np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6)
    unit: Floats = found / length
    return unit
