"""Starting children, striking them with strace, and reading what they told."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.contract.faults import script

ROOT = Path(__file__).resolve().parents[3]
# Every system call with which SQLite changes a file, its length, its name or what is safe on the disk.
WRITES = ("pwrite64", "fdatasync", "fsync", "ftruncate", "unlink")
PATIENCE_S = 120
_KILLED = (-9, 137)
"""Return codes of what was killed; strace ends by the signal that ended its child."""


def command(what: str, *arguments: object) -> list[str]:
    """How a child is started."""
    return [sys.executable, "-m", "tests.contract.faults.script", what, *map(str, arguments)]


def start(what: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start a child; its standard output is a pipe unless told otherwise."""
    return subprocess.Popen(
        command(what, *arguments), **{"cwd": ROOT, "stdout": subprocess.PIPE, "text": True, **options}
    )


@dataclass(frozen=True, slots=True)
class Told:
    """What a child told until it ended."""

    returncode: int
    lines: list[dict[str, Any]] = field(default_factory=list)
    errors: str = ""

    @classmethod
    def parse(cls, returncode: int, text: str, errors: str = "") -> Told:
        """A kill may tear the last line: a write into a file ends where a page does."""
        whole = text[: text.rfind("\n") + 1] if returncode in _KILLED else text
        return cls(returncode, [json.loads(line) for line in whole.splitlines()], errors)

    def of(self, did: str) -> list[dict[str, Any]]:
        """The lines of one kind."""
        return [line for line in self.lines if line["did"] == did]

    @property
    def added(self) -> dict[str, str]:
        """The acknowledged memories: ids by key."""
        return {key: id for line in self.of("added") for key, id in line["ids"].items()}

    @property
    def killed(self) -> bool:
        """Whether a strike hit it."""
        return self.returncode in _KILLED


def run(what: str, *arguments: object, prefix: tuple[str, ...] = ()) -> Told:
    """Run a child to its end; one that no other program looks after is forked, which saves the start of Python."""
    if not prefix:
        with TemporaryDirectory() as folder:
            child = Fork.start(Path(folder), what, *arguments)
            try:
                return child.told()
            finally:
                child.end()
    done = subprocess.run(
        [*prefix, *command(what, *arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Told.parse(done.returncode, done.stdout, done.stderr)


# Forks the children: it has imported what they need, and has no threads, as the process of the tests may have.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [script.__name__, __name__, *(f"tests.support.{name}" for name in "later_schema small_batches stand_ins".split())]
)


@dataclass(frozen=True, slots=True)
class Fork:
    """A child that tells into a file, so that nobody has to read along."""

    what: str
    process: BaseProcess
    folder: Path

    @classmethod
    def start(cls, folder: Path, what: str, *arguments: object) -> Fork:
        """Start it, with an empty folder for what it tells."""
        process = _FORKS.Process(target=_work, args=(str(folder), what, *map(str, arguments)))
        with chdir(ROOT):
            process.start()
        return cls(what, process, folder)

    def told(self) -> Told:
        """What it told, when it has ended, however it did."""
        self.process.join(PATIENCE_S)
        assert self.process.exitcode is not None, f"{self.what} did not end in {PATIENCE_S} s"
        return Told.parse(self.process.exitcode, *((self.folder / name).read_text() for name in _OUTPUTS))

    def end(self) -> None:
        """Kill it, if it has not ended."""
        self.process.kill()
        self.process.join()


_OUTPUTS = ("output", "errors")


def _work(folder: str, what: str, *arguments: str) -> None:
    for number, name in ((2, _OUTPUTS[1]), (1, _OUTPUTS[0])):  # who finds the output may kill: then both are there
        os.dup2(os.open(Path(folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    random.seed()
    script.CHILDREN[what](*arguments)


def kill_after(lines: int, pause_s: float, what: str, *arguments: object) -> Told:
    """Start a child, and kill it a moment after it told so many lines, unless it has ended; all that it told."""
    with TemporaryDirectory() as folder:
        child = Fork.start(Path(folder), what, *arguments)
        output = Path(folder, _OUTPUTS[0])
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not (output.exists() and output.read_bytes().count(b"\n") >= lines):
                if child.process.exitcode is not None:
                    break
                assert time.monotonic() < deadline, f"{what} told too little"
                time.sleep(0.001)
            time.sleep(pause_s)
        finally:
            child.end()
        return child.told()


def finish(what: str, *arguments: object) -> Told:
    """Run a child that must succeed."""
    told = run(what, *arguments)
    assert told.returncode == 0, told.errors
    return told


@dataclass(frozen=True, slots=True)
class Strace:
    """Runs children under strace. Its option --seccomp-bpf stops them at the calls that are asked for alone, which is
    faster; but with it no signal is injected.
    """

    program: str

    def _options(self, calls: tuple[str, ...], *more: str, log: str = os.devnull) -> tuple[str, ...]:
        return (self.program, "-f", "-y", "-o", log, "-e", f"trace={','.join(calls)}", *more)

    def kill(self, call: str, number: int, what: str, *arguments: object) -> Told:
        """Kill the child when it enters a system call for the n-th time."""
        options = self._options((call,), "-e", f"inject={call}:signal=KILL:when={number}")
        told = run(what, *arguments, prefix=options)
        assert told.killed or told.returncode == 0, told.errors
        return told

    def fail(self, call: str, when: str, what: str, *arguments: object) -> Told:
        """Let system calls fail with EIO."""
        options = self._options((call,), "--seccomp-bpf", "-e", f"inject={call}:error=EIO:when={when}")
        return run(what, *arguments, prefix=options)

    def calls(
        self, log: Path, what: str, *arguments: object, traced: tuple[str, ...] = (*WRITES, "write")
    ) -> list[tuple[str, str]]:
        """The calls of a child that nothing happens to, in order, each with the file or pipe it went to."""
        told = run(what, *arguments, prefix=self._options(traced, "--seccomp-bpf", log=str(log)))
        assert told.returncode == 0, told.errors
        found = re.findall(r'^\d+ +(\w+)\((?:\d+<([^>]*)>|"([^"]*)")', log.read_text(), re.MULTILINE)
        return [(call, by_number or by_name) for call, by_number, by_name in found]


def sweep(
    totals: Counter[str], strike: Callable[[str, int], Told], *, every: bool, points: int
) -> Iterator[tuple[str, int, Told]]:
    """Strike at every call up to the first one that the child does not reach, or in the middle of its work and at some
    points chosen at random.

    The strikes run a few at a time: most of a child's life is the start of Python.
    """
    with ThreadPoolExecutor(max_workers=3) as pool:
        if every:
            for call in totals:
                chosen = range(1, totals[call] + 1)
                for number, told in zip(chosen, pool.map(lambda n, c=call: strike(c, n), chosen), strict=True):
                    yield call, number, told
        else:
            reachable = [(call, number) for call in totals for number in range(1, totals[call] + 1)]
            middle = reachable.pop(len(reachable) // 2)
            picked = [middle, *random.sample(reachable, min(points - 1, len(reachable)))]
            for (call, number), told in zip(picked, pool.map(lambda at: strike(*at), picked), strict=True):
                yield call, number, told
