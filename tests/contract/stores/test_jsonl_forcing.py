"""Lines are forced to the disk when the lock is free again: a disk that refuses then."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.support.jsonl_files import ADA, contents, opened
from wellkept.errors import StoreError
from wellkept.testing.builders import Writer


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    root = tmp_path / "memory"
    root.mkdir(mode=0o700)
    (root / "config.json").touch(mode=0o600)
    (root / "config.json").write_text('{"concurrency": {"max_retries": 1, "retry_backoff_ms": 1}}')
    return root


@pytest.mark.req("J10")
@pytest.mark.parametrize(("failures", "behind", "kept"), [(1, False, True), (99, False, False), (99, True, True)])
def test_lines_that_cannot_be_forced_are_written_again_or_taken_back(
    quick: Path, monkeypatch: pytest.MonkeyPatch, failures: int, behind: bool, kept: bool
) -> None:
    """They stay if another writer appended behind them: what others wrote is never cut."""
    writes, left = Writer(), [failures]
    with opened(quick) as store, opened(quick) as other:
        store.journal.append([writes.add(ADA, "before")])

        def refuse(number: int) -> None:
            if behind and left[0] == failures:
                left[0] = 0
                other.journal.append([writes.add(ADA, "behind")])
                left[0] = failures - 1
            if left[0] > 0:
                left[0] -= 1
                raise OSError(errno.EIO, "the disk failed")
            os.fsync(number)

        with monkeypatch.context() as broken:
            broken.setattr(os, "fdatasync", refuse)
            if failures == 99:
                with pytest.raises(StoreError):
                    store.journal.append([writes.add(ADA, "doubtful")])
            else:
                store.journal.append([writes.add(ADA, "doubtful")])
        expected = ["before", *(["doubtful"] if kept else []), *(["behind"] if behind else [])]
        assert contents(store) == expected
        store.journal.append([writes.add(ADA, "after")])
        assert contents(other) == contents(store) == [*expected, "after"]
        assert store.check().healthy
