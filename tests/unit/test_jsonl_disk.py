"""What a store of plain files does on the disk: when it reads nothing, and what a crash in between leaves."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.contract.stores.test_jsonl_compaction import MONDAY, opened
from tests.support.jsonl_files import contents, filled
from tests.support.jsonl_files import opened as opened_store
from tests.support.stand_ins import HandClock
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import StoreError
from wellkept.settings import RetryPolicy
from wellkept.stores.jsonl.disk import Disk
from wellkept.testing.builders import START


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.mark.req("J3")
def test_a_read_without_foreign_writes_reads_no_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(root)
    with opened_store(root) as store:
        contents(store)
        monkeypatch.setattr(Disk, "read", lambda *_: pytest.fail("a file was read"))
        assert len(contents(store)) == 5
        monkeypatch.undo()


@pytest.mark.req("J9")
@pytest.mark.parametrize("file", ["damaged.jsonl", "vectors.jsonl", "index.json", "memory.jsonl", "archive.jsonl"])
def test_a_crash_between_the_commit_and_the_exchange_is_made_good(
    root: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """Whichever file was to be exchanged next, opening the folder again is enough."""
    clock, embedder = HandClock(), HashingEmbedder(64)
    with opened(root, clock=clock, embedder=embedder) as memories:
        session = memories.view(user="ada").sessions.create("monday")
        session.view.add("kept")
        session.view.add("secret of the archive", tags=["secret"], expires_at=START + timedelta(hours=1))
        clock.time = START + timedelta(hours=2)
        session.compact()  # its lines stand in the archive only
        clock.time = START + timedelta(hours=3)
        session.view.forget(session.view.add("secret").id)
    damaged = (root / MONDAY / "archive.jsonl").read_bytes().splitlines()[0][:-9]
    with (root / MONDAY / "memory.jsonl").open("ab") as appended:
        appended.write(damaged + b"\n")
    with opened(root, clock=clock, embedder=embedder, retry=RetryPolicy(attempts=1)) as memories:
        session = memories.view(user="ada").sessions.load("monday")
        _crash_at(monkeypatch, file)
        with pytest.raises(StoreError, match="may still stand"):
            session.compact(purge=True)
        run = memories.upkeep.runs()[0]
        assert (run.job, run.completed_at) == ("compaction", None), "whether it did anything is not known"
    monkeypatch.undo()
    opened(root, clock=clock).close()
    assert b"secret" not in b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    with opened(root, clock=clock) as memories:
        session = memories.view(user="ada").sessions.load("monday")
        assert [one.content for one in session.view.list()] == ["kept"]
        assert len(memories.upkeep.undo(run.id).erased) == 2
        session.compact()
        assert memories.doctor().healthy


def _crash_at(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """From the exchange or removal of a file on, nothing is written any more."""
    gone = []

    def until_then(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(disk: Disk, name: str, *args: Any, **more: Any) -> Any:
            gone.extend([name] if name.endswith(f"{MONDAY}/{file}") else [])
            if gone:
                raise StoreError("the power is gone")
            return method(disk, name, *args, **more)

        return call

    for method in ("replace", "remove", "append"):
        monkeypatch.setattr(Disk, method, until_then(getattr(Disk, method)))
