"""kill -9 of processes that share an audit log: no entry of what they did is lost, and the chain is whole."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import pytest

import wellkept
from tests.contract.faults.processes import Fork


@pytest.mark.slow
@pytest.mark.req("N7")
def test_killed_processes_lose_no_entry_of_the_audit_log(tmp_path: Path) -> None:
    database, log = tmp_path / "memory.db", tmp_path / "audit.jsonl"
    children = [Fork.start(Path(mkdtemp(dir=tmp_path)), "add_audited", database, log) for _ in range(3)]
    for told in [child.told() for child in children]:
        assert told.killed, told.errors
    with wellkept.open(database, embedder=None, settings={"audit": {"file": str(log)}}) as memories:
        assert memories.audit.verify().checked == 30
        added = {id for entry in memories.audit.list() for id in entry.ids}
        assert added == {memory.id for memory in memories.view(user="ada").list(limit=100)}
        assert memories.audit.verify().valid
