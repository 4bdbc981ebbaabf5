"""The command line for tests: called in this process, started as another one, or started on a terminal of its own."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import wellkept
from wellkept.cli.app import run
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.settings import FILE, trust

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "wellkept")


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str = ""

    @property
    def answer(self) -> Any:
        """What it answered in JSON."""
        return json.loads(self.out)

    @property
    def result(self) -> Any:
        """The result of a command that worked."""
        assert self.code == 0, self.err + self.out
        return self.answer["result"]


class Terminal:
    """Runs commands in this process, on one database, in a folder and an environment of their own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.database = folder / "memory.db"
        self._monkeypatch, self._capsys = monkeypatch, capsys
        for name in [name for name in os.environ if name.startswith("WELLKEPT_")]:
            monkeypatch.delenv(name)
        for name, value in environment(folder).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(folder)

    def __call__(self, *args: str, stdin: bytes | None = None) -> Done:
        given = io.TextIOWrapper(io.BytesIO(stdin or b""), encoding="utf-8")
        self._monkeypatch.setattr(sys, "stdin", given)
        self._capsys.readouterr()
        code = run(args)
        said = self._capsys.readouterr()
        return Done(code, said.out, said.err)

    def json(self, *args: str, stdin: bytes | None = None) -> Any:
        """The result of a command, as a program gets it."""
        return self(*args, "--json", stdin=stdin).result

    def configure(self, text: str, *, trusted: bool = True) -> Path:
        """Write the file of settings of the folder, and trust it."""
        file = self.folder / FILE
        file.write_text(text, encoding="utf-8")
        if trusted:
            trust.trust(file, text)
        return file

    def add(self, content: str, *options: str) -> str:
        """Remember something; its id."""
        id: str = self.json("add", content, *options)["memories"][0]["id"]
        return id


def environment(folder: Path) -> dict[str, str]:
    """What a command needs to know of the world; nothing of this machine."""
    return {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "share"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "WELLKEPT_DB": str(folder / "memory.db"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "PYTHONIOENCODING": "utf-8",
        "TERM": "xterm",
        "COLUMNS": "",
        "NO_COLOR": "",
        "FORCE_COLOR": "",
    }


def light_database(path: Path) -> Path:
    """An empty database whose embedder is quick to load and whose writes wait for no disk."""
    with wellkept.open(path, embedder=None, durability="relaxed") as memories:
        memories.reembed(HashingEmbedder(32))
    return path


def started(folder: Path, *args: str, stdin: bytes = b"", **variables: str) -> Done:
    """Run a command as a process of its own, with pipes."""
    done = subprocess.run(
        [*COMMAND, *args],
        input=stdin,
        capture_output=True,
        cwd=folder,
        env={**os.environ, **environment(folder), **variables},
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def at_terminal(
    folder: Path, *args: str, columns: int = 80, typed: tuple[str, bytes] | None = None, **variables: str
) -> Done:
    """Run a command on a terminal of its own. ``typed`` is what to wait for, and what somebody types then."""
    child, terminal = pty.fork()
    if child == 0:  # another process: it becomes the command, or ends
        try:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.chdir(folder)
            os.execve(COMMAND[0], [*COMMAND, *args], {**os.environ, **environment(folder), **variables})
        finally:
            os._exit(99)
    seen = b""
    try:
        while piece := os.read(terminal, 65536):
            seen += piece
            if typed and typed[0].encode() in seen:
                os.write(terminal, typed[1])
                typed = None
    except OSError:  # Linux says so when the other side of a terminal is closed
        pass
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return Done(os.waitstatus_to_exitcode(status), seen.decode().replace("\r\n", "\n"))
