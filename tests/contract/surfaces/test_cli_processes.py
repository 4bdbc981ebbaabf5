"""The command as a process of its own: pipes that close, terminals, signals, and what it loads."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import wellkept
from tests.support.terminal import COMMAND, at_terminal, environment, light_database, started

pytestmark = pytest.mark.slow  # each test starts processes

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# An embedder as another package brings it. It presses Ctrl-C in the middle of its work, if it is told to.
INTERRUPTING = """
import os, signal
from wellkept.embedders.hashing import HashingEmbedder

class Interrupting(HashingEmbedder):
    lexicon = None

    def __init__(self):
        super().__init__(16)
        self.name = "interrupting"
        self.calls = 0

    def embed(self, texts):
        self.calls += 1
        if os.environ.get("PRESS") and self.calls == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return super().embed(texts)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    light_database(tmp_path / "memory.db")
    return tmp_path


def remember(folder: Path, *contents: str, **fields: object) -> list[str]:
    with wellkept.open(folder / "memory.db") as memories:
        view = memories.view(agent="other")
        news = [wellkept.NewMemory(content=content, layer="user", **fields) for content in contents]  # type: ignore[arg-type]
        return [memory.id for memory in view.add_many(news)]


def test_a_new_database_is_made_by_the_first_memory(tmp_path: Path) -> None:
    assert started(tmp_path, "add", "-", stdin=b"Likes tea\nLives in Rome\n").code == 0
    found = started(tmp_path, "search", "what does she drink", "--json", "--min-score", "0").result
    assert found["hits"][0]["memory"]["content"] == "Likes tea"


@pytest.mark.parametrize(
    "line",
    [["convert", "memory.db", "jsonl:notes"], ["migrate", "memory.db"], ["config", "check", "wellkept.toml"]],
    ids=lambda line: line[0],
)
def test_commands_that_need_no_keys_work_without_the_extra_for_encryption(folder: Path, line: list[str]) -> None:
    hidden = folder / "hidden" / "cryptography.py"  # as in an installation without extras
    hidden.parent.mkdir()
    hidden.write_text("raise ModuleNotFoundError(name=__name__)\n")
    (folder / "wellkept.toml").touch()
    done = started(folder, *line, PYTHONPATH=str(hidden.parent))
    assert (done.code, done.err) == (0, "")


