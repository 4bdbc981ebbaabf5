"""Which memories a compaction takes, and how often a session is looked through."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.samples import memory
from wellkept import Memories, MemoryType
from wellkept.memories import Session, Sessions
from wellkept.sessions import compaction
from wellkept.testing.builders import START
from wellkept.types import DecayPolicy, State

LIMIT = 4_000


@pytest.fixture
def sessions(memories: Memories) -> Sessions:
    return memories.view(user="ada").sessions


@pytest.fixture
def session(sessions: Sessions) -> Session:
    return sessions.create("monday", config={"limit_bytes": LIMIT})


@given(
    st.lists(
        st.builds(
            dict,
            importance=st.floats(0, 1),
            created_at=st.integers(0, 500).map(lambda days: START - timedelta(days=days)),
            state=st.sampled_from(State),
            expires_at=st.sampled_from([None, START - timedelta(days=1)]),
            metadata=st.sampled_from([{}, {"pinned": True}, {"pinned": False}, {"pinned": 1}]),
            type=st.sampled_from(MemoryType),
        ),
        max_size=12,
    ),
    st.none() | st.integers(0, 1200),
    st.booleans(),
)
def test_what_goes_is_what_may_go_and_no_more_than_is_needed(
    found: list[dict[str, Any]], target: int | None, purge: bool
) -> None:
    made = (replace(memory(f"number {number}", id=str(number)), **fields) for number, fields in enumerate(found))
    sized = [(one, 0 if one.state is State.ARCHIVED else 100) for one in made]
    archived, erased, condensed = compaction.chosen(sized, DecayPolicy(min_decay_factor=0), START, target, purge=purge)
    going = [*archived, *erased]
    by_id = {one.id: one for one, _ in sized}
    gone = {one.id for one in going}
    assert len(gone) == len(going)
    assert condensed == []
    assert not any(by_id[id].metadata.get("pinned") is True for id in gone)
    assert purge or not erased
    assert all(by_id[one.id].state is State.ACTIVE for one in archived)
    for one, _ in sized:
        expired = one.expires_at is not None and one.expires_at <= START
        if one.metadata.get("pinned") is True or one.state is State.QUARANTINED:
            continue
        if purge and (expired or one.state is not State.ACTIVE):
            assert one.id in {other.id for other in erased}
        elif one.state is State.ACTIVE and expired:
            assert one.id in {other.id for other in archived}
        elif one.state is not State.ACTIVE:
            assert one.id not in gone
    irrelevant = [one for one in going if one.reason == "irrelevant"]
    assert all(one.relevance < compaction.IRRELEVANT for one in irrelevant)
    assert irrelevant == sorted(irrelevant, key=lambda one: one.relevance)
    if irrelevant:
        assert target is not None
        left = sum(size for one, size in sized if one.id not in gone)
        assert left + 100 > target, "one less would not have been enough"


def test_a_crowded_session_is_not_looked_through_for_each_write(
    memories: Memories, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    real = compaction.make_room

    def counted(*args: Any) -> Any:
        looked.append(1)
        return real(*args)

    monkeypatch.setattr(compaction, "make_room", counted)
    session.view.add("stays" * 705)
    for _ in range(20):
        session.view.add("x" * 10, duplicates="keep")
    assert 1 <= len(looked) <= 3
    assert session.stats().percent_used > 90
