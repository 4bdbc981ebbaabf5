"""What a search sees of each question: the signals of its candidates, and which of them answer. Collected once.

Stores of every kind: the worlds of benchmarks/data alone, a few memories of each, among 300 and 10,000 others, beside
the turns of a conversation; and LoCoMo and LongMemEval.
"""

import json
import random
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

import wellkept
from benchmarks import facts, kinds, quality, quality_data
from benchmarks.facts import FactSet
from wellkept.recall import signals
from wellkept.recall.candidates import Candidates
from wellkept.recall.signals import Question, Signals, Weights

Array = npt.NDArray[Any]
FOLDS = 5
SEED = 11
FOREIGN = 12
"""Foreign questions that are put to each store of own worlds."""
STRANGE = "strange"
"""The kind of foreign questions that no set has, but that were put to its store as well."""
BESIDE = "facts beside turns"
FEW = "a few facts"

NAMES = (
    "similarity",
    "keyword",
    "words",
    "exact",
    "conversation_similarity",
    "conversation_keyword",
    "author",
    "role",
    "opening",
    "question",
    "echo",
    "empty",
    "settled",
    "phrase",
    "when",
    "number",
    "person",
    "date",
    "told",
    "period",
    "importance",
)


def fold(world: str) -> int:
    """The fold of a world or conversation."""
    return zlib.crc32(world.encode()) % FOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question to a store. ``values`` has a row for each candidate and a column for each of NAMES.

    ``embedder`` is the name of the vectors that were compared, nothing without any;
    ``expected`` is how many memories answer, found or not; ``kind`` tells foreign questions from others.
    """

    embedder: str
    group: str
    world: str
    kind: str
    expected: int
    memories: int
    unseen_name: bool
    heard: float
    values: Array
    linked: Array
    right: Array

    @property
    def fold(self) -> int:
        """The same for all stores of a world or conversation."""
        return fold(self.world)


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A question, what answers it (keys of memories), and what it belongs to."""

    text: str
    kind: str
    expected: frozenset[str]
    world: str
    asked_at: datetime | None = None


@dataclass(slots=True)
class Seen:
    """What the last search measured."""

    ids: list[str] = field(default_factory=list)
    linked: Array = field(default_factory=lambda: np.zeros(0, np.bool_))
    values: Mapping[str, Array] = field(default_factory=dict)
    memories: int = 0
    unseen_name: bool = False
    heard: float = 0.0
    embedder: str = ""


@contextmanager
def recorded() -> Iterator[Seen]:
    """What searches measure, as long as this lasts."""
    seen, measure = Seen(), signals.measure

    def record(found: Candidates, question: Question, weights: Weights, **options: Any) -> Signals:
        made = measure(found, question, weights, **options)
        seen.ids = [found.ids[row] for row in made.rows.tolist()]
        seen.linked, seen.values = found.size[made.rows] > 1, made.values
        seen.embedder = "" if question.vector is None else question.vector.embedder
        seen.memories, seen.unseen_name, seen.heard = weights.memories, weights.unseen_name, made.heard
        return made

    with mock.patch.object(signals, "measure", record):  # the engine looks it up at each search
        yield seen


def asked(group: str, view: wellkept.View, keys: Mapping[str, str], puts: Iterable[Put], seen: Seen) -> Iterator[Case]:
    """The cases of some questions to one store; those of nothing but a time are not ranked by signals."""
    for put in puts:
        seen.ids = []
        view.search(put.text, asked_at=put.asked_at, limit=1)
        if not len(seen.ids):
            continue
        zeros = np.zeros(len(seen.linked))
        columns = [seen.values.get(name, zeros) for name in NAMES]
        yield Case(
            embedder=seen.embedder,
            group=group,
            world=put.world,
            kind=put.kind,
            expected=len(put.expected),
            memories=seen.memories,
            unseen_name=seen.unseen_name,
            heard=seen.heard,
            values=np.stack(columns, axis=1).astype(np.float32),
            linked=seen.linked,
            right=np.array([keys.get(one, "") in put.expected for one in seen.ids]),
        )


def puts_of(world: FactSet) -> list[Put]:
    """The questions of a set."""
    return [
        Put(text=one.text, kind=one.kind, expected=one.expected, world=world.name, asked_at=one.asked_at)
        for one in world.questions
    ]


def of_worlds(worlds: Mapping[str, Sequence[FactSet]], options: dict[str, Any], seen: Seen) -> Iterator[Case]:
    """Every world in a store of its own, with foreign questions of the others; and parts of it."""
    dice = random.Random(SEED)
    english = [one for group, some in worlds.items() if group != "languages" for one in some]
    foreign = [put for one in english for put in puts_of(one) if put.kind == "foreign"]
    for group, some in worlds.items():
        for world in some:
            own = puts_of(world)
            with facts.remembered(world, **options) as (view, keys):
                yield from asked(group, view, keys, own, seen)
                yield from asked(group, view, keys, _theirs(dice.sample(foreign, FOREIGN), world), seen)
            few = dice.sample(list(world.memories), 8)
            ids = {one["id"] for one in few}
            with facts.remembered(replace(world, memories=few), **options) as (view, keys):
                answered = [put for put in own if put.expected and put.expected <= ids]
                yield from asked(FEW, view, keys, answered, seen)
                yield from asked(FEW, view, keys, _theirs(dice.sample(foreign, FOREIGN), world), seen)
            print(f"{group}: {world.name}", file=sys.stderr, flush=True)


