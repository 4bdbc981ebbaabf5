"""What unit tests of conversion share."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.converted import KINDS, fill, store_of
from wellkept.ports import Store
from wellkept.transfer import comparison


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
