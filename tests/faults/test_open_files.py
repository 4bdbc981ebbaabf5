"""A process that may open no more files: every call fails with a typed error that says so, and nothing is changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import recollect

resource = pytest.importorskip("resource", reason="limits of open files are those of Unix")

# In a process of its own: the limit must not hit the test runner, and modules imported on demand must not be there yet.
_SCRIPT = """
import os, resource, sys
import recollect

url, left, filled_before = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "open"

def fill():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for number in held[len(held) - left:]:
        os.close(number)

CALLS = {
    "count": lambda memories: memories.view(user="ada").count(),
    "add": lambda memories: memories.view(user="ada").add("Likes coffee"),
    "search": lambda memories: memories.view(user="ada").search("tea"),
    "list": lambda memories: memories.view(user="ada").list(),
    "agent": lambda memories: memories.agent("debugger", user="ada"),
    "sessions": lambda memories: memories.view(user="ada").sessions.list(),
}
if filled_before:
    fill()
for name, call in CALLS.items():
    try:
        if filled_before:
            memories = recollect.open(url)
        elif name == "count":
            memories = recollect.open(url)
            fill()
        call(memories)
        print(name, "worked")
    except recollect.RecollectError as error:
        print(name, type(error).__name__, error.code, error.retryable, "too many open files" in error.message)
    except BaseException as error:
        print(name, "untyped", type(error).__name__, error)
"""


@pytest.mark.req("H10")
@pytest.mark.parametrize("moment", ["open", "use"])
@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_too_many_open_files_are_told_as_such(tmp_path: Path, kind: str, moment: str) -> None:
    url = str(tmp_path / "memory.db") if kind == "sqlite" else f"jsonl:{tmp_path / 'memory'}"
    with recollect.open(url) as memories:
        memories.view(user="ada").add("Likes tea")
    told = []
    for left in range(5):
        child = subprocess.run(
            [sys.executable, "-c", _SCRIPT, url, str(left), moment], capture_output=True, text=True, check=False
        )
        told += child.stdout.splitlines() or [child.stderr]
    answers = {line.partition(" ")[2] for line in told}
    assert answers <= {"worked", "StoreError PROVIDER_ERROR True True"}, told
    assert "StoreError PROVIDER_ERROR True True" in answers
    with recollect.open(url) as memories:
        assert memories.doctor().healthy
        assert memories.view(user="ada").count() == 1 + told.count("add worked")


@pytest.mark.req("H10")
def test_the_command_line_tells_it_in_one_line(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "memory.db", embedder=None) as memories:
        memories.view(user="ada").add("Likes tea")
    program = (
        "import os, resource, sys\n"
        "from recollect.cli import app, execution, discovery\n"  # the command itself is loaded
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "sys.exit(app.run(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", program, "count", "--user", "ada", "--db", str(tmp_path / "memory.db")]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stdout) == (8, "")
    assert "too many open files" in child.stderr
    assert "report it" not in child.stderr
