"""Sessions from the command line: a family of commands over what `view.sessions` can do."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

import wellkept
from tests.support.terminal import Terminal, at_terminal, light_database, started


def in_monday(terminal: Terminal, *contents: str) -> None:
    for content in contents:
        terminal.add(content, "--session", "monday", "--layer", "session", "--tag", "security.oauth2")


@pytest.mark.req("J2")
def test_alone_they_are_listed_with_what_they_hold(terminal: Terminal) -> None:
    assert terminal.json("sessions")["sessions"] == []
    terminal.json("sessions", "create", "monday", "--limit-bytes", "50000")
    in_monday(terminal, "Use OAuth2", "Rotate tokens")
    [one] = terminal.json("sessions")["sessions"]
    assert (one["id"], one["entries"], one["bytes_limit"], one["closed_at"]) == ("monday", 2, 50000, None)
    [row] = terminal("sessions").out.splitlines()
    assert row.split("\t")[:2] == ["monday", "2"]


def test_a_session_is_shown_configured_and_prefers(terminal: Terminal) -> None:
    made = terminal.json("sessions", "create", "monday", "-p", "language=en", "-p", 'units={"a": 1}', "--no-decay")
    assert made["preferences"] == {"language": "en", "units": {"a": 1}}
    assert made["config"] == {
        "decay": {"enabled": False, "half_life_hours": None, "min_decay_factor": 0.1, "by_type_hours": {}},
        "limit_bytes": 10485760,
        "auto_compact": True,
        "compaction_threshold": 0.9,
    }
    terminal.json("sessions", "configure", "monday", "--half-life", "event=12", "--no-auto-compact")
    changed = terminal.json("sessions", "configure", "monday", "--half-life-hours", "24", "--clear", "limit-bytes")
    assert changed["config"] == {
        "decay": {"enabled": False, "half_life_hours": 24, "min_decay_factor": 0.1, "by_type_hours": {"event": 12}},
        "limit_bytes": None,
        "auto_compact": False,
        "compaction_threshold": 0.9,
    }
    told = terminal.json("sessions", "preferences", "monday", "--set", "language=de", "--unset", "units")
    assert told == {"id": "monday", "preferences": {"language": "de"}, "missing": []}
    missing = terminal("sessions", "preferences", "monday", "language", "units", "--json")
    assert (missing.code, missing.answer["result"]["missing"]) == (1, ["units"])
    assert terminal.json("sessions", "show", "monday")["preferences"] == {"language": "de"}


def test_what_is_wrong_changes_nothing_and_is_one_line(terminal: Terminal) -> None:
    before = {**terminal.json("sessions", "create", "monday"), "stats": None}
    wrong: dict[str, object] = {}
    mistakes = [
        (["show", "nobody"], 3),
        (["create", "monday"], 4),
        (["create", "not/an id"], 2),
        (["configure", "monday", "--limit-bytes", "0"], 2),
        (["configure", "monday", "--limit-bytes", "9", "--clear", "limit-bytes"], 2),
        (["preferences", "monday", "--set", "a=1", "--unset", "a"], 2),
        (["preferences", "monday", "--set", "a=1", "--unset", "a\nb"], 2),
        (["exprt", "monday"], 2),
        (["export"], 2),
        (["delete", "monday"], 2),
    ]
    for args, code in mistakes:
        done = terminal("sessions", *args)
        if (done.code, done.out, done.err.count("\n")) != (code, "", 1):
            wrong[f"{args}"] = done
        told = terminal("sessions", *args, "--json").answer["error"]["exit_code"]
        if told != code:
            wrong[f"{args} --json"] = told
        if (after := {**terminal.json("sessions", "show", "monday"), "stats": None}) != before:
            wrong[f"{args}, which changed the session"] = after
    assert wrong == {}


def test_errors_name_the_whole_command(terminal: Terminal) -> None:
    terminal.add("Likes tea")
    assert terminal("sessions", "show", "nobody", "--json").answer["operation"] == "sessions.show"
    assert "did you mean export" in terminal("sessions", "exprt").err


@pytest.mark.req("J2")
def test_sessions_are_closed_deleted_and_brought_back(terminal: Terminal) -> None:
    terminal.json("sessions", "create", "monday")
    in_monday(terminal, "Use OAuth2", "Rotate tokens")
    assert terminal.json("sessions", "close", "monday")["stats"]["closed_at"]
    assert terminal.json("sessions", "reopen", "monday")["stats"]["closed_at"] is None
    assert len(terminal.json("sessions", "delete", "monday", "--dry-run")["ids"]) == 2
    refused = terminal("sessions", "delete", "monday")
    assert "delete the session monday and forget 2 memories" in refused.err
    assert len(terminal.json("sessions", "delete", "monday", "--reason", "asked to", "--yes")["ids"]) == 2
    assert terminal.json("sessions")["sessions"] == []
    assert [one["id"] for one in terminal.json("sessions", "--deleted")["sessions"]] == ["monday"]
    assert terminal.json("sessions", "restore", "monday")["stats"]["entries"] == 2
    assert terminal.json("sessions", "delete", "monday", "--permanent", "--yes")["permanent"]
    assert terminal("sessions", "restore", "monday").code == 3


def test_all_sessions_are_asked_at_once(terminal: Terminal) -> None:
    for day in ("monday", "tuesday"):
        terminal.json("sessions", "create", day)
    in_monday(terminal, "Use OAuth2 for web apps")
    terminal.add("Use tabs", "--session", "tuesday", "--layer", "session", "--tag", "style")
    terminal.add("Not of a session: OAuth2")
    found = terminal.json("sessions", "search", "OAuth2", "--min-score", "0", "--tag", "security")["hits"]
    assert [hit["memory"]["content"] for hit in found] == ["Use OAuth2 for web apps"]
    assert len(terminal.json("sessions", "memories")["memories"]) == 2
    assert terminal.json("sessions", "topics")["topics"] == [
        {"tag": "security.oauth2", "count": 1},
        {"tag": "style", "count": 1},
    ]
    assert [one["id"] for one in terminal.json("sessions", "about", "security")["sessions"]] == ["monday"]


@pytest.mark.req("J2")
def test_an_export_goes_to_the_pipe_as_it_is(terminal: Terminal) -> None:
    terminal.json("sessions", "create", "monday")
    in_monday(terminal, "Grüße \x1b[2J")
    exported = json.loads(terminal("sessions", "export", "monday").out)
    assert exported["memories"][0]["content"] == "Grüße \x1b[2J"
    lines = terminal("sessions", "export", "monday", "--format", "jsonl", "--history").out.splitlines()
    assert [next(iter(json.loads(line))) for line in lines] == ["format", "memory", "history"]


def test_an_exported_file_is_private_and_never_overwritten_by_accident(terminal: Terminal) -> None:
    terminal.json("sessions", "create", "monday")
    file = terminal.folder / "monday.json"
    args = ("sessions", "export", "monday", "--output", str(file))
    assert terminal(*args).code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first = file.read_bytes()
    in_monday(terminal, "Use OAuth2")
    refused = terminal(*args)
    assert (refused.code, file.read_bytes()) == (2, first)
    assert "--force" in refused.err
    file.chmod(0o644)
    assert terminal(*args, "--force").code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_bytes())["memories"][0]["content"] == "Use OAuth2"
    assert sorted(one.name for one in terminal.folder.iterdir() if "monday" in one.name) == ["monday.json"]
    assert terminal("sessions", "export", "monday", "--output", "no/such/folder.json").code == 2


@pytest.mark.parametrize(("typed", "gone"), [(b"y\n", True), (b"n\n", False)])
def test_at_a_terminal_deleting_asks_with_the_number(tmp_path: Path, typed: bytes, gone: bool) -> None:
    with wellkept.open(light_database(tmp_path / "memory.db")) as memories:
        session = memories.view(agent="other").sessions.create("monday")
        session.view.add_many(["Use OAuth2", "Rotate tokens"])
    done = at_terminal(tmp_path, "sessions", "delete", "monday", typed=("[y/N]", typed))
    assert "forget 2 memories?" in done.out
    assert started(tmp_path, "sessions", "--json").result["sessions"] == [] if gone else done.code == 130


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_every_view_of_sessions_fits_its_terminal(tmp_path: Path, columns: int) -> None:
    with wellkept.open(light_database(tmp_path / "memory.db")) as memories:
        sessions = memories.view(agent="other").sessions
        assert "No sessions" in at_terminal(tmp_path, "sessions", columns=columns).out
        session = sessions.create("sess_20260110_5f0c1234", preferences={"language": "en", "notes": "word " * 40})
        session.view.add("Use OAuth2", tags=["a-tag-that-is-rather-long.and.deep"])
    for words in (["sessions"], ["sessions", "show", session.id], ["sessions", "topics"]):
        done = at_terminal(tmp_path, *words, columns=columns, NO_COLOR="1")
        assert done.code == 0, done.out
        assert [line for line in done.out.splitlines() if len(line.rstrip()) > columns] == [], words
    shown = at_terminal(tmp_path, "sessions", columns=columns, NO_COLOR="1").out
    assert "▏░░░░░░░░░" in shown  # a little of 10 MB


@pytest.mark.req("J9")
def test_a_session_is_purged_after_asking(terminal: Terminal) -> None:
    terminal.json("sessions", "create", "monday")
    in_monday(terminal, "Use OAuth2", "Rotate tokens")
    [gone, _] = terminal.json("sessions", "memories")["memories"]
    terminal.json("forget", gone["id"], "--session", "monday")
    assert terminal.json("compact", "monday")["erased"] == []
    tried = terminal.json("compact", "monday", "--purge", "--dry-run")
    assert [(one["id"], one["reason"]) for one in tried["erased"]] == [(gone["id"], "forgotten")]
    refused = terminal("compact", "monday", "--purge")
    assert (refused.code, "erase 1 memory of the session monday" in refused.err) == (2, True)
    assert terminal.json("compact", "monday", "--purge", "--yes")["bytes_after"] < tried["bytes_before"]
    assert terminal("compact", "monday", "--purge").code == 0  # nothing is left to ask about
    assert terminal("compact", "nobody", "--yes").code == 3


def test_before_and_after_are_bars(tmp_path: Path) -> None:
    with wellkept.open(light_database(tmp_path / "memory.db")) as memories:
        session = memories.view(agent="other").sessions.create("monday", config={"limit_bytes": 10_000})
        ids = [memory.id for memory in session.view.add_many([f"Fact {number}" for number in range(6)])]
        session.view.forget(ids[0])
    shown = at_terminal(tmp_path, "compact", "monday", "--purge", "--dry-run", columns=40, NO_COLOR="1").out
    assert [line.split()[0] for line in shown.splitlines()] == ["before", "after", "would"]
    assert "would erase 1: 1 forgotten" in shown
