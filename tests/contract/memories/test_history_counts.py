"""Older versions count towards limits, in every store, until the memory is erased."""

from __future__ import annotations

import pytest

from wellkept import Memories, View
from wellkept.errors import QuotaExceeded


@pytest.mark.req("J9", "L12")
def test_updates_fill_a_session_and_it_stays_within_its_limit(memories: Memories) -> None:
    session = memories.view(user="ada").sessions.create("monday", config={"limit_bytes": 100_000})
    view = session.view
    memory, other = view.add("x" * 1_000), view.add("y" * 1_000)

    def grow() -> None:
        for number in range(1_000):
            view.update(memory.id, content=f"{number:04}" + "x" * 996)

    with pytest.raises(QuotaExceeded, match="old versions count too"):
        grow()
    written = len(view.history(memory.id))
    assert 90 < written < 110
    assert written * 1_000 <= view.stats().bytes_used <= 100_000
    assert session.stats().percent_used > 90
    assert view.forget(other.id), "forgetting is always possible"
    assert view.stats().bytes_used <= 100_000
    view.forget(memory.id, permanent=True)
    assert view.stats().bytes_used < 2_000, "erasing frees all versions"
    view.add("z" * 50_000)


@pytest.mark.req("L8", "L12")
def test_a_version_adds_what_it_takes_and_a_move_adds_nothing(memories: Memories, view: View) -> None:
    memory = view.add("x" * 100)
    first = view.stats().bytes_used
    view.update(memory.id, content="y" * 50)
    second = view.stats().bytes_used
    assert second - first == first - 50
    assert view.forget(memory.id)
    assert view.stats().bytes_used == second
    assert view.restore(memory.id)
    assert view.stats().bytes_used == second
    memories.rebuild()
    assert view.stats().bytes_used == second, "it follows from the journal"
    assert not memories.doctor().findings
