"""Sets of memories and questions about them, as they stand in benchmarks/data: one file for each world.

A set is a JSON object: `asked_at`, `memories` (`id`, `content`, `type`, `days_ago`, optionally `tags`, `title`,
`role`, `author` and `session`) and `questions` (`question`, `kind`, and in `expected` the ids of what answers it;
nothing for a question that no memory answers). The folder of a file says of what kind its memories are.
"""

import itertools
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import wellkept

DATA = Path(__file__).resolve().parent / "data"
OWN = DATA / "facts"
_FIELDS = ("occurred_at", "type", "tags", "title", "role", "author", "session")
_SUBJECTS = ("The gardener", "A sailor", "Our neighbour", "The baker", "My cousin", "The pilot", "A teacher", "Nadia")
_VERBS = ("repaired", "painted", "sold", "borrowed", "described", "photographed", "washed", "measured", "dropped")
_THINGS = ("an old fence", "the kitchen table", "two bicycles", "some apple trees", "a woollen coat", "the red lamp")
OTHERS = [" ".join(words) for words in itertools.product(_SUBJECTS, _VERBS, _THINGS)]
"""Sentences that answer none of the questions."""
_WHERE = ("in the harbour", "behind the mill", "near the old wall", "at the fair", "on the island", "under the bridge")
_WHEN = ("before noon", "in the rain", "for a friend", "without a word")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the memories that answer it, as ``set/id``."""

    text: str
    kind: str
    expected: frozenset[str]
    world: str = ""
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSet:
    """Memories and questions about them."""

    name: str
    asked_at: datetime
    memories: Sequence[dict[str, Any]]
    questions: Sequence[Question]


def read(path: Path) -> FactSet:
    """One set, its ids qualified by the name of its file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    name, asked_at = path.stem, datetime.fromisoformat(data["asked_at"])
    return FactSet(
        name=name,
        asked_at=asked_at,
        memories=[
            {**one, "id": f"{name}/{one['id']}", "occurred_at": asked_at - timedelta(days=one["days_ago"])}
            for one in data["memories"]
        ],
        questions=[
            Question(
                text=one["question"],
                kind=one["kind"],
                expected=frozenset(f"{name}/{memory_id}" for memory_id in one["expected"]),
                world=name,
                asked_at=asked_at,
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


def ordered(facts: FactSet) -> list[dict[str, Any]]:
    """The memories of a set, the oldest first."""
    return sorted(facts.memories, key=lambda one: str(one["occurred_at"].astimezone(UTC)))


def news_of(facts: FactSet) -> list[wellkept.NewMemory]:
    """The memories of a set as they are added, the oldest first."""
    return [
        wellkept.NewMemory(content=one["content"], **{name: one[name] for name in _FIELDS if name in one})
        for one in ordered(facts)
    ]


@contextmanager
def remembered(
    facts: FactSet, others: Sequence[str] = (), **options: Any
) -> Iterator[tuple[wellkept.View, dict[str, str]]]:
    """A new database with other sentences and the memories of a set, the oldest first; and the place of each id."""
    with (
        tempfile.TemporaryDirectory() as folder,
        wellkept.open(Path(folder) / "memory.db", **options) as memories,
    ):
        view = memories.view(user="ada")
        if others:
            view.add_many(list(others))
        stored = view.add_many(news_of(facts))
        yield view, {memory.id: one["id"] for memory, one in zip(stored, ordered(facts), strict=True)}


def others(count: int) -> list[str]:
    """So many different sentences that answer none of the questions."""
    longer = (" ".join(words) for words in itertools.product(OTHERS, _WHERE, _WHEN))
    return list(itertools.islice(longer, count))
