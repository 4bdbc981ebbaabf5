"""The rules of a write, held to a journal that is nothing but dictionaries."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept import codec
from wellkept.errors import Conflict, EmbedderMismatch, InvalidInput, QuotaExceeded, WellkeptError
from wellkept.ports import Counters, Head, Plan, Standing, plan
from wellkept.testing.builders import Writer, owner, vector
from wellkept.testing.cases import Cases
from wellkept.types import Guard, Operation, Owner, Quota, Write

ADA, BOB = owner("ada"), owner("bob")
PEOPLE = (ADA, BOB)
KEYS = (None, "k", "l")
NOTHING = Standing(heads={}, holders={}, counters={})
KNOWN = replace(NOTHING, embedder="kit", dimension=2)
DEFAULTS = Counters()


@dataclass
class Model:
    """What is stored, as the plan describes it; every rule is told by it in the plainest way."""

    heads: dict[tuple[Owner, str], Head] = field(default_factory=dict)
    counters: dict[Owner, Counters] = field(default_factory=dict)
    embedder: str | None = None
    dimension: int | None = None

    def standing(self) -> Standing:
        holders = {(owner, head.key): id for (owner, id), head in self.heads.items() if head.key is not None}
        return Standing(
            heads=dict(self.heads),
            holders=holders,
            counters=dict(self.counters),
            embedder=self.embedder,
            dimension=self.dimension,
        )

    def take(self, made: Plan) -> None:
        for step in made.steps:
            write, gone = step.write, step.write.operation is Operation.ERASED
            kept = (
                step.before.vector
                if step.before and write.keeps_vector
                else len(write.vector.data)
                if write.vector
                else 0
            )
            self.heads[write.owner, write.id] = Head(
                version=write.version,
                born=step.born,
                born_at=step.born_at,
                stamp=write.stamp,
                erased=gone,
                key=None if gone else write.facets.get("key"),
                size=0 if gone else write.facets["bytes"],
                vector=0 if gone else kept,
            )
        self.counters |= made.counters
        self.embedder, self.dimension = made.embedder, made.dimension


@st.composite
def batches(draw: st.DrawFn) -> list[list[Write]]:
    """Batches of writes to few ids of two owners; many of them break a rule."""
    make = Writer()
    newest: dict[tuple[Owner, str], Write] = {}
    made = []
    for _ in range(draw(st.integers(1, 5))):
        batch = []
        for _ in range(draw(st.integers(1, 4))):
            write = draw(_one(make, newest))
            newest[write.owner, write.id] = write
            batch.append(write)
        made.append(batch)
    return made


@st.composite
def _one(draw: st.DrawFn, make: Writer, newest: dict[tuple[Owner, str], Write]) -> Write:
    whose, id = draw(st.sampled_from(PEOPLE)), draw(st.sampled_from("abc"))
    before = newest.get((whose, id))
    key = draw(st.sampled_from(KEYS))
    given = {"vector": draw(st.none() | st.just(vector(1, 0))), "keeps_vector": False}
    if before is None or draw(st.integers(0, 9)) == 0:
        write = make.add(whose, draw(st.sampled_from(["", "text" * 9])), id=id, key=key, write=given)
    else:
        write = draw(
            st.sampled_from(
                [
                    make.update(before, "more", key=key, write=given),
                    make.update(before, "the same vector", key=key),
                    make.forget(before),
                    make.erase(before),
                ]
            )
        )
    late = draw(st.sampled_from([0, 0, -10_000_000]))  # a clock that went back
    return write._replace(recorded_at=write.recorded_at + late)


def refused(batch: list[Write], before: Model) -> bool:
    """Whether a batch breaks a rule, one write at a time."""
    heads = dict(before.heads)
    for write in batch:
        head = heads.get((write.owner, write.id))
        stored = head.version if head else 0
        key = write.facets.get("key")
        taken = any(
            whose == write.owner and id != write.id and one.key is not None and one.key == key
            for (whose, id), one in heads.items()
        )
        revives = head is not None and head.erased and bool(write.facets)  # only a tombstone may follow a tombstone
        if revives or write.expected != stored or write.version <= stored or taken:
            return True
        heads[write.owner, write.id] = Head(write.version, 0, 0, write.stamp, not write.facets, key)
    return False


@given(batches())
def test_what_is_accepted_keeps_every_rule_and_what_is_refused_breaks_one(made: list[list[Write]]) -> None:
    model = Model()
    for batch in made:
        standing, breaks = model.standing(), refused(batch, model)
        if breaks:
            with pytest.raises(Conflict) as caught:
                plan(batch, standing)
            assert caught.value.hint
            assert caught.value.details["memory_id"] in {write.id for write in batch}
            continue
        planned = plan(batch, standing)
        _check_steps(batch, planned, model)
        model.take(planned)
        _check_counters(model)


def _check_steps(batch: list[Write], planned: Plan, model: Model) -> None:
    """Sequences are dense per owner, times rise, and a memory is as old as its first version."""
    assert [step.write for step in planned.steps] == batch
    last = {whose: model.counters.get(whose, DEFAULTS) for whose in PEOPLE}
    born: dict[tuple[Owner, str], tuple[int, int]] = {k: (head.born, head.born_at) for k, head in model.heads.items()}
    for step in planned.steps:
        whose = step.write.owner
        before = last[whose]
        assert step.seq == before.seq + 1
        assert step.recorded_at == max(step.write.recorded_at, before.last_at)
        first = born.setdefault((whose, step.write.id), (step.seq, step.recorded_at))
        assert (step.born, step.born_at) == first
        last[whose] = Counters(seq=step.seq, last_at=step.recorded_at)


def _check_counters(model: Model) -> None:
    for whose in PEOPLE:
        kept = [head for (owner, _), head in model.heads.items() if owner == whose and not head.erased]
        counters = model.counters.get(whose, DEFAULTS)
        assert counters.memories == len(kept)
        assert counters.bytes_used == sum(head.size + head.vector for head in kept)


@given(batches())
def test_a_batch_that_stands_already_is_a_retry_and_changes_nothing(made: list[list[Write]]) -> None:
    model = Model()
    for batch in made:
        try:
            model.take(plan(batch, model.standing()))
        except Conflict:
            continue
        again = plan(batch, model.standing(), quotas=[Quota(owners={ADA, BOB}, limit_bytes=0)])
        assert again.steps == []
        assert again.counters == {}


@given(batches(), st.integers(0, 400), st.sampled_from([{ADA}, {BOB}, {ADA, BOB}]))
def test_a_quota_refuses_growth_beyond_it_and_nothing_else(
    made: list[list[Write]], limit: int, whose: set[Owner]
) -> None:
    model = Model()
    for batch in made:
        standing = model.standing()
        try:
            free = plan(batch, standing)
        except Conflict:
            continue
        used = {one: standing.counters.get(one, DEFAULTS).bytes_used for one in whose}
        before = sum(used.values())
        after = sum(free.counters.get(one, Counters(bytes_used=used[one])).bytes_used for one in whose)
        quotas = [Quota(owners=frozenset(whose), limit_bytes=limit)]
        if after > max(limit, before):
            with pytest.raises(QuotaExceeded) as caught:
                plan(batch, standing, quotas=quotas)
            own = {"owner": codec.encode_owner(*whose)} if len(whose) == 1 else {}
            assert caught.value.details == {"usage": before, "needed": after - before, "limit": limit, **own}
        else:
            assert plan(batch, standing, quotas=quotas) == free
        model.take(free)


def test_of_several_quotas_the_smallest_is_told() -> None:
    write = Writer().add(ADA, "x" * 1_000)
    for limits in ((100, 500), (500, 100), (100, 5_000), (5_000, 100)):
        quotas = [Quota(owners={ADA}, limit_bytes=limit) for limit in limits]
        with pytest.raises(QuotaExceeded) as caught:
            plan([write], NOTHING, quotas=quotas)
        assert caught.value.details["limit"] == 100


def test_a_version_may_leave_a_gap_but_not_go_back() -> None:
    """A copy has gaps where versions were lost; nothing is written over."""
    make = Writer()
    first = make.add(ADA)
    model = Model()
    model.take(plan([first], NOTHING))
    later = make.update(first)._replace(version=7)
    model.take(plan([later], model.standing()))
    for version, expected in ((7, 7), (6, 7), (8, 6), (8, 1), (1, 0)):
        with pytest.raises(Conflict):
            plan([make.update(later)._replace(version=version, expected=expected)], model.standing())
    plan([make.update(later)], model.standing())


def test_a_retry_stops_at_what_others_wrote_since() -> None:
    make = Writer()
    first = make.add(ADA)
    second = make.update(first)
    model = Model()
    model.take(plan([first, second], NOTHING))
    assert plan([first, second], model.standing()).steps == []
    model.take(plan([make.update(second)], model.standing()))
    with pytest.raises(Conflict):
        plan([first, second], model.standing())


def test_a_stamp_at_another_version_is_no_retry() -> None:
    make = Writer()
    first = make.add(ADA)
    model = Model()
    model.take(plan([first], NOTHING))
    with pytest.raises(Conflict):
        plan([first._replace(version=2, expected=0)], model.standing())


def test_a_tombstone_of_a_memory_that_never_was_here_uses_up_its_id() -> None:
    make = Writer()
    first = make.add(ADA, key="k")
    gone = make.erase(first)._replace(expected=0)
    model = Model()
    made = plan([gone], NOTHING)
    model.take(made)
    assert made.counters[ADA] == Counters(seq=1, memories=0, bytes_used=0, last_at=gone.recorded_at)
    with pytest.raises(Conflict, match="erased"):
        plan([first], model.standing())


def test_an_erased_memory_frees_its_key_within_the_batch() -> None:
    make = Writer()
    first, second = make.add(ADA, key="k"), make.add(ADA, key="k")
    model = Model()
    model.take(plan([first], NOTHING))
    with pytest.raises(Conflict) as caught:
        plan([second], model.standing())
    assert caught.value.details == {"memory_id": second.id, "holder": first.id}
    assert len(plan([make.erase(first), second], model.standing()).steps) == 2
    assert len(plan([make.add(BOB, key="k")], model.standing()).steps) == 1


# -- vectors ------------------------------------------------------------------------------------------------------


def test_the_first_vector_decides_on_embedder_and_dimension() -> None:
    make = Writer()
    fitting = [make.add(ADA, write={"vector": one}) for one in (vector(1, 0), vector(0, 1))]
    made = plan([make.add(BOB), *fitting], NOTHING)
    assert (made.embedder, made.dimension) == ("kit", 2)
    for wrong, error in ((vector(1, 0, 0), InvalidInput), (vector(1, 0, embedder="other"), EmbedderMismatch)):
        with pytest.raises(error) as caught:
            plan([fitting[0], make.add(ADA, write={"vector": wrong})], NOTHING)
        assert caught.value.hint
        with pytest.raises(error):
            plan([make.add(ADA, write={"vector": wrong})], KNOWN)
    erased = make.erase(fitting[0])._replace(vector=vector(1, 0, 0), expected=0)
    assert plan([erased], KNOWN).steps


# -- guards -------------------------------------------------------------------------------------------------------

RECORD = Guard(owner=ADA, kind="session", name="monday", version=3)
LEASE = Guard(lease="upkeep", token=5)


GUARDED: list[tuple[Guard, dict[str, Any], bool]] = [
    (RECORD, {"records": {(ADA, "session", "monday"): 3}}, True),
    (RECORD, {"records": {(ADA, "session", "monday"): 4}}, False),
    (RECORD, {"records": {(BOB, "session", "monday"): 3}}, False),
    (RECORD, {}, False),
    (Guard(owner=ADA, kind="session", name="monday"), {}, True),
    (Guard(owner=ADA, kind="session", name="monday"), {"records": {(ADA, "session", "monday"): 1}}, False),
    (LEASE, {"leases": {"upkeep": 5}}, True),
    (LEASE, {"leases": {"upkeep": 6}}, False),
    (LEASE, {"leases": {"other": 5}}, False),
    (LEASE, {}, False),
]


def test_a_guard_holds_or_nothing_is_written() -> None:
    with Cases() as cases:
        for guard, standing, holds in GUARDED:
            with cases.case(f"{guard} {standing}"):
                _holds_or_writes_nothing(guard, standing, holds)


def _holds_or_writes_nothing(guard: Guard, standing: dict[str, Any], holds: bool) -> None:
    writes = [Writer().add(ADA, "secret plans")]
    known = replace(NOTHING, **standing)
    if holds:
        assert len(plan(writes, known, guards=[guard]).steps) == 1
        return
    with pytest.raises(WellkeptError) as caught:
        plan(writes, known, guards=[guard])
    assert isinstance(caught.value, Conflict)
    assert caught.value.hint
    assert "secret" not in str(caught.value)
