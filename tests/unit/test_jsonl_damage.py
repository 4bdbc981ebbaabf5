"""Plain files that a crash, a disk or a person damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import SchemaTooNew
from recollect.stores.journal import Entry
from recollect.stores.jsonl import JsonlStore, commits, lines
from recollect.testing.builders import START, added, erased, memory, put, query, updated
from recollect.types import Status
from tests.unit.jsonl_files import ADA, MEMORY, contents, edit, filled, opened, read


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


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


@pytest.mark.req("J8")
@pytest.mark.parametrize("count", [1, 30])
def test_erasing_takes_all_lines_of_a_memory_and_no_others(root: Path, count: int) -> None:
    going = [memory(f"secret {number}") for number in range(count)]
    staying = [memory(f"about {one.id}", references=(one.id,)) for one in going]
    with opened(root) as store:
        put(store, *going, *staying)
    damaged = f'{{"id":"{going[-1].id}","content":"secret'.encode()
    edit(root / MEMORY, lambda found: found.insert(1, damaged + b"\n"))
    with opened(root) as store:
        store.apply([erased(one) for one in going])
        assert contents(store) == [one.content for one in staying]
    assert b"secret" not in (root / MEMORY).read_bytes()
    with opened(root) as store:
        assert contents(store) == [one.content for one in staying]


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


@pytest.mark.req("J4")
@given(byte=st.integers(0), other=st.integers(0, 255))
def test_no_byte_of_a_line_can_be_changed_unnoticed(byte: int, other: int) -> None:
    """By neither way to read it; a change that leaves the same values is none."""
    one = memory("two caf\u00e9s", id="a", tags=("b", "a"), metadata={"b": 1, "a": [0.5]}, expires_at=START)
    entry = Entry.of(added(one), 1, 1)
    line = lines.of_entry(entry, one).rstrip(b"\n")
    changed = bytearray(line)
    changed[byte % len(line)] = other
    for unseal in (lines.unseal, lines.unseal_version):
        assert lines.to_entry(unseal(line, "x") or {}) == entry
        found = unseal(bytes(changed), "x")
        assert found is None or lines.to_entry(found) == entry
