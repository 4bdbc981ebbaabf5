"""Several processes under one plan."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import wellkept
from tests.contract.faults import processes
from tests.contract.faults.processes import Told
from tests.contract.faults.script import view_of
from tests.contract.faults.soundness import assert_sound, fill

LIMIT = 60_000


@pytest.mark.req("L12")
def test_processes_cannot_overrun_a_plan_together(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    base = fill(database)
    children = [processes.start("fill_up", database, name, LIMIT, stdin=subprocess.PIPE) for name in ("a", "b", "c")]
    try:
        for child in children:
            assert child.stdout is not None
            assert "ready" in child.stdout.readline()
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        outputs = [child.communicate(timeout=processes.PATIENCE_S)[0] for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    told = [Told.parse(child.returncode, output) for child, output in zip(children, outputs, strict=True)]
    assert [one.returncode for one in told] == [0, 0, 0]
    refused = [line["details"] for one in told for line in one.of("refused")]
    assert len(refused) == 3
    for details in refused:
        assert details["usage"] <= LIMIT < details["usage"] + details["needed"]
    added = base | {key: id for one in told for key, id in one.added.items()}
    assert_sound(database, added)
    with wellkept.open(database, embedder=None) as memories:
        assert LIMIT - 3_000 < view_of(memories).stats().bytes_used <= LIMIT
