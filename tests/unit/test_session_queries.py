"""Pages by relevance, against the function that judges it."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.stand_ins import HandClock, somebody
from wellkept import Memories, View
from wellkept.lifecycle import decay
from wellkept.testing.builders import START
from wellkept.types import MemoryTypeName, Sort

TYPES = ("conversation", "finding", "decision", "preference")


def fill(view: View, clock: HandClock, drafts: list[tuple[MemoryTypeName, float, int, bool]]) -> None:
    """Memories of all types and ages, some of them read since."""
    for number, (kind, importance, hours, read) in enumerate(drafts):
        clock.time = START
        memory = view.add(f"number {number}", type=kind, importance=importance)
        clock.forward(hours=hours)
        if read:
            view.get(memory.id)
    clock.time = START
    clock.forward(days=30)


DRAFTS = st.lists(
    st.tuples(st.sampled_from(TYPES), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.integers(0, 700), st.booleans()),
    max_size=8,
)


@pytest.mark.req("J6", "J5")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(drafts=DRAFTS, limit=st.integers(1, 4))
def test_pages_by_relevance_are_judged_by_the_time_of_the_first(
    memories: Memories, clock: HandClock, drafts: list[tuple[MemoryTypeName, float, int, bool]], limit: int
) -> None:
    view = somebody(memories)
    fill(view, clock, drafts)
    whole = view.list(sort_by=Sort.RELEVANCE, limit=100)
    judged_at = clock.time
    products = [math.prod(decay.relevance(memory, judged_at).values()) for memory in whole]
    assert all(one >= two for one, two in pairwise(products))
    assert whole.total == len(whole.reasons) == len(drafts)
    seen: list[tuple[str, Any]] = []
    cursor: str | None = None
    while True:
        page = view.list(sort_by="relevance", limit=limit, cursor=cursor)
        assert page.total == len(drafts)
        seen += zip([memory.id for memory in page], page.reasons, strict=True)
        cursor = page.next_cursor
        if cursor is None:
            break
        clock.forward(days=3)  # what fades overtakes nobody
    assert seen == list(zip([memory.id for memory in whole], whole.reasons, strict=True))
    middle = view.list(sort_by="relevance", limit=2, offset=1)
    assert len(middle) == max(0, min(2, len(drafts) - 1))
