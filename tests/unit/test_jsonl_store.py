"""The store in plain files: what stands in them, what happens when somebody damages them, and that nothing escapes."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.errors import ConfigurationError, NotAStore, SchemaTooNew
from recollect.ports import Record, Store
from recollect.stores.jsonl import JsonlStore, commits, lines
from recollect.stores.jsonl.folders import FOLDERS, folder
from recollect.testing.builders import START, added, erased, forgotten, memory, owner, put, query, updated, vector
from recollect.types import Layer, MemoryType, Owner, Status

ADA = owner("ada")
MONDAY = Owner(Layer.SESSION, ("ada", "monday"))
MEMORY = "users/ada/memory.jsonl"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@contextmanager
def opened(root: Path, **options: Any) -> Iterator[JsonlStore]:
    with closing(JsonlStore(root, **options)) as store:
        yield store


def filled(root: Path, count: int = 5) -> list[str]:
    """A store with some memories of ada's; returns their contents."""
    contents = [f"number {number}" for number in range(count)]
    with opened(root) as store:
        put(store, *(memory(content, tags=("tag",)) for content in contents))
    return contents


def contents(store: Store) -> list[str]:
    return [stored.memory.content for stored in store.scan({ADA})]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def edit(path: Path, change: Callable[[list[bytes]], object]) -> None:
    """Change the lines of a file by hand."""
    found = path.read_bytes().splitlines(keepends=True)
    change(found)
    path.write_bytes(b"".join(found))


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
    assert list(entry)[:9] == [
        *("id", "session_id", "timestamp", "type", "content"),
        *("importance", "decay_factor", "tags", "references"),
    ]
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
        with pytest.raises(recollect.StoreCorrupt):
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
        *("journal", "records", "indices", "settings.jsonl"),
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


# --- damage ---------------------------------------------------------------------------------------


@pytest.mark.req("J11")
@pytest.mark.parametrize("cut", [1, 20, 100])
def test_a_torn_last_line_is_passed_over_and_healed_by_the_next_write(root: Path, cut: int) -> None:
    known = filled(root)
    whole = (root / MEMORY).read_bytes()
    with (root / MEMORY).open("ab") as file:
        file.write(whole.splitlines()[0][:-cut])
    with opened(root) as store:
        assert contents(store) == known
        assert store.check().healthy
        put(store, memory("next"))
        assert contents(store) == [*known, "next"]
    assert len(read(root / MEMORY)) == len(known) + 1
    with opened(root) as store:
        assert contents(store) == [*known, "next"]


@pytest.mark.req("J4")
@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line.replace(b"number 2", b"number 7"),
        lambda line: line[:40] + b"\xff\xfe" + line[42:],
        lambda line: b"{" + line[1:-3] + b"\n",
        lambda line: b"not json\n",
        lambda line: b"[]\n",
        lambda line: b"\0" * (len(line) - 1) + b"\n",
    ],
    ids=["content", "bytes", "brace", "words", "array", "zeros"],
)
def test_a_damaged_line_is_passed_over_counted_and_reported(root: Path, damage: Callable[[bytes], bytes]) -> None:
    known = filled(root)
    edit(root / MEMORY, lambda found: found.__setitem__(2, damage(found[2])))
    left = [content for content in known if content != "number 2"]
    with opened(root) as store:
        assert contents(store) == left
        health = store.health()
        assert health.status is Status.DEGRADED
        assert health.components["damaged_lines"] == "1"
        [finding] = [one for one in store.check().findings if one.check == "lines"]
        assert "users/ada/memory.jsonl (line 3)" in finding.message
        put(store, memory("next"))
    with opened(root) as store:
        assert contents(store) == [*left, "next"]
        diagnosis = store.check(repair=True)
        assert diagnosis.healthy
        assert store.check().findings == ()
        assert store.health().status is Status.HEALTHY
        assert contents(store) == [*left, "next"]
    assert len((root / "users/ada/damaged.jsonl").read_bytes().splitlines()) == 1
    with opened(root) as store:
        assert contents(store) == [*left, "next"]


@pytest.mark.req("J4")
def test_a_memory_goes_back_to_its_last_good_version(root: Path) -> None:
    with opened(root) as store:
        one = memory("first")
        put(store, one)
        store.apply([updated(one, content="second")])
    edit(root / MEMORY, lambda found: found.__setitem__(1, found[1].replace(b"second", b"sacond")))
    with opened(root) as store:
        assert contents(store) == ["first"]
        last = store.sequence()
        assert store.apply([updated(one, content="again")]) == [last + 1]


