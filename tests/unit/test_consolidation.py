"""Consolidation from inside: a run that is killed between two transactions, and which vectors are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stand_ins import Opener
from wellkept import Memories, View
from wellkept.recall import neighbours, quantized
from wellkept.types import (
    ConsolidationPolicy,
    Filter,
    Memory,
    UpkeepJob,
    UpkeepPlan,
)
from wellkept.upkeep import runs

POLICY = ConsolidationPolicy(trigger=2, automatic=False)


JOB = UpkeepJob.CONSOLIDATION


def every(view: View) -> dict[str, Memory]:
    """All memories in view, whatever their state, without what every version changes."""
    found = view.list(filter=Filter(include_forgotten=True, include_archived=True), limit=100).memories
    same: dict[str, Any] = {"version": 0, "access_count": 0, "last_accessed_at": None}
    return {one.id: replace(one, updated_at=one.created_at, **same) for one in found}


def planned(memories: Memories, **given: Any) -> UpkeepPlan:
    return memories.upkeep.plan(job=JOB, **given)


@pytest.mark.req("N3", "H8")
def test_a_run_that_was_killed_in_the_middle_can_be_undone(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = opener()
    memories.upkeep.set_consolidation(POLICY)
    views = [memories.view(user=name) for name in ("ada", "bob")]
    for view in views:
        for text in ("Uses vim", "Uses vim."):
            view.add(text)
    before = [every(view) for view in views]
    plan = planned(memories)
    monkeypatch.setattr(runs, "BATCH", 1)
    journal = memories._engine.journal
    appended: list[Any] = []
    append = journal.append

    def killed(*args: Any, **kwargs: Any) -> None:
        if appended:
            raise KeyboardInterrupt
        appended.append(args)
        append(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(journal, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            memories.upkeep.apply(plan)
    assert sorted(view.count() for view in views) == [1, 2]
    [run] = memories.upkeep.runs()
    assert run.completed_at is None
    assert len(memories.upkeep.undo(run.id).ids) == 2
    assert [every(view) for view in views] == before


@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), max_size=30), st.sampled_from([0.5, 0.9]))
def test_few_vectors_are_all_compared(rows: list[list[int]], least: float) -> None:
    import numpy as np

    codes = quantized.encode(np.array(rows, np.float32).reshape(-1, 4))
    cosines = quantized.between(codes, codes)
    expected = {(i, j) for i in range(len(rows)) for j in range(i + 1, len(rows)) if cosines[i, j] >= least}
    found = [(low, high) for low, high, _ in neighbours.pairs(codes, least)]
    if len(expected) <= neighbours.NEAREST * len(rows):
        assert sorted(found) == sorted(expected)
    assert set(found) <= expected
    assert len(set(found)) == len(found)


@pytest.mark.slow
def test_of_many_vectors_nearly_all_neighbours_are_found() -> None:
    import numpy as np

    rng = np.random.default_rng(7)
    rows = rng.normal(size=(4_000, 64)).astype(np.float32)
    rows[2_000:] = rows[:2_000] + 0.2 * rng.normal(size=(2_000, 64)).astype(np.float32)
    found = {(low, high) for low, high, _ in neighbours.pairs(quantized.encode(rows), 0.95)}
    hit = sum((number, number + 2_000) in found for number in range(2_000))
    assert hit > 1_850
