"""Lists by relevance: their order and reasons are those of the decay of each session, page by page."""

from __future__ import annotations

import math
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.stand_ins import HandClock, Opener
from wellkept import View
from wellkept.lifecycle import decay
from wellkept.types import DecayPolicy, SessionConfig


@pytest.mark.req("J6")
@settings(deadline=None, max_examples=10)
@given(
    hours=st.sampled_from([1.0, 24.0, 336.0]),
    floor=st.sampled_from([0.0, 0.1, 0.5]),
    days=st.lists(st.floats(0, 20), min_size=1, max_size=4),
    limit=st.integers(1, 5),
)
@pytest.mark.parametrize("kind", ["ram", "sqlite", "jsonl"])
def test_pages_by_relevance_follow_the_decay_of_each_session_as_time_goes_on(
    kind: str, hours: float, floor: float, days: list[float], limit: int
) -> None:
    with ExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory()))
        opener, clock = Opener(kind, folder), HandClock()
        opened.callback(opener.close)
        memories = opener(clock=clock)
        policy = DecayPolicy(half_life_hours=hours, min_decay_factor=floor)
        user = memories.view(user="ada")
        view = user.sessions.create("monday", config=SessionConfig(decay=policy)).view
        kinds = ("fact", "conversation", "preference", "event")
        for number, span in enumerate(days * 3):
            draft: dict[str, Any] = {"type": kinds[number % 4], "importance": 0.3 + 0.1 * (number % 7)}
            view.add(f"memory {number}", **draft)
            clock.forward(days=span)
        for _ in range(3):
            now = clock.time
            whole = view.list(sort_by="relevance", limit=100)
            values = [math.prod(decay.relevance(memory, now, policy).values()) for memory in whole]
            assert all(one >= two for one, two in pairwise(values))
            shown = [math.prod(reasons.values()) for reasons in whole.reasons]
            assert shown == pytest.approx(values, abs=1e-3)
            assert _paged(view, clock, limit) == [memory.id for memory in whole]
            clock.forward(days=5)


def _paged(view: View, clock: HandClock, limit: int) -> list[str]:
    """Page by page, with time going on in between: every page is judged by the time of the first one."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = view.list(sort_by="relevance", limit=limit, cursor=cursor)
        ids += [memory.id for memory in page]
        cursor = page.next_cursor
        if cursor is None:
            return ids
        clock.forward(hours=7)