def test_a_reader_that_stops_reading_ends_it_quietly(folder: Path) -> None:
    remember(folder, *(f"Fact {number} " + "x" * 2_000 for number in range(100)))
    with subprocess.Popen(
        [*COMMAND, "list", "--limit", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **environment(folder)},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_it_starts_without_streams(folder: Path) -> None:
    known = {**os.environ, **environment(folder), "PY": sys.executable}
    for line, code in (('"$PY" -m wellkept list >&- 2>&-', 0), ('"$PY" -m wellkept add - <&- 2>&-', 2)):
        assert subprocess.run(["sh", "-c", line], env=known, cwd=folder, check=False).returncode == code


def test_help_and_add_load_nothing_that_they_do_not_need(folder: Path) -> None:
    script = "import sys; from wellkept.cli.app import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"

    def loaded(*args: str) -> set[str]:
        known = {**os.environ, **environment(folder)}
        done = subprocess.run([sys.executable, "-c", script, *args], env=known, capture_output=True, check=True)
        return set(done.stderr.decode().split())

    assert loaded("--help") & {"apsw", "numpy", "rich", "wellkept.memories", "wellkept.operations.add"} == set()
    assert loaded("add", "--help") & {"apsw", "numpy", "rich", "wellkept.operations.search"} == set()
    assert loaded("add", "Likes tea", "--db", "new.db") & {"numpy"} == set()
    assert loaded("add", "Likes tea") & {"rich", "wellkept.engine.search"} == set()


def test_the_engine_does_not_load_the_command_line(folder: Path) -> None:
    script = "import sys, wellkept; wellkept.open('ram:').view(user='a').add('x'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert set(done.stdout.decode().split()) & {"click", "rich", "wellkept.cli", "wellkept.operations"} == set()


@pytest.mark.parametrize(("typed", "erased", "code"), [(b"y\n", True, 0), (b"n\n", False, 130), (b"\x04", False, 130)])
def test_at_a_terminal_it_asks_before_it_erases(folder: Path, typed: bytes, erased: bool, code: int) -> None:
    [id] = remember(folder, "Likes tea")
    done = at_terminal(folder, "forget", id, "--permanent", typed=("[y/N]", typed))
    assert "Likes tea" in done.out[: done.out.index("for good")]
    assert done.code == code
    with wellkept.open(folder / "memory.db") as memories:
        assert (memories.view(agent="other").get(id) is None) is erased


def test_it_never_asks_where_nobody_sits(folder: Path) -> None:
    [id] = remember(folder, "Likes tea")
    done = started(folder, "forget", id, "--permanent", stdin=b"y\n")
    assert (done.code, done.out) == (2, "")
    assert "--yes" in done.err


def test_a_wide_list_names_the_owners(folder: Path) -> None:
    remember(folder, "Likes tea")
    assert "user default" in ESCAPES.sub("", at_terminal(folder, "list", columns=140).out)


def test_changes_are_shown_with_their_contents(folder: Path) -> None:
    remember(folder, "Likes tea", "Lives in Rome")
    done = at_terminal(folder, "watch", "--once")
    assert (done.out.count("Likes tea"), done.out.count("Lives in Rome")) == (1, 1)


def test_long_errors_break_between_words(folder: Path) -> None:
    done = at_terminal(folder, "list", "--db", "/no/such/folder/memory.db", columns=40, NO_COLOR="1")
    piped = started(folder, "list", "--db", "/no/such/folder/memory.db")
    assert len(done.out.splitlines()) > 1
    assert done.out.split() == piped.err.split()
    assert piped.err.count("\n") == 1
    assert max(map(len, done.out.splitlines())) < 40


@pytest.mark.parametrize(("lines", "shown"), [(600, True), (5, False)])
def test_a_long_pipe_shows_that_it_is_worked_on(folder: Path, lines: int, shown: bool) -> None:
    (folder / "notes.txt").write_text("".join(f"Fact {number}\n" for number in range(lines)), encoding="utf-8")
    reader, terminal = os.openpty()
    with (folder / "notes.txt").open("rb") as notes:
        done = subprocess.run(
            [*COMMAND, "add", "-"],
            stdin=notes,
            stdout=subprocess.PIPE,
            stderr=terminal,
            cwd=folder,
            env={**os.environ, **environment(folder)},
            check=True,
        )
    os.write(terminal, b"end")
    said = b""
    while not said.endswith(b"end"):
        said += os.read(reader, 65536)
    os.close(reader)
    os.close(terminal)
    assert done.stdout.count(b"\n") == lines
    assert (b"600" in said) is shown


@pytest.mark.parametrize("columns", [40, 120])
def test_every_view_fits_its_terminal(folder: Path, columns: int) -> None:
    [first] = remember(folder, "The user prefers a dark theme in every editor, terminal and browser that she opens")
    [id] = remember(
        folder, "Lives in Rome " * 20, tags=["a-tag-that-is-rather-long.and.deep"], references=[first], title="Home"
    )
    for command in (
        ["list"],
        ["search", "theme", "--explain"],
        ["stats"],
        ["history", id],
        ["graph"],
        ["watch", "--once"],
        ["doctor"],
        ["health"],
        ["config"],
    ):
        done = at_terminal(folder, *command, columns=columns)
        assert done.code == 0, done.out
        lines = ESCAPES.sub("", done.out).splitlines()
        assert [line for line in lines if len(line.rstrip()) > columns] == [], command


def test_matches_are_marked_and_scores_are_bars(folder: Path) -> None:
    remember(folder, "The user prefers a dark theme")
    done = at_terminal(folder, "search", "themes", "--min-score", "0")
    assert re.search(r"\x1b\[[0-9;]*33mtheme\x1b\[0m", done.out)
    assert "█" in done.out


@pytest.mark.parametrize(("colour", "kind"), [("1", "xterm"), ("", "dumb")])
def test_colours_can_be_refused(folder: Path, colour: str, kind: str) -> None:
    remember(folder, "The user prefers a dark theme")
    for command in (["search", "theme"], ["list"], ["stats"], ["nonsense"]):
        assert "\x1b" not in at_terminal(folder, *command, NO_COLOR=colour, TERM=kind).out


def test_what_is_stored_cannot_steer_the_terminal(folder: Path) -> None:
    [id] = remember(folder, "evil \x1b[2J\x1b]0;title\x07 \u202e text", title="t", author="a")
    for command in (
        ["list"],
        ["show", id],
        ["search", "evil", "--min-score", "0"],
        ["history", id],
        ["context", "evil"],
    ):
        done = at_terminal(folder, *command, NO_COLOR="1")
        assert not set(done.out) & set("\x1b\x07\u202e"), command


def test_letters_that_a_terminal_lacks_are_replaced(folder: Path) -> None:
    remember(folder, "Lives in Zürich")
    done = at_terminal(folder, "stats", PYTHONIOENCODING="ascii")
    assert done.code == 0
    assert "####" in done.out
    assert done.out.isascii()


def test_stopping_a_reembedding_loses_nothing_and_it_is_taken_up_again(folder: Path) -> None:
    package = folder / "package"
    described = package / "interrupting-1.0.dist-info"
    described.mkdir(parents=True)
    (package / "interrupting.py").write_text(INTERRUPTING, encoding="utf-8")
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: interrupting\nVersion: 1.0\n", encoding="utf-8")
    (described / "entry_points.txt").write_text(
        "[wellkept.embedders]\ninterrupting = interrupting:Interrupting\n", encoding="utf-8"
    )
    path = os.pathsep.join([environment(folder)["PYTHONPATH"], str(package)])
    remember(folder, *(f"Fact {number}" for number in range(600)))
    stopped = started(folder, "reembed", "--embedder", "interrupting", PYTHONPATH=path, PRESS="1")
    assert stopped.code == 130
    assert "run it again" in stopped.err
    assert "Traceback" not in stopped.err
    assert started(folder, "config", "--json").result["settings"]["embedder"] == "hashing-32"
    assert started(folder, "doctor").code == 0
    rest = started(folder, "reembed", "--embedder", "interrupting", "--json", PYTHONPATH=path).result
    assert rest["embedder"] == "interrupting"
    assert 0 < rest["embedded"] < 600


def test_a_reembedding_shows_how_far_it_is(folder: Path) -> None:
    remember(folder, *(f"Fact {number}" for number in range(300)))
    done = at_terminal(folder, "reembed", "--embedder", "hashing-64")
    assert "100%" in ESCAPES.sub("", done.out)
    assert "300 memories embedded" in done.out


@pytest.mark.req("P3")
def test_a_database_is_converted_at_a_terminal_and_taken_up_again(folder: Path) -> None:
    remember(folder, *(f"Fact {number}" for number in range(300)))
    done = ESCAPES.sub("", at_terminal(folder, "convert", "memory.db", "jsonl:notes").out)
    assert "100%" in done
    assert "300 versions copied into jsonl:notes" in done
    assert started(folder, "count", "--db", "jsonl:notes", "--json").result == {"count": 300}
    remember(folder, "One more")
    assert started(folder, "convert", "memory.db", "jsonl:notes", "--json").result["copied"] == 1
    assert "nothing new" in at_terminal(folder, "convert", "memory.db", "jsonl:notes").out


@pytest.mark.parametrize(
    ("source", "target", "code"),
    [
        ("nowhere.db", "copy.db", 6),
        ("memory.db", "memory.db", 6),
        ("memory.db", "other.db", 4),
        ("memory.db", "ram:", 6),
    ],
)
def test_what_cannot_be_converted_is_left_as_it_is(folder: Path, source: str, target: str, code: int) -> None:
    remember(folder, "Likes tea")
    light_database(folder / "other.db")
    with wellkept.open(folder / "other.db") as memories:
        memories.view(user="bob").add("Something else")
    done = started(folder, "convert", source, target)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert not (folder / "nowhere.db").exists()
    assert started(folder, "count", "--db", "other.db", "--user", "bob", "--json").result == {"count": 1}


def test_watching_follows_other_processes_until_it_is_stopped(folder: Path) -> None:
    remember(folder, "Before")
    with subprocess.Popen(
        [*COMMAND, "watch", "--json", "--interval", "0.01"],
        stdout=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **environment(folder)},
    ) as process:
        assert process.stdout is not None
        seen = [json.loads(process.stdout.readline())]
        remember(folder, "While it runs")
        seen.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGINT)
        ended = json.loads(process.stdout.read())
        assert process.wait() == 130
    assert (ended["error"]["code"], "--after" in ended["error"]["hint"]) == ("INTERRUPTED", True)
    assert [one["result"]["versions"][0]["memory"]["content"] for one in seen] == ["Before", "While it runs"]


