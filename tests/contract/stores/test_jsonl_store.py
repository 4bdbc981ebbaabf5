"""The store in plain files: what it writes, what other processes see, and disks that fail."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.jsonl_files import ADA, MEMORY, MONDAY, contents, every_file, filled, opened, read
from wellkept.errors import ConfigurationError, NotAStore, PositionLost, StoreError, StoreFull
from wellkept.ports import Record
from wellkept.stores.jsonl import JsonlStore
from wellkept.stores.ram import RamStore
from wellkept.testing.builders import START, Writer, bare, owner, vector
from wellkept.testing.cases import Cases
from wellkept.types import Access, Embedded, Layer, Operation, Owner, State, Status

BOB = owner("bob")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


# -- what is written ------------------------------------------------------------------------------------------


@pytest.mark.req("J1")
def test_one_add_is_one_line_in_one_file(root: Path) -> None:
    filled(root)
    before = every_file(root)
    with opened(root) as store:
        store.journal.append([Writer().add(ADA, "one more", write={"vector": vector(1, 0)})])
        truth = {name: data for name, data in every_file(root).items() if not name.startswith(("derived/", "lock"))}
    changed = {name for name, data in truth.items() if before.get(name) != data}
    assert changed == {MEMORY, "settings.json"}  # the first vector of a folder decides on its embedder
    assert truth[MEMORY].startswith(before[MEMORY])
    assert truth[MEMORY].count(b"\n") == before[MEMORY].count(b"\n") + 1


@pytest.mark.req("J1")
def test_what_is_derived_can_be_deleted_at_any_time(root: Path) -> None:
    writes = Writer()
    with opened(root) as store:
        one = writes.add(ADA, "one", write={"vector": vector(1, 0)})
        given = writes.add(ADA, "two", write={"vector": vector(0, 1), "given": True})
        store.journal.append([one, given])
        place = store.journal.position({ADA})
        shutil.rmtree(root / "derived")
        assert contents(store) == ["one", "two"]
    shutil.rmtree(root / "derived")
    with opened(root) as store:
        assert contents(store) == ["one", "two"]
        assert [item.vector for item in store.journal.scan({ADA}, vectors=True)] == [None, vector(0, 1)]
        assert [item.id for item in store.journal.unembedded("kit", 9)] == [one.id]
        with pytest.raises(PositionLost):
            store.journal.versions({ADA}, after=place)


@pytest.mark.req("J1", "J11")
def test_the_index_has_the_fields_of_the_format_and_its_offsets_lead_to_the_lines(root: Path) -> None:
    filled(root)
    index = json.loads((root / "derived/users/ada/index.json").read_text())
    data = (root / MEMORY).read_bytes()
    assert index["version"] == 1
    assert index["tags"] == {"tag": ["m0", "m1", "m2", "m3", "m4"]}
    assert index["types"] == {"fact": ["m0", "m1", "m2", "m3", "m4"]}
    for number, (memory_id, entry) in enumerate(index["entries"].items(), start=1):
        assert entry["line_number"] == number
        assert 0 < entry["current_relevance"] <= 0.75
        assert json.loads(data[entry["byte_offset"] :].split(b"\n")[0])["id"] == memory_id
    assert json.loads((root / "derived/indices/global_index.json").read_text())["entries"]["m3"] == "users/ada"
    assert json.loads((root / "derived/indices/topic_index.json").read_text())["topics"]["tag"]["users/ada"]


@pytest.mark.req("J1", "J2")
def test_the_description_of_a_session_stands_in_its_folder(root: Path) -> None:
    writes = Writer()
    with opened(root) as store:
        store.journal.append([writes.add(MONDAY, "a decision", type="decision"), writes.add(MONDAY, "a fact")])
        body = b'{"session_id":"monday","preferences":{"language":"en"}}'
        store.records.put(Record(owner=ADA, kind="session", name="monday", body=body, version=1, updated_at=START))
        found = json.loads((root / "sessions/monday@ada/metadata.json").read_text())
        assert found["preferences"] == {"language": "en"}
        assert found["total_entries"] == 2
        assert found["statistics"] == {"decisions": 1, "facts": 1}
        assert [record.body for record in store.records.list({ADA}, "session")] == [body]


@pytest.mark.req("J12")
@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_files_are_private_whatever_the_umask(root: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        filled(root)
    finally:
        os.umask(before)
    for path in (root, *root.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


LEADING_OUT = ["..", "../../x", "/etc", "a/b", "\0", "CON", ".git", "x" * 300]


@pytest.mark.req("J12")
def test_no_id_leads_out_of_the_root(tmp_path: Path) -> None:
    with Cases() as cases:
        for name in LEADING_OUT:
            with cases.case(name):
                _stays_in_the_root(Path(mkdtemp(dir=tmp_path)), name)


def _stays_in_the_root(tmp_path: Path, name: str) -> None:
    whose = Owner(Layer.USER, (name,))
    with opened(tmp_path / "memory") as store:
        store.journal.append([Writer().add(whose, "here")])
    assert [path.name for path in tmp_path.iterdir()] == ["memory"]
    assert len(list((tmp_path / "memory/users").iterdir())) == 1
    with opened(tmp_path / "memory") as store:
        assert contents(store, whose) == ["here"]


@pytest.mark.req("J12")
def test_no_link_is_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "memory", tmp_path / "outside"
    filled(root)
    outside.mkdir()
    (root / "users" / "bob").symlink_to(outside)
    with opened(root) as store:
        with pytest.raises(NotAStore):
            store.journal.append([Writer().add(BOB, "through the link")])
        assert len(contents(store)) == 5
    assert list(outside.iterdir()) == []


@pytest.mark.req("J12")
def test_a_pipe_in_place_of_a_file_hides_only_that_owner(root: Path) -> None:
    filled(root)
    (root / "users" / "bob").mkdir()
    os.mkfifo(root / "users" / "bob" / "memory.jsonl")
    with opened(root) as store:
        assert len(contents(store)) == 5
        assert not store.check().healthy


# -- several processes ----------------------------------------------------------------------------------------


@pytest.mark.req("J3", "J8")
def test_other_open_stores_follow_appends_erasures_and_vectors(root: Path) -> None:
    writes = Writer()
    with opened(root) as here, opened(root) as there:
        one, two = writes.add(ADA, "one"), writes.add(ADA, "two")
        here.journal.append([one])
        assert contents(there) == ["one"]
        there.journal.append([two])
        assert contents(here) == ["one", "two"]
        here.journal.embed([Embedded(ADA, one.id, 1, vector(1, 0))])
        assert [item.vector for item in there.journal.scan({ADA}, vectors=True)] == [vector(1, 0), None]
        place = there.journal.position({ADA})
        here.journal.append([writes.erase(one)])
        assert contents(there) == ["two"]
        assert [item.id for item in there.journal.versions({ADA}, after=place)] == [one.id]
        assert there.journal.position({ADA}) == here.journal.position({ADA})
        here.journal.set_settings({"colour": "blue"})
        assert there.journal.settings()["colour"] == "blue"


@pytest.mark.req("J3")
def test_positions_survive_a_restart_although_stamps_do_not_rise(root: Path) -> None:
    slow, fast = Writer(), Writer(START.replace(year=2030))
    with opened(root) as store:
        late, early = fast.add(ADA, "first"), slow.add(ADA, "second")
        store.journal.append([late])
        place = store.journal.position({ADA})
        store.journal.append([early])
        store.journal.append([fast.erase(late)])
        end = store.journal.position({ADA})
    with opened(root) as store:
        assert [(one.seq, one.id) for one in store.journal.versions({ADA}, after=place)] == [
            (2, early.id),
            (3, late.id),
        ]
        assert store.journal.position({ADA}) == end
        feed = store.journal.feed(limit=1)
        assert len(list(store.journal.feed(after=feed.next))) == 1


# -- merging --------------------------------------------------------------------------------------------------


def _branches(root: Path) -> tuple[Path, Path]:
    filled(root)
    other = root.with_name("other")
    shutil.copytree(root, other)
    return root, other


@pytest.mark.req("J1")
def test_the_union_of_two_folders_is_a_store(root: Path) -> None:
    left, right = _branches(root)
    head = read(left / MEMORY)[0]
    here, there = Writer(), Writer(START.replace(year=2027))
    with opened(left) as store:
        [known] = store.journal.get({ADA}, ["m0"])
        assert known.stamp == head["stamp"]
        store.journal.append([here.add(ADA, "left")])
        store.journal.append([here.update(known, "changed on the left")])
    with opened(right) as store:
        store.journal.append([there.add(ADA, "right")])
        store.journal.append([there.update(known, "changed on the right")])
    merged = dict.fromkeys([*(left / MEMORY).read_bytes().splitlines(), *(right / MEMORY).read_bytes().splitlines()])
    with opened(left) as store:
        place, seen = store.journal.position({ADA}), list(store.journal.versions({ADA}))
        (left / MEMORY).write_bytes(b"".join(line + b"\n" for line in merged))
        assert {"left", "right", "changed on the right"} < set(contents(store))
        assert [one.facets["text"] for one in store.journal.history(ADA, "m0")] == [
            "number 0",
            "changed on the left",
            "changed on the right",
        ]
        assert list(store.journal.versions({ADA}))[: len(seen)] == seen
        assert len(list(store.journal.versions({ADA}, after=place))) == 2
        diagnosis, numbers = store.check(), [one.seq for one in store.journal.versions({ADA})]
        assert diagnosis.healthy
        assert diagnosis.facts["changed_on_both_sides"] != "none"
    with opened(left) as store:
        assert [one.seq for one in store.journal.versions({ADA})] == numbers
        assert len(list(store.journal.versions({ADA}, after=place))) == 2


@pytest.mark.req("J1")
def test_a_change_that_arrives_late_and_is_older_does_not_win(root: Path) -> None:
    left, right = _branches(root)
    early, late = Writer(START.replace(year=2027)), Writer(START.replace(year=2028))
    with opened(right) as store:
        [known] = store.journal.get({ADA}, ["m0"])
        store.journal.append([early.update(known, "older")])
    with opened(left) as store:
        store.journal.append([late.update(known, "newer")])
        place = store.journal.position({ADA})
        with (left / MEMORY).open("ab") as file:
            file.write((right / MEMORY).read_bytes().splitlines(keepends=True)[-1])
        assert contents(store)[0] == "newer"
        followed = [one.facets["text"] for one in store.journal.versions({ADA}, after=place)]
        assert followed == ["older", "newer"]  # who follows ends with the newest


@pytest.mark.req("J8")
def test_what_was_erased_here_stays_erased_when_a_merge_brings_it_back(root: Path) -> None:
    left, right = _branches(root)
    with opened(left) as store:
        [known] = store.journal.get({ADA}, ["m0"])
        store.journal.append([Writer().erase(known, reason="asked for")])
        (left / MEMORY).write_bytes((right / MEMORY).read_bytes())
        assert "number 0" not in contents(store)
        store.journal.append([Writer(START.replace(year=2027)).add(ADA, "another")])
        assert b"number 0" not in b"".join(every_file(left).values())
        assert store.check().healthy


def test_a_folder_that_was_copied_in_is_served(root: Path, tmp_path: Path) -> None:
    filled(root)
    with opened(tmp_path / "other") as store:
        store.journal.append([Writer().add(BOB, "from elsewhere")])
    with opened(root) as store:
        shutil.copytree(tmp_path / "other/users/bob", root / "users/bob")
        assert contents(store, BOB) == ["from elsewhere"]
        store.journal.append([Writer(START.replace(year=2027)).add(BOB, "from here")])
        assert contents(store, BOB) == ["from elsewhere", "from here"]


# -- batches --------------------------------------------------------------------------------------------------


@pytest.mark.req("J10")
@pytest.mark.parametrize("lost", [MEMORY, "users/bob/memory.jsonl"])
def test_half_a_batch_is_not_served(root: Path, lost: str) -> None:
    writes = Writer()
    with opened(root) as store:
        store.journal.append([writes.add(ADA, "before"), writes.add(BOB, "before")])
        store.journal.append([writes.add(ADA, "half"), writes.add(BOB, "half"), writes.add(ADA, "half")])
    lines = (root / lost).read_bytes().splitlines(keepends=True)
    (root / lost).write_bytes(b"".join(lines[:-1]))
    shutil.rmtree(root / "derived")  # whoever dies writes no numbers
    with opened(root) as store:
        assert contents(store) == contents(store, BOB) == ["before"]
        store.journal.append([writes.add(ADA, "after")])
        assert contents(store) == ["before", "after"]
        assert int(store.check().facts["unfinished_lines"]) > 0
    with opened(root) as store:
        assert contents(store) == ["before", "after"]


@pytest.mark.req("J8")
def test_erasing_one_memory_of_a_batch_leaves_the_others(root: Path) -> None:
    writes = Writer()
    with opened(root) as store:
        first = writes.add(ADA, "one")
        store.journal.append([first, writes.add(ADA, "two"), writes.add(BOB, "three")])
        store.journal.append([writes.erase(first)])
    with opened(root) as store:
        assert contents(store) == ["two"]
        assert contents(store, BOB) == ["three"]
        assert store.check().healthy


# -- disks that fail ------------------------------------------------------------------------------------------


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, number: int = errno.ENOSPC) -> Iterator[None]:
    """A disk that takes no byte more."""

    def fail(*_: Any) -> int:
        raise OSError(number, "failed")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        yield


@pytest.fixture
def quick(root: Path) -> Path:
    root.mkdir(mode=0o700)
    (root / "config.json").touch(mode=0o600)
    (root / "config.json").write_text('{"concurrency": {"max_retries": 1, "retry_backoff_ms": 1}}')
    return root


@pytest.mark.req("L7")
def test_a_memory_that_is_erased_twice_in_one_batch_is_the_same_after_a_restart(root: Path) -> None:
    writes = Writer()
    one = writes.add(ADA, "one")
    first = writes.erase(one)
    second = writes.erase(first)
    with opened(root) as store:
        store.journal.append([write._replace(write_id=one.stamp) for write in (one, first, second)])
        before = [bare(version) for version in store.journal.versions({ADA})]
    with opened(root) as store:
        assert [bare(version) for version in store.journal.versions({ADA})] == before


@pytest.mark.req("J1")
def test_two_owners_who_erase_one_id_in_one_batch_keep_their_sequences(root: Path) -> None:
    writes = Writer()
    with opened(root) as store:
        added = [writes.add(whose, "a memory", id="same") for whose in (ADA, BOB)]
        store.journal.append([*added, *map(writes.erase, added)])
        before = {whose: list(store.journal.versions({whose})) for whose in (ADA, BOB)}
    with opened(root) as store:
        assert {whose: list(store.journal.versions({whose})) for whose in (ADA, BOB)} == before


@pytest.mark.req("J10")
def test_a_full_disk_refuses_and_keeps_nothing(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(quick)
    with opened(quick) as store:
        with failing(monkeypatch), pytest.raises(StoreFull):
            store.journal.append([Writer().add(ADA, "too much"), Writer().add(BOB, "too much")])
        assert len(contents(store)) == 5
        assert contents(store, BOB) == []
        store.journal.append([Writer().add(ADA, "again")])
    with opened(quick) as store:
        assert contents(store)[-1] == "again"
        assert store.check().healthy


@pytest.mark.req("J10")
def test_a_relaxed_store_buffers_says_so_and_writes_when_the_disk_recovers(
    quick: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writes = Writer()
    with opened(quick, durability="relaxed") as store, opened(quick) as other:
        store.journal.append([writes.add(ADA, "before")])
        with failing(monkeypatch):
            store.journal.append([writes.add(ADA, "waits")])
            assert contents(store) == ["before", "waits"]
            assert store.health().components["buffered_writes"].message == "1"
            told = [(record.levelname, record.getMessage()) for record in caplog.records]
            assert told == [("ERROR", "the disk failed (STORE_FULL): 1 writes wait in memory")]
        other.journal.append([writes.add(ADA, "of another process")])
        assert set(contents(store)) == {"before", "waits", "of another process"}
        store.journal.append([writes.add(ADA, "after")])
        assert store.health().status is Status.HEALTHY
        assert set(contents(other)) == {"before", "waits", "of another process", "after"}


@pytest.mark.req("J10")
def test_closing_with_writes_that_cannot_be_kept_is_an_error(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = Writer()
    with opened(quick, durability="relaxed") as store:
        store.journal.append([writes.add(ADA, "before")])
        with failing(monkeypatch):
            store.journal.append([writes.add(ADA, "waits")])
            with pytest.raises(StoreError):
                store.close()


@pytest.mark.req("J8")
def test_erasing_on_a_disk_that_fails_behind_the_tombstone_is_finished_by_the_next_writer(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(root)
    with opened(root) as store:
        [known] = store.journal.get({ADA}, ["m0"])
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", _refused)
            with pytest.raises(StoreError, match="was erased"):
                store.journal.append([Writer().erase(known)])
        assert "number 0" not in contents(store)
    with opened(root) as store:
        assert "number 0" not in contents(store)
        store.journal.append([Writer(START.replace(year=2027)).add(ADA, "next")])
    assert b"number 0" not in b"".join(every_file(root).values())


def _refused(*_: Any, **__: Any) -> None:
    raise OSError(errno.EIO, "failed")


# -- opening --------------------------------------------------------------------------------------------------


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(NotAStore):
        opened(tmp_path).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_folder_remembers_its_durability(root: Path) -> None:
    with opened(root, durability="relaxed") as store:
        assert store.journal.settings()["durability"] == "relaxed"
    with pytest.raises(ConfigurationError):
        opened(root, durability="full").__enter__()
    with opened(root) as store:
        store.journal.set_settings({"durability": "full"})
        with pytest.raises(ConfigurationError, match="no durability is named 'most'"):
            store.journal.set_settings({"durability": "most"})
    with opened(root, durability="full"):
        pass


@pytest.mark.req("J9")
def test_compaction_moves_what_is_archived_and_changes_nothing_that_can_be_read(root: Path) -> None:
    writes = Writer()
    with opened(root) as store:
        one, two = writes.add(ADA, "one", write={"vector": vector(1, 0)}), writes.add(ADA, "two")
        store.journal.append([one, two])
        store.journal.append([writes.archive(one)])
        store.journal.count_accesses([Access(ADA, two.id, 1, 7), Access(ADA, two.id, 2, 9)])
        before = (list(store.journal.scan({ADA}, vectors=True)), list(store.journal.versions({ADA})))
        store.compact({ADA})
        assert {line["id"] for line in read(root / MEMORY)} == {two.id}
        assert {line["id"] for line in read(root / "users/ada/archive.jsonl")} == {one.id}
        assert (list(store.journal.scan({ADA}, vectors=True)), list(store.journal.versions({ADA}))) == before
        assert store.check().healthy
    with opened(root) as store:
        assert (list(store.journal.scan({ADA}, vectors=True)), list(store.journal.versions({ADA}))) == before
        [archived] = store.journal.get({ADA}, [one.id])
        assert archived.facets["state"] == State.ARCHIVED.value
        store.journal.append([writes.restore(archived)])
        assert len(store.journal.history(ADA, one.id)) == 3


# -- against the store in RAM ---------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("aaauufreRx"), st.integers(0, 4), st.sampled_from([ADA, BOB])), max_size=25))
def test_it_answers_what_the_store_in_ram_answers(tmp_path_factory: pytest.TempPathFactory, steps: Any) -> None:
    root = tmp_path_factory.mktemp("compared") / "memory"
    writes, ram = Writer(), RamStore()
    store = JsonlStore(root)
    for what, number, whose in steps:
        if what == "R":
            store.close()
            store = JsonlStore(root)
            continue
        known = {one.id: one for one in ram.journal.scan({whose})}.get(f"m{number}")
        batch = [] if f"m{number}" in _erased(ram, whose) else _batch(writes, what, whose, number, known)
        for target in (store, ram):
            target.journal.append(batch)
    for whose in (ADA, BOB):
        assert list(store.journal.scan({whose})) == list(ram.journal.scan({whose}))
        assert list(store.journal.versions({whose})) == list(ram.journal.versions({whose}))
        assert store.journal.usage({whose}) == ram.journal.usage({whose})
    assert store.check().healthy
    store.close()


def _erased(ram: RamStore, whose: Owner) -> set[str]:
    return {one.id for one in ram.journal.versions({whose}) if one.operation is Operation.ERASED}


def _batch(writes: Writer, what: str, whose: Owner, number: int, known: Any) -> list[Any]:
    if known is None:
        return [writes.add(whose, f"text {number}", id=f"m{number}")] if what == "a" else []
    match what:
        case "u":
            return [writes.update(known, "changed"), writes.add(BOB, "beside")]
        case "f":
            return [writes.forget(known)]
        case "r":
            return [writes.archive(known)]
        case "e" | "x":
            return [writes.erase(known)]
    return []
