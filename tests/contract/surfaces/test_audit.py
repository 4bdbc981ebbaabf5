"""The audit log: who did what to which id; whatever is altered or removed is found, also at the end."""

import errno
import inspect
import json
import os
import resource
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import HandClock, store_of
from wellkept import AgentMemory, Memories, View
from wellkept.errors import ConfigurationError, InvalidInput, NotFound, StoreFull, Unauthorized
from wellkept.events import AuditFailed
from wellkept.keyrings.ram import RamKeyring
from wellkept.memories import (
    ApiKeys,
    AuditTrail,
    Encryption,
    Facts,
    Privacy,
    Session,
    SessionPreferences,
    Sessions,
    Upkeep,
)
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.types import Grant, Layer, Need, Owner, Status

SECRET = "zqauditcanary"
MISSING = "audit.missing"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def opened(
    tmp_path: Path, clock: HandClock | None = None, keyring: RamKeyring | None = None, **audit: object
) -> wellkept.Memories:
    settings = {"audit": {"file": str(tmp_path / "audit.jsonl"), **audit}}
    return wellkept.open(tmp_path / "memory.db", embedder=None, settings=settings, clock=clock, keyring=keyring)


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
        session = ada.sessions.create("monday")
        session.preferences.get("theme")
        ada.search("tea")
        ada.list()
        assert [(entry.verb, entry.ids) for entry in memories.audit.list()] == [
            ("list", (one.id,)),
            ("search", (one.id,)),
            ("preferences.get", ()),
            ("sessions.create", ("monday",)),
            ("get", (one.id,)),
            ("add", (one.id,)),
        ]


# What is entered in another way than its need says: a read only where the settings ask for reads, all else always.
NEVER = """View.position Memories.view Memories.agent Memories.health Memories.settings Memories.owners
    AgentMemory.snapshot Upkeep.plan Upkeep.retention Upkeep.policies Upkeep.runs Upkeep.next_due Upkeep.holds
    Privacy.plan Privacy.receipts Privacy.verify Privacy.ledger AuditTrail.verify"""
AS_READ = "AgentMemory.stats Memories.sizes ApiKeys.list AuditTrail.list"
ALWAYS = "View.plan_quarantine View.point_to View.undoable ApiKeys.grant_of"
IF_DONE = "Upkeep.run_due"
OTHERWISE = {"never": NEVER, "as read": AS_READ, "always": ALWAYS, "if done": IF_DONE}
KINDS = (AgentMemory, ApiKeys, AuditTrail, Encryption, Facts, Memories, Privacy, Session, SessionPreferences, Sessions)


def test_every_method_is_entered_as_it_should_be() -> None:
    otherwise = {name: how for how, names in OTHERWISE.items() for name in names.split()}
    wrong = {}
    for kind in (*KINDS, Upkeep, View):
        for method, function in inspect.getmembers(kind, inspect.isfunction):
            if method.startswith("_") or not hasattr(function, "declared"):
                continue
            name, declared = f"{kind.__name__}.{method}", function.declared
            usual = "as read" if declared.need is Need.READ else "always"
            if (how := declared.audited.value) != otherwise.pop(name, usual):
                wrong[name] = how
            if declared.announced is name.startswith("AuditTrail.") and how != "never":
                wrong[name] = "would be refused by a full log, or not be announced"
    assert (wrong, otherwise) == ({}, {})


