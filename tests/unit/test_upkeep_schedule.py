"""The schedule of upkeep from inside: its jobs, what an opening asks, and a run that is killed between two owners."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import HandClock, Opener
from wellkept import Memories
from wellkept.types import Layer, Owner, RetentionPolicy, UpkeepJob
from wellkept.upkeep import schedule
from wellkept.upkeep.jobs import JOBS

ADA = Owner(Layer.USER, ("ada",))


NIGHTLY = RetentionPolicy(long_term_age="365d", schedule="0 3 * * *")


def aged(memories: Memories, clock: HandClock, policy: RetentionPolicy = NIGHTLY, count: int = 3) -> None:
    """Old memories, and a policy that is not due yet."""
    memories.view(user="ada").add_many([f"Fact {number}" for number in range(count)])
    clock.time = (clock.time + timedelta(days=400)).replace(hour=12)
    memories.upkeep.set_retention(policy)


@pytest.mark.req("P4", "N3")
def test_opening_without_an_automatic_policy_asks_nothing(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("nothing should be asked")

    monkeypatch.setattr(schedule, "run_due", refused)
    opener = Opener("sqlite", tmp_path)
    memories = opener(clock=clock)
    aged(memories, clock, RetentionPolicy(long_term_age="365d", automatic=False))
    memories.upkeep.set_retention(NIGHTLY, owner=ADA)
    memories.upkeep.clear_retention(owner=ADA)
    memories.close()
    clock.forward(days=3)
    opener(clock=clock).close()


@pytest.mark.req("P4")
def test_each_job_with_policies_is_registered_once() -> None:
    assert set(JOBS) == set(UpkeepJob) - {UpkeepJob.COMPACTION, UpkeepJob.QUARANTINE}, "these are asked for each time"
    assert len({id(job.policies) for job in JOBS.values()}) == len(JOBS)


KILLED = """
import os, sys
from datetime import datetime
import wellkept
from wellkept.upkeep import runs
now = datetime.fromisoformat(sys.argv[2])
written = []
real = runs._write_group

def dying(engine, run, group, lease):
    if written:
        lease.release()  # it would end by itself in a minute
        os._exit(9)
    written.append(group)
    return real(engine, run, group, lease)

runs._write_group, runs.BATCH = dying, 1
with wellkept.open(sys.argv[1], embedder=None, clock=lambda: now) as memories:
    memories.upkeep.run()
"""


@pytest.mark.req("N3")
def test_a_run_that_is_killed_between_two_owners_can_be_undone_or_gone_on_with(
    tmp_path: Path, clock: HandClock
) -> None:
    file = tmp_path / "memory.db"
    users = ("ada", "bob", "eve")
    with wellkept.open(file, embedder=None, clock=clock) as memories:
        for user in users:
            memories.view(user=user).add("Likes tea")
        memories.upkeep.set_retention(RetentionPolicy(long_term_age="365d", automatic=False))
    clock.forward(days=400)
    done = subprocess.run([sys.executable, "-c", KILLED, str(file), clock.time.isoformat()], check=False)
    assert done.returncode == 9
    with wellkept.open(file, embedder=None, clock=clock) as memories:
        counts = [memories.view(user=user).count() for user in users]
        assert sorted(counts) == [0, 1, 1]
        [run] = memories.upkeep.runs()
        assert run.completed_at is None
        assert len(memories.upkeep.undo(run.id).ids) == 1
        assert [memories.view(user=user).count() for user in users] == [1, 1, 1]
        clock.forward(days=1)
        assert memories.upkeep.run().forgotten == 2, "the restored memory is young again"
