"""Recall as it is defined: whatever a store does to be fast, its candidates are those of the default."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ports import Query, Store, Write
from recollect.recall.calibration import Calibration
from recollect.recall.columns import Array
from recollect.recall.probes import Candidates, Probe
from recollect.testing import strategies
from recollect.testing.builders import (
    EVERYTHING,
    START,
    erased,
    forgotten,
    memory,
    new_id,
    owner,
    passages,
    probe,
    put,
    query,
    restored,
    updated,
    vector,
)
from recollect.testing.strategies import Draft
from recollect.testing.subject import GENERATED, Subject
from recollect.text import words
from recollect.text.dates import DateRange
from recollect.types import Memory, Owner, State, Vector

EXACT = 1e-4
ROUGH = 0.02
"""How far a similarity may be off that was compared in 8 bits."""

SIMILARITIES = frozenset({"similarity", "conversation_similarity"})
OF_THE_POOL = frozenset({"conversation_similarity", "conversation_keyword"})
"""The signals that depend on which other memories are candidates."""

_DAY = 86_400.0
_EVENING = START.timestamp() + 40_000

Values = Mapping[int, Mapping[str, float]]


def values_of(found: Candidates) -> Values:
    """All signals of each candidate, and its passage, by its number."""
    columns = {name: values.tolist() for name, values in found.signals.items()}
    columns["passage"] = found.passages.tolist()
    numbers = found.numbers.tolist()
    assert len(set(numbers)) == len(numbers), "a memory is there twice"
    return {
        number: {name: float(some[place]) for name, some in columns.items()} for place, number in enumerate(numbers)
    }


def check_same(found: Candidates, defined: Candidates, tolerance: float = ROUGH) -> None:
    """The same candidates with the same signals."""
    ours, theirs = values_of(found), values_of(defined)
    assert set(ours) == set(theirs)
    for number, expected in theirs.items():
        check_signals(ours[number], expected, tolerance)
    assert dict(found.question) == pytest.approx(dict(defined.question))


def check_signals(ours: Mapping[str, float], expected: Mapping[str, float], tolerance: float) -> None:
    """Two values of each signal, near enough; any signal but those of the pool, if they are left out."""
    for name, value in expected.items():
        allowed = tolerance if name in SIMILARITIES else EXACT
        assert ours[name] == pytest.approx(value, abs=allowed), name


@dataclass(frozen=True, slots=True)
class Border:
    """What is certainly a candidate, and what may be one, given the values of all and how many may be taken."""

    certain: frozenset[int]
    possible: frozenset[int]

    @classmethod
    def of(cls, values: Mapping[int, float], pool: int, slack: float) -> "Border":
        """The best of one kind. Those that are equal, or nearly so, may fall to either side."""
        best = sorted(values.values(), reverse=True)[:pool]
        if len(values) <= pool:
            return cls(frozenset(values), frozenset(values))
        return cls(
            frozenset(number for number, value in values.items() if value > best[-1] + slack),
            frozenset(number for number, value in values.items() if value >= best[-1] - slack),
        )


def check_pool(store: Store, wanted: Query, asked: Probe, vectored: frozenset[int]) -> None:
    """A small pool takes the best of all candidates of one owner; ``vectored`` are those that have a vector."""
    everything = values_of(Store.candidates(store, wanted, replace(asked, pool=EVERYTHING)))
    found = values_of(store.candidates(wanted, asked))
    only_near = not asked.asked.terms and not asked.asked.prefixes
    kinds = []
    if asked.vector is not None:
        near = {number: one["similarity"] for number, one in everything.items() if number in vectored}
        kinds.append(Border.of(near, 4 * asked.pool if only_near else asked.pool, ROUGH))
        if only_near:  # as many as were asked for must be right; how many more come along is left to the store
            least = Border.of(near, asked.pool, ROUGH)
            kinds = [Border(least.certain, kinds[0].possible)]
    said = {number: one["keyword"] for number, one in everything.items() if one.get("keyword", 0) > 0}
    kinds.append(Border.of(said, asked.pool, EXACT))
    # Of what happened on the dates named, some may come along.
    then = frozenset(number for number, one in everything.items() if one.get("date", 0) > 0.5)
    kinds.append(Border(frozenset(), then))
    assert set().union(*(kind.certain for kind in kinds)) <= set(found)
    assert set(found) <= set().union(*(kind.possible for kind in kinds))
    for number, ours in found.items():
        alone = {name: value for name, value in everything[number].items() if name not in OF_THE_POOL}
        check_signals(ours, alone, EXACT if only_near else ROUGH)


def agree(store: Store, wanted: Query, asked: Probe) -> None:
    """The store and the default give the same candidates."""
    only_near = not asked.asked.terms and not asked.asked.prefixes
    check_same(store.candidates(wanted, asked), Store.candidates(store, wanted, asked), EXACT if only_near else ROUGH)


def dated(*_: object) -> list[DateRange]:
    """The dates of a question that names two."""
    return [DateRange(START.timestamp() - _DAY, START.timestamp(), 1.0), DateRange(_EVENING, _EVENING + _DAY, 0.3)]


def vectors() -> st.SearchStrategy[Vector | None]:
    """No vector, one, or those of several passages."""
    rows = strategies.vectors()
    return (
        st.none()
        | rows.map(lambda row: vector(*row))
        | st.lists(rows, min_size=2, max_size=3).map(lambda some: passages(*some))
    )


def probes(pools: st.SearchStrategy[int]) -> st.SearchStrategy[Probe]:
    """Questions by words, by a vector or by both, with and without dates."""
    near = st.none() | strategies.vectors().map(lambda row: vector(*row))
    scale = st.sampled_from([Calibration(low=0.0, high=1.0), Calibration(low=0.3, high=0.8)])
    return st.builds(
        ask,
        st.just("") | strategies.questions(),
        near,
        pool=pools,
        calibration=scale,
        dates=st.sampled_from([None, dated]),
        asks_when=st.booleans(),
        means=st.booleans(),
    )


def ask(text: str, near: Vector | None, *, means: bool, **fields: Any) -> Probe:
    """A probe; one that ``means`` something knows how near its words are to pieces."""
    found = probe(text, near, **fields)
    return replace(found, kin=partial(kin, len(found.asked.words))) if means else found


def kin(count: int, pieces: Array) -> Array:
    """Some nearness of each of so many words to each piece; none to 0, which stands for words that say nothing."""
    return (np.arange(count)[:, None] * 3 + pieces[None, :]) % 7 / np.float32(7) * (pieces > 0)


DRAFTS = st.lists(st.tuples(strategies.drafts(), vectors()), max_size=12)
CHANGES: Mapping[str, Callable[[Memory, Draft], Write]] = {
    "update": lambda one, draft: updated(one, **{name: draft[name] for name in draft if name != "created_at"}),
    "forget": lambda one, _: forgotten(one),
    "restore": lambda one, _: restored(one),
    "erase": lambda one, _: erased(one),
    "turn": lambda one, _: updated(one, write={"keeps_vector": False, "vector": vector(3, -1, 0, 0)}),
    "strip": lambda one, _: updated(one, write={"keeps_vector": False, "vector": None}),
}


@pytest.mark.req("L4")
class Agreement(Subject):
    """``candidates`` against its definition."""

    @given(
        drafts=DRAFTS,
        others=DRAFTS,
        asked=st.lists(st.tuples(probes(st.just(EVERYTHING)), strategies.conditions()), min_size=1, max_size=3),
    )
    @GENERATED
    def test_candidates_agree_with_the_definition(
        self,
        store: Store,
        drafts: list[tuple[Draft, Vector | None]],
        others: list[tuple[Draft, Vector | None]],
        asked: list[tuple[Probe, Draft]],
    ) -> None:
        whose, other = owner(new_id()), owner(new_id(), "x")
        written(store, whose, drafts)
        written(store, other, others)
        for one, conditions in asked:
            for owners in ((whose,), (whose, other)):
                agree(store, query(*owners, **conditions), one)

    @given(drafts=DRAFTS, asked=probes(st.integers(1, 4)), conditions=strategies.conditions())
    @GENERATED
    def test_a_small_pool_takes_the_best(
        self, store: Store, drafts: list[tuple[Draft, Vector | None]], asked: Probe, conditions: Draft
    ) -> None:
        whose = owner(new_id())
        numbers = written(store, whose, drafts)
        vectored = frozenset(one for one, (_, near) in zip(numbers, drafts, strict=True) if near is not None)
        check_pool(store, query(whose, **conditions), asked, vectored)

    @given(
        drafts=st.lists(st.tuples(strategies.drafts(), vectors()), min_size=1, max_size=6),
        changes=st.lists(
            st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 5), strategies.drafts()), max_size=8
        ),
        asked=probes(st.just(EVERYTHING)),
    )
    @GENERATED
    def test_candidates_agree_after_every_change(
        self,
        store: Store,
        drafts: list[tuple[Draft, Vector | None]],
        changes: list[tuple[str, int, Draft]],
        asked: Probe,
    ) -> None:
        """However a state came about, it is searched as if it had been written at once."""
        whose = owner(new_id())
        written(store, whose, drafts)
        latest = [stored.memory for stored in store.scan({whose})]
        sequences = [store.sequence()]
        agree(store, query(whose), asked)
        for change, which, draft in changes:
            if not latest:
                break
            place = which % len(latest)
            write = CHANGES[change](latest[place], draft)
            sequences += store.apply([write])
            if change == "erase":
                del latest[place]
            else:
                latest[place] = write.memory
            agree(store, query(whose), asked)
        agree(store, query(whose, include_forgotten=True), asked)
        for sequence in sequences[::3]:
            agree(store, query(whose, as_of=sequence), asked)

    @given(
        minutes=st.lists(st.tuples(st.integers(0, 90), st.sampled_from([None, "ada"]), st.booleans()), max_size=12),
        gone=st.sets(st.integers(0, 11)),
        back=st.sets(st.integers(0, 11)),
    )
    @GENERATED
    def test_conversations_agree_however_they_came_about(
        self,
        store: Store,
        minutes: list[tuple[int, str | None, bool]],
        gone: set[int],
        back: set[int],
    ) -> None:
        whose = owner(new_id())
        said = [
            memory(
                f"number{n} dark",
                whose,
                author=author,
                session="named" if named else None,
                occurred_at=START + timedelta(minutes=minute),
            )
            for n, (minute, author, named) in enumerate(minutes)
        ]
        for one in said:
            put(store, one)
            agree(store, query(whose), probe("dark"))
        chosen = [forgotten(one) for n, one in enumerate(said) if n in gone]
        for write in chosen:
            store.apply([write])
            agree(store, query(whose), probe("number1 number4 number7"))
        for write in [write for n, write in enumerate(chosen) if n in back]:
            store.apply([restored(write.memory)])
            agree(store, query(whose), probe("number1 number4 number7"))
        put(store, memory("dark", whose, author="bob"))
        agree(store, query(whose), probe("dark number2"))

    def test_many_memories_agree_with_the_definition(self, store: Store) -> None:
        """More than fit into the corners where a store can be lazy: repeated words, long texts, many authors."""
        whose = owner("many")
        chance = np.random.default_rng(7)
        texts = [" ".join(f"word{n}" for n in chance.zipf(1.6, size=chance.integers(1, 40)) % 500) for _ in range(700)]
        texts[100] = "word1 " * 400
        rows = chance.normal(size=(700, 4))
        memories = [
            memory(
                text,
                whose,
                vector=vector(*row.tolist()),
                author=f"author{n % 7}",
                session=f"session{n // 9}" if n % 3 else None,
                occurred_at=START + timedelta(minutes=7 * n),
            )
            for n, (text, row) in enumerate(zip(texts, rows, strict=True))
        ]
        asked = [probe("word1 word17 author3", vector(1, 2, 3, 4)), probe('word3 "word1 word2"'), probe("word4*")]
        for start in range(0, 700, 100):
            put(store, *memories[start : start + 100])
            for one in asked:
                agree(store, query(whose), one)
        store.apply([forgotten(one) for one in memories[::5]])
        store.apply([updated(one, content=f"{one.content} word17") for one in memories[1::5]])
        for one in asked:
            agree(store, query(whose), one)


def written(store: Store, whose: Owner, drafts: list[tuple[Draft, Any]]) -> list[int]:
    """Store drafts with their vectors, half of them one by one; their numbers."""
    memories = [pieced(memory(whose=whose, vector=near, **draft)) for draft, near in drafts]
    half = len(memories) // 2
    numbers = put(store, *memories[:half])
    if half and memories[0].state is State.ACTIVE:  # now the store may have made whatever it makes for a search
        store.candidates(query(whose), probe("dark", vector(1, 0, 0, 0)))
    return [*numbers, *(number for one in memories[half:] for number in put(store, one))]


def pieced(one: Memory) -> Memory:
    """The memory with a piece for each of its words, if it has a vector to keep them in."""
    count = len(words.words(words.searchable(one.content, one.title, one.author)))
    pieces = np.arange(count).astype("<u2").tobytes()
    return one if one.vector is None else replace(one, vector=replace(one.vector, pieces=pieces))
