"""How well search finds short facts: questions of several kinds to small stores, with the product's defaults.

    python benchmarks/facts.py                                # the sets in benchmarks/data/facts, each in its own store
    python benchmarks/facts.py --together                     # all sets in one store
    python benchmarks/facts.py --together --others 100        # and 100 sentences of no set beside them
    python benchmarks/facts.py a.json folder --ungated        # other sets of the same form; every candidate is shown

A set is a JSON object: `asked_at`, `memories` (`id`, `content`, `type`, `days_ago`, optionally `tags`, `title`,
`role`, `author` and `session`) and `questions` (`question`, `kind`, and in `expected` the ids of what answers it;
nothing for a question that no memory answers).
"""

import argparse
import itertools
import json
import math
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import recollect

OWN = Path(__file__).resolve().parent / "data" / "facts"
LIMIT = 10
_FIELDS = ("type", "tags", "title", "role", "author", "session")
_SUBJECTS = ("The gardener", "A sailor", "Our neighbour", "The baker", "My cousin", "The pilot", "A teacher", "Nadia")
_VERBS = ("repaired", "painted", "sold", "borrowed", "described", "photographed", "washed", "measured", "dropped")
_THINGS = ("an old fence", "the kitchen table", "two bicycles", "some apple trees", "a woollen coat", "the red lamp")
OTHERS = [" ".join(words) for words in itertools.product(_SUBJECTS, _VERBS, _THINGS)]
"""Sentences that answer none of the questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the memories that answer it, as ``set/id``."""

    text: str
    kind: str
    expected: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSet:
    """Memories and questions about them."""

    name: str
    asked_at: datetime
    memories: Sequence[dict[str, Any]]
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a question got: the memories found, in their order."""

    question: Question
    found: Sequence[str]

    def hit(self, places: int) -> float:
        """Whether one of the first places is an answer."""
        return float(any(one in self.question.expected for one in self.found[:places]))

    @property
    def recall(self) -> float:
        """The share of the answers among the first ten."""
        return len(self.question.expected & set(self.found[:LIMIT])) / len(self.question.expected)


def read(path: Path) -> FactSet:
    """One set, its ids qualified by the name of its file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    name = path.stem
    return FactSet(
        name=name,
        asked_at=datetime.fromisoformat(data["asked_at"]),
        memories=[{**one, "id": f"{name}/{one['id']}"} for one in data["memories"]],
        questions=[
            Question(
                text=one["question"],
                kind=one["kind"],
                expected=frozenset(f"{name}/{memory_id}" for memory_id in one["expected"]),
            )
            for one in data["questions"]
        ],
    )


def load(paths: Iterable[Path]) -> list[FactSet]:
    """The sets in files and folders."""
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    return [read(file) for file in files]


def joined(sets: Sequence[FactSet]) -> FactSet:
    """All sets as one."""
    return FactSet(
        name="together",
        asked_at=max(one.asked_at for one in sets),
        memories=[memory for one in sets for memory in one.memories],
        questions=[question for one in sets for question in one.questions],
    )


@contextmanager
def remembered(
    facts: FactSet, others: Sequence[str] = (), **options: Any
) -> Iterator[tuple[recollect.View, dict[str, str]]]:
    """A new database with other sentences and the memories of a set, the oldest first; and the place of each id."""
    ordered = sorted(facts.memories, key=lambda one: -int(one["days_ago"]))
    news = [
        recollect.NewMemory(
            content=one["content"],
            occurred_at=facts.asked_at - timedelta(days=one["days_ago"]),
            **{name: one[name] for name in _FIELDS if name in one},
        )
        for one in ordered
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        recollect.open(Path(folder) / "memory.db", **options) as memories,
    ):
        view = memories.view(user="ada")
        if others:
            view.add_many(list(others))
        stored = view.add_many(news)
        yield view, {memory.id: one["id"] for memory, one in zip(stored, ordered, strict=True)}


def ask(facts: FactSet, others: Sequence[str], *, ungated: bool, **options: Any) -> list[Outcome]:
    """Every question of a set, put to a store of its own."""
    least: dict[str, Any] = {"min_score": 0} if ungated else {}
    outcomes = []
    with remembered(facts, others, **options) as (view, places):
        for question in facts.questions:
            hits = view.search(question.text, limit=LIMIT, asked_at=facts.asked_at, **least)
            found = [places.get(hit.memory.id, "") for hit in hits]
            outcomes.append(Outcome(question=question, found=found))
    return outcomes


def interval(share: float, count: int) -> float:
    """Half of the width of the 95 % interval of a share, by the normal approximation with two added on each side."""
    middle = (share * count + 2) / (count + 4)
    return 1.96 * math.sqrt(middle * (1 - middle) / (count + 4))


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """A line of figures for each kind of question, and one for all that have an answer."""
    answerable = [one for one in outcomes if one.question.expected]
    kinds = sorted({one.question.kind for one in answerable})
    rows = [(kind, [one for one in answerable if one.question.kind == kind]) for kind in kinds]
    lines = ["| kind | questions | hit@1 | hit@3 | R@10 | emptied |", "| --- | --- | --- | --- | --- | --- |"]
    for kind, some in [*rows, ("all", answerable)]:
        count = len(some)
        if not count:
            continue
        first, third = (sum(one.hit(places) for one in some) / count for places in (1, 3))
        recall = sum(one.recall for one in some) / count
        emptied = sum(not one.found for one in some) / count
        lines.append(
            f"| {kind} | {count} | {first:.0%} | {third:.0%} ± {interval(third, count):.0%} "
            f"| {recall:.0%} ± {interval(recall, count):.0%} | {emptied:.1%} |"
        )
    foreign = [one for one in outcomes if not one.question.expected]
    for kind in sorted({one.question.kind for one in foreign}):
        some = [one for one in foreign if one.question.kind == kind]
        answered = sum(bool(one.found) for one in some)
        lines.append(f"{kind}: {answered} of {len(some)} answered ({answered / len(some):.0%})")
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[OWN], help="sets, or folders of them")
    parser.add_argument("--together", action="store_true", help="all sets in one store")
    parser.add_argument("--others", type=int, default=0, help="so many sentences of no set beside them")
    parser.add_argument("--ungated", action="store_true", help="min_score=0: judge the order alone")
    parser.add_argument("--misses", action="store_true", help="list the questions without an answer in the first three")
    parser.add_argument("--embedder", default="default", help="default, none, or a name that open() knows")
    arguments = parser.parse_args()
    sets = load(arguments.paths)
    options = {} if arguments.embedder == "default" else {"embedder": arguments.embedder}
    if arguments.embedder == "none":
        options = {"embedder": None}
    outcomes = [
        outcome
        for facts in ([joined(sets)] if arguments.together else sets)
        for outcome in ask(facts, OTHERS[: arguments.others], ungated=arguments.ungated, **options)
    ]
    print("\n".join(table(outcomes)))
    if arguments.misses:
        for one in outcomes:
            if one.question.expected and not one.hit(3):
                print(f"{one.question.kind}: {one.question.text} -> {one.found[:3]}", file=sys.stderr)


if __name__ == "__main__":
    main()
