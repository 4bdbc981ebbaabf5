"""The audit log: who did what to which id; whatever is altered or removed is found, also at the end."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.unit.stand_ins import HandClock
from wellkept import hash_chain
from wellkept.errors import ConfigurationError, InvalidInput, NotFound
from wellkept.hash_chain import GENESIS
from wellkept.keyrings.ram import RamKeyring

SECRET = "zqauditcanary"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def opened(tmp_path: Path, clock: HandClock | None = None, **audit: object) -> wellkept.Memories:
    settings = {"audit": {"file": str(tmp_path / "audit.jsonl"), **audit}}
    return wellkept.open(tmp_path / "memory.db", embedder=None, settings=settings, clock=clock)


@pytest.fixture
def memories(tmp_path: Path) -> Iterator[wellkept.Memories]:
    with opened(tmp_path) as memories:
        yield memories


def test_changes_are_entered_with_who_what_and_which(memories: wellkept.Memories, log: Path) -> None:
    ada = memories.view(user="ada", agent="helper")
    one = ada.add(f"{SECRET} one", tags=[SECRET], layer="user")
    ada.update(one.id, content=f"{SECRET} two")
    ada.search(SECRET)
    ada.forget(one.id, reason=SECRET)
    with pytest.raises(NotFound):
        ada.update(one.id, content=SECRET)
    ada.forget_many(filter={}, permanent=True, reason=SECRET)
    ada.sessions.create("monday").preferences.set(SECRET, SECRET)
    memories.privacy.export(log.with_name("ada.zip"), user="ada")
    memories.privacy.erase(user="ada")
    entries = memories.audit.list()[::-1]
    assert [entry.verb for entry in entries] == [
        "add",
        "update",
        "forget",
        "update",
        "forget_many",
        "sessions.create",
        "preferences.set",
        "privacy.export",
        "privacy.erase",
    ]
    assert [entry.ids for entry in entries[:5]] == [(one.id,)] * 5
    assert {(entry.user, entry.agent) for entry in entries[:5]} == {("ada", "helper")}
    assert entries[3].error == "MEMORY_NOT_FOUND"
    assert entries[0].owner == '["user","ada"]'
    assert SECRET not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    assert memories.audit.verify().checked == len(entries)
    assert memories.audit.list(verb="add", user="ada", id=one.id, limit=5) == (entries[0],)


def test_reads_are_entered_if_asked_for(tmp_path: Path) -> None:
    with opened(tmp_path, reads=True) as memories:
        ada = memories.view(user="ada")
        one = ada.add("Likes tea")
        ada.get(one.id)
        ada.search("tea")
        ada.list()
        assert [(entry.verb, entry.ids) for entry in memories.audit.list()] == [
            ("list", (one.id,)),
            ("search", (one.id,)),
            ("get", (one.id,)),
            ("add", (one.id,)),
        ]


def test_without_the_setting_there_is_no_log(tmp_path: Path) -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        memories.view(user="ada").add("x")
        with pytest.raises(ConfigurationError):
            memories.audit.verify()
    with pytest.raises(ConfigurationError):
        opened(tmp_path, file=str(tmp_path / "nowhere" / "audit.jsonl"))


@pytest.mark.parametrize("how", ["altered", "removed", "cut", "swapped", "emptied", "deleted", "begun anew"])
def test_whatever_is_changed_is_found(tmp_path: Path, log: Path, how: str) -> None:
    with opened(tmp_path) as memories:
        for number in range(6):
            memories.view(user="ada").add(str(number))
    lines = log.read_bytes().splitlines(keepends=True)
    changed = {
        "altered": [*lines[:2], lines[2].replace(b'"ada"', b'"eve"'), *lines[3:]],
        "removed": [*lines[:2], *lines[3:]],
        "cut": lines[:-1],
        "swapped": [*lines[:2], lines[3], lines[2], *lines[4:]],
        "emptied": [],
        "deleted": [],
        "begun anew": [b'{"base":true,"seq":6,"hash":"' + b"0" * 64 + b'"}\n'],
    }
    if how == "deleted":
        log.unlink()
    else:
        log.write_bytes(b"".join(changed[how]))
    with opened(tmp_path) as memories:
        assert memories.audit.verify().problems
        memories.view(user="ada").add("more")
        assert not memories.audit.verify().valid


def test_an_anchor_kept_elsewhere_outlives_the_database_s_own(tmp_path: Path, log: Path) -> None:
    with opened(tmp_path) as memories:
        memories.view(user="ada").add("1")
        anchor = memories.audit.verify().anchor
        log.write_bytes(b"")
        assert memories.audit.verify().valid  # nothing is anchored yet
        assert "cut off" in memories.audit.verify(anchor=anchor).problems[0]
        for wrong in ("", "x", "1:2", "-1:" + "0" * 64):
            with pytest.raises(InvalidInput):
                memories.audit.verify(anchor=wrong)


def test_with_a_keyring_the_anchor_itself_cannot_be_forged(tmp_path: Path, log: Path) -> None:
    memories = opened(tmp_path)
    memories._engine.keyring = RamKeyring()
    memories.view(user="ada").add("1")
    memories._engine.audit.anchor()  # type: ignore[union-attr]
    assert memories.audit.verify().valid
    records = memories._engine.store.records
    [record] = [one for one in records.list(None) if one.kind == "audit"]
    records.drop(record.owner, record.kind, record.name)
    body = json.loads(record.body)
    body[0][0] = [0, GENESIS]
    records.put(replace(record, body=json.dumps(body).encode(), version=1))
    assert "sealed" in memories.audit.verify().problems[0]
    memories.close()


def test_old_entries_are_dropped_and_the_rest_stays_chained(tmp_path: Path) -> None:
    clock = HandClock()
    with opened(tmp_path, clock) as memories:
        for number in range(4):
            memories.view(user="ada").add(str(number))
            clock.time += timedelta(days=1)
    with opened(tmp_path, clock, retention_days=2.5) as memories:
        assert [entry.seq for entry in memories.audit.list()] == [4, 3]
        assert memories.audit.verify().valid
        memories.view(user="ada").add("more")
        assert memories.audit.prune(clock.time) == 2
        assert [(entry.seq, entry.verb) for entry in memories.audit.list()] == [(6, "audit.prune"), (5, "add")]
        assert memories.audit.verify().valid
    with opened(tmp_path, clock) as memories:
        assert memories.audit.verify().checked == 2


def test_threads_and_databases_share_one_log(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as two:

        def work(memories: wellkept.Memories) -> None:
            for number in range(20):
                memories.view(user="ada").add(str(number))

        threads = [threading.Thread(target=work, args=(memories,)) for memories in (one, two, one)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told = one.audit.verify()
        assert (told.valid, told.checked) == (True, 60)


def test_half_a_line_is_ended_and_told_of(tmp_path: Path, log: Path) -> None:
    with opened(tmp_path) as memories:
        memories.view(user="ada").add("1")
    with log.open("ab") as file:
        file.write(b'{"seq":2,"verb":"ad')
    with opened(tmp_path) as memories:
        memories.view(user="ada").add("2")
        assert memories.audit.verify().problems == ("line 2 cannot be read",)
        assert [entry.seq for entry in memories.audit.list()] == [2, 1]


# -- chains ---------------------------------------------------------------------------------------------------------

BODIES = st.lists(st.dictionaries(st.sampled_from("abc"), st.integers() | st.text(max_size=3), max_size=3), min_size=1)


def chain(bodies: list[dict[str, object]]) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    previous = GENESIS
    for number, body in enumerate(bodies, start=1):
        made.append(hash_chain.linked(body, number, previous))
        previous = str(made[-1]["hash"])
    return made


@pytest.mark.req("N7")
@given(bodies=BODIES, pick=st.integers(0, 1_000), how=st.sampled_from(["drop", "change", "repeat", "rehash"]))
def test_a_chain_is_whole_until_anything_in_it_changes(bodies: list[dict[str, object]], pick: int, how: str) -> None:
    whole = chain(bodies)
    assert hash_chain.broken(whole) is None
    place = pick % len(whole)
    altered: list[dict[str, object]] = list(whole)
    if how == "drop":
        del altered[place]
        if place == len(whole) - 1:  # what an anchor is for
            assert hash_chain.broken(altered) is None
            return
    elif how == "repeat":
        altered.insert(place, altered[place])
    else:
        entry = {**altered[place], "d": 1}
        altered[place] = {**entry, "hash": hash_chain.digest(entry)} if how == "rehash" else entry
        if how == "rehash" and place == len(whole) - 1:
            assert altered[place]["hash"] != whole[place]["hash"]
            return
    broken = hash_chain.broken(altered)
    assert broken is not None
    assert broken.seq in (place + 1, place + 2)
