"""The schedule of upkeep: what is due is applied once, by one process, and a doubtful run takes nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import wellkept
from tests.support.stand_ins import HandClock, Opener, store_of
from wellkept import Memories
from wellkept.errors import Conflict, UpkeepRefused
from wellkept.events import RetentionCleanupCompleted
from wellkept.types import ConsolidationPolicy, Layer, Memory, Owner, RetentionPolicy

ADA = Owner(Layer.USER, ("ada",))
NIGHTLY = RetentionPolicy(long_term_age="365d", schedule="0 3 * * *")


def aged(memories: Memories, clock: HandClock, policy: RetentionPolicy = NIGHTLY, count: int = 3) -> None:
    """Old memories, and a policy that is not due yet."""
    memories.view(user="ada").add_many([f"Fact {number}" for number in range(count)])
    clock.time = (clock.time + timedelta(days=400)).replace(hour=12)
    memories.upkeep.set_retention(policy)


@pytest.mark.req("P4")
def test_a_policy_is_applied_when_it_is_due_and_once(memories: Memories, clock: HandClock) -> None:
    aged(memories, clock)
    assert memories.upkeep.run_due() is None
    due = memories.upkeep.next_due()
    assert due == datetime.combine(clock.time.date() + timedelta(days=1), datetime.min.time(), UTC).replace(hour=3)
    clock.time = due
    run = memories.upkeep.run_due()
    assert run is not None
    assert (run.automatic, run.forgotten) == (True, 3)
    assert memories.upkeep.run_due() is None
    assert memories.upkeep.next_due() == due + timedelta(days=1)
    assert len(memories.upkeep.undo(run.id).ids) == 3


@pytest.mark.req("P4")
def test_only_the_owners_of_due_policies_are_looked_at(memories: Memories, clock: HandClock) -> None:
    aged(memories, clock, RetentionPolicy(long_term_age="365d", automatic=False))
    memories.upkeep.set_retention(NIGHTLY, owner=Owner(Layer.USER, ("bob",)))
    clock.forward(days=1)
    run = memories.upkeep.run_due()
    assert run is not None
    assert (run.owners_processed, run.forgotten) == (0, 0)
    assert memories.view(user="ada").count() == 3


@pytest.mark.req("P4")
def test_what_was_missed_is_made_up_for_on_opening(tmp_path: Path, clock: HandClock) -> None:
    opener = Opener("sqlite", tmp_path)
    memories = opener(clock=clock)
    aged(memories, clock)
    memories.close()
    clock.forward(days=3)
    memories = opener(clock=clock)
    assert [(run.automatic, run.forgotten) for run in memories.upkeep.runs()] == [(True, 3)]
    memories.close()
    memories = opener(clock=clock)
    assert len(memories.upkeep.runs()) == 1
    memories.close()


@pytest.mark.req("H8", "P4")
def test_a_thread_asks_the_summariser(memories: Memories, clock: HandClock) -> None:
    memories.upkeep.set_consolidation(ConsolidationPolicy(trigger=2))
    memories.view(user="ada").add_many(["Uses vim", "Uses the vim"])
    clock.forward(days=1)
    asked = threading.Event()

    def summarised(sources: Sequence[Memory]) -> str:
        asked.set()
        return sources[0].content

    memories.upkeep.start(summariser=summarised)
    assert asked.wait(30)
    memories.upkeep.stop()
    assert memories.upkeep.runs()[0].merged == 2


@pytest.mark.req("P4")
def test_a_thread_applies_what_is_due(memories: Memories, clock: HandClock) -> None:
    aged(memories, clock)
    clock.forward(days=1)
    heard = threading.Event()
    memories.on(RetentionCleanupCompleted, lambda event: heard.set())
    memories.upkeep.start()
    memories.upkeep.start()
    assert heard.wait(30)
    memories.upkeep.stop()
    memories.upkeep.stop()
    assert len(memories.upkeep.runs()) == 1
    assert not [one for one in threading.enumerate() if one.name == "wellkept-upkeep"]


@pytest.mark.req("P4", "N3")
def test_one_process_runs_at_a_time(memories: Memories, clock: HandClock) -> None:
    aged(memories, clock)
    clock.forward(days=1)
    lease = store_of(memories).records.lease("upkeep", "somebody else", 60_000)
    assert lease is not None
    assert memories.upkeep.run_due() is None
    with pytest.raises(Conflict, match="another process runs upkeep"):
        memories.upkeep.run()
    assert memories.view(user="ada").count() == 3
    store_of(memories).records.release(lease)
    assert memories.upkeep.run_due() is not None, "what was not applied is still due"


@pytest.mark.req("N3")
@pytest.mark.parametrize("days", [-450, 2000])
def test_an_automatic_run_with_a_doubtful_clock_takes_nothing_and_says_so(
    memories: Memories, clock: HandClock, days: int
) -> None:
    aged(memories, clock, RetentionPolicy(long_term_age="1d", schedule="* * * * *"))
    memories.upkeep.clear_retention()
    clock.forward(days=days)
    memories.upkeep.set_retention(RetentionPolicy(long_term_age="1d", schedule="* * * * *"))
    clock.forward(minutes=2)
    run = memories.upkeep.run_due()
    assert run is not None
    assert (run.forgotten, run.owners_processed) == (0, 0)
    assert "the clock is doubtful" in run.errors[0]
    assert memories.view(user="ada").count() == 3
    assert memories.upkeep.run_due() is None, "not again before the next time"


@pytest.mark.req("N3")
def test_a_run_that_was_refused_for_its_clock_does_not_vouch_for_it(memories: Memories, clock: HandClock) -> None:
    aged(memories, clock)
    clock.forward(days=2000)
    for _ in range(3):
        run = memories.upkeep.run_due()
        assert run is not None
        assert "the clock is doubtful" in run.errors[0]
        clock.forward(days=1)
    with pytest.raises(UpkeepRefused, match="the clock is doubtful"):
        memories.upkeep.run(max_share=1.0)
    assert memories.view(user="ada").count() == 3


@pytest.mark.req("P4", "N3")
def test_a_clock_that_was_set_right_again_does_not_stop_the_schedule(memories: Memories, clock: HandClock) -> None:
    aged(memories, clock)
    clock.forward(days=2000)
    assert memories.upkeep.run_due() is not None
    clock.forward(days=-1999)
    run = memories.upkeep.run_due()
    assert run is not None
    assert (run.errors, run.forgotten) == ((), 3)


@pytest.mark.req("N3")
def test_an_automatic_run_leaves_out_an_owner_of_whom_too_much_would_go(memories: Memories, clock: HandClock) -> None:
    memories.view(user="bob").add("Likes tea")
    aged(memories, clock, count=20)
    clock.forward(days=1)
    run = memories.upkeep.run_due()
    assert run is not None
    assert (run.forgotten, run.owners_processed) == (1, 1)
    assert run.errors == ("user ada: 20 of 20 memories would go, 100 % where 30 % are allowed",)
    assert memories.view(user="ada").count() == 20


def test_a_plan_without_retention_runs_nothing(tmp_path: Path, clock: HandClock) -> None:
    opener = Opener("sqlite", tmp_path)
    memories = opener(clock=clock)
    aged(memories, clock)
    clock.forward(days=2)
    assert opener(clock=clock, plan="writerpro").upkeep.runs() == ()
    opener.close()


TOGETHER = """
import sys
from datetime import datetime
import wellkept
now = datetime.fromisoformat(sys.argv[2])
sys.stdin.readline()
with wellkept.open(sys.argv[1], embedder=None, clock=lambda: now) as memories:
    memories.upkeep.run_due()
"""


@pytest.mark.req("P4", "N3")
def test_of_two_processes_one_applies_what_is_due(tmp_path: Path, clock: HandClock) -> None:
    file = tmp_path / "memory.db"
    with wellkept.open(file, embedder=None, clock=clock) as memories:
        aged(memories, clock)
    clock.forward(days=1)
    started = [
        subprocess.Popen([sys.executable, "-c", TOGETHER, str(file), clock.time.isoformat()], stdin=subprocess.PIPE)
        for _ in range(2)
    ]
    for one in started:
        assert one.stdin is not None
        one.stdin.write(b"go\n")
        one.stdin.flush()
    assert [one.wait(60) for one in started] == [0, 0]
    for one in started:
        assert one.stdin is not None
        one.stdin.close()
    with wellkept.open(file, embedder=None, clock=clock) as memories:
        assert [(run.forgotten, run.errors) for run in memories.upkeep.runs()] == [(3, ())]
