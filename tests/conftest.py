"""What all tests share: Hypothesis profiles, --long, limits of time, missing tools, and databases to work on."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

from tests.support import later_schema
from tests.support.memory_disk import IN_MEMORY
from tests.support.stand_ins import HandClock, Opener
from tests.support.terminal import Terminal, light_database
from tools.postgres_server import PostgresServer, ServerMissing
from wellkept import Memories, View

# Fault tests start processes one after another, each with a time limit of its own; with --long very many.
FAULTS = Path(__file__).parent / "contract" / "faults"
FAULT_S = 600
LONG_FAULT_S = 3600
IN_CI = os.environ.get("CI") == "true"

# Deadlines are off: they measure how busy the machine is. Speed has its own benchmarks.
settings.register_profile("default", deadline=None, derandomize=False, max_examples=60)
settings.register_profile("quick", deadline=None, derandomize=False, max_examples=15)
# The same examples in every run, so that a red build is red for whoever repeats it.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=150, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run tests marked `long` as well")
    parser.addoption("--save", action="store_true", help="write tests/contract/saved anew: the contract has changed")


def pytest_configure(config: pytest.Config) -> None:
    """Let `tmp_path` lie in memory, where there is room: on a disk, tests that write durably do little but wait."""
    if config.getoption("basetemp") is None and IN_MEMORY is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give fault tests time, and leave out long tests unless they are asked for."""
    fault_s = LONG_FAULT_S if config.getoption("--long") else FAULT_S
    for item in items:
        if item.path.is_relative_to(FAULTS):
            item.add_marker(pytest.mark.timeout(fault_s))
    if config.getoption("--long"):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_collection_finish() -> None:
    """Spare the garbage collector thousands of tests that stay: looking through them took half of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def long_run(request: pytest.FixtureRequest) -> bool:
    """Whether --long was given: fault tests then try many more points of failure."""
    return bool(request.config.getoption("--long"))


@pytest.fixture(scope="session")
def absent() -> Callable[[str], NoReturn]:
    """Call it with a reason where a tool or server is missing: skips here, fails in CI."""
    return _absent


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str], str]:
    """Call it with the name of a program to get its path; without it the test cannot run."""
    return _require_tool


@pytest.fixture
def later_release(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A release that knows a schema 2. To be this one again, undo the patch that it returns."""
    for module, migrations in later_schema.EVERY:
        monkeypatch.setattr(module, "MIGRATIONS", migrations)
    return monkeypatch


@pytest.fixture(scope="session")
def postgres_server(absent: Callable[[str], NoReturn]) -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests of this process; new databases have pgvector. Not to be stopped by tests."""
    try:
        server = PostgresServer(parent=IN_MEMORY)
    except ServerMissing as error:
        absent(str(error))
    try:
        server.execute("CREATE EXTENSION vector", "template1")
        yield server
    finally:
        server.close()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A PostgreSQL database that is empty and the test's own."""
    url = postgres_server.create()
    yield url
    postgres_server.drop(url)


@pytest.fixture(params=["ram", "sqlite", "jsonl"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens databases; called again, it opens the same one if the store keeps it."""
    opener = Opener(request.param, tmp_path)
    yield opener
    opener.close()


@pytest.fixture
def file_opener(tmp_path: Path) -> Iterator[Opener]:
    """For what only a store that lasts can show."""
    opener = Opener("sqlite", tmp_path)
    yield opener
    opener.close()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def memories(opener: Opener, clock: HandClock) -> Memories:
    """An empty database without an embedder, on a clock that stands still."""
    return opener(clock=clock)


@pytest.fixture
def view(memories: Memories) -> View:
    return memories.view(user="ada", project="api")


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """The command line on an empty database, in this process."""
    light_database(tmp_path / "memory.db")
    return Terminal(tmp_path, monkeypatch, capsys)


def _absent(reason: str) -> NoReturn:
    if IN_CI:
        pytest.fail(f"{reason} (in CI this is a failure)", pytrace=False)
    pytest.skip(reason)


def _require_tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        _absent(f"the program {name!r} is not installed")
    return path
