"""Folders in the format that the store descends from: opened as they are, migrated by the first write, and exported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.jsonl_files import every_file, read
from wellkept import Memories

SESSION = "sess_20260110_user123"


def entry(number: int, content: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"mem_{number:03}",
        "session_id": SESSION,
        "timestamp": f"2026-01-10T10:0{number}:00Z",
        "type": "conversation",
        "content": content,
        "importance": 0.5,
        "decay_factor": 1.0,
        "tags": ["oauth2"],
        "references": [],
        **fields,
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "memory"
    folder = root / "sessions" / SESSION
    folder.mkdir(parents=True)
    decided = {"decision": "Use PKCE", "rationale": "most secure", "alternatives": ["Implicit flow"]}
    entries = [
        entry(1, {"role": "user", "message": "How do I implement OAuth2?"}, checksum="sha256:" + "0" * 64),
        entry(2, decided, type="decision", importance=0.9, references=["mem_001"]),
        entry(3, {"role": "assistant", "message": "Deleted since"}),
    ]
    (folder / "memory.jsonl").write_text("".join(json.dumps(one) + "\r\n" for one in entries) + "half a li\n")
    tombstone = {"id": "mem_003", "timestamp": "2026-01-10T11:00:00Z", "reason": "asked for"}
    (folder / "tombstones.jsonl").write_text(json.dumps(tombstone) + "\n")
    metadata = {
        "session_id": SESSION,
        "user_id": "user123",
        "created_at": "2026-01-10T10:00:00.000Z",
        "last_accessed": "2026-01-10T10:30:00.000Z",
        "total_entries": 3,
        "total_size_bytes": 1048576,
        "decay_config": {"enabled": True, "half_life_hours": 168, "min_decay_factor": 0.1},
        "preferences": {"language": "en", "verbosity": "medium", "custom": {}},
        "statistics": {"conversations": 2},
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))
    (folder / "index.json").write_text('{"version": 1, "entries": {}}')
    (folder / "lock").write_text("")
    (root / "config.json").write_text('{"version": "1.0", "storage": {"max_session_size_mb": 10}}')
    return root


def opened(root: Path) -> Memories:
    return wellkept.open(f"jsonl:{root}", embedder=None)


def contents(memories: Memories) -> dict[str, str]:
    view = memories.view(user="user123", session=SESSION)
    return {one.id: one.content for one in view.list(sort_by="oldest")}


EXPECTED = {
    "mem_001": "How do I implement OAuth2?",
    "mem_002": "decision: Use PKCE\nrationale: most secure\nalternatives: Implicit flow",
}


@pytest.mark.req("J1")
def test_it_is_opened_as_it_is(root: Path) -> None:
    before = every_file(root / "sessions")
    with opened(root) as memories:
        assert contents(memories) == EXPECTED
        view = memories.view(user="user123", session=SESSION)
        [decision] = view.list(filter=wellkept.Filter(types=["decision"])).memories
        assert (decision.importance, decision.references, decision.tags) == (0.9, ("mem_001",), ("oauth2",))
        assert decision.data == {"decision": "Use PKCE", "rationale": "most secure", "alternatives": ["Implicit flow"]}
        assert [one.id for one in memories.view(user="user123").sessions.list()] == [SESSION]
        history = view.history("mem_003")
        assert [(one.operation, one.reason) for one in history] == [("added", None), ("forgotten", "asked for")]
        assert memories.health().status == "degraded", "one line is damaged"
        assert memories.doctor().facts["folders_of_the_older_format"] == f"sessions/{SESSION}"
    assert every_file(root / "sessions") == before


@pytest.mark.req("J1")
@pytest.mark.parametrize("first", ["add", "load", "compact"])
def test_the_first_write_migrates_it(root: Path, first: str) -> None:
    with opened(root) as other, opened(root) as memories:
        view = memories.view(user="user123", session=SESSION)
        position, seen = view.changes().next, contents(other)
        if first == "add":
            view.add("Written later", layer="session")
        elif first == "load":
            memories.view(user="user123").sessions.load(SESSION)
        else:
            memories.view(user="user123").sessions.compact(SESSION)
        more = {"Written later"} if first == "add" else set()
        assert set(contents(memories).values()) == set(contents(other).values()) == {*EXPECTED.values(), *more}
        assert seen == EXPECTED
        assert {one.memory.content for one in view.changes(after=position) if one.memory} == more
    assert not (root / "sessions" / SESSION).exists()
    migrated = root / f"sessions/{SESSION}@user123"
    assert "half a li" in (migrated / "memory.jsonl").read_text()
    with opened(root) as memories:
        assert contents(memories).items() >= EXPECTED.items()
        session = memories.view(user="user123").sessions.load(SESSION)
        assert session.preferences.language == "en"
        metadata = json.loads((migrated / "metadata.json").read_text())
        assert (metadata["preferences"]["language"], metadata["migration"]) == ("en", {"from": 1})
        assert {finding.check for finding in memories.doctor(repair=True).findings} == {"lines", "modes"}
        assert memories.doctor().healthy
        assert contents(memories).items() >= EXPECTED.items()


@pytest.mark.req("J1")
def test_a_migration_that_was_interrupted_goes_on(root: Path) -> None:
    sound = root.with_name("sound")
    shutil.copytree(root, sound)
    with opened(sound) as memories:
        memories.view(user="user123", session=SESSION).add("Written later", layer="session")
    shutil.copytree(sound / f"sessions/{SESSION}@user123", root / f"sessions/{SESSION}@user123")
    with opened(root) as memories:
        assert set(contents(memories).values()) == {*EXPECTED.values(), "Written later"}


@pytest.mark.req("J8")
def test_an_export_is_in_that_format(root: Path) -> None:
    with opened(root) as memories:
        session = memories.view(user="user123").sessions.load(SESSION)
        text = session.export("entries")
    other = root.with_name("other") / "sessions" / SESSION
    other.mkdir(parents=True)
    (other / "memory.jsonl").write_text(text)
    lines = read(other / "memory.jsonl")
    members = {*entry(1, ""), "checksum"}
    assert all(line.keys() == members for line in lines)
    assert lines[1]["content"]["alternatives"] == ["Implicit flow"]
    shutil.copyfile(root / f"sessions/{SESSION}@user123/metadata.json", other / "metadata.json")
    with opened(root.with_name("other")) as memories:
        assert contents(memories) == EXPECTED


@pytest.mark.req("J1")
@pytest.mark.parametrize("missing", ["last_accessed", "created_at", "user_id", "both", "everything"])
def test_metadata_may_lack_what_an_older_program_left_out(root: Path, missing: str) -> None:
    file = root / "sessions" / SESSION / "metadata.json"
    fields = json.loads(file.read_text())
    gone = {"both": {"last_accessed", "created_at"}, "everything": set(fields) - {"session_id"}}.get(missing, {missing})
    file.write_text(json.dumps({name: value for name, value in fields.items() if name not in gone}))
    has_user = missing in ("last_accessed", "created_at", "both")
    with opened(root) as memories:
        view = memories.view(user="user123") if has_user else memories.view(agent="any")  # that of the default user
        sessions = view.sessions
        session = sessions.load(SESSION)
        assert session.stats().entries == 2
        assert [one.id for one in sessions.list()] == [SESSION]
