"""A machine that does anything in any order to a store and to plain dictionaries, and compares."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from recollect import filters
from recollect.errors import Conflict
from recollect.ports import Embedded, Owners, Store, Stored, Write
from recollect.recall import defaults
from recollect.recall.probes import Probe
from recollect.testing import strategies
from recollect.testing.agreement import check_same
from recollect.testing.builders import (
    EMBEDDER,
    START,
    added,
    erased,
    forgotten,
    memory,
    owner,
    plain,
    probe,
    query,
    restored,
    updated,
)
from recollect.testing.strategies import Draft
from recollect.testing.subject import GENERATED
from recollect.types import Memory, Operation, Owner, Sort, Vector, Version

OWNERS = (owner("ada"), owner("ada:x"), owner("ada", "x"))
KEYS = ("k", "K")
STEPS = 40
BATCHED = ("update", "take", "let go", "forget", "erase")
EMBEDDERS = (EMBEDDER, "other")
ANGLES = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
QUESTIONS = ("dark mode", '"dark mode"', "da* ada", "Straße at the end", "")


class Oracle:
    """What a store should hold, derived in the plainest way from a list of all that happened."""

    def __init__(self) -> None:
        self.journal: list[Version] = []
        self.recorded: list[tuple[int, datetime]] = []
        self.numbers: dict[str, int] = {}
        self.vectors: dict[str, Vector] = {}
        self.waiting: dict[str, Vector] = {}
        self.embedder: str | None = None
        self.accesses: dict[str, tuple[int, datetime | None]] = {}

    def accepts(self, writes: Iterable[Write]) -> bool:
        """Whether a batch breaks no rule, taken write by write."""
        heads = {one.memory_id: one for one in self.journal}
        for write in writes:
            new = entry(0, write)
            head = heads.get(new.memory_id)
            if new.version != (head.version if head else 0) + 1:
                return False
            if head is not None and (head.memory is None or head.owner != new.owner):
                return False
            if new.memory is not None and new.memory.key is not None:
                held = {
                    (one.owner, one.memory.key)
                    for one in heads.values()
                    if one.memory is not None and one.memory_id != new.memory_id
                }
                if (new.owner, new.memory.key) in held:
                    return False
            heads[new.memory_id] = new
        return True

    def record(self, writes: Sequence[Write], sequences: Sequence[int]) -> None:
        """Take over what a store accepted."""
        for write, sequence in zip(writes, sequences, strict=True):
            memory_id = write.memory.id
            self.recorded.append((sequence, write.recorded_at))
            self.numbers.setdefault(memory_id, sequence)
            if write.operation is Operation.ERASED:
                self.journal = [one for one in self.journal if one.memory_id != memory_id]
                self.accesses.pop(memory_id, None)
            if write.operation is Operation.ERASED or not write.keeps_vector:
                self.vectors.pop(memory_id, None)
                self.waiting.pop(memory_id, None)
            if write.vector is not None:
                self.embedder = self.embedder or write.vector.embedder
                self.vectors[memory_id] = write.vector
            self.journal.append(entry(sequence, write))

    def embed(self, one: Embedded) -> None:
        """A vector that comes later: in use or waiting, unless the memory went on."""
        for stored in self.state(frozenset(OWNERS)):
            if (stored.number, stored.memory.version) == (one.number, one.version):
                self.embedder = self.embedder or one.vector.embedder
                kept = self.vectors if one.vector.embedder == self.embedder else self.waiting
                kept[stored.memory.id] = one.vector

    def adopt(self, embedder: str) -> bool:
        """Another embedder takes over, if it has a vector for everything."""
        if self.embedder == embedder:
            return True
        ready = {one: vector for one, vector in self.waiting.items() if vector.embedder == embedder}
        if any(stored.memory.id not in ready for stored in self.state(frozenset(OWNERS))):
            return False
        self.vectors, self.waiting, self.embedder = ready, {}, embedder
        return True

    def state(self, owners: Owners, as_of: int | None = None) -> list[Stored]:
        """The memories in the order of recording, without accesses and vectors."""
        heads = {one.memory_id: one for one in self.journal if as_of is None or one.sequence <= as_of}
        found = [
            Stored(self.numbers[one.memory_id], one.memory)
            for one in heads.values()
            if one.owner in owners and one.memory is not None
        ]
        return sorted(found, key=lambda stored: stored.number)

    def present(self, owners: Owners) -> list[Stored]:
        """The memories as they are now, with accesses and vectors."""
        return [Stored(stored.number, self._dressed(stored.memory)) for stored in self.state(owners)]

    def _dressed(self, bare: Memory) -> Memory:
        times, last = self.accesses.get(bare.id, (0, None))
        return replace(bare, access_count=times, last_accessed_at=last, vector=self.vectors.get(bare.id))


def entry(sequence: int, write: Write) -> Version:
    """The entry that a write leaves in the journal."""
    return Version(
        sequence=sequence,
        memory_id=write.memory.id,
        owner=write.memory.owner,
        version=write.memory.version,
        operation=write.operation,
        recorded_at=write.recorded_at,
        reason=write.reason,
        memory=None if write.operation is Operation.ERASED else plain(write.memory),
    )


class StoreMachine(RuleBasedStateMachine):
    """Drives one store and its oracle. ``ids`` are those ever given out, erased ones too."""

    ids: Bundle[str] = Bundle("ids")

    def __init__(self, open_store: Callable[[], Store]) -> None:
        super().__init__()
        self._open = open_store
        self.store = open_store()
        self.oracle = Oracle()
        self.latest: dict[str, Memory] = {}
        self.now = START
        # A durable store may write accesses later; only after opening it again must they be right.
        self.counts_are_exact = True

    def teardown(self) -> None:
        """Release the store."""
        self.store.close()

    def _apply(self, *writes: Write) -> None:
        stamped = [replace(write, recorded_at=self.now) for write in writes]
        stamped = [replace(write, memory=replace(write.memory, updated_at=self.now)) for write in stamped]
        if not self.oracle.accepts(stamped):
            with pytest.raises(Conflict):
                self.store.apply(stamped)
            return
        self.oracle.record(stamped, self.store.apply(stamped))
        self.latest |= {write.memory.id: write.memory for write in stamped}

    # -- writing ---------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 1, 1, 3600, -2]))
    def time_goes_on_or_back(self, seconds: int) -> None:
        """Clocks do both."""
        self.now += timedelta(seconds=seconds, microseconds=1)

    @rule(
        target=ids,
        draft=strategies.sketches(),
        whose=st.sampled_from((OWNERS[0], *OWNERS)),
        key=st.none() | st.sampled_from(KEYS),
        has_vector=st.booleans(),
    )
    def add(self, draft: Draft, whose: Owner, key: str | None, has_vector: bool) -> str:
        """Add one; its key may be taken."""
        new = memory(whose=whose, key=key, vector=self._vector(ANGLES[0]) if has_vector else None, **draft)
        # Also if it was refused: then it is an id that does not exist.
        self.latest[new.id] = replace(new, vector=None, version=0)
        self._apply(added(new))
        return new.id

    @rule(id=ids, draft=strategies.sketches(), key=st.none() | st.sampled_from(KEYS))
    def update(self, id: str, draft: Draft, key: str | None) -> None:
        """Change one; it may be missing or erased, and its key may be taken."""
        self._apply(updated(self.latest[id], **(draft | {"key": key})))

    @rule(id=ids, angle=st.sampled_from([None, *ANGLES]))
    def embed(self, id: str, angle: tuple[float, float] | None) -> None:
        """Replace or remove its vector."""
        new = None if angle is None else self._vector(angle)
        self._apply(updated(self.latest[id], write={"keeps_vector": False, "vector": new}))

    @rule(
        some=st.lists(ids, max_size=3),
        embedder=st.sampled_from(EMBEDDERS),
        angle=st.sampled_from(ANGLES),
        step=st.sampled_from([0, 0, 0, -1, 1]),
    )
    def embed_later(self, some: list[str], embedder: str, angle: tuple[float, float], step: int) -> None:
        """Bring vectors that were not there at once, of this embedder or of another; some come too late."""
        vectors = [
            Embedded(
                number=self.oracle.numbers.get(id, 10_000),
                version=self.latest[id].version + step,
                vector=Vector.of(embedder, angle),
            )
            for id in some
        ]
        self.store.embed(vectors)
        for one in vectors:
            self.oracle.embed(one)

    @rule(embedder=st.sampled_from(EMBEDDERS), fill=st.booleans())
    def adopt(self, embedder: str, fill: bool) -> None:
        """Go over to an embedder; it has all vectors, or lacks some."""
        have = self.oracle.vectors if embedder == self.oracle.embedder else self.oracle.waiting
        missing = [stored for stored in self.oracle.state(frozenset(OWNERS)) if stored.memory.id not in have]
        found = self.store.unembedded(embedder, 100)
        assert [Stored(one.number, plain(one.memory)) for one in found] == missing
        if fill:
            for stored in missing:
                one = Embedded(
                    number=stored.number, version=stored.memory.version, vector=Vector.of(embedder, ANGLES[1])
                )
                self.store.embed([one])
                self.oracle.embed(one)
        assert self.store.adopt(embedder, 2) is self.oracle.adopt(embedder)

    def _vector(self, angle: tuple[float, float]) -> Vector:
        return Vector.of(self.oracle.embedder or EMBEDDER, angle)

    @rule(id=ids, step=st.sampled_from([-1, 0, 2]))
    def update_a_wrong_version(self, id: str, step: int) -> None:
        """Always refused."""
        current = self.latest[id]
        self._apply(updated(current, version=current.version + step, content="wrong"))

    @rule(id=ids, whose=st.sampled_from(OWNERS))
    def update_as_somebody(self, id: str, whose: Owner) -> None:
        """Refused, unless it is the owner."""
        self._apply(updated(self.latest[id], owner=whose))

    @rule(id=ids)
    def forget(self, id: str) -> None:
        """Forget one."""
        self._apply(forgotten(self.latest[id], reason="no use"))

    @rule(id=ids)
    def restore(self, id: str) -> None:
        """Bring one back."""
        self._apply(restored(self.latest[id]))

    @rule(id=ids)
    def erase(self, id: str) -> None:
        """Erase one."""
        if self.latest[id].version:
            self._apply(erased(self.latest[id], reason="asked for"))

    @rule(id=ids, key=st.none() | st.sampled_from(KEYS))
    def rename(self, id: str, key: str | None) -> None:
        """Let go of its key, or take one that may be taken."""
        self._apply(updated(self.latest[id], key=key))

    @rule(
        steps=st.lists(st.tuples(ids, st.sampled_from(BATCHED)), min_size=1, max_size=4),
        key=st.none() | st.sampled_from(KEYS),
    )
    def many_in_one_batch(self, steps: list[tuple[str, str]], key: str | None) -> None:
        """All or none: keys pass from one to another, ids come twice, any part may be refused."""
        writes: list[Write] = []
        latest = dict(self.latest)
        for id, step in steps:
            if step == "erase" and latest[id].version:
                writes.append(erased(latest[id]))
            elif step == "forget":
                writes.append(forgotten(latest[id]))
            else:
                new_key = {"take": key, "let go": None}.get(step, latest[id].key)
                writes.append(updated(latest[id], content=f"in a batch: {step}", key=new_key))
            latest[id] = writes[-1].memory
        self._apply(*writes, added(memory("at the end", OWNERS[0], key=key)))

    @rule(some=st.lists(ids, max_size=3, unique=True))
    def touch(self, some: list[str]) -> None:
        """Count accesses; what is not there has none."""
        self.store.touch(some, self.now)
        for stored in self.oracle.state(set(OWNERS)):
            if stored.memory.id in some:
                times, _ = self.oracle.accesses.get(stored.memory.id, (0, None))
                self.oracle.accesses[stored.memory.id] = (times + 1, self.now)
        self.counts_are_exact = not self.store.capabilities.durable

    @precondition(lambda self: self.store.capabilities.durable)
    @rule()
    def reopen(self) -> None:
        """Close the store and open it again."""
        self.store.close()
        self.store = self._open()
        self.counts_are_exact = True

    # -- reading ---------------------------------------------------------------------------------

    def _comparable(self, found: Iterable[Stored]) -> list[Stored]:
        if self.counts_are_exact:
            return list(found)
        return [Stored(one.number, replace(one.memory, access_count=0, last_accessed_at=None)) for one in found]

    @invariant()
    def everything_is_there(self) -> None:
        """After every step."""
        everybody = frozenset(OWNERS)
        found = self._comparable(self.store.scan(everybody, vectors=True))
        assert found == self._comparable(self.oracle.present(everybody))
        assert self.store.sequence() == max((s for s, _ in self.oracle.recorded), default=0)
        self._check_search(everybody, {}, probe("dark mode at ada", self._vector(ANGLES[2])))

    def _check_search(self, owners: Owners, conditions: Draft, asked: Probe) -> None:
        """What a search finds is what it finds in an index made from nothing but the dictionaries."""
        wanted = query(*owners, **conditions)
        memories = [(stored.number, stored.memory) for stored in self.oracle.present(owners)]
        check_same(self.store.candidates(wanted, asked), defaults.search(memories, wanted.where, asked))

    @rule(
        owners=st.sets(st.sampled_from(OWNERS)),
        conditions=strategies.conditions(),
        text=st.sampled_from(QUESTIONS),
        angle=st.none() | st.sampled_from(ANGLES),
    )
    def search(self, owners: set[Owner], conditions: Draft, text: str, angle: tuple[float, float] | None) -> None:
        """By words, by a vector or by both, of some owners."""
        self._check_search(owners, conditions, probe(text, None if angle is None else self._vector(angle)))

    @rule(owners=st.sets(st.sampled_from(OWNERS)), some=st.lists(ids, max_size=5))
    def get(self, owners: set[Owner], some: list[str]) -> None:
        """By id."""
        wanted = {one.memory.id: one.memory for one in self.oracle.state(owners)}
        found = self.store.get(owners, some)
        assert {id: plain(one) for id, one in found.items()} == {id: wanted[id] for id in some if id in wanted}

    @rule(owners=st.sets(st.sampled_from(OWNERS)), skip=st.integers(0, 20), id=st.none() | ids)
    def versions(self, owners: set[Owner], skip: int, id: str | None) -> None:
        """The journal, from anywhere."""
        after = self.oracle.journal[min(skip, len(self.oracle.journal) - 1)].sequence if (self.oracle.journal) else 0
        wanted = [
            one
            for one in self.oracle.journal
            if one.owner in owners and one.sequence > after and id in (None, one.memory_id)
        ]
        assert self.store.versions(owners, memory_id=id, after=after) == wanted

    @rule(whose=st.sampled_from(OWNERS))
    def keys(self, whose: Owner) -> None:
        """Who has which key."""
        wanted = {one.memory.key: one.memory.id for one in self.oracle.state({whose})}
        wanted.pop(None, None)
        assert self.store.keys(whose, KEYS) == wanted

    @rule(
        owners=st.sets(st.sampled_from(OWNERS)),
        back=st.none() | st.integers(0, 30),
        conditions=strategies.conditions(),
        sort=st.sampled_from([Sort.NEWEST, Sort.OLDEST]),
    )
    def select(self, owners: set[Owner], back: int | None, conditions: Draft, sort: Sort) -> None:
        """A listing, of the present or of the past."""
        as_of = None
        if back is not None and self.oracle.recorded:
            as_of = self.oracle.recorded[max(0, len(self.oracle.recorded) - 1 - back)][0]
        wanted = query(*owners, as_of=as_of, sort=sort, **conditions)
        matching = [one for one in self.oracle.state(owners, as_of) if filters.matches(one.memory, wanted.where)]
        found = [Stored(one.number, plain(one.memory)) for one in self.store.select(wanted)]
        assert found == (matching if sort is Sort.OLDEST else matching[::-1])
        assert self.store.count(wanted) == len(matching)
        past = self.store.scan(owners, as_of=as_of)
        assert [Stored(one.number, plain(one.memory)) for one in past] == self.oracle.state(owners, as_of)

    @rule(seconds=st.integers(-5, 40))
    def sequence_at(self, seconds: int) -> None:
        """Where a time is in the journal; entries that were erased may count or not."""
        at = START + timedelta(seconds=seconds)
        kept = (one.sequence for one in self.oracle.journal if one.recorded_at <= at)
        ever = (sequence for sequence, recorded_at in self.oracle.recorded if recorded_at <= at)
        assert max(kept, default=0) <= self.store.sequence(at) <= max(ever, default=0)


def run_machine(open_store: Callable[[Path], Store], base: Path) -> None:
    """Let the machine run many times, each time with a store in a place of its own."""
    numbers = count(1)

    def build() -> StoreMachine:
        place = base / f"run-{next(numbers)}"
        place.mkdir()
        return StoreMachine(lambda: open_store(place))

    # Half as many runs as other tests have examples: each opens a store and takes many steps.
    runs = max(20, GENERATED.max_examples // 2)
    chosen = settings(GENERATED, max_examples=runs, stateful_step_count=STEPS)
    # Any callable that gives a machine will do; the annotation in Hypothesis is narrower.
    run_state_machine_as_test(build, settings=chosen)  # type: ignore[arg-type]  # a factory serves as well as a class
