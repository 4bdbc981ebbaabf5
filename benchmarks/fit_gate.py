"""Fit the gate: the chance that a search found an answer at all, for memories that stand alone and for turns.

    python benchmarks/fit_gate.py /a/folder                   # the folder with LoCoMo and LongMemEval
    python benchmarks/fit_gate.py /a/folder --embedder none   # the weights for words alone

Questions are put to stores of 8 to 3,000 memories: the sets of short facts (each, parts of each, all together, among
turns of LoCoMo stored as lone facts, beside a conversation) and the conversations. What the gate sees of each search is
written down; a logistic is fitted for each kind of memory by Newton's method with a little shrinkage. Every group of
stores weighs the same, and so do questions with and without an answer. Figures are of a five-fold cross-validation in
which all stores of a world, or of a conversation, are left out together.
"""

import argparse
import random
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import recollect
from recollect.recall import gate
from recollect.recall.gate import Evidence, Gate, Logistic

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started as a script, it knows its own folder only

from benchmarks import facts, quality, quality_data
from benchmarks.facts import FactSet

Array = npt.NDArray[np.float64]
Seen = tuple[Evidence | None, Evidence | None]
NAMES = ("best", "similarity", "size", "unseen_name")
FOLDS = 5
SHRINK = 0.0003
SEED = 11
THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question to one store: what the gate saw, and which kind of memory answers it (none, if nothing does)."""

    group: str
    fold: int
    seen: Seen
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A question, which kind of memory answers it, and what it belongs to."""

    text: str
    answer: str | None
    world: str
    asked_at: datetime | None = None


@contextmanager
def recorded() -> Iterator[list[Seen]]:
    """What the gate is asked to judge, as long as this lasts."""
    seen: list[Seen] = []
    judged: Callable[[Seen, Gate], float] = gate.known

    def record(one: Seen, _: Gate) -> float:
        seen.append(one)
        return 1.0

    setattr(gate, "known", record)  # noqa: B010  # the engine looks it up at each search
    try:
        yield seen
    finally:
        setattr(gate, "known", judged)  # noqa: B010


def fold_of(name: str) -> int:
    """The same part of the data for the same name."""
    return zlib.crc32(name.encode()) % FOLDS


def cases(
    group: str, memories: Sequence[recollect.NewMemory], questions: Sequence[Put], options: dict[str, Any]
) -> list[Case]:
    """What the gate sees of some questions to one store."""
    with recollect.open("ram:", **options) as database, recorded() as seen:
        view = database.view(user="ada")
        view.add_many(list(memories))
        made = []
        for one in questions:
            seen.clear()
            view.search(one.text, asked_at=one.asked_at, limit=1)
            if seen:  # a question that quotes something is not judged
                made.append(Case(group=group, fold=fold_of(one.world), seen=seen[-1], answer=one.answer))
    return made


def of_facts(sets: FactSet) -> list[recollect.NewMemory]:
    """The memories of a set."""
    fields = ("type", "role", "session")
    return [
        recollect.NewMemory(
            content=one["content"],
            occurred_at=sets.asked_at - timedelta(days=one["days_ago"]),
            **{name: one[name] for name in fields if name in one},
        )
        for one in sorted(sets.memories, key=lambda one: -int(one["days_ago"]))
    ]


def put_by(sets: FactSet) -> list[Put]:
    """The questions of a set; an answer with a session is a turn."""
    turns = {one["id"] for one in sets.memories if "session" in one}
    return [
        Put(
            text=one.text,
            answer=None if not one.expected else "linked" if one.expected & turns else "alone",
            world=one.text if not one.expected else next(iter(one.expected)).partition("/")[0],
            asked_at=sets.asked_at,
        )
        for one in sets.questions
    ]


def part(sets: FactSet, dice: random.Random, size: int) -> FactSet:
    """A few memories of a set, and the questions that they answer or nothing does."""
    memories = dice.sample(list(sets.memories), size)
    ids = {one["id"] for one in memories}
    return replace(sets, memories=memories, questions=[one for one in sets.questions if one.expected <= ids])


def of_turns(haystack: quality_data.Haystack) -> list[recollect.NewMemory]:
    """The turns of a conversation."""
    return [
        recollect.NewMemory(
            content=turn.text, author=turn.author, role=turn.role, occurred_at=turn.at, session=turn.session
        )
        for turn in haystack.turns
    ]


def about_facts(sets: Sequence[FactSet], turns: Sequence[str], options: dict[str, Any]) -> Iterator[Case]:
    """Short facts: in small stores, together, and among others."""
    dice = random.Random(SEED)
    together = facts.joined(sets)
    foreign = [one for one in put_by(together) if one.answer is None]
    for one in sets:
        own = [put for put in put_by(one) if put.answer is not None]
        yield from cases("a world", of_facts(one), own + foreign, options)
        for _ in range(4):
            some = part(one, dice, 8)
            own = [put for put in put_by(some) if put.answer is not None]
            yield from cases("a few", of_facts(some), own + foreign, options)
    for group, others in (
        ("together", []),
        ("300", facts.OTHERS[:150]),
        ("300", turns[:150]),
        ("1,000", turns[:850]),
        ("3,000", turns[:2850]),
    ):
        news = [recollect.NewMemory(content=text) for text in others]
        yield from cases(group, [*news, *of_facts(together)], put_by(together), options)


