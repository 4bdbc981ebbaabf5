"""Anything in any order: a state machine that compares a store with a model of a few lists and dictionaries."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from wellkept import codec, filters
from wellkept.errors import Conflict
from wellkept.ports import Store
from wellkept.statistics import footprint
from wellkept.testing import strategies
from wellkept.testing.builders import EMBEDDER, Writer, bare, owner, query, vector
from wellkept.testing.subject import GENERATED, Subject
from wellkept.types import (
    ORDERS_OF_STORES,
    Access,
    Embedded,
    Layer,
    Operation,
    Owner,
    Owners,
    Position,
    Sort,
    State,
    Stored,
    Usage,
    Vector,
    Write,
)

OWNERS = (owner("ada"), owner("Ada"), Owner(Layer.USER, ("ada",), "draft"))
IDS = ("1", "2", "3", "4")
KEYS = ("k", "K", "l")
EMBEDDERS = (EMBEDDER, "other")
STEPS = 25

Key = tuple[Owner, str]
PLACES = st.tuples(st.sampled_from((OWNERS[0], *OWNERS)), st.sampled_from(IDS))
"""Memories that are there, were erased, or are still to come."""


@dataclass
class Model:
    """What every store must answer, said as plainly as possible."""

    journal: list[Stored] = field(default_factory=list)  # everybody's, in the order of arrival
    last: dict[Owner, tuple[int, int]] = field(default_factory=dict)  # sequence and time
    vectors: dict[Key, Vector] = field(default_factory=dict)
    waiting: dict[Key, Vector] = field(default_factory=dict)
    accesses: dict[Key, tuple[int, int]] = field(default_factory=dict)
    embedder: str | None = None

    def head(self, place: Key) -> Stored | None:
        """The newest version of a memory, a tombstone too."""
        return next((one for one in reversed(self.journal) if (one.owner, one.id) == place), None)

    def append(self, writes: list[Write]) -> "Model | None":
        """The model after the writes; ``None`` if one of them must be refused."""
        after = Model(
            list(self.journal),
            dict(self.last),
            dict(self.vectors),
            dict(self.waiting),
            dict(self.accesses),
            self.embedder,
        )
        return after if all(after._take(write) for write in writes) else None

    def _take(self, write: Write) -> bool:
        place = (write.owner, write.id)
        before = self.head(place)
        if (before.version if before else 0) != write.expected:
            return False
        if before and before.operation is Operation.ERASED and write.operation is not Operation.ERASED:
            return False  # only a tombstone may follow a tombstone
        key = write.facets.get("key")
        if key is not None and self.keys(write.owner).get(key, write.id) != write.id:
            return False
        seq, at = self.last.get(write.owner, (0, 0))
        seq, at = seq + 1, max(at, write.recorded_at)
        self.last[write.owner] = seq, at
        new = Stored(
            owner=write.owner,
            id=write.id,
            version=write.version,
            seq=seq,
            born=before.born if before else seq,
            born_at=before.born_at if before else at,
            recorded_at=at,
            operation=write.operation,
            stamp=write.stamp,
            replaced=write.replaced,
            reason=write.reason,
            facets=write.facets,
            payload=write.payload,
            write_id=write.write_id or write.stamp,
        )
        if write.operation is Operation.ERASED:
            self.journal = [one for one in self.journal if (one.owner, one.id) != place]
            for kept in (self.vectors, self.waiting, self.accesses):
                kept.pop(place, None)
        elif not write.keeps_vector:
            self.waiting.pop(place, None)
            self.vectors.pop(place, None)
            if write.vector is not None:
                self.vectors[place] = write.vector
                self.embedder = write.vector.embedder
        self.journal.append(new)
        return True

    def embed(self, one: Embedded) -> None:
        """A vector that came later."""
        place, head = (one.owner, one.id), self.head((one.owner, one.id))
        if head is not None and head.operation is not Operation.ERASED and head.version == one.version:
            self.embedder = self.embedder or one.vector.embedder
            (self.vectors if one.vector.embedder == self.embedder else self.waiting)[place] = one.vector

    def adopt(self, embedder: str) -> bool:
        """Another embedder takes over, if it has a vector for everything."""
        if embedder != self.embedder:
            if any((one.owner, one.id) not in self.waiting for one in self.embeddable()):
                return False
            self.vectors, self.waiting, self.embedder = self.waiting, {}, embedder
        return True

    def embeddable(self) -> list[Stored]:
        """The memories that need a vector: what moved away needs none."""
        return [one for one in self.state(frozenset(OWNERS)) if one.facets.get("state") != State.MOVED]

    def keys(self, whose: Owner) -> dict[str, str]:
        """Who has which key."""
        return {one.facets["key"]: one.id for one in self.state({whose}) if "key" in one.facets}

    def state(self, owners: Owners) -> list[Stored]:
        """The memories in the order of recording, with accesses and vectors."""
        heads = {(one.owner, one.id): one for one in self.journal if one.owner in owners}
        found = [self._dressed(one) for one in heads.values() if one.operation is not Operation.ERASED]
        return sorted(found, key=lambda one: (one.born_at, codec.encode_owner(one.owner), one.born))

    def _dressed(self, one: Stored) -> Stored:
        times, last_at = self.accesses.get((one.owner, one.id), (0, None))
        vector = self.vectors.get((one.owner, one.id))
        return one._replace(access_count=times, last_accessed_at=last_at, vector=vector)

    def usage(self) -> dict[Owner, Usage]:
        """What each owner holds."""
        found = {one: self.state({one}) for one in OWNERS}
        return {one: Usage(len(held), sum(map(footprint, held))) for one, held in found.items() if held}


class StoreMachine(RuleBasedStateMachine):
    """Drives one store and its model."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        super().__init__()
        self._open = open_store
        self.store = open_store()
        self.model = Model()
        self.writes = Writer()
        self.shift = 0
        self.batch: list[Write] = []
        self.past: list[tuple[Position, list[Stored]]] = []

    def teardown(self) -> None:
        """Release the store."""
        self.store.close()

    def _append(self, *writes: Write) -> None:
        batch = [write._replace(recorded_at=write.recorded_at + self.shift) for write in writes]
        if len({write.owner for write in batch}) > 1 and not self.store.capabilities.batches:
            return
        after = self.model.append(batch)
        if after is None:
            with pytest.raises(Conflict):
                self.store.journal.append(batch)
            return
        self.store.journal.append(batch)
        self.model, self.batch = after, batch
        everybody = frozenset(OWNERS)
        self.past.append((self.store.journal.position(everybody), [bare(one) for one in after.state(everybody)]))

    def _next(self, place: Key, step: str, text: str, key: str | None, head: Stored | Write | None) -> Write:
        if head is None:
            return self.writes.add(place[0], text, id=place[1], key=key)
        if step == "update":
            return self.writes.update(head, text, key=key)
        steps = {"forget": self.writes.forget, "archive": self.writes.archive, "erase": self.writes.erase}
        return steps.get(step, self.writes.restore)(head)

    # -- writing ---------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([3600, -2, -1_000_000]))
    def change_the_clock(self, seconds: int) -> None:
        """Writers have clocks that go wrong."""
        self.shift += seconds * 1_000_000

    @rule(
        whose=st.sampled_from((OWNERS[0], *OWNERS)),
        draft=strategies.drafts(),
        key=st.none() | st.sampled_from(KEYS),
        angle=st.none() | st.floats(0, 1, width=32),
    )
    def add(self, whose: Owner, draft: strategies.Draft, key: str | None, angle: float | None) -> None:
        """Any memory; its key may be taken."""
        brought = None if angle is None else vector(1, angle, embedder=self.model.embedder or EMBEDDER)
        self._append(self.writes.add(whose, **draft, key=key, write={"vector": brought}))

    @rule(
        steps=st.lists(
            st.tuples(
                PLACES,
                st.sampled_from(["update", "update", "forget", "archive", "restore", "erase"]),
                st.none() | st.sampled_from(KEYS),
            ),
            min_size=1,
            max_size=4,
        )
    )
    def change(self, steps: list[tuple[Key, str, str | None]]) -> None:
        """All or none: keys pass from one to another, memories come twice, any part may be refused."""
        made: dict[Key, Stored | Write | None] = {}
        batch = []
        for number, (place, step, key) in enumerate(steps):
            head = made.get(place) or self.model.head(place)
            write = self._next(place, step, f"text {number}", key, head)
            made[place] = write
            batch.append(write)
        self._append(*(write._replace(write_id=batch[0].stamp) for write in batch))

    @rule(place=PLACES, step=st.sampled_from([-1, 1]))
    def change_a_wrong_version(self, place: Key, step: int) -> None:
        """Always refused."""
        write = self._next(place, "update", "wrong", None, self.model.head(place))
        self._append(write._replace(expected=max(0, write.expected + step) or write.expected + 1))

    @precondition(lambda self: self.batch)
    @rule()
    def retry(self) -> None:
        """The last batch again, as after a lost answer."""
        self.store.journal.append(self.batch)

    @rule(place=PLACES, embedder=st.sampled_from(EMBEDDERS), step=st.sampled_from([0, 0, -1, 1]), keep=st.booleans())
    def embed(self, place: Key, embedder: str, step: int, keep: bool) -> None:
        """A vector with a version, or later; some come too late."""
        head = self.model.head(place)
        if keep or head is None or embedder != (self.model.embedder or embedder):
            one = Embedded(*place, (head.version if head else 0) + step, vector(step, 1, embedder=embedder))
            self.store.journal.embed([one])
            self.model.embed(one)
        elif head.operation is not Operation.ERASED:
            brought = {"keeps_vector": False, "vector": vector(2, step, embedder=embedder)}
            self._append(self.writes.update(head, write=brought))

    @rule(embedder=st.sampled_from(EMBEDDERS), fill=st.booleans())
    def adopt(self, embedder: str, fill: bool) -> None:
        """Go over to an embedder; it has all vectors, or lacks some."""
        have = self.model.vectors if embedder == self.model.embedder else self.model.waiting
        missing = [one for one in self.model.embeddable() if (one.owner, one.id) not in have]
        found = self.store.journal.unembedded(embedder, 100)
        assert {(one.owner, one.id) for one in found} == {(one.owner, one.id) for one in missing}
        for one in missing if fill else ():
            later = Embedded(one.owner, one.id, one.version, vector(0, 1, embedder=embedder))
            self.store.journal.embed([later])
            self.model.embed(later)
        assert self.store.journal.adopt(embedder, 2) is self.model.adopt(embedder)

    @rule(some=st.lists(PLACES, max_size=3), times=st.integers(1, 3), last_at=st.integers(1, 9))
    def count_accesses(self, some: list[Key], times: int, last_at: int) -> None:
        """Those of memories that are not there are passed over."""
        self.store.journal.count_accesses([Access(*place, times, last_at) for place in some])
        there = {(one.owner, one.id) for one in self.model.state(frozenset(OWNERS))}
        for place in some:
            if place in there:
                before = self.model.accesses.get(place, (0, 0))
                self.model.accesses[place] = (before[0] + times, max(before[1], last_at))

    @precondition(lambda self: self.store.capabilities.durable)
    @rule()
    def reopen(self) -> None:
        """Close the store and open it again."""
        self.store.close()
        self.store = self._open()

    # -- reading ---------------------------------------------------------------------------------

    @invariant()
    def everything_is_there(self) -> None:
        """After every step."""
        journal, everybody = self.store.journal, frozenset(OWNERS)
        assert list(journal.scan(everybody, vectors=True)) == self.model.state(everybody)
        feed = [bare(one) for one in journal.feed()]
        for whose in OWNERS:
            wanted = [one for one in self.model.journal if one.owner == whose]
            assert [bare(one) for one in journal.versions({whose})] == wanted
            assert [one for one in feed if one.owner == whose] == wanted
            assert journal.keyed(whose, KEYS) == self.model.keys(whose)
        assert {one: mark.seq for one, mark in journal.marks(everybody).items()} == {
            one: seq for one, (seq, _) in self.model.last.items()
        }
        assert set(journal.owners()) == set(self.model.last)
        assert {one: used for one, used in journal.usage(everybody).items() if used.memories} == self.model.usage()

    @rule(owners=st.sets(st.sampled_from(OWNERS)), some=st.lists(PLACES, max_size=3))
    def get(self, owners: set[Owner], some: list[Key]) -> None:
        """By id, and the history of one."""
        ids = {id for _, id in some}
        found = self.store.journal.get(owners, ids, vectors=True)
        wanted = [one for one in self.model.state(owners) if one.id in ids]
        assert {(one.owner, one.id): one for one in found} == {(one.owner, one.id): one for one in wanted}
        for whose, id in some:
            history = [bare(one) for one in self.store.journal.history(whose, id)]
            assert history == [one for one in self.model.journal if (one.owner, one.id) == (whose, id)]

    @rule(
        owners=st.sets(st.sampled_from(OWNERS)),
        conditions=strategies.conditions(),
        sort=st.sampled_from(ORDERS_OF_STORES),
        limit=st.none() | st.integers(1, 3),
    )
    def select(self, owners: set[Owner], conditions: strategies.Draft, sort: Sort, limit: int | None) -> None:
        """A listing."""
        wanted = query(*owners, sort=sort, limit=limit, **conditions)
        matching = [one for one in self.model.state(owners) if filters.matches(one, wanted.where)]
        page = filters.page(matching, sort, after=None, offset=0, limit=limit)
        assert [(one.owner, one.id) for one in self.store.journal.select(wanted)] == [(o.owner, o.id) for o in page]
        assert self.store.journal.count(owners, wanted.where) == len(matching)

    @precondition(lambda self: self.past)
    @rule(owners=st.sets(st.sampled_from(OWNERS)), data=st.data())
    def look_back(self, owners: set[Owner], data: st.DataObject) -> None:
        """Any state of the past, without what was erased since."""
        position, state = data.draw(st.sampled_from(self.past))
        there = {(one.owner, one.id) for one in self.model.state(frozenset(OWNERS))}
        wanted = [one for one in state if one.owner in owners and (one.owner, one.id) in there]
        assert [bare(one) for one in self.store.journal.scan(owners, at=position)] == wanted


class AnyOrder(Subject):
    """The state machine."""

    @pytest.mark.req("H5", "H6")
    def test_state_machine(self, place: Path) -> None:
        """Half as many runs as other tests have examples: each opens a store and takes many steps."""
        numbers = count(1)

        def build() -> StoreMachine:
            own = place / f"run-{next(numbers)}"
            own.mkdir()
            return StoreMachine(lambda: self.open_store(own))

        chosen = settings(GENERATED, max_examples=max(20, GENERATED.max_examples // 2), stateful_step_count=STEPS)
        machine: Any = build  # any callable that gives a machine will do; the annotation in Hypothesis is narrower
        run_state_machine_as_test(machine, settings=chosen)
