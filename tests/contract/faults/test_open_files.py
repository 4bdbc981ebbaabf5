"""A process that may open no more files: every call fails with a typed error that says so, and nothing is changed. Once
it may open files again, everything works: no module stayed half imported.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import wellkept
from wellkept.types import ConsolidationPolicy

resource = pytest.importorskip("resource", reason="limits of open files are those of Unix")

# In a process of its own: the limit must not hit the test runner, and modules imported on demand must not be there yet.
_SCRIPT = """
import itertools, os, resource, sys
import wellkept

SCHEDULED = wellkept.types.RetentionPolicy(forgotten_age="30d", schedule="30 3 * * *")
url, left, opens = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "open"
numbers = itertools.count()  # the same text added twice is one memory

def fill():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for _ in range(left):
        os.close(held.pop())
    return held

CALLS = {
    "count": lambda memories: memories.view(user="ada").count(),
    "add": lambda memories: memories.view(user="ada").add(f"Likes coffee {left}.{next(numbers)}"),
    "search": lambda memories: memories.view(user="ada").search("tea"),
    "list": lambda memories: memories.view(user="ada").list(),
    "agent": lambda memories: memories.agent("debugger", user="ada"),
    "sessions": lambda memories: memories.view(user="ada").sessions.list(),
    "compact": lambda memories: memories.view(user="ada").sessions.compact("monday", purge=True),
    "export": lambda memories: memories.view(user="ada").sessions.load("monday").export(),
    "working": lambda memories: memories.agent("debugger", user="ada").working.search("tea"),
    "compose": lambda memories: memories.agent("debugger", user="ada").context.compose("tea"),
    "consolidate": lambda memories: memories.upkeep.run(job="consolidation"),
    "schedule": lambda memories: memories.upkeep.set_retention(SCHEDULED),
    "receipts": lambda memories: memories.privacy.receipts(),
    "subject": lambda memories: memories.privacy.export(f"{sys.argv[4]}/{left}.{next(numbers)}.zip", user="ada"),
    "keys": lambda memories: memories.keys.list(),
    "doctor": lambda memories: memories.doctor(),
    "health": lambda memories: memories.health(),
}

def opened():
    return wellkept.open(url, retry=wellkept.settings.RetryPolicy(attempts=1))

def outcome(name, call, memories):
    try:
        call(memories or opened())
        print(name, "worked")
    except wellkept.WellkeptError as error:
        print(name, type(error).__name__, error.code, error.retryable, "too many open files" in error.message)
    except BaseException as error:
        print(name, "untyped", type(error).__name__, error)

memories = None if opens else opened()
held = fill()
for name, call in CALLS.items():
    outcome(name, call, memories)
for number in held:
    os.close(number)
for name, call in CALLS.items():
    outcome("later " + name, call, memories)
"""


@pytest.mark.req("H10")
@pytest.mark.parametrize("moment", ["open", "use"])
@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_too_many_open_files_are_told_as_such(tmp_path: Path, kind: str, moment: str) -> None:
    url = str(tmp_path / "memory.db") if kind == "sqlite" else f"jsonl:{tmp_path / 'memory'}"
    with wellkept.open(url) as memories:
        memories.view(user="ada").add("Likes tea")
        memories.view(user="ada").sessions.create("monday")
        memories.upkeep.set_consolidation(ConsolidationPolicy(trigger=2, automatic=False))
    told = []
    for left in range(5):
        child = subprocess.run(
            [sys.executable, "-c", _SCRIPT, url, str(left), moment, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        told += child.stdout.splitlines() or [child.stderr]
    later = [line for line in told if line.startswith("later ")]
    assert later, told
    assert all(line.endswith(" worked") for line in later), later
    answers = {line.partition(" ")[2] for line in told if line not in later}
    assert answers <= {"worked", "StoreError PROVIDER_ERROR True True"}, told
    assert "StoreError PROVIDER_ERROR True True" in answers
    with wellkept.open(url) as memories:
        assert memories.doctor().healthy
        assert memories.view(user="ada").count() == 1 + sum(line.endswith("add worked") for line in told)


@pytest.mark.req("H10")
def test_the_command_line_tells_it_in_one_line(tmp_path: Path) -> None:
    with wellkept.open(tmp_path / "memory.db", embedder=None) as memories:
        memories.view(user="ada").add("Likes tea")
    program = (
        "import os, resource, sys\n"
        "from wellkept.cli import app, execution, discovery\n"  # the command itself is loaded
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "sys.exit(app.run(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", program, "count", "--user", "ada", "--db", str(tmp_path / "memory.db")]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stdout) == (8, "")
    assert "too many open files" in child.stderr
    assert "report it" not in child.stderr
