"""Clocks that jump: order comes from the journal, never from the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

import pytest

import wellkept
from wellkept import Memories

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
JUMPS = (
    timedelta(0),
    timedelta(hours=-5),
    timedelta(days=365 * 200),
    timedelta(days=-365 * 40),
    timedelta(microseconds=1),
    timedelta(0),
    timedelta(days=-365 * 60),  # before 1970
    timedelta(days=365 * 2_000),
    timedelta(seconds=-1),
)


class JumpingClock:
    """A clock that shows what it is told to."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time


@contextmanager
def _opened(place: Path) -> Iterator[tuple[Memories, JumpingClock]]:
    clock = JumpingClock()
    with wellkept.open(place / "memory.db", clock=clock, embedder=None) as memories:
        yield memories, clock


def _add_while_jumping(view: wellkept.View, clock: JumpingClock) -> list[wellkept.Memory]:
    added = []
    for number, jump in enumerate(JUMPS):
        clock.time = NOON + jump
        added.append(view.add(f"thought {number}", key=f"key {number}"))
    return added


@pytest.mark.req("L1", "L3", "L5")
def test_order_is_the_order_of_writing(tmp_path: Path) -> None:
    with _opened(tmp_path) as (memories, clock):
        view = memories.view(user="ada")
        added = [memory.id for memory in _add_while_jumping(view, clock)]
        for now in (NOON, NOON - timedelta(days=365 * 100), NOON + timedelta(days=365 * 5_000)):
            clock.time = now
            assert [memory.id for memory in view.list(sort_by="oldest")] == added
            assert [memory.id for memory in view.list(sort_by="newest")] == added[::-1]
            assert [version.memory_id for version in view.changes()] == added
            pages = []
            cursor = None
            for _ in added:
                page = view.list(limit=1, cursor=cursor)
                pages.append(page.memories[0].id)
                cursor = page.next_cursor
            assert pages == added[::-1]
        recorded = [version.recorded_at for version in view.changes()]
        assert recorded == sorted(recorded), "times rise with the journal of an owner, whatever the clock does"
        stamps = [version.stamp for version in view.changes()]
        assert stamps == sorted(set(stamps))
        assert memories.doctor().findings == ()


@pytest.mark.req("L6", "L7")
def test_history_follows_the_versions(tmp_path: Path) -> None:
    with _opened(tmp_path) as (memories, clock):
        view = memories.view(user="ada")
        memory = view.add("version 1")
        for number, jump in enumerate(JUMPS[1:], 2):
            clock.time = NOON + jump
            view.update(memory.id, content=f"version {number}")
        history = view.history(memory.id)
        assert [version.version for version in history] == list(range(1, len(JUMPS) + 1))
        assert [version.memory and version.memory.content for version in history] == [
            f"version {number}" for number in range(1, len(JUMPS) + 1)
        ]
        assert [version.recorded_at for version in history] == [NOON + jump for jump in accumulate(JUMPS, max)]
        newest = view.get(memory.id)
        assert newest is not None
        assert (newest.content, newest.created_at) == (f"version {len(JUMPS)}", NOON)


@pytest.mark.req("L3", "L5", "N6")
def test_the_past_is_found_by_positions_and_times(tmp_path: Path) -> None:
    with _opened(tmp_path) as (memories, clock):
        view = memories.view(user="ada")
        start = view.position()
        added = _add_while_jumping(view, clock)
        clock.time = NOON - timedelta(days=1)
        view.update(added[0].id, content="changed")
        view.forget(added[1].id)
        reached = [start, *(view.changes(limit=count).next for count in range(1, len(added) + 1))]
        for count, position in enumerate(reached):
            past = view.list(as_of=position, sort_by="oldest")
            assert [memory.id for memory in past] == [memory.id for memory in added[:count]]
            assert view.count(as_of=position) == count
        then = view.get(added[0].id, as_of=reached[-1])
        assert then is not None
        assert then.content == "thought 0"
        # A time names the last write that was recorded at or before it.
        before = sum(1 for jump in accumulate(JUMPS, max) if jump <= timedelta())
        at_noon = view.list(as_of=NOON, sort_by="oldest")
        assert [memory.id for memory in at_noon] == [memory.id for memory in added[:before]]
        assert view.list(as_of=NOON - timedelta(days=365 * 61)).memories == ()


@pytest.mark.req("L3", "W4")
def test_nothing_expires_by_accident(tmp_path: Path) -> None:
    with _opened(tmp_path) as (memories, clock):
        view = memories.view(user="ada")
        lasting = view.add("lasting thought")
        brief = view.add("brief thought", expires_at=NOON + timedelta(hours=1))
        for years in (-50, 0, 300, 5_000):
            clock.time = NOON + timedelta(days=365 * years)
            assert view.get(lasting.id) is not None
            alive = clock.time < NOON + timedelta(hours=1)
            assert (view.get(brief.id) is not None) is alive
            assert {hit.memory.id for hit in view.search("thought")} == {lasting.id, *([brief.id] if alive else [])}
            assert view.count() == 1 + alive
            view.update(lasting.id, metadata={"year": years})  # a write must not take the other one along
        clock.time = NOON
        back = view.get(brief.id)
        assert back is not None
        assert (back.content, back.version) == ("brief thought", 1)
        clock.time = NOON + timedelta(hours=1)
        assert view.get(brief.id) is None
        with pytest.raises(wellkept.errors.NotFound):
            view.update(brief.id, content="too late")
        assert memories.doctor().findings == ()


@pytest.mark.req("L1")
def test_ids_stay_unique_while_time_stands_still_or_repeats(tmp_path: Path) -> None:
    with _opened(tmp_path) as (memories, clock):
        view = memories.view(user="ada")
        ids: list[str] = []
        for jump in (0, -1, 0, 1, 0):
            clock.time = NOON + timedelta(milliseconds=jump)
            thoughts = [f"thought {number}" for number in range(400)]
            ids += [memory.id for memory in view.add_many(thoughts, duplicates="keep")]
        assert len(set(ids)) == len(ids) == view.count()


@pytest.mark.req("L3")
def test_accesses_survive_a_clock_that_goes_back(tmp_path: Path) -> None:
    with _opened(tmp_path) as (memories, clock):
        view = memories.view(user="ada")
        memory = view.add("thought")
        for jump in JUMPS:
            clock.time = NOON + jump
            assert view.get(memory.id) is not None
    with _opened(tmp_path) as (memories, _):
        found = memories.view(user="ada").get(memory.id)
        assert found is not None
        assert found.access_count == len(JUMPS)
