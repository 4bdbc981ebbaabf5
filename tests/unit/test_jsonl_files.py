"""What stands in the plain files, and where: formats, names and modes."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.ports import Record
from recollect.stores.jsonl.folders import FOLDERS, folder
from recollect.testing.builders import START, erased, forgotten, memory, put, updated, vector
from recollect.types import Layer, MemoryType, Owner
from tests.unit.jsonl_files import ADA, MEMORY, MONDAY, opened, read


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


# --- what stands in the files ---------------------------------------------------------------------


@pytest.mark.req("J1")
def test_an_entry_has_the_fields_of_the_format(root: Path) -> None:
    with opened(root) as store:
        one = memory(
            "How do I implement OAuth2?",
            MONDAY,
            type=MemoryType.CONVERSATION,
            role="user",
            importance=0.8,
            tags=("oauth2", "authentication"),
            references=("elsewhere",),
            metadata={"client": "web"},
        )
        put(store, one)
        [entry] = read(root / "sessions/monday@ada/memory.jsonl")
    names = list(entry)
    assert {
        *("id", "session_id", "timestamp", "type", "content"),
        *("importance", "decay_factor", "tags", "references"),
    } < set(names)
    assert names == [*sorted(names[:-1]), "checksum"]
    assert entry["id"] == one.id
    assert entry["session_id"] == "monday"
    assert entry["timestamp"] == START.isoformat().replace("+00:00", "Z")
    assert entry["type"] == "conversation"
    assert entry["content"] == {"role": "user", "message": one.content, "metadata": {"client": "web"}}
    assert (entry["importance"], entry["tags"], entry["references"]) == (0.8, list(one.tags), ["elsewhere"])
    assert (entry["version"], entry["operation"], entry["sequence"]) == (1, "added", 1)
    assert entry["owner"] == ["session", "ada", "monday"]


@pytest.mark.req("J4")
def test_the_checksum_can_be_computed_by_others(root: Path) -> None:
    with opened(root) as store:
        put(store, memory("nested", metadata={"b": {"d": [1, {"f": 2, "e": 3}], "c": "ü"}, "a": 0.5}))
    [entry] = read(root / MEMORY)
    found = entry.pop("checksum")
    canonical = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert found == f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


@pytest.mark.req("J1")
def test_every_version_is_one_line_and_none_is_ever_changed(root: Path) -> None:
    with opened(root) as store:
        one = memory("one\nline\r\n\u2028")
        put(store, one)
        before = (root / MEMORY).read_bytes()
        store.apply([updated(one, content="two")])
        after = (root / MEMORY).read_bytes()
    assert after.startswith(before)
    assert [entry["content"]["message"] for entry in read_lines(after)] == [one.content, "two"]


def read_lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.split(b"\n") if line]


@pytest.mark.req("J8")
def test_tombstones_tell_what_was_forgotten_and_erased(root: Path) -> None:
    with opened(root) as store:
        one, two = memory("one secret"), memory("two")
        put(store, one, two)
        store.apply([forgotten(two, reason="outdated")])
        store.apply([erased(one, reason="asked for")])
    told = [(line["id"], line["operation"], line["reason"]) for line in read(root / "users/ada/tombstones.jsonl")]
    assert told == [(two.id, "forgotten", "outdated"), (one.id, "erased", "asked for")]
    assert b"secret" not in b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())


@pytest.mark.req("J1", "J11")
def test_the_index_has_the_fields_of_the_format_and_its_offsets_lead_to_the_lines(root: Path) -> None:
    with opened(root) as store:
        one = memory("one", MONDAY, type=MemoryType.DECISION, tags=("security", "api"), importance=0.85)
        two, gone = memory("two", MONDAY, tags=("api",)), memory("gone", MONDAY)
        put(store, one, two, gone)
        store.apply([updated(two, content="two, changed"), forgotten(gone)])
    place = root / "sessions/monday@ada"
    index = json.loads((place / "index.json").read_text())
    assert index["version"] == 1
    assert index["tags"] == {"security": [one.id], "api": [one.id, two.id]}
    assert index["types"] == {"decision": [one.id], "fact": [two.id]}
    assert index["entries"][one.id]["tags"] == ["security", "api"]
    assert 0 < index["entries"][one.id]["current_relevance"] <= 0.85
    assert index["entries"][gone.id]["deleted"] is True
    data = (place / "memory.jsonl").read_bytes()
    for memory_id, message in ((one.id, "one"), (two.id, "two, changed")):
        entry = index["entries"][memory_id]
        line = data[entry["byte_offset"] :].split(b"\n")[0]
        assert line == data.split(b"\n")[entry["line_number"] - 1]
        assert json.loads(line)["content"]["message"] == message
    everywhere = json.loads((root / "indices/global_index.json").read_text())
    assert everywhere["entries"] == {one.id: "sessions/monday@ada", two.id: "sessions/monday@ada"}
    topics = json.loads((root / "indices/topic_index.json").read_text())
    assert topics["topics"]["api"] == {"sessions/monday@ada": [one.id, two.id]}


@pytest.mark.req("J1", "J2")
def test_the_record_of_a_session_stands_in_its_metadata(root: Path) -> None:
    body = (
        b'{"session_id":"monday","user_id":"ada","created_at":"2026-01-10T14:00:00Z","preferences":{"language":"en"}}'
    )
    record = Record(owner=ADA, kind="session", name="monday", body=body, version=1, updated_at=START)
    with opened(root) as store:
        store.put_record(record)
        put(store, memory("one", MONDAY, type=MemoryType.DECISION), memory("two", MONDAY, type=MemoryType.FINDING))
    found = json.loads((root / "sessions/monday@ada/metadata.json").read_text())
    assert found["version"] == 1
    assert (found["session_id"], found["user_id"], found["preferences"]) == ("monday", "ada", {"language": "en"})
    assert found["total_entries"] == 2
    assert found["total_size_bytes"] > 0
    assert found["statistics"] == {"decisions": 1, "findings": 1}
    with opened(root) as store:
        assert store.record(ADA, "session", "monday") == record


def test_a_session_without_a_record_has_metadata_as_well(root: Path) -> None:
    with opened(root) as store:
        put(store, memory("one", MONDAY))
        assert store.records({ADA}, "session") == []
    found = json.loads((root / "sessions/monday@ada/metadata.json").read_text())
    assert (found["session_id"], found["user_id"], found["total_entries"]) == ("monday", "ada", 1)
    with opened(root) as store:
        assert store.records({ADA}, "session") == []


def test_one_record_that_cannot_be_read_hides_no_other(root: Path) -> None:
    one, two = (
        Record(owner=ADA, kind="session", name=name, body=b"{}", version=1, updated_at=START) for name in ("a", "b")
    )
    with opened(root) as store:
        store.put_record(one)
        store.put_record(two)
        (root / "sessions/a@ada/metadata.json").write_text("{")
        assert store.records({ADA}, "session") == [two]
        with pytest.raises(recollect.errors.StoreCorrupt):
            store.record(ADA, "session", "a")
        [finding] = store.check().findings
        assert "sessions/a@ada/metadata.json" in finding.message


def test_the_indexes_are_written_while_the_store_stays_open(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.stores.jsonl.store.SUMMARISED_AFTER", 5)
    with opened(root) as store:
        for number in range(10):
            put(store, memory(f"number {number}"))
        index = json.loads((root / "users/ada/index.json").read_text())
        assert len(index["entries"]) >= 6


# --- names and modes ------------------------------------------------------------------------------

HOSTILE = (
    "..",
    "../..",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "%2e%2e",
    "nul\x00byte",
    "CON",
    "Ada",
    "ada ",
    "a" * 256,
    "ü@x",
    "",
)


@pytest.mark.req("J12")
def test_no_id_leads_out_of_the_root(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "memory"
    (tmp_path / "deep").mkdir()
    owners = [
        Owner(layer, (user, *rest)) for layer in Layer for user in HOSTILE for rest in ((), ("..",), (HOSTILE[-3],))
    ]
    with opened(root, durability="relaxed") as store:
        put(store, *(memory(str(whose), whose) for whose in owners))
        for whose in owners:
            store.put_record(Record(owner=whose, kind="../x", name="../y", body=b"{}", version=1, updated_at=START))
    with opened(root) as store:
        for whose in owners:
            assert [stored.memory.content for stored in store.scan({whose})] == [str(whose)]
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["memory"]
    assert {path.name for path in root.iterdir()} <= {
        *FOLDERS.values(),
        *("journal", "records", "indices", "settings.jsonl", "config.json"),
    }


@pytest.mark.req("J12")
@given(
    left=st.lists(st.text(max_size=300), max_size=3).map(tuple),
    right=st.lists(st.text(max_size=300), max_size=3).map(tuple),
)
def test_different_owners_have_different_folders_even_where_case_is_ignored(
    left: tuple[str, ...], right: tuple[str, ...]
) -> None:
    places = [folder(Owner(Layer.SESSION, ids)) for ids in (left, right)]
    assert (left == right) is (places[0].casefold() == places[1].casefold())
    for place in places:
        top, _, name = place.partition("/")
        assert top == "sessions"
        assert name.strip(". ")
        assert "/" not in name
        assert name.isascii()
        assert len(name) <= 255


@pytest.mark.req("J12")
@pytest.mark.parametrize("umask", [0, 0o022, 0o277])
def test_files_are_private_whatever_the_umask(root: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with opened(root) as store:
            put(store, memory("one", MONDAY, vector=vector(1, 0)))
            store.touch([memory("x").id], START)
            store.put_record(Record(owner=ADA, kind="k", name="n", body=b"{}", version=1, updated_at=START))
    finally:
        os.umask(before)
    for path in (root, *root.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
