"""What stores that hold everything in RAM say that memories take: added up as they are written, never all again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.stores.ram import RamStore
from recollect.testing import strategies
from recollect.testing.builders import START, added, erased, later, memory, owner, put, updated, vector
from recollect.types import Vector

ADA, BOB = owner("ada"), owner("bob")


def agrees(store: RamStore) -> bool:
    """Whether what is asked for quotas is what a count of everything finds."""
    return all(store.usage(whose) == store.stats(whose, START).bytes_used for whose in ({ADA}, {BOB}, {ADA, BOB}))


@pytest.mark.req("J9")
@given(st.lists(st.tuples(st.sampled_from(["add", "update", "erase"]), st.integers(0, 9), strategies.sketches())))
def test_usage_is_the_sum_after_every_write(steps: list[tuple[str, int, dict[str, Any]]]) -> None:
    store = RamStore()
    for what, number, draft in steps:
        known = [one.memory for one in store.scan({ADA, BOB})]
        old = known[number % len(known)] if known else None
        if what == "add" or old is None:
            with_vector: dict[str, Any] = {"vector": vector(1, number)} if number % 3 else {}
            store.apply([added(memory(whose=(ADA, BOB)[number % 2], **draft, **with_vector))])
        elif what == "update":
            store.apply([updated(old, content=draft["content"] * number + "x")])
        else:
            store.apply([erased(old)])
        assert agrees(store)


def test_usage_follows_vectors_that_come_later_and_take_over() -> None:
    store, first, second = RamStore(), memory("first", vector=vector(1, 0)), memory("second", whose=BOB)
    put(store, first, second)
    assert agrees(store)
    store.embed([later(store, second, vector(0, 1))])
    assert agrees(store)
    longer = Vector.of("longer", [1.0] * 8)
    store.embed([later(store, one, longer) for one in (first, second)])
    assert agrees(store)
    assert store.adopt("longer", 8)
    assert agrees(store)