@pytest.mark.req("J8")
def test_erasing_reaches_lines_that_were_set_aside(root: Path) -> None:
    with opened(root) as store:
        one = memory("a first secret")
        put(store, one)
        store.apply([updated(one, content="second")])
    edit(root / MEMORY, lambda found: found.__setitem__(0, found[0].replace(b"a first", b"a furst")))
    with opened(root) as store:
        store.check(repair=True)
        assert b"secret" in (root / "users/ada/damaged.jsonl").read_bytes()
        store.apply([erased(replace(one, version=2))])
    assert b"secret" not in b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())


@pytest.mark.req("J11")
@pytest.mark.parametrize("name", ["users/ada/index.json", "indices/global_index.json", "indices/topic_index.json"])
@pytest.mark.parametrize("damage", ["", "{", "[1]", None])
def test_an_index_that_is_missing_or_damaged_is_made_again(root: Path, name: str, damage: str | None) -> None:
    known = filled(root)
    good = json.loads((root / name).read_text())
    if damage is None:
        (root / name).unlink()
    else:
        (root / name).write_text(damage)
    with opened(root) as store:
        assert contents(store) == known
        assert store.count(query(ADA, tags=("tag",))) == len(known)
        if damage:
            assert [one.check for one in store.check().findings] == ["indexes"]
        assert store.check(repair=True).healthy
        store.rebuild()
    again = json.loads((root / name).read_text())
    assert again.keys() == good.keys()
    for part in ("entries", "topics", "tags"):
        assert set(again.get(part, ())) == set(good.get(part, ()))


@pytest.mark.req("J11")
def test_without_the_commit_log_every_whole_line_counts(root: Path) -> None:
    known = filled(root)
    (root / commits.LOG).unlink()
    with opened(root) as store:
        assert contents(store) == known
        last = store.sequence()
        assert last == len(known)
        assert put(store, memory("next")) == [last + 1]
        assert store.check().healthy
    with opened(root) as store:
        assert contents(store) == [*known, "next"]


@pytest.mark.req("J11")
@pytest.mark.parametrize("line", [0, 2, -1])
def test_a_damaged_commit_log_costs_no_memory(root: Path, line: int) -> None:
    with opened(root) as store:
        for number in range(5):
            put(store, memory(f"number {number}"))
    known = [f"number {number}" for number in range(5)]
    edit(root / commits.LOG, lambda found: found.__setitem__(line, found[line].replace(b"sequence", b"sequenze")))
    with opened(root) as store:
        assert contents(store) == known
        put(store, memory("next"))
        assert store.check().healthy
    with opened(root) as store:
        assert contents(store) == [*known, "next"]


@pytest.mark.req("J11")
def test_the_log_may_vanish_while_the_store_is_open(root: Path) -> None:
    with opened(root) as store, opened(root) as other:
        put(store, memory("one"))
        (root / commits.LOG).unlink()
        assert contents(other) == contents(store) == ["one"]
        put(other, memory("two"))
        assert contents(store) == ["one", "two"]


def test_lines_that_a_person_appended_are_kept_and_reported(root: Path) -> None:
    known = filled(root)
    with (root / MEMORY).open("a") as file:
        file.write('{"id": "by hand", "content": {"message": "written by a person"}}\n')
    with opened(root) as store:
        assert contents(store) == known
        assert [one.check for one in store.check().findings] == ["ends"]
        put(store, memory("next"))
        assert contents(store) == [*known, "next"]
        assert [one.check for one in store.check().findings] == ["lines"]
    assert b"written by a person" in (root / MEMORY).read_bytes()


def test_lines_reformatted_by_a_tool_are_the_same_lines(root: Path) -> None:
    """As ``jq -c -S .`` would do: other spaces, another order, the same values."""
    known = filled(root)
    text = "".join(json.dumps(entry, sort_keys=True) + "\n" for entry in read(root / MEMORY))
    (root / MEMORY).write_text(text)
    with opened(root) as store:
        assert contents(store) == known
        put(store, memory("next"))
    with opened(root) as store:
        assert contents(store) == [*known, "next"]


@pytest.mark.req("J1")
def test_lines_of_a_newer_release_are_not_read(root: Path) -> None:
    filled(root)
    entry = read(root / MEMORY)[0]
    del entry["checksum"]
    newer = lines.seal({**entry, "schema_version": lines.SCHEMA + 1})
    edit(root / MEMORY, lambda found: found.__setitem__(0, newer))
    with pytest.raises(SchemaTooNew) as raised:
        JsonlStore(root)
    assert raised.value.hint


