"""The examples run without a network, read well, and what they claim holds in the file they leave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import wellkept

ROOT = Path(__file__).resolve().parents[2]
TERMINAL_COLUMNS = 110
LINES_MAX = 120
PATIENCE_S = 60
EXAMPLES = ("chat_loop", "coding_agent", "support_bot")


# Of this checkout, whatever is installed: the examples run in another folder, where a relative path leads nowhere.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def run(name: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *args]
    return subprocess.run(
        program, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def output(folder: Path) -> dict[str, str]:
    """What each example prints; the files stay for a look."""
    done = {name: run(name, f"{name}.db", cwd=folder) for name in EXAMPLES}
    for name, one in done.items():
        assert (one.returncode, one.stderr) == (0, ""), f"{name}: {one.stdout}{one.stderr}"
    return {name: one.stdout for name, one in done.items()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_short_and_fits_a_terminal(name: str, output: dict[str, str]) -> None:
    assert len((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").splitlines()) < LINES_MAX
    assert [line for line in output[name].splitlines() if len(line) > TERMINAL_COLUMNS] == []


def test_without_a_path_nothing_is_left_and_a_file_that_is_there_is_not_touched(tmp_path: Path) -> None:
    assert run("support_bot", cwd=tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine.db").write_bytes(b"not yours")
    assert "already" in run("support_bot", "mine.db", cwd=tmp_path).stderr
    assert (tmp_path / "mine.db").read_bytes() == b"not yours"


def test_the_chat_recalls_and_shows_its_receipts(output: dict[str, str]) -> None:
    claims = [
        "Bot: Olives: nothing with peanuts in it.",
        "[Ada on Monday: I cannot eat peanuts, please keep that in mind.]",
        "Bot: To Lisbon, on the second of May.",
        "Bot: By the window, as always.",
        "Bot: I do not know that.\n       [",
        " of 300 tokens, 1 recalled, one left out (duplicate)]",
    ]
    assert [claim for claim in claims if claim not in output["chat_loop"]] == [], output["chat_loop"]


def test_the_chat_keeps_who_said_what_and_where(folder: Path, output: dict[str, str]) -> None:
    with wellkept.open(folder / "chat_loop.db") as memories:
        turns = memories.view(user="ada").list(sort_by="oldest").memories
    assert output["chat_loop"].count("Bot: ") == len(turns) / 2
    assert {turn.session for turn in turns} == {"monday", "friday"}
    assert {(turn.author, turn.role) for turn in turns} == {("Ada", "user"), ("Bot", "assistant")}


def test_the_coding_agent_knows_its_project(output: dict[str, str]) -> None:
    claims = [
        "  Indent code with four spaces   (project)\n  and not: Indent code with tabs   (company)",
        "in the scope:  a test that fails, 2 attempts",
        "after it:      the total of an order is right; attempts: None",
        "told: CONFLICT",
        "version 2: Prices are stored as whole cents, never as floats\n  because: Totals are wrong",
        "Her working memory: empty",
    ]
    assert [claim for claim in claims if claim not in output["coding_agent"]] == [], output["coding_agent"]


def test_what_is_overridden_stays_out_of_the_prompt(output: dict[str, str]) -> None:
    prompt = output["coding_agent"].partition("Grace")[2]
    assert "four spaces" in prompt
    assert "tabs" not in prompt


def test_the_support_bot_keeps_customers_apart(output: dict[str, str]) -> None:
    claims = [
        "ada: What is the number of my order?  My order is number 1815",
        "bob: What is the number of my order?  My order is number 2077",
        "ada searches for the gnome:  []",
        "ada presents the id of his:  None; to erase it: False",
        "now:        Refunds are paid within three days\n  on Monday:  Refunds are paid within ten days",
        " before, 0 after",
        "what bob's desk still sees: ['Refunds are paid within three days']",
    ]
    assert [claim for claim in claims if claim not in output["support_bot"]] == [], output["support_bot"]


def test_the_support_bot_leaves_nothing_of_who_asked_to_be_forgotten(folder: Path, output: dict[str, str]) -> None:
    with wellkept.open(folder / "support_bot.db") as memories:
        assert memories.view(user="bob").count(filter={"include_forgotten": True}) == 0
        assert memories.view(user="ada").count() == 2
    left = b"".join(file.read_bytes() for file in folder.glob("support_bot.db*"))
    assert (b"Marzipan" in left, b"gnome" in left, b"brass lamp" in left) == (False, False, True)