def test_what_a_grant_refuses_is_entered(memories: wellkept.Memories) -> None:
    grant = Grant(need=Need.READ, owners=(Owner(Layer.USER, ("ada",)),), holder="bot")
    view = memories.view(user="ada", grant=grant)
    view.refresh([__file__], dry_run=True)
    for call in (
        partial(view.refresh, [__file__]),
        partial(view.move, "x", layer="user"),
        partial(view.release, "run"),
    ):
        with pytest.raises(Unauthorized):
            call()
    assert [(entry.verb, entry.error, entry.ids, entry.grant) for entry in memories.audit.list()] == [
        ("release", "UNAUTHORIZED", ("run",), "bot"),
        ("move", "UNAUTHORIZED", ("x",), "bot"),
        ("refresh", "UNAUTHORIZED", (), "bot"),
        ("refresh", None, (), "bot"),
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
    ring = RamKeyring()
    with opened(tmp_path, keyring=ring) as memories:
        memories.view(user="ada").add("1")
    with opened(tmp_path, keyring=ring) as memories:
        assert memories.audit.verify().valid
        records = store_of(memories).records
        [record] = [one for one in records.list(None) if one.kind == "audit"]
        records.drop(record.owner, record.kind, record.name)
        body = json.loads(record.body)
        body[0][0] = [0, "0" * 64]
        records.put(replace(record, body=json.dumps(body).encode(), version=1))
        assert "sealed" in memories.audit.verify().problems[0]


def test_old_entries_are_dropped_and_the_rest_stays_chained(tmp_path: Path) -> None:
    clock = HandClock()
    with opened(tmp_path, clock) as memories:
        for number in range(4):
            memories.view(user="ada").add(str(number))
            clock.time += timedelta(days=1)
    with opened(tmp_path, clock, retention_days=2.5) as memories:
        assert [entry.seq for entry in memories.audit.list()] == [8, 6]
        assert memories.audit.verify().valid
        memories.view(user="ada").add("more")
        assert memories.audit.prune(clock.time) == 4
        assert [(entry.seq, entry.verb) for entry in memories.audit.list()] == [(11, "audit.prune"), (10, "add")]
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


def lines(log: Path) -> list[dict[str, Any]]:
    data = log.read_bytes()
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def test_half_a_line_that_a_crash_left_is_cut_off_and_told_of(tmp_path: Path, log: Path) -> None:
    for before in (0, 2):
        with opened(tmp_path) as memories:
            for number in range(before):
                memories.view(user="ada").add(str(number))
        known = log.read_bytes()
        log.write_bytes(known + b'{"seq":5,"verb":"ad')
        with opened(tmp_path) as memories:
            told = memories.audit.verify()
            assert (told.valid, told.checked, told.missing) == (True, before, 1)
            memories.view(user="ada").add("more")
            told = memories.audit.verify()
            assert (told.valid, told.checked, told.missing) == (True, before + 2, 1)
            assert [(one.verb, one.count) for one in memories.audit.list()[:2]] == [("add", None), (MISSING, 1)]
            assert log.read_bytes().startswith(known)
        log.unlink()
        shutil.rmtree(tmp_path, ignore_errors=True)
        tmp_path.mkdir()


def test_of_a_whole_line_that_lacks_its_end_nothing_is_lost(tmp_path: Path, log: Path) -> None:
    with opened(tmp_path) as memories:
        memories.view(user="ada").add("1")
    log.write_bytes(log.read_bytes()[:-1])
    with opened(tmp_path) as memories:
        memories.view(user="ada").add("2")
        told = memories.audit.verify()
        assert (told.valid, told.checked, told.missing) == (True, 2, 0)


# -- a log that cannot be written -----------------------------------------------------------------------------------


@contextmanager
def no_room(log: Path, left: int = 0) -> Iterator[None]:
    """A disk that takes so many bytes more of the log."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + left, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def in_ram(log: Path, **audit: object) -> wellkept.Memories:
    return wellkept.open("ram:", embedder=None, settings={"audit": {"file": str(log), **audit}})


def test_without_room_nothing_is_done_of_which_the_log_knows_nothing(log: Path) -> None:
    """Wherever the room ends: in an announcement, in the entry that ends it, in that of what is missing."""
    ended = Counter[str]()
    with in_ram(log) as memories:
        view = memories.view(user="ada")
        for left in range(0, 2_000, 31):
            known = view.count()
            with no_room(log, left):
                for number in range(3):
                    with suppress(StoreFull):
                        view.add(f"on a full disk {left} {number}")
                        known += 1
                    assert view.count() == known
                    assert len(lines(log)) == len(log.read_bytes().splitlines())
            told = memories.audit.verify()
            assert (told.valid, told.problems) == (True, ())
            ended[memories.health().components["audit"].status] += 1
            added = view.add(f"room again {left}").id
            assert memories.audit.list(id=added, limit=1)[0].verb == "add"
            assert memories.health().components["audit"].message == "ok"
        found = memories.audit.list(limit=10_000)
        assert sum(one.verb == "add" for one in found) == view.count()
        lacking = sum(one.unfinished for one in found)
        assert lacking == memories.audit.verify().missing == sum(one.count or 0 for one in found if one.verb == MISSING)
        assert lacking > 5
        assert ended["degraded"] > ended["healthy"] > 0


def test_a_refusal_names_the_log_and_is_told(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[AuditFailed] = []
    with in_ram(log) as memories:
        view = memories.view(user="ada")
        memory = view.add("before")

        def hear(event: AuditFailed) -> None:
            heard.append(event)
            with pytest.raises(StoreFull):
                view.add("in a handler")

        memories.on(AuditFailed, hear)
        with no_room(log):
            for call in (partial(view.add, SECRET), partial(view.forget, memory.id), memories.rebuild):
                with pytest.raises(StoreFull, match=r"audit\.jsonl") as caught:
                    call()
                assert caught.value.operation in ("add", "forget", "rebuild")
                assert caught.value.hint.endswith("audit.on_failure = 'continue'")
            assert view.get(memory.id) is not None
            assert [one.id for one in view.list()] == [memory.id]
            told = memories.health()
            assert (told.status, told.components["audit"].status) == (Status.DEGRADED, Status.DEGRADED)
            assert told.components["audit"].message == "'audit.jsonl' cannot be written (EFBIG): operations are refused"
        assert {(one.verb, one.file, one.error, one.refused) for one in heard} == {
            (verb, "audit.jsonl", "EFBIG", True) for verb in ("add", "forget", "memories.rebuild")
        }
        assert [one.getMessage() for one in caplog.records if getattr(one, "component", "") == "Audit"] == [
            "the audit log cannot be written: EFBIG"
        ]
        assert SECRET not in caplog.text


@pytest.mark.parametrize("ends", ["with another operation", "with the end"])
def test_operations_may_go_on_and_the_log_says_what_it_lacks(log: Path, ends: str) -> None:
    heard: list[AuditFailed] = []
    with in_ram(log, on_failure="continue") as memories:
        memories.on(AuditFailed, heard.append)
        view = memories.view(user="ada")
        view.add("before")
        for left in (0, 1, 100, 200):
            with no_room(log, left):
                for _ in range(3):
                    view.add("on a full disk")
                told = memories.audit.verify()
                assert (told.valid, told.missing % 3) == (True, 0)
                message = memories.health().components["audit"].message
                assert message == "'audit.jsonl' cannot be written (EFBIG): 3 entries are missing"
            if ends == "with another operation":
                view.add("room again")
                told = memories.audit.verify()
                found = memories.audit.list(limit=2, verb=MISSING)[0]
                assert (found.count, found.error) == (3, "EFBIG")
                assert found.since is not None
                assert found.until is not None
                assert found.since <= found.until <= found.at
            else:
                break
        assert [(one.verb, one.refused) for one in heard] == [("add", False)] * len(heard)
        assert len(heard) % 3 == 0
    with in_ram(log, on_failure="continue") as memories:
        told = memories.audit.verify()
        assert (told.valid, told.missing) == (True, len(heard))


def test_a_disk_that_takes_nothing_back_leaves_half_a_line_that_is_cut_off_later(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with in_ram(log, on_failure="continue") as memories:
        view = memories.view(user="ada")
        view.add("before")
        with monkeypatch.context() as patched, no_room(log, 50):
            patched.setattr(os, "ftruncate", failing)
            view.add("half of its entry is written")
            view.add("nothing of its entry is written")
        assert not log.read_bytes().endswith(b"\n")
        told = memories.audit.verify()
        assert (told.valid, told.checked, told.missing) == (True, 1, 2)
        view.add("room again")
        assert [(one.verb, one.count) for one in memories.audit.list()[:2]] == [("add", None), (MISSING, 2)]
        assert memories.audit.verify().valid


def test_dropping_old_entries_needs_room_and_says_so(tmp_path: Path, log: Path) -> None:
    clock, store = HandClock(), RamStore()

    def again(**audit: object) -> wellkept.Memories:
        return wellkept.open(store=store, embedder=None, clock=clock, settings={"audit": {"file": str(log), **audit}})

    with again() as memories:
        memories.view(user="ada").add("1")
        before = log.read_bytes()
        clock.forward(days=1)
        with no_room(log, -len(before)):
            with pytest.raises(StoreFull, match=r"audit\.jsonl"):
                memories.audit.prune(clock.time)
            assert again(retention_days=0.5).audit.verify().valid
        assert log.read_bytes() == before
        assert sorted(one.name for one in tmp_path.iterdir()) == ["audit.jsonl"]
        assert memories.audit.prune(clock.time) == 2
        told = memories.audit.verify()
        assert (told.valid, told.missing) == (True, 1)


@pytest.mark.parametrize("error", [RuntimeError(SECRET), KeyboardInterrupt(SECRET)], ids=["foreign", "interrupt"])
def test_an_operation_that_ends_in_any_exception_is_entered_by_its_class_alone(log: Path, error: BaseException) -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=None, settings={"audit": {"file": str(log)}}) as memories:
        store.fail("append", error)
        with pytest.raises(type(error)):
            memories.view(user="ada").add("x")
        memories.view(user="ada").add("y")
        assert [(one.verb, one.error) for one in memories.audit.list()] == [
            ("add", None),
            ("add", type(error).__name__),
        ]
    assert SECRET not in log.read_text()


def test_what_was_announced_and_never_ended_is_told(log: Path) -> None:
    with in_ram(log) as memories:
        ada = memories.view(user="ada")
        first = ada.add("1")
        ada.forget(first.id)
        ada.restore(first.id)
        log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))  # killed before it was entered
        bob = memories.view(user="bob")
        for number in range(3):
            bob.add(str(number))
        assert [(one.verb, one.unfinished) for one in memories.audit.list(limit=4)][-1] == ("restore", True)
        assert [one.verb for one in memories.audit.list(limit=2, user="ada")] == ["restore", "forget"]
        assert [one.unfinished for one in memories.audit.list(id=first.id)] == [True, False, False]
        assert memories.audit.verify().checked == 5


def test_what_is_due_is_not_announced_while_nothing_is(log: Path) -> None:
    with in_ram(log) as memories:
        assert memories.upkeep.run_due() is None
        assert log.read_bytes() == b""
        with no_room(log):
            with pytest.raises(StoreFull):
                memories.view(user="ada").add("x")
            with pytest.raises(StoreFull):
                memories.upkeep.run_due()
