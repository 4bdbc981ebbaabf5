"""A database that does not open leaves nothing open: neither its store, nor its index, nor its audit log."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

import wellkept
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import ConfigurationError, EmbedderMismatch, StoreClosed, StoreFull, WellkeptError
from wellkept.indexes.ram import RamIndex
from wellkept.keyrings.ram import RamKeyring
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore

EMBEDDER = HashingEmbedder(64)


def _left() -> RamStore:
    """A store whose database left everything to be done that there is at an opening."""
    store = RamStore()
    store.journal.set_settings({"behind": "1", "erasing": "1", "upkeep": "1"})
    return store


def _open(store: FaultyStore, index: RamIndex, file: Path) -> wellkept.Memories:
    return wellkept.open(store=store, embedder=EMBEDDER, index=index, settings={"audit": {"file": str(file)}})


def _is_closed(store: FaultyStore) -> bool:
    try:
        store.store.journal.settings()
    except StoreClosed:
        return True
    return False


def _open_files(file: Path) -> list[str]:
    """Which descriptors are open on a file, where the system tells."""
    descriptors = Path("/proc/self/fd")
    names = [one.name for one in descriptors.iterdir()] if descriptors.is_dir() else []
    return [one for one in names if os.path.realpath(descriptors / one) == str(file)]


@pytest.mark.parametrize(
    ("error", "least"),
    [(StoreFull("no space left"), 3), (MemoryError(), 8), (KeyboardInterrupt(), 8)],
    ids=("full", "memory", "interrupt"),
)
def test_whatever_step_of_opening_fails_nothing_stays_open(error: BaseException, least: int, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    whole = FaultyStore(_left())
    with _open(whole, RamIndex(), file):
        steps = [(name, call) for name, calls in whole.calls.items() for call in range(1, calls + 1)]
    assert {"settings", "set_settings", "records.list"} <= {name for name, _ in steps}
    failed = [step for step in steps if _fails(step, error, file)]
    assert len(failed) >= least, "others are bookkeeping, after which it opens all the same"


def _fails(step: tuple[str, int], error: BaseException, file: Path) -> bool:
    """Whether the database did not open, and left nothing open."""
    store, index = FaultyStore(_left()), RamIndex()
    store.fail(step[0], error, call=step[1])
    with ExitStack() as opened, suppress(type(error)):
        opened.enter_context(_open(store, index, file))
        return False
    assert _is_closed(store), step
    index.serve("another database")
    assert _open_files(file) == [], step
    return True


@pytest.mark.parametrize(
    ("kind", "opening"),
    [
        (EmbedderMismatch, lambda store: wellkept.open(store=store, embedder=HashingEmbedder(32))),
        (WellkeptError, lambda store: wellkept.open(store=store, embedder=EMBEDDER, keyring=RamKeyring())),
        (
            ConfigurationError,
            lambda store: wellkept.open(store=store, embedder=EMBEDDER, settings={"audit": {"file": "."}}),
        ),
    ],
)
def test_what_does_not_fit_the_store_closes_it(
    kind: type[WellkeptError], opening: Callable[[RamStore], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = RamStore()
    store.journal.adopt(EMBEDDER.name, 64)
    store.journal.set_settings({"keyring": "another"})
    with pytest.raises(kind) as caught:
        opening(store)
    assert caught.value.operation == "open"
    with pytest.raises(StoreClosed):
        store.journal.settings()