def test_at_a_terminal_watching_is_a_live_view(folder: Path) -> None:
    remember(folder, "Before it began")
    done = at_terminal(folder, "watch", "--interval", "0.01", typed=("Before it began", b"\x03"))
    assert done.code == 130
    assert "1 changes" in ESCAPES.sub("", done.out)


def test_shells_complete_commands_options_and_values(folder: Path) -> None:
    def completed(words: str) -> str:
        count = str(len(words.split(" ")) - 1)
        return started(folder, _WELLKEPT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count).out

    assert "plain,search" in completed("wellkept sea")
    assert "plain,--explain" in completed("wellkept search --ex")
    assert "plain,preference" in completed("wellkept add --type pre")
    before = set(folder.iterdir())
    assert completed("wellkept --db missing.db show 0") == "\n"
    assert set(folder.iterdir()) == before


def test_shells_complete_ids_tags_and_sessions(folder: Path) -> None:
    [id, gone] = remember(folder, "Likes tea", "Lives in Rome", tags=["drinks.hot"])
    with wellkept.open(folder / "memory.db") as memories:
        view = memories.view(agent="other")  # its user is the one of the command line
        view.forget(gone)
        view.sessions.create("monday")
        view.sessions.create("tuesday")
        view.sessions.delete("tuesday")

    def completed(words: str, shell: str = "bash") -> str:
        count = str(len(words.split(" ")) - 1)
        return started(folder, _WELLKEPT_COMPLETE=f"{shell}_complete", COMP_WORDS=words, COMP_CWORD=count).out

    assert completed("wellkept show ") == f"plain,{id[:23]}\n"
    assert completed("wellkept forget " + id[:9]) == f"plain,{id[:23]}\n"
    assert completed("wellkept restore ") == f"plain,{gone[:23]}\n"
    assert completed("wellkept show x") == "\n"
    assert "Likes tea" in completed("wellkept show ", "zsh")
    assert completed("wellkept list --tag dr") == "plain,drinks.hot\n"
    assert completed("wellkept list --session ") == "plain,monday\n"
    assert completed("wellkept sessions show m") == "plain,monday\n"
    assert completed("wellkept sessions restore ") == "plain,tuesday\n"
    assert completed("wellkept --user eve show ") == "\n"
