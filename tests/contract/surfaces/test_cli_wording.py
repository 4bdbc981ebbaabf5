"""Errors of the command line name options and commands, not methods of Python, and say what to type."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.terminal import Terminal

PYTHON = re.compile(r"\w+=|\w\(|\bNone\b|\bTrue\b|\bview\b|page\.|[a-z]_[a-z]")


WRITTEN = (
    ("retention", "policies"),
    ("endings", "policies"),
    ("consolidation", "policies"),
    ("hold.list", "holds"),
    ("upkeep.runs", "runs"),
)


# What is typed, and what the error says.
MISTAKES: list[tuple[list[str], str]] = [
    (["add", "Likes tea", "--layer", "project"], "--project ID"),
    (["context", "tea", "--budget", "0"], "--budget"),
    (["sessions", "show", "x"], "wellkept sessions create ID"),
    (["list", "--cursor", "x"], "cursor as it was printed"),
    (["watch", "--once", "--after", "x"], "watch --json"),
    (["reembed", "--embedder", "nope"], "static"),
    (["update", "x", "--clear", "title", "--title", "y"], "clear"),
    (["retention", "set", "--long-term", "soon"], "--long-term is not a span of time; write it such as '90d'"),
    (["retention", "set", "--schedule", "often"], "--schedule is not a cron expression: 'often'"),
    (["endings", "set", "--permanent"], "--permanent says erase, but nothing says when; set --delete-after"),
    (["endings", "set", "--layer", "project", "--project", "p", "--delete-after", "1d"], "for the whole database"),
    (["endings", "set", "--layer", "agent"], "the agent layer needs an agent id"),
    (["retention", "set", "--layer", "org"], "the org layer needs an org id"),
    (["upkeep", "plan", "--job", "compaction"], "wellkept compact ID --dry-run"),
    (["upkeep", "run", "--job", "quarantine", "--yes"], "wellkept quarantine plan"),
    (["hold", "--tag", "legal"], "--reason is empty; say why"),
    (["hold", "--tag", "legal", "--everything", "--reason", "case"], "--everything"),
    (["hold", "release", "x"], "wellkept hold list"),
    (["quarantine", "--yes"], "give a source, a reference, an author"),
    (["quarantine", "--id", "not-there", "--yes"], "no memory 'not-there' is visible here"),
    (["quarantine", "--since", "2026-02-01", "--until", "2026-01-01", "--yes"], "--until"),
    (["keys", "check"], "make one with 'wellkept keys init', or set WELLKEPT_KEYRING"),
    (["encrypt"], "make one with 'wellkept keys init', or set WELLKEPT_KEYRING"),
    (["messages", '{"role": "user", "content": "Hi", "at": "soon"}'], "at of a message is not a time"),
    (["messages", '{"role": "user", "content": "Hi", "mood": "good"}'], "a message has no 'mood'"),
    (["messages", '{"role": "user"}'], "a message has no content"),
]


def test_errors_name_what_can_be_typed(terminal: Terminal) -> None:
    terminal.add("Likes tea")
    wrong: dict[str, object] = {}
    for args, says in MISTAKES:
        done = terminal(*args)
        if not done.code or says not in done.err or PYTHON.search(done.err):
            wrong[" ".join(args)] = done
        if any(written := [terminal.json(*name.split("."))[of] for name, of in WRITTEN]):
            wrong[f"{' '.join(args)}, which changed something"] = written
    assert wrong == {}


def test_help_and_the_error_name_the_same_embedders(terminal: Terminal) -> None:
    terminal.add("Likes tea")
    known = re.search(r"known are (.*)", terminal("reembed", "--embedder", "nope").err)
    assert known is not None
    options = " ".join(terminal("reembed", "--help").out.split())
    for name in known[1].split(", "):
        assert name in options
    assert "hashing-64" in known[1]


def test_a_folder_of_json_lines_is_recognized(terminal: Terminal) -> None:
    terminal.json("add", "Likes tea", "--db", "jsonl:notes")
    for command in (["list"], ["add", "Lives in Rome"]):
        done = terminal(*command, "--db", "notes")
        assert done.code == 10
        assert "jsonl:notes" in done.err


def test_a_misspelt_folder_makes_no_folders(terminal: Terminal, tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    for url in (f"jsonl:{tmp_path}/no/such", f"{tmp_path}/no/such.db"):
        listed, added = terminal("list", "--db", url), terminal("add", "Likes tea", "--db", url)
        assert (listed.code, added.code) == (6, 9)
        assert "wellkept add" in listed.err
        assert "check that the folder exists" in added.err
    assert terminal("list", "--db", f"jsonl:{tmp_path}/new").code == 6
    assert set(tmp_path.rglob("*")) == before
