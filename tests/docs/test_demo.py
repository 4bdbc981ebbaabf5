"""The demo runs, checks itself, and reads well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TERMINAL_COLUMNS = 100
PATIENCE_S = 60
# One line of each chapter, so that none can be dropped unseen.
SHOWN = [
    "The release day was added twice under one key, and is kept once.",
    "1. 0.91  The flaky test is test_upload; run it twice   (agent)",
    "base -",
    "The parts are log-odds: they add up to ",
    "  We indent code with tabs   (team)",
    "It shares no word with the question. The built-in embedder knows what words mean.",
    "  The dark one, please.   (session)",
    "author +",
    "and what nobody ever spoke of: []",
    "and what happened more than twelve hours ago:",
    "a second writer who read version 1 gets CONFLICT",
    "forgotten: get gives None, search finds []",
    "restored:  search finds ['The API listens on port 8080']",
    " before, 0 after",
    "erased, reason 'asked to', memory None",
    "version 2 updated   Releases go out on Tuesdays",
    "['Releases go out on Fridays']",
    "bob.get(the id of Ada's memory)  None",
    "with team='core' he sees the team's: ['We indent code with tabs']",
    "erased     (erased)",
    "verdict: healthy",
    "Everything held.",
]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    demo = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},  # of this checkout, whatever is installed
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stderr == ""
    return demo.stdout


def test_the_demo_shows_each_chapter(output: str) -> None:
    assert [line for line in SHOWN if line not in output] == [], output


def test_a_pipe_gets_no_styling(output: str) -> None:
    assert "\x1b" not in output


def test_lines_fit_a_terminal(output: str) -> None:
    assert [line for line in output.splitlines() if len(line) > TERMINAL_COLUMNS] == []