# --- opening --------------------------------------------------------------------------------------


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NotAStore):
        JsonlStore(tmp_path)
    with pytest.raises(NotAStore):
        JsonlStore(tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_folder_remembers_its_durability(root: Path) -> None:
    with opened(root, durability="relaxed") as store:
        assert store.durability == "relaxed"
    with opened(root) as store:
        assert store.durability == "relaxed"
    with pytest.raises(ConfigurationError):
        JsonlStore(root, durability="full")
    with pytest.raises(ConfigurationError):
        JsonlStore(root, durability="some")
    with pytest.raises(ConfigurationError):
        JsonlStore.from_url("jsonl:")


@pytest.mark.req("J3")
def test_a_read_without_foreign_writes_reads_no_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(root)
    with opened(root) as store:
        assert len(contents(store)) == 5
        monkeypatch.setattr(store._disk, "read", lambda *_: pytest.fail("a file was read"))
        assert len(contents(store)) == 5
        monkeypatch.undo()


@pytest.mark.req("J3")
def test_a_log_that_became_long_is_replaced_under_open_stores(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "CHECKPOINT_BYTES", 2_000)
    with opened(root) as one, opened(root) as other:
        for number in range(40):
            put(one if number % 3 else other, memory(f"number {number}"))
            assert len(contents(other)) == len(contents(one)) == number + 1
        assert (root / commits.LOG).stat().st_size < 3_000
    with opened(root) as again:
        assert len(contents(again)) == 40


@pytest.mark.req("J3", "J8")
def test_other_open_stores_follow_an_erasure(root: Path) -> None:
    with opened(root) as one, opened(root) as other:
        first, second = memory("first", vector=vector(1, 0)), memory("second", vector=vector(0, 1))
        put(one, first)
        assert contents(other) == ["first"]
        put(one, second)
        one.apply([erased(first)])
        assert contents(other) == ["second"]
        other.apply([added(memory("third"))])
        assert contents(one) == contents(other) == ["second", "third"]
        assert one.versions({ADA}) == other.versions({ADA})


# --- disks that fail ------------------------------------------------------------------------------


def broken(store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A disk that takes nothing, as one without room; returns what mends it."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", full)
    monkeypatch.setattr("recollect.stores.jsonl.disk._write", full)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return monkeypatch.undo


@pytest.mark.req("J10")
def test_a_full_disk_refuses_and_keeps_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = filled(root)
    with opened(root) as store:
        mend = broken(store, monkeypatch)
        with pytest.raises(recollect.StoreFull):
            put(store, memory("refused"))
        assert contents(store) == known
        mend()
        put(store, memory("taken"))
    with opened(root) as store:
        assert contents(store) == [*known, "taken"]


@pytest.mark.req("J10")
def test_a_relaxed_store_buffers_says_so_and_writes_when_the_disk_is_well(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(root, durability="relaxed") as store, opened(root) as other:
        put(store, one := memory("one"))
        mend = broken(store, monkeypatch)
        put(store, memory("two"))
        store.apply([updated(one, content="one, changed")])
        assert contents(store) == ["one, changed", "two"]
        health = store.health()
        assert health.status is Status.DEGRADED
        assert health.components["buffered_writes"] == "2"
        with pytest.raises(recollect.StoreFull):
            store.apply([erased(replace(one, version=2))])
        mend()
        assert contents(other) == ["one"]
        put(store, memory("three"))
        assert store.health().status is Status.HEALTHY
        assert contents(other) == contents(store) == ["one, changed", "two", "three"]
        assert store.versions({ADA}) == other.versions({ADA})


@pytest.mark.req("J10")
def test_what_waits_in_the_buffer_gives_way_to_what_others_wrote(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(root, durability="relaxed") as store, opened(root) as other:
        put(store, one := memory("one"))
        mend = broken(store, monkeypatch)
        put(store, memory("mine"))
        store.apply([updated(one, content="changed here")])
        mend()
        other.apply([updated(one, content="changed there")])
        assert contents(store) == ["changed there", "mine"]
        assert store.health().components == {"files": "ok", "buffered_writes": "1", "refused_writes": "1"}
        put(store, memory("next"))
        assert contents(other) == contents(store) == ["changed there", "mine", "next"]


@pytest.mark.req("J10")
def test_closing_with_writes_that_cannot_be_kept_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = JsonlStore(root, durability="relaxed")
    mend = broken(store, monkeypatch)
    put(store, memory("one"))
    with pytest.raises(recollect.StoreFull):
        store.close()
    mend()
    with opened(root) as again:
        assert contents(again) == []
