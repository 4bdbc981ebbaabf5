"""What people see of upkeep and decay in a terminal."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import wellkept
from wellkept.cli import decay_views, renderers
from wellkept.cli.screen import Screen
from wellkept.operations import VERBS, Caller
from wellkept.operations.decay import Curves
from wellkept.types import Identity, RetentionPolicy, UpkeepJob


def test_merges_and_policies_are_shown_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(out=sys.stdout, terminal=True, colour=False, width=120, plain=True)

    def shown(name: str, **payload: Any) -> str:
        answer = VERBS[name].run(caller, VERBS[name].input(**payload))
        renderers.render(screen, name, answer, None)
        return capsys.readouterr().out

    with wellkept.open("ram:", embedder=None) as memories:
        memories.view(user="ada").add_many(["Prefers dark mode", "Prefers the dark mode"])
        caller = Caller(memories, Identity(user="ada"))
        assert "nothing is merged" in shown("consolidation")
        assert "everything stays" in shown("endings")
        assert "0.8" in shown("endings.set", promote_importance=0.8)
        assert "threshold" in shown("consolidation.set", trigger=2, manual=True)
        plan = shown("upkeep.plan", job=UpkeepJob.CONSOLIDATION)
        assert "differing in" in plan
        assert "Prefers the dark mode" in plan
        assert "--job consolidation applies it" in plan
        assert "2 merged" in shown("upkeep.run", job=UpkeepJob.CONSOLIDATION)
        assert "consolidation by hand" in shown("upkeep.runs")
        assert "\n1 that the run had made is gone" in shown("upkeep.undo")
        memories.view(user="bob").add("Likes tea")
        caller = Caller(memories, Identity(user="bob"))
        assert "1 memory is as it was before" in shown("undo")


def curves(days: int = 90) -> Curves:
    with wellkept.open("ram:", embedder=None) as memories:
        verb = VERBS["decay"]
        found: Curves = verb.run(Caller(memories, Identity(user="ada")), verb.input(days=days))
    return found


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("days", [1, 90, 3650])
def test_a_plot_fits_the_terminal(plain: bool, days: int, capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(out=sys.stdout, terminal=True, colour=False, width=60, plain=plain)
    decay_views.plot(screen, curves(days), None)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert len([line for line in lines if "half after" in line]) == 3
    assert plain is all(line.isascii() for line in lines)


@pytest.mark.req("P4")
def test_people_are_told_why_an_owner_was_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(out=sys.stdout, terminal=True, colour=False, width=120, plain=True)
    times = [datetime(2026, 1, 7, tzinfo=UTC)]
    with wellkept.open("ram:", embedder=None, clock=lambda: times[-1]) as memories:
        memories.view(user="ada").add_many([f"Fact {number}" for number in range(20)])
        memories.upkeep.set_retention(RetentionPolicy(long_term_age="10d"))
        times.append(times[0] + timedelta(days=20))
        memories.upkeep.run_due()
        caller = Caller(memories, Identity(user="ada"))
        for name in ("upkeep", "upkeep.runs"):
            renderers.render(screen, name, VERBS[name].run(caller, VERBS[name].input()), None)
            assert "user ada: 20 of 20 memories would go" in capsys.readouterr().out
