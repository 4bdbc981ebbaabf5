"""The rules of a write: a batch is planned as its writes one after the other, and a retry leaves nothing to do."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.errors import Conflict, QuotaExceeded
from wellkept.ports import Plan, Standing, plan
from wellkept.testing.builders import Writer, owner, vector
from wellkept.types import Guard, Owner, Quota, Vector, Write

ADA, BOB = owner("ada"), owner("bob")
EMPTY = Standing(heads={}, holders={}, counters={})


class Drawn(NamedTuple):
    """What happens to which memory."""

    whose: Owner
    id: str
    what: str
    key: str | None
    shift: int
    vector: Vector | None


DRAWN = st.builds(
    Drawn,
    st.sampled_from((ADA, BOB)),
    st.sampled_from("123"),
    st.sampled_from(["write", "write", "write", "erase", "stale"]),
    st.sampled_from([None, None, "k", "l"]),
    st.integers(-5, 5),
    st.sampled_from([None, vector(1, 0), vector(0, 1)]),
)


def batch(drawn: list[Drawn]) -> list[Write]:
    """Writes that follow each other; stale ones do not."""
    writes, last = Writer(), dict[tuple[Owner, str], Write]()
    made = []
    for one in drawn:
        before = last.get((one.whose, one.id))
        brought = {"vector": one.vector, "keeps_vector": one.vector is None}
        if before is None:
            write = writes.add(one.whose, id=one.id, key=one.key, write=brought)
        elif one.what == "erase":
            write = writes.erase(before)
        else:
            write = writes.update(before, key=one.key, write=brought)
        if one.what == "stale":
            write = write._replace(expected=write.expected + 1, version=write.version + 1)
        last[one.whose, one.id] = write._replace(recorded_at=write.recorded_at + one.shift * 3_000_000)
        made.append(last[one.whose, one.id])
    return made


def carried_out(standing: Standing, made: Plan) -> Standing:
    """What is stored once the steps of a plan were written."""
    heads = {**standing.heads, **{(step.write.owner, step.write.id): step.after for step in made.steps}}
    return Standing(
        heads=heads,
        holders={(whose, head.key): id for (whose, id), head in heads.items() if head.key is not None},
        counters={**standing.counters, **made.counters},
        embedder=made.embedder,
        dimension=made.dimension,
    )


@given(drawn=st.lists(DRAWN, max_size=10))
@pytest.mark.req("H5", "H11")
def test_a_batch_is_planned_like_its_writes_one_after_the_other(drawn: list[Drawn]) -> None:
    writes = batch(drawn)
    single, steps, refused = EMPTY, [], False
    for write in writes:
        try:
            made = plan([write], single)
        except Conflict:
            refused = True
            break
        steps += made.steps
        single = carried_out(single, made)
    if refused:
        with pytest.raises(Conflict):
            plan(writes, EMPTY)
        return
    at_once = plan(writes, EMPTY)
    assert at_once.steps == steps
    assert carried_out(EMPTY, at_once) == single
    assert plan(writes, single).steps == [], "a retry writes nothing"


@pytest.mark.req("H5")
def test_a_retry_needs_neither_guard_nor_room() -> None:
    writes = Writer()
    one = writes.add(ADA, "text")
    stored = carried_out(EMPTY, plan([one], EMPTY))
    guard, quota = Guard(owner=ADA, kind="k", name="n", version=1), Quota(owners=frozenset({ADA}), limit_bytes=1)
    assert plan([one], stored, guards=[guard], quotas=[quota]).steps == []
    for more, refusal in (({"guards": [guard]}, Conflict), ({"quotas": [quota]}, QuotaExceeded)):
        with pytest.raises(refusal):
            plan([one, writes.add(ADA)], stored, **more)
