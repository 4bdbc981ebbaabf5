"""Commands do what they say, answer programs in one form, and end with the code that tells how it went."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import wellkept
from tests.support.stand_ins import Named
from tests.support.terminal import Terminal
from wellkept.operations import VERBS, Takes, parameter_of


@pytest.mark.req("L1")
def test_words_are_one_memory(terminal: Terminal) -> None:
    added = terminal.json("add", "Prefers", "dark", "mode", "-t", "preference", "-T", "ui", "-i", "0.9")["memories"]
    assert [memory["content"] for memory in added] == ["Prefers dark mode"]
    assert (added[0]["type"], added[0]["tags"], added[0]["importance"]) == ("preference", ["ui"], 0.9)


@pytest.mark.req("L2")
@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        (("Likes tea", "Lives in Rome"), ["Likes tea", "Lives in Rome"]),
        (("Likes tea", "Vegetarian"), ["Likes tea", "Vegetarian"]),
        (("Likes", "tea"), ["Likes tea"]),
        (("Likes tea",), ["Likes tea"]),
        (("a\nb", "c"), ["a\nb", "c"]),
    ],
)
def test_quoted_texts_are_one_memory_each(typed: tuple[str, ...], stored: list[str], terminal: Terminal) -> None:
    assert [one["content"] for one in terminal.json("add", *typed)["memories"]] == stored


def test_quoted_parts_of_a_query_stay_one_query(terminal: Terminal) -> None:
    id = terminal.add("The user prefers a dark theme")
    assert terminal.json("search", "dark theme", "user", "--min-score", "0")["hits"][0]["memory"]["id"] == id


@pytest.mark.req("L2")
def test_a_pipe_is_a_memory_a_line_or_one_memory(terminal: Terminal) -> None:
    notes = b"\xef\xbb\xbfLikes tea\r\n\n  Lives in Rome\n"
    assert [one["content"] for one in terminal.json("add", "-", stdin=notes)["memories"]] == [
        "Likes tea",
        "Lives in Rome",
    ]
    whole = terminal.json("add", "-", "--whole", stdin=b"One\nTwo\n")["memories"]
    assert [one["content"] for one in whole] == ["One\nTwo\n"]


@pytest.mark.parametrize("stdin", [b"", b"\n \n", b"good\nbad \xff\n", b"good\n\x00\n"])
def test_of_a_bad_pipe_nothing_is_stored(stdin: bytes, terminal: Terminal) -> None:
    done = terminal("add", "-", stdin=stdin)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert terminal.json("count")["count"] == 0


def test_a_wrong_byte_is_named(terminal: Terminal) -> None:
    done = terminal("add", "-", "--json", stdin=b"good\nbad \xff\n")
    assert done.answer["error"]["details"] == {"field": "stdin", "byte": 9, "line": 2}


def test_one_key_is_for_one_memory(terminal: Terminal) -> None:
    first = terminal.add("Likes tea", "--key", "k")
    assert terminal.add("Likes tea", "--key", "k") == first
    assert terminal("add", "Likes coffee", "--key", "k").code == 4
    assert terminal("add", "-", "--key", "k", stdin=b"a\nb\n").code == 2


@pytest.mark.req("L4", "J6")
def test_search_finds_and_explains(terminal: Terminal) -> None:
    id = terminal.add("The user prefers a dark theme")
    terminal.add("Rome is a city")
    found = terminal.json("search", "which", "theme", "--explain", "--min-score", "0")
    assert found["hits"][0]["memory"]["id"] == id
    reasons = found["hits"][0]["reasons"]
    assert reasons
    row = terminal("search", "which", "theme", "--explain", "--min-score", "0").out.splitlines()[0].split("\t")
    assert [part.partition("=")[0] for part in row[4].split()] == list(reasons)
    assert terminal("search", "which", "theme", "--min-score", "0").out.splitlines()[0].count("\t") == 3
    assert terminal.json("search", "theme", "--type", "decision")["hits"] == []


@pytest.mark.req("L5", "H3")
def test_lists_are_narrowed_and_paged(terminal: Terminal) -> None:
    for number in range(5):
        terminal.add(f"Fact {number}", "--tag", "odd" if number % 2 else "even", "-m", f"n={number}")
    first = terminal.json("list", "--limit", "2")
    rest = terminal.json("list", "--limit", "3", "--cursor", first["next_cursor"])
    contents = [memory["content"] for page in (first, rest) for memory in page["memories"]]
    assert contents == [f"Fact {number}" for number in (4, 3, 2, 1, 0)]
    assert terminal.json("count", "--tag", "odd")["count"] == 2
    assert terminal.json("count", "--no-tag", "odd", "--meta", "n=2")["count"] == 1
    assert terminal.json("count", "--after", "1h", "--before", "now")["count"] == 5
    assert terminal("list", "--limit", "1000").code == 2
    assert terminal("list", "--limit", "many").code == 2


@pytest.mark.req("L5")
def test_all_pages_can_be_listed_at_once(terminal: Terminal) -> None:
    lines = [f"Fact {number}" for number in range(205)]
    terminal.json("add", "-", "--tag", "numbered", stdin="\n".join(lines).encode())
    terminal.add("Likes tea")
    every = terminal.json("list", "--all", "--tag", "numbered", "--sort", "oldest")
    assert sorted(one["content"] for one in every["memories"]) == sorted(lines)
    assert (every["total"], every["next_cursor"]) == (205, None)
    assert len(terminal.json("list", "--all", "--limit", "2")["memories"]) == 206
    assert len(terminal.json("list", "--all", "--offset", "4")["memories"]) == 202
    assert len(terminal("list", "--all").out.splitlines()) == 206
    first = terminal.json("list", "--limit", "6")
    assert len(terminal.json("list", "--all", "--cursor", first["next_cursor"])["memories"]) == 200
    ranked = terminal.json("list", "--all", "--sort", "relevance")
    assert len(ranked["reasons"]) == len(ranked["memories"]) == 206


@pytest.mark.req("L6", "H11")
def test_updates_change_what_is_given_and_clear_what_is_named(terminal: Terminal) -> None:
    id = terminal.add("Lives in Paris", "--title", "Home", "--tag", "a", "-m", "x=1")
    changed = terminal.json(
        "update", id, "--content", "Lives in Rome", "--add-tag", "b", "-m", "y=2", "--clear", "title"
    )
    assert (changed["content"], changed["tags"], changed["title"]) == ("Lives in Rome", ["a", "b"], None)
    assert changed["metadata"] == {"x": 1, "y": 2}
    assert terminal("update", id, "--importance", "1", "--if-version", "1").code == 4
    assert terminal("update", id).code == 2
    assert terminal("update", id, "--clear", "content").code == 2
    assert terminal("update", id, "--title", "x", "--clear", "title").code == 2
    assert terminal("update", "nobody", "--title", "x").code == 3
    assert terminal.json("show", id)["version"] == 2


@pytest.mark.req("L7")
def test_forgetting_restoring_and_what_was_not_there(terminal: Terminal) -> None:
    id = terminal.add("Likes tea")
    assert terminal.json("forget", id, "--dry-run")["ids"] == [id]
    assert terminal.json("count")["count"] == 1
    assert terminal.json("forget", id, "--reason", "old")["ids"] == [id]
    again = terminal("forget", id, "--json")
    assert (again.code, again.answer["result"]["failed"]) == (1, [id])
    assert terminal("show", id).code == 3
    assert terminal.json("show", id, "--forgotten")["state"] == "forgotten"
    assert terminal.json("restore", id)["ids"] == [id]
    assert terminal("restore", id).code == 1
    assert [one["operation"] for one in terminal.json("history", id)["versions"]] == ["added", "forgotten", "restored"]


def test_a_dry_run_shows_the_texts_and_counts_no_access(terminal: Terminal) -> None:
    ids = [terminal.add(text, "--tag", "drinks") for text in ("Likes tea", "Likes coffee" * 100)]
    for args in (["--tag", "drinks"], ids, [*ids, "--permanent"]):
        told = terminal.json("forget", *args, "--dry-run")
        assert told["excerpts"][ids[0]] == "Likes tea"
        assert len(told["excerpts"][ids[1]]) == 280
    assert "Likes tea" in terminal("forget", "--tag", "drinks", "--dry-run").out
    assert [one["access_count"] for one in terminal.json("list")["memories"]] == [0, 0]
    assert terminal.json("forget", ids[0])["excerpts"] == {}


def test_erasing_needs_a_word_where_nobody_can_be_asked(terminal: Terminal) -> None:
    id = terminal.add("Likes tea")
    refused = terminal("forget", id, "--permanent")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert terminal.json("forget", id, "--permanent", "--dry-run")["ids"] == [id]
    assert terminal.json("count")["count"] == 1
    assert terminal.json("forget", id, "--permanent", "--yes")["ids"] == [id]
    assert [one["operation"] for one in terminal.json("history", id)["versions"]][-1] == "erased"
    assert terminal("forget", id, "--permanent", "--dry-run").code == 1


@pytest.mark.req("L7")
def test_forgetting_by_conditions_takes_all_that_match_and_nothing_else(terminal: Terminal) -> None:
    for tag in ("personal.home", "personal", "work"):
        terminal.add(f"About {tag}", "--tag", tag)
    assert len(terminal.json("forget", "--tag", "personal", "--dry-run")["ids"]) == 2
    assert terminal.json("forget", "--tag", "personal", "--before", "2020-01-01", "--yes")["ids"] == []
    refused = terminal("forget", "--tag", "personal")
    assert refused.code == 2
    assert "forget 2 memories" in refused.err
    assert "--yes" in refused.err
    assert terminal.json("count")["count"] == 3
    assert len(terminal.json("forget", "--tag", "personal", "--reason", "asked to", "--yes")["ids"]) == 2
    assert [one["content"] for one in terminal.json("list")["memories"]] == ["About work"]
    assert len(terminal.json("forget", "--tag", "personal", "--permanent", "--yes")["ids"]) == 2
    assert terminal.json("list", "--forgotten")["total"] == 1


@pytest.mark.parametrize("args", [[], ["x", "--tag", "a"], ["--depth", "2"], ["--permanent"]])
def test_forgetting_wants_ids_or_conditions(args: list[str], terminal: Terminal) -> None:
    terminal.add("Likes tea", "--tag", "a")
    assert terminal("forget", *args, "--yes").code == 2
    assert terminal.json("count")["count"] == 1
    assert len(terminal.json("forget", "--layer", "user", "--yes")["ids"]) == 1


def test_ids_come_from_a_pipe(terminal: Terminal) -> None:
    ids = [terminal.add(f"Fact {number}") for number in range(3)]
    assert terminal.json("forget", "-", stdin="\n".join(ids).encode())["ids"] == ids


@pytest.mark.req("C2")
def test_context_stays_within_its_budget(terminal: Terminal) -> None:
    terminal.add("The user prefers a dark theme")
    made = terminal.json("context", "dark", "theme", "--budget", "200")
    assert made["total_tokens"] <= 200
    assert "dark theme" in made["text"]
    assert made["messages"][0]["content"] in made["text"]
    assert terminal("context", "dark theme", "--budget", "0").code == 2


@pytest.mark.req("L8")
def test_statistics_have_a_timeline(terminal: Terminal) -> None:
    assert terminal.json("stats")["timeline"] == []
    terminal.add("Likes tea", "--tag", "drinks")
    told = terminal.json("stats")
    assert (told["stats"]["active"], told["stats"]["top_tags"]) == (1, [{"tag": "drinks", "count": 1}])
    assert sum(period["count"] for period in told["timeline"]) == 1


@pytest.mark.req("J5")
def test_references_are_drawn(terminal: Terminal) -> None:
    first = terminal.add("First")
    second = terminal.add("Second", "-r", first)
    third = terminal.add("Third & last", "-r", second, "-r", first)
    terminal.add("Alone")
    every = terminal.json("graph")
    assert {node["id"] for node in every["nodes"]} == {first, second, third}
    assert len(every["edges"]) == 3
    near = terminal.json("graph", third, "--depth", "1")
    assert {node["id"] for node in near["nodes"]} == {first, second, third}
    assert not terminal.json("graph", third, "--limit", "2")["complete"]
    assert terminal("graph", "nobody").code == 3
    assert terminal("graph", "--depth", "0").code == 2
    assert terminal("graph", "--svg", "g.svg").code == 0
    assert "Third &amp; last" in (terminal.folder / "g.svg").read_text(encoding="utf-8")
    assert terminal("graph", "--svg", "no/such/folder.svg").code == 2
    assert terminal("graph", "--svg", "-").out.startswith("<svg")


def test_a_picture_is_readable_by_its_owner_alone(terminal: Terminal) -> None:
    terminal.add("Likes tea")
    picture = terminal.folder / "g.svg"
    picture.write_text("old", encoding="utf-8")
    picture.chmod(0o644)
    assert terminal.json("graph", "--svg", "g.svg")["nodes"] == []
    assert picture.stat().st_mode & 0o777 == 0o600
    assert picture.read_text(encoding="utf-8").startswith("<svg")


def test_json_contains_no_character_that_a_terminal_acts_on(terminal: Terminal) -> None:
    wrong = {}
    for hidden in ("\x7f", "\x9b2J", "\u202e", "\u2066", "\u200f", "\u061c"):
        id = terminal.add(f"evil {hidden} text")
        for args in (["show", id, "--json"], ["list", "--json"], ["show", f"x{hidden}", "--json"]):
            done = terminal(*args)
            if hidden[0] in done.out or hidden not in json.dumps(done.answer, ensure_ascii=False):
                wrong[hidden, args[0]] = done.out
    assert wrong == {}


def test_changes_are_one_line_each_and_can_be_taken_up_again(terminal: Terminal) -> None:
    for number in range(3):
        terminal.add(f"Fact {number}")
    lines = [json.loads(line) for line in terminal("watch", "--once", "--json").out.splitlines()]
    assert [line["result"]["versions"][0]["memory"]["content"] for line in lines] == ["Fact 0", "Fact 1", "Fact 2"]
    rest = terminal("watch", "--once", "--json", "--after", lines[0]["result"]["next"]).out.splitlines()
    assert [json.loads(line) for line in rest] == lines[1:]


@pytest.mark.req("J11")
def test_the_database_is_looked_after(terminal: Terminal) -> None:
    terminal.add("Likes tea")
    assert terminal.json("doctor")["findings"] == []
    assert terminal.json("rebuild") is None
    assert terminal.json("scrub") == {"remains": []}
    assert terminal.json("health")["status"] == "healthy"
    assert terminal.json("reembed", "--embedder", "hashing-64") == {"embedded": 1, "embedder": "hashing-64"}
    assert terminal.json("config")["settings"]["embedder"] == "hashing-64"
    assert terminal.json("config", "--durability", "full")["settings"]["durability"] == "full"
    assert terminal("config", "--durability", "vague").code == 2


def test_doctor_ends_with_one_if_something_is_wrong(terminal: Terminal) -> None:
    with wellkept.open(terminal.database, embedder=None) as memories:
        memories.view(agent="other").add("No vector", layer="user")
    sick = terminal("doctor")
    assert sick.code == 1
    assert "--repair" in sick.out
    assert ("run wellkept reembed" in sick.out, "memories.reembed()" in sick.out) == (True, False)
    assert terminal("doctor", "--repair").code == 0
    assert terminal("doctor").code == 0


def test_a_database_of_an_unknown_embedder_can_be_read_and_goes_over_to_a_known_one(terminal: Terminal) -> None:
    with wellkept.open("sqlite:own.db", embedder=Named("mine", 16)) as memories:
        memories.view(agent="other").add("Likes tea", layer="user")
    own = ("--db", "own.db")
    assert terminal.json("search", "tea", *own)["semantic"] is False
    refused = terminal("add", "Likes coffee", *own)
    assert refused.code == 6
    assert "wellkept reembed --embedder" in refused.err
    terminal.json("reembed", "--embedder", "hashing-32", *own)
    terminal.json("add", "Likes coffee", *own)
    assert terminal.json("search", "tea", *own)["semantic"] is True


def test_only_what_begins_a_database_makes_one(terminal: Terminal) -> None:
    for name in VERBS:
        if not VERBS[name].creates:
            placed = [one for one in VERBS[name].fields if parameter_of(one).takes not in (Takes.OPTION, Takes.GROUP)]
            assert terminal(*name.split("."), *("x" for _ in placed), "--db", "new.db").code == 6
    assert not Path("new.db").exists()


# What is typed, the code that it ends with, and what the line says.
MISTAKES: list[tuple[list[str], int, str]] = [
    (["serch", "tea"], 2, "did you mean search"),
    (["get", "tea"], 2, "did you mean show?"),
    (["qqqq"], 2, "--help"),
    (["list", "--tagg", "x"], 2, "--tag"),
    (["add"], 2, "CONTENT"),
    (["add", "x", "--importance", "high"], 2, "--importance"),
    (["add", "x", "--importance", "7"], 2, "importance"),
    (["add", "x", "--type", "dream"], 2, "preference"),
    (["add", "x", "--layer", "team"], 2, "team"),
    (["add", "\udcff"], 2, "content"),
    (["list", "--db", "ftp://x"], 6, "ftp"),
    (["list", "--db", "notes.txt"], 10, "notes.txt"),
    (["reembed", "--embedder", "nobody"], 6, "nobody"),
    (["completion", "tcsh"], 2, "bash"),
]


@pytest.mark.req("H10")
def test_errors_are_one_line_that_says_what_to_do(terminal: Terminal) -> None:
    Path("notes.txt").write_text("no database " * 100, encoding="utf-8")
    wrong: dict[str, object] = {}
    for args, code, says in MISTAKES:
        done, told = terminal(*args), terminal(*args, "--json")
        lines = done.err.count("\n")
        if (done.code, done.out, lines) != (code, "", 1) or not done.err.startswith("error: ") or says not in done.err:
            wrong[ascii(args)] = done
        answer = told.answer
        operation = args[0] if args[0] in VERBS or args[0] == "completion" else ""
        if (told.code, answer["ok"], answer["error"]["exit_code"], answer["operation"]) != (
            code,
            False,
            code,
            operation,
        ):
            wrong[f"{args!a} as JSON"] = answer
    assert wrong == {}


def test_what_nobody_foresaw_is_one_line_too(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(terminal.folder)
    nested = '{"a":' * 100_000
    done = terminal("add", "x", "--pointer", nested)
    assert done.code == 2
    monkeypatch.setattr(os, "environ", {**os.environ, "WELLKEPT_DB": "a\0b"})
    odd = terminal("list")
    assert odd.code in (6, 70)
    assert odd.err.count("\n") == 1


def test_alone_it_shows_what_it_can(terminal: Terminal) -> None:
    alone = terminal()
    assert alone.code == 0
    assert all(name in alone.out for name in VERBS if "." not in name)
    assert alone.out == terminal("--help").out
    assert terminal("--version").out == terminal("version").out
    assert terminal.json("version")["wellkept"] == wellkept.__version__


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_a_script(shell: str, terminal: Terminal, require_tool: Callable[[str], str]) -> None:
    if shell == "bash":
        require_tool("bash")
    done = terminal("completion", shell)
    told = terminal.json("completion", shell)
    assert (told["shell"], told["script"]) == (shell, done.out.removesuffix("\n"))
    assert done.code == 0
    assert "_WELLKEPT_COMPLETE" in done.out


def test_a_pipe_gets_lines_with_tabs_and_nothing_cut(terminal: Terminal) -> None:
    id = terminal.add("word " * 200 + "\nsecond\tline \x1b[2J")
    [line] = terminal("list").out.splitlines()
    assert line.split("\t")[:2] == [id, "fact"]
    assert line.endswith("second line ␛[2J")
    [hit] = terminal("search", "word").out.splitlines()
    assert hit.split("\t")[1] == id
    assert "\x1b" not in terminal("stats").out


def test_vectors_are_shown_when_asked_for(terminal: Terminal) -> None:
    assert terminal.json("show", terminal.add("Likes cake"), "--vector")["vector"]["embedder"] == "hashing-32"


@pytest.mark.req("N9")
def test_a_memory_points_to_a_file_from_the_command_line(terminal: Terminal) -> None:
    file = terminal.folder / "style.md"
    file.write_text("Indent with tabs.")
    id = terminal.add("Indent with tabs.", "--pointer", "style.md")
    assert terminal.json("show", id)["pointer"]["source_id"] == file.as_uri()
    assert terminal.json("search", "indent")["hits"][0]["stale"] is False
    file.write_text("Indent with spaces.")
    assert terminal.json("search", "indent")["hits"][0]["stale"] is True
    assert terminal.json("refresh", ".")["rewritten"] == [id]
    assert terminal.json("show", id)["content"] == "Indent with spaces."
    for wrong in ("nowhere.md", "{", "."):
        refused = terminal("add", "Likes tea", "--pointer", wrong)
        assert (refused.code, "--pointer" in refused.err) == (2, True)
    assert terminal.json("count")["count"] == 1