def about_conversations(
    folder: Path, sets: Sequence[FactSet], haystacks: Sequence[quality_data.Haystack], options: dict[str, Any]
) -> Iterator[Case]:
    """Turns: conversations alone, and with the facts of a world beside them."""
    foreign = [one for one in put_by(facts.joined(sets)) if one.answer is None]
    for benchmark, some in (
        (quality_data.LOCOMO, list(haystacks)),
        (quality_data.LONGMEMEVAL, quality_data.load(folder, quality_data.LONGMEMEVAL)[:25]),
    ):
        for place, one in enumerate(some):
            own = [_put(q, "linked", one.name) for q in one.questions if not q.adversarial]
            others = [_put(q, None, one.name) for q in quality.foreign_to(one, some, benchmark)]
            yield from cases(benchmark, of_turns(one), own + others + foreign[:5], options)
            if benchmark == quality_data.LOCOMO:
                world = sets[place % len(sets)]
                beside = [put for put in put_by(world) if put.answer is not None]
                news = [*of_turns(one), *of_facts(world)]
                yield from cases("facts beside turns", news, [*beside, *own[::3], *others[::3], *foreign], options)
            print(f"{benchmark}: {place + 1} of {len(some)}", file=sys.stderr, flush=True)


def _put(question: quality_data.Question, answer: str | None, world: str) -> Put:
    return Put(text=question.text, answer=answer, world=world, asked_at=question.asked_at)


def rows(found: Sequence[Case], kind: str) -> tuple[Array, Array, Array]:
    """The evidence of one kind of memory, whether it held the answer, and what each row weighs.

    Where the other kind holds the answer, nothing is known of this one.
    """
    place = ("alone", "linked").index(kind)
    some = [(one, seen) for one in found if one.answer in (None, kind) and (seen := one.seen[place]) is not None]
    values = np.array([[1.0, *(getattr(seen, name) for name in NAMES)] for _, seen in some]).reshape(len(some), -1)
    labels = np.array([float(one.answer is not None) for one, _ in some])
    keys = [(one.group, one.answer) for one, _ in some]
    counts = Counter(keys)
    weights = np.array([1.0 / counts[key] for key in keys])
    return values, labels, weights / max(1e-9, weights.sum())


def fitted(values: Array, labels: Array, weights: Array) -> Logistic:
    """A logistic by Newton's method."""
    used = values.std(axis=0) > 0
    used[0] = True
    columns = values[:, used]
    shrink = np.diag([0.0] + [SHRINK] * (columns.shape[1] - 1))
    factors = np.zeros(columns.shape[1])
    for _ in range(50):
        chances = 1 / (1 + np.exp(-columns @ factors))
        slope = columns.T @ (weights * (labels - chances)) - shrink @ factors
        bend = (columns * (weights * chances * (1 - chances))[:, None]).T @ columns + shrink
        factors = factors + np.linalg.solve(bend + 1e-9 * np.eye(len(factors)), slope)
    every = np.zeros(values.shape[1])
    every[used] = factors
    return Logistic(base=round(float(every[0]), 2), **dict(zip(NAMES, np.round(every[1:], 2).tolist(), strict=True)))


def fit(found: Sequence[Case]) -> Gate:
    """Both logistics. The threshold is chosen by the report."""
    return Gate(alone=fitted(*rows(found, "alone")), linked=fitted(*rows(found, "linked")), least=0.0)


def report(found: Sequence[Case]) -> Iterator[str]:
    """Own questions emptied and foreign ones answered, in percent, by group and threshold; cross-validated."""
    judged: list[tuple[Case, float]] = []
    for fold in range(FOLDS):
        kept = fit([one for one in found if one.fold != fold])
        judged += [(one, gate.known(one.seen, kept)) for one in found if one.fold == fold]
    yield "| store | own, foreign | " + " | ".join(f"{one:.2f}" for one in THRESHOLDS) + " |"
    yield "| --- | --- |" + " --- |" * len(THRESHOLDS)
    for group in dict.fromkeys(one.group for one in found):
        own = [value for one, value in judged if one.group == group and one.answer is not None]
        foreign = [value for one, value in judged if one.group == group and one.answer is None]
        cells = [f"{_below(own, least):.1f} / {100 - _below(foreign, least):.0f}" for least in THRESHOLDS]
        yield f"| {group} | {len(own)}, {len(foreign)} | " + " | ".join(cells) + " |"


def _below(values: Sequence[float], least: float) -> float:
    return 100 * sum(value < least for value in values) / max(1, len(values))


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where LoCoMo and LongMemEval are")
    parser.add_argument("--embedder", default="default", help="default, none, or a name that open() knows")
    arguments = parser.parse_args()
    options: dict[str, Any] = {} if arguments.embedder == "default" else {"embedder": arguments.embedder}
    if arguments.embedder == "none":
        options = {"embedder": None}
    sets = facts.load([facts.OWN])
    haystacks = quality_data.load(arguments.folder, quality_data.LOCOMO)
    turns = [turn.text for one in haystacks for turn in one.turns]
    random.Random(SEED).shuffle(turns)
    found = list(about_facts(sets, turns, options))
    found += about_conversations(arguments.folder, sets, haystacks, options)
    print("\n".join(report(found)))
    print(fit(found))


if __name__ == "__main__":
    main()
