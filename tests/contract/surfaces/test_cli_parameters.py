"""What is typed becomes what is meant, or an error that says what to type."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.support.terminal import Terminal


def test_what_is_no_time_says_what_would_be_one(terminal: Terminal) -> None:
    ended = {
        text: terminal("list", "--after", text) for text in ("", "ago", "in", "soon", "2030-13-01", "-3d", "9" * 30)
    }
    lines = {text: done.err for text, done in ended.items() if done.code == 2 and done.err.count("\n") == 1}
    assert {text: done for text, done in ended.items() if text not in lines} == {}
    assert {text: line for text, line in lines.items() if "--after" not in line or "7d" not in line} == {}


def test_an_end_lies_ahead(terminal: Terminal) -> None:
    id = terminal.add("Likes tea", "--expires", "7d", "--occurred", "7d")
    told = terminal.json("show", id)
    recorded = datetime.fromisoformat(told["created_at"])
    assert datetime.fromisoformat(told["expires_at"]) - recorded > timedelta(days=6)
    assert recorded - datetime.fromisoformat(told["occurred_at"]) > timedelta(days=6)


def test_fields_of_ones_own_are_json_where_they_can_be(terminal: Terminal) -> None:
    options = ["pages=3", "city=Rome", "sure=true", 'list=["a"]', "empty=", "nan=NaN", "a=b=c"]
    id = terminal.add("Likes tea", *(part for option in options for part in ("--meta", option)))
    assert terminal.json("show", id)["metadata"] == {
        "pages": 3,
        "city": "Rome",
        "sure": True,
        "list": ["a"],
        "empty": "",
        "nan": "NaN",
        "a": "b=c",
    }
    assert terminal("add", "Likes tea", "--meta", "nothing").code == 2


def test_a_pointer_is_json(terminal: Terminal) -> None:
    pointer = '{"source_type":"adr","source_id":"7","content_hash":"h","synced_at":"2030-01-07T00:00:00Z"}'
    id = terminal.add("Likes tea", "--pointer", pointer)
    assert terminal.json("show", id)["pointer"]["source_id"] == "7"
    wrong = terminal("add", "Likes tea", "--pointer", '{"source_type":"novel"}')
    assert wrong.code == 2
    assert "pointer.source_type" in wrong.err


def test_errors_name_options_for_people_and_fields_for_programs(terminal: Terminal) -> None:
    terminal.add("Likes tea")
    mistakes = [
        (["list", "--limit", "1000"], "--limit must be a whole number from 1 to 100"),
        (["list", "--tag", "x" * 300], "--tag must be a list"),
        (["add", "x", "--source-reference", "r"], "--source-type is missing"),
        (["sessions", "create", "x", "--clear", "nonsense"], "one of half_life_hours, limit_bytes"),
        (["show", "nobody"], "--forgotten shows a forgotten one"),
    ]
    wrong: dict[str, object] = {}
    for args, says in mistakes:
        if says not in (line := terminal(*args).err):
            wrong[" ".join(args)[:60]] = line
        error = terminal(*args, "--json").answer["error"]
        if "--" in error["message"] + error["hint"]:
            wrong[f"{' '.join(args)[:60]} --json"] = error
    assert wrong == {}