def _theirs(foreign: Sequence[Put], world: FactSet) -> list[Put]:
    return [replace(one, kind=STRANGE, world=world.name, asked_at=world.asked_at) for one in foreign]


def among(worlds: Sequence[FactSet], turns: Sequence[str], options: dict[str, Any], seen: Seen) -> Iterator[Case]:
    """Every world of facts, one after the other, in a store of others; more of these for each size."""
    with wellkept.open("ram:", **options) as database:
        view = database.view(user="ada")
        others = list(dict.fromkeys([*turns, *facts.others(10_000)]))
        stored = 0
        for group, size in kinds.AMONG.items():
            wanted = size - len(worlds[0].memories)
            view.add_many(others[stored:wanted])
            stored = wanted
            for world in worlds:
                made = view.add_many(facts.news_of(world))
                keys = {memory.id: one["id"] for memory, one in zip(made, facts.ordered(world), strict=True)}
                yield from asked(group, view, keys, puts_of(world), seen)
                for memory in made:
                    view.forget(memory.id, permanent=True)
                print(f"{group}: {world.name}", file=sys.stderr, flush=True)


def of_conversations(
    folder: Path, worlds: Sequence[FactSet], options: dict[str, Any], seen: Seen, sample: int
) -> Iterator[Case]:
    """LoCoMo and LongMemEval, the first so many haystacks, and the facts of a world beside conversations."""
    for benchmark in (quality_data.LOCOMO, quality_data.LONGMEMEVAL):
        haystacks = quality_data.load(folder, benchmark)
        for place, one in enumerate(haystacks[:sample]):
            own = [_put(put, one.name) for put in one.questions if not put.adversarial and put.turns]
            others = [
                replace(_put(put, one.name), kind=STRANGE, expected=frozenset[str]())
                for put in quality.foreign_to(one, haystacks, benchmark)[::2]
            ]
            with wellkept.open("ram:", **options) as database:
                view = database.view(user="ada")
                stored = view.add_many(turns_of(one))
                keys = {memory.id: turn.key for memory, turn in zip(stored, one.turns, strict=True)}
                yield from asked(benchmark, view, keys, [*own, *others], seen)
                if benchmark == quality_data.LOCOMO:
                    world = worlds[place % len(worlds)]
                    made = view.add_many(facts.news_of(world))
                    keys |= {memory.id: fact["id"] for memory, fact in zip(made, facts.ordered(world), strict=True)}
                    yield from asked(BESIDE, view, keys, [*puts_of(world), *own[::4], *others[::4]], seen)
            print(f"{benchmark}: {place + 1} of {len(haystacks[:sample])}", file=sys.stderr, flush=True)


def turns_of(haystack: quality_data.Haystack) -> list[wellkept.NewMemory]:
    """The turns of a conversation."""
    return [
        wellkept.NewMemory(
            content=turn.text, author=turn.author, role=turn.role, occurred_at=turn.at, session=turn.session
        )
        for turn in haystack.turns
    ]


def _put(question: quality_data.Question, world: str) -> Put:
    return Put(text=question.text, kind="own", expected=question.turns, world=world, asked_at=question.asked_at)


def collect(folder: Path | None, options: dict[str, Any], sample: int) -> list[Case]:
    """All cases; without a folder, those of the own worlds alone."""
    worlds = {path.name: facts.load([path]) for path in sorted(facts.DATA.iterdir()) if path.is_dir()}
    own = worlds[facts.OWN.name]
    haystacks = quality_data.load(folder, quality_data.LOCOMO) if folder else []
    turns = [turn.text for one in haystacks for turn in one.turns]
    with recorded() as seen:
        found = [*of_worlds(worlds, options, seen), *among(own, turns, options, seen)]
        if folder:
            found += of_conversations(folder, own, options, seen, sample)
    return found


def write(path: Path, found: Sequence[Case]) -> None:
    """Keep cases in a file."""
    named = ("embedder", "group", "world", "kind", "expected", "memories", "unseen_name", "heard")
    facts_of = [{name: getattr(one, name) for name in named} for one in found]
    np.savez_compressed(
        path,
        cases=np.frombuffer(json.dumps(facts_of).encode(), np.uint8),
        names=np.frombuffer(json.dumps(NAMES).encode(), np.uint8),
        lengths=np.array([len(one.linked) for one in found]),
        values=np.concatenate([one.values for one in found]),
        linked=np.concatenate([one.linked for one in found]),
        right=np.concatenate([one.right for one in found]),
    )


def read(path: Path) -> list[Case]:
    """The cases of a file."""
    with np.load(path) as file:
        if tuple(json.loads(file["names"].tobytes())) != NAMES:
            raise SystemExit(f"{path} has other signals: remove it")
        ends = np.cumsum(file["lengths"])[:-1]
        parts = (np.split(file[name], ends) for name in ("values", "linked", "right"))
        return [
            Case(**fact, values=values, linked=linked, right=right)
            for fact, values, linked, right in zip(json.loads(file["cases"].tobytes()), *parts, strict=True)
        ]
