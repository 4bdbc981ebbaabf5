"""Fault tests that hold for every store that is kept on a disk run for each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Named = Callable[[str], str]


@pytest.fixture(params=["sqlite", "jsonl"])
def named(request: pytest.FixtureRequest, tmp_path: Path) -> Named:
    """From a name to a database of that name, in a folder that is the test's own."""
    if request.param == "jsonl":
        return lambda name: f"jsonl:{tmp_path / name}"
    return lambda name: str(tmp_path / f"{name}.db")


@pytest.fixture
def database(named: Named) -> str:
    """A database that is not there yet."""
    return named("memory")
