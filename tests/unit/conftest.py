"""Databases for the tests of the engine: each test runs on every store named here."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.converted import KINDS, fill, store_of
from tests.unit.stand_ins import HandClock, Opener
from tests.unit.terminal import Terminal, light_database
from wellkept import Memories, View
from wellkept.ports import Store
from wellkept.transfer import comparison


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


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(store_of(request.param, tmp_path, "target")) as store:
        yield store


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Something of everything, by two owners, in more than one batch when these are small."""
    with closing(store_of(request.param, tmp_path, "source")) as store:
        fill(store)
        yield store


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "BATCH", 2)
