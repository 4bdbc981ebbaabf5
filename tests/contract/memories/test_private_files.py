"""Every file and folder that a command leaves behind is its owner's alone, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.terminal import Terminal


@pytest.fixture
def careless() -> Iterator[None]:
    """A umask that lets everybody read and write what says nothing else."""
    before = os.umask(0)
    yield
    os.umask(before)


COMMANDS = (
    "init",
    "graph --svg graph.svg",
    "graph --svg graph.svg",  # once more, over what is there
    "decay --svg decay.svg",
    "sessions create monday",
    "sessions export monday --output monday.json",
    "sessions export monday --output monday.json --force",
    "convert memory.db jsonl:folder",
    "convert jsonl:folder copy.db",
    "--db jsonl:other init",
    "--db jsonl:other add Likes-tea --user ada",
    "--db jsonl:other sessions create tuesday --user ada",
    "--db jsonl:other compact tuesday --purge --user ada --yes",
    "keys create ci --everything",
    "hold --tag ui --reason case",
    "upkeep run",
    "reembed --embedder hashing-16",
    "doctor --repair",
    "rebuild",
    "migrate copy.db --to 1 --yes",
    "migrate copy.db",
)


@pytest.mark.req("J12")
@pytest.mark.slow
def test_every_file_is_private(terminal: Terminal, careless: None, later_release: pytest.MonkeyPatch) -> None:
    terminal.add("The user prefers a dark theme", "--tag", "ui")
    for line in COMMANDS:
        done = terminal(*line.split())
        assert done.code == 0, (line, done.err)
    found = {path: stat.S_IMODE(path.lstat().st_mode) for path in terminal.folder.rglob("*")}
    names = {path.name for path in found}
    assert {"memory.db", "graph.svg", "decay.svg", "monday.json", "copy.db"} <= names
    assert any(name.endswith(".bak") for name in names)
    open_to_others = {str(path): oct(mode) for path, mode in found.items() if mode & 0o077 and not _was_there(path)}
    assert open_to_others == {}


def _was_there(path: Path) -> bool:
    """What the test itself made, or what names nothing of anybody: the files for git are meant to be shared."""
    return path.name in (".gitattributes", ".gitignore")
