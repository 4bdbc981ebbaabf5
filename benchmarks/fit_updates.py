"""Fit what tells that a later memory updates an earlier one, and show what it does to every kind of question.

    python benchmarks/fit_updates.py                        # the built-in embedder; or --embedder none, or bge
    python benchmarks/fit_updates.py --folder /a/folder     # in larger stores, turns of LoCoMo are the others

A listwise softmax for each of the three best candidates that is right, or that an answer updates: it is either left
where it is, or one of the later ones is lifted above it. Figures are of a five-fold cross-validation over worlds.
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: on a busy machine more threads wait for each other

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started as a script, it knows its own folder only

from benchmarks import facts, fit_cases, fit_models, kinds, quality, quality_data
from benchmarks.facts import FactSet
from wellkept.recall import updates
from wellkept.recall.arrays import Array
from wellkept.recall.updates import Pairs

TOP = 3
AMONG = 300
THRESHOLDS = (-1.0, -0.5, 0.0, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question: the sums of its candidates, which of them answer, and their pairs if updates are looked for."""

    text: str
    kind: str
    world: str
    odds: Array
    right: Array
    pairs: Pairs | None

    @property
    def fold(self) -> int:
        """The same for all questions of a world."""
        return fit_cases.fold(self.world)


def collect(folder: Path | None, options: dict[str, Any]) -> Iterator[Asked]:
    """Every question that has an answer, of worlds alone and among others."""
    haystacks = quality_data.load(folder, quality_data.LOCOMO) if folder else []
    others = [*(turn.text for one in haystacks for turn in one.turns), *facts.others(AMONG)]
    paths = sorted(path for path in facts.DATA.iterdir() if path.is_dir())
    for world in facts.load(paths):
        yield from asked(world, (), "", options)
    for world in facts.load([facts.OWN, facts.DATA / "updates"]):
        yield from asked(world, others[: AMONG - len(world.memories)], "among 300: ", options)


def asked(world: FactSet, others: Sequence[str], prefix: str, options: dict[str, Any]) -> Iterator[Asked]:
    """The questions of a world to one store."""
    seen: dict[str, Any] = {}
    pairs = updates.pairs

    def record(odds: Array, found: Any, rows: Array, *rest: Any) -> Pairs | None:
        seen["odds"], seen["ids"] = odds, [found.names[row].decode() for row in rows.tolist()]
        seen["pairs"] = pairs(odds, found, rows, *rest)
        return None  # nothing is lifted: only the order before it counts

    with (
        mock.patch.object(updates, "pairs", record),  # the engine looks it up at each search
        facts.remembered(world, others, **options) as (view, places),
    ):
        for question in world.questions:
            seen.clear()
            if not question.expected:
                continue
            view.search(question.text, asked_at=question.asked_at, limit=kinds.LIMIT, min_score=0)
            if seen.get("ids"):
                right = np.array([places.get(one, "") in question.expected for one in seen["ids"]])
                yield Asked(
                    text=question.text,
                    kind=prefix + question.kind,
                    world=world.name,
                    odds=seen["odds"],
                    right=right,
                    pairs=seen["pairs"],
                )


def lists(one: Asked, names: Sequence[str]) -> Iterator[Array]:
    """For each of the best that is right or updated: its choices, the right one first. Leaving it is all zeros."""
    if one.pairs is None:
        return
    places = one.pairs.places
    tall = set(np.argsort(-one.odds, kind="stable")[:TOP].tolist())
    for earlier, place in enumerate(places.tolist()):
        later = np.flatnonzero(one.pairs.may[earlier] & (one.odds[places] <= one.odds[place]))
        if place not in tall or not len(later):
            continue
        columns = [np.broadcast_to(one.pairs.reasons[name], one.pairs.may.shape)[earlier, later] for name in names]
        choices = np.stack([np.ones(len(later)), *columns], axis=1)
        updated = one.kind.endswith("update") and bool(one.right[places[later]].any())
        if one.right[place]:
            yield np.concatenate([np.zeros((1, len(names) + 1)), choices])
        elif updated:
            which = int(np.flatnonzero(one.right[places[later]])[0])
            rest = np.delete(choices, which, axis=0)
            yield np.concatenate([choices[[which]], np.zeros((1, len(names) + 1)), rest])


def fit(some: Sequence[Asked], names: Sequence[str]) -> dict[str, float]:
    """The weights."""
    made = [one for asked_ in some for one in lists(asked_, names)]
    rows = np.concatenate(made)
    weights = np.full(len(made), 1 / len(made))
    factors = fit_models.newton(weights, rows, np.zeros(len(rows)), np.array([len(one) for one in made]))
    return dict(zip(("base", *names), np.round(factors, 2).tolist(), strict=True))


def first(one: Asked, weights: Mapping[str, float], least: float) -> tuple[float, float]:
    """Whether the best is an answer, before and after lifting."""
    before = float(one.right[int(np.argmax(one.odds))])
    if one.pairs is None:
        return before, before
    raised = updates.raised(one.odds, one.pairs, {**weights, "base": weights["base"] - least})
    return before, float(one.right[int(np.argmax(raised))])


def main() -> None:
    """Collect, fit, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where LoCoMo is")
    parser.add_argument("--embedder", default="default", help="default, none, a name that open() knows, module:Class")
    arguments = parser.parse_args()
    found = list(collect(arguments.folder, quality.configured(arguments.embedder, None, None).options))
    names = next(tuple(one.pairs.reasons) for one in found if one.pairs)
    folds = {fold: fit([one for one in found if one.fold != fold], names) for fold in range(fit_cases.FOLDS)}
    print("| kind | questions | hit@1 before | " + " | ".join(f"at {one}" for one in THRESHOLDS) + " |")
    print("| --- |" + " --- |" * (2 + len(THRESHOLDS)))
    by_kind = defaultdict(list)
    for one in found:
        by_kind[one.kind].append([first(one, folds[one.fold], least) for least in THRESHOLDS])
        before, after = first(one, folds[one.fold], 0.0)
        if before > after:
            print(f"lost: {one.kind}, {one.world}: {one.text}", file=sys.stderr)
    for kind, values in sorted(by_kind.items()):
        shares = 100 * np.array(values).mean(axis=0)
        print(f"| {kind} | {len(values)} | {shares[0, 0]:.1f} | " + " | ".join(f"{v:.1f}" for v in shares[:, 1]) + " |")
    print(fit(found, names))


if __name__ == "__main__":
    main()
