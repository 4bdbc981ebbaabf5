"""Memories that point to files know when those changed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import HandClock
from tests.support.terminal import Terminal
from wellkept import Memories, View
from wellkept.errors import InvalidInput
from wellkept.types import KnowledgePointer, PointerType


@pytest.fixture
def clock() -> HandClock:
    """The real time, standing still: files have real times."""
    clock = HandClock()
    clock.time = datetime.now(UTC)
    return clock


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    path = tmp_path / "docs" / "style guide.md"
    path.parent.mkdir()
    path.write_text("Use tabs", encoding="utf-8")
    return path


def stale(view: View, query: str = "tabs") -> list[bool | None]:
    return [hit.stale for hit in view.search(query, min_score=0)]


@pytest.mark.req("N9")
def test_a_hit_knows_that_its_file_changed(view: View, memories: Memories, guide: Path) -> None:
    memory = view.add("The guide wants tabs", pointer=view.point_to(guide, type="policy"))
    assert memory.pointer is not None
    assert (memory.pointer.source_id, memory.pointer.source_type) == (guide.as_uri(), PointerType.POLICY)
    assert stale(view) == [False]
    assert "stale" not in memories.doctor().facts
    os.utime(guide)
    assert stale(view) == [False], "touched, but the same"
    guide.write_text("Use spaces", encoding="utf-8")
    assert stale(view) == [True]
    diagnosis = memories.doctor()
    assert memory.id in diagnosis.facts["stale"]
    assert diagnosis.healthy
    guide.write_text("Use tabs", encoding="utf-8")
    assert stale(view) == [False]
    guide.unlink()
    assert stale(view) == [True], "gone"


@pytest.mark.req("N9")
def test_a_file_that_was_not_touched_is_not_read(view: View, guide: Path, clock: HandClock) -> None:
    clock.time += timedelta(hours=1)
    pointer = view.point_to(guide)
    guide.chmod(0)
    lied = KnowledgePointer(
        source_type=pointer.source_type,
        source_id=pointer.source_id,
        content_hash="sha256:other",
        synced_at=pointer.synced_at,
    )
    view.add("The guide wants tabs", pointer=lied)
    assert stale(view) == [False]


@pytest.mark.req("N9")
def test_refresh_brings_up_to_date(view: View, guide: Path) -> None:
    summary = view.add("The guide wants tabs", pointer=view.point_to(guide))
    whole = view.add("Use tabs", pointer=view.point_to(guide))
    other = guide.parent / "other.md"
    other.write_text("Tea", encoding="utf-8")
    untouched = view.add("About tea", pointer=view.point_to(other))
    assert view.refresh([guide.parent]).current == 3
    guide.write_text("Use spaces", encoding="utf-8")
    planned = view.refresh(guide.parent, dry_run=True)
    assert (planned.refreshed, planned.rewritten, planned.current) == ((summary.id,), (whole.id,), 1)
    assert stale(view).count(True) == 2, "nothing was changed"
    done = view.refresh([str(guide.parent)])
    assert (done.refreshed, done.rewritten, done.missing) == ((summary.id,), (whole.id,), ())
    found = view.get_many([summary.id, whole.id, untouched.id])
    assert [one.content for one in found.values()] == ["The guide wants tabs", "Use spaces", "About tea"]
    assert True not in stale(view)
    assert found[untouched.id].version == 1
    guide.unlink()
    assert set(view.refresh([guide.parent]).missing) == {summary.id, whole.id}
    assert view.count() == 3


@pytest.mark.req("N9")
def test_refresh_reads_nothing_outside_what_was_named(view: View, guide: Path, tmp_path: Path) -> None:
    memory = view.add("The guide wants tabs", pointer=view.point_to(guide))
    linked = tmp_path / "named"
    linked.mkdir()
    (linked / "link.md").symlink_to(guide)
    pointing = KnowledgePointer(
        source_type=PointerType.SPEC,
        source_id=(linked / "link.md").as_uri(),
        content_hash="sha256:00",
        synced_at=datetime.now(UTC),
    )
    through = view.add("Through a link", pointer=pointing)
    guide.write_text("Use spaces", encoding="utf-8")
    assert view.refresh([linked]).refreshed == ()
    assert {hit.memory.id for hit in view.search("tabs link", min_score=0) if hit.stale} == {memory.id, through.id}


def test_bad_paths_are_refused(view: View) -> None:
    bad: list[Any] = [[], [""], [7], ["a\0b"], 7]
    for wrong in bad:
        with pytest.raises(InvalidInput) as refused:
            view.refresh(wrong)
        assert refused.value.details["field"] == "paths", wrong


def test_a_pointer_needs_a_file(view: View, tmp_path: Path) -> None:
    for wrong in (tmp_path, tmp_path / "nothing", "", "a\0b"):
        with pytest.raises(InvalidInput) as refused:
            view.point_to(wrong)
        assert refused.value.details["field"] == "path"


def test_it_is_on_the_command_line(terminal: Terminal, guide: Path) -> None:
    with wellkept.open(terminal.database) as memories:
        view = memories.view(user="ada")
        id = view.add("The guide wants tabs", pointer=view.point_to(guide)).id
    guide.write_text("Use spaces", encoding="utf-8")
    assert terminal.json("search", "tabs", "--user", "ada")["hits"][0]["stale"] is True
    assert terminal.json("refresh", str(guide.parent), "--user", "ada")["refreshed"] == [id]
    assert terminal.json("search", "tabs", "--user", "ada")["hits"][0]["stale"] is False
