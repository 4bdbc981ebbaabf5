"""Listings, against the definition of a filter."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.memories.test_view_adding import LONG_AGO, _storable
from tests.support.samples import drafts as drafts_of_memories
from tests.support.samples import stored
from tests.support.stand_ins import HandClock
from wellkept import Filter, View, filters
from wellkept.testing import strategies
from wellkept.testing.builders import START


@pytest.mark.req("L5", "J5")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.lists(drafts_of_memories(), min_size=1, max_size=4), st.lists(strategies.conditions(), min_size=3, max_size=3)
)
def test_listings_agree_with_the_definition(
    view: View, clock: HandClock, drafts: list[dict[str, Any]], conditions: list[dict[str, Any]]
) -> None:
    news = [_storable(draft) for draft in drafts]
    ended = [new for new in news if new.expires_at is not None and new.expires_at <= START]
    clock.time = LONG_AGO
    view.add_many(ended)
    clock.time = START
    view.add_many([new for new in news if new not in ended])
    everything = view.list(limit=100, filter={"include_forgotten": True}).memories
    for wanted in conditions:
        wanted.pop("now", None)
        if "states" in wanted:
            del wanted["states"]
            wanted["include_forgotten"] = True
        for internal in ("ids", "without", "pattern", "has_access_policy"):
            wanted.pop(internal, None)
        if not wanted.get("content_contains", "x").strip():
            del wanted["content_contains"]
        if "text" in wanted:
            wanted["text"] = " ".join(wanted["text"])
        where = filters.resolve(Filter(**wanted), START)
        expected = [memory for memory in everything if filters.matches(stored(memory), where)]
        assert list(view.list(limit=100, filter=wanted)) == expected
        assert view.count(filter=wanted) == len(expected)
    for memory in everything:
        view.forget(memory.id, permanent=True)
