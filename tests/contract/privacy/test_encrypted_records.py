"""Descriptions of sessions, holds and policies: encrypted where everything is."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import wellkept
from tests.support.encrypted_canaries import leaks, marker
from wellkept.errors import KeyUnavailable, Tampered
from wellkept.keyrings.ram import RamKeyring
from wellkept.stores.ram import RamStore
from wellkept.types import Layer, Owner, RetentionPolicy

ADA = Owner(Layer.USER, ("ada",))
MONDAY = Owner(Layer.SESSION, ("ada", "monday"))
Opened = Callable[..., wellkept.Memories]


@pytest.fixture(params=["sqlite", "jsonl"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Opens a database in a folder of its own, with one keyring."""
    (tmp_path / "kept").mkdir()
    keyring = RamKeyring()

    def made(**options: object) -> wellkept.Memories:
        given = {"embedder": None, "keyring": keyring, "encrypt": "all", **options}
        return wellkept.open(f"{request.param}:{tmp_path / 'kept' / 'memory'}", **given)  # type: ignore[arg-type]

    return made


def fill(memories: wellkept.Memories, mark: str) -> None:
    """The marker in every record that takes a text."""
    sessions = memories.view(user="ada").sessions
    sessions.create("monday", preferences={f"{mark} name": mark}, metadata={mark: mark})
    sessions.load("monday").preferences.set("language", mark)
    sessions.create("gone")
    sessions.delete("gone", reason=mark)
    held = {"tags": [f"{mark}.tag"], "content_contains": mark, "authors": [mark], "metadata": {mark: mark}}
    memories.upkeep.hold(held, reason=f"{mark} case", owner=ADA)
    memories.upkeep.set_retention(RetentionPolicy(long_term_age="9d", exempt_tags=(mark,), automatic=False), owner=ADA)


def check(memories: wellkept.Memories, mark: str) -> None:
    """It reads as it was written."""
    session = memories.view(user="ada").sessions.load("monday")
    assert (session.preferences.language, session.preferences.all()[f"{mark} name"]) == (mark, mark)
    [hold] = memories.upkeep.holds()
    assert (hold.reason, hold.filter.content_contains) == (f"{mark} case", mark)
    policy = memories.upkeep.retention(owner=ADA)
    assert policy is not None
    assert policy.exempt_tags == (mark,)
    assert [one.id for one in memories.view(user="ada").sessions.list(include_deleted=True)] == ["gone", "monday"]
    assert memories.upkeep.policies()[ADA].exempt_tags == (mark,)


@pytest.mark.req("L10", "N7")
def test_where_everything_is_encrypted_no_record_tells_anything(opened: Opened, tmp_path: Path) -> None:
    mark = marker()
    with opened() as memories:
        fill(memories, mark)
        check(memories, mark)
    assert leaks(mark, tmp_path / "kept") == []
    with opened() as memories:
        check(memories, mark)
        memories.encryption.rotate(data=True, retire=True)
        check(memories, mark)
        assert memories.encryption.check().fits
    with opened(keyring=None, encrypt="sensitive") as memories:
        with pytest.raises(KeyUnavailable):
            memories.view(user="ada").sessions.load("monday")
        with pytest.raises(KeyUnavailable):
            memories.upkeep.holds()


@pytest.mark.req("L10")
def test_records_that_were_plain_are_encrypted_in_place_and_stay_so(opened: Opened, tmp_path: Path) -> None:
    mark = marker()
    with opened(keyring=None, encrypt="sensitive") as memories:
        fill(memories, mark)
    assert leaks(mark, tmp_path / "kept") != []
    with opened(encrypt="sensitive") as memories:
        memories.encryption.encrypt(everything=True)
    assert leaks(mark, tmp_path / "kept") == []
    with opened(encrypt="sensitive") as memories:
        check(memories, mark)
        memories.view(user="ada").sessions.load("monday").preferences.set("verbosity", f"{mark} more")
        check(memories, mark)
    assert leaks(mark, tmp_path / "kept") == []


@pytest.mark.req("N7")
def test_an_erased_person_is_gone_from_records_of_older_backups(opened: Opened, tmp_path: Path) -> None:
    mark = marker()
    kept, backup = tmp_path / "kept", tmp_path / "backup"
    with opened() as memories:
        fill(memories, mark)
        [hold] = memories.upkeep.holds()
        memories.upkeep.release(hold.id)
    shutil.copytree(kept, backup)
    with opened() as memories:
        made = memories.privacy.export(tmp_path / "ada.zip", user="ada")
        with zipfile.ZipFile(made.path) as archive:
            assert mark.encode() in b"".join(archive.read(name) for name in archive.namelist())
        receipt = memories.privacy.erase(user="ada")
        assert receipt.counts.records == 3
        assert not any("not encrypted" in one for one in receipt.remains)
    for ledger in kept.glob("*.erasures.jsonl"):
        shutil.copy(ledger, backup)
    shutil.rmtree(kept)
    shutil.copytree(backup, kept)
    with opened() as memories:
        assert memories.view(user="ada").sessions.list() == ()
        assert memories.upkeep.retention(owner=ADA) is None
        assert memories.encryption.check().fits


@pytest.mark.req("L10")
def test_an_altered_or_moved_record_does_not_open() -> None:
    store, keyring = RamStore(), RamKeyring()
    with wellkept.open(store=store, embedder=None, keyring=keyring, encrypt="all") as memories:
        sessions = memories.view(user="ada").sessions
        for id in ("monday", "tuesday"):
            sessions.create(id, metadata={"about": "tea"})
        kept = store.records.get(ADA, "session", "monday")
        assert kept is not None
        version = kept.version
        for place in range(len(b'{"encrypted":'), len(kept.body), 7):
            body = bytearray(kept.body)
            body[place] ^= 1
            version += 1
            store.records.put(replace(kept, body=bytes(body), version=version))
            with pytest.raises((Tampered, KeyUnavailable)):
                sessions.load("monday")
        other = store.records.get(ADA, "session", "tuesday")
        assert other is not None
        store.records.put(replace(kept, body=other.body, version=version + 1))
        with pytest.raises((Tampered, KeyUnavailable)):
            sessions.load("monday")
        assert memories.encryption.check().failed == ("session monday",)
        keyring.destroy(Owner(Layer.SESSION, ("ada", "tuesday")))
        with pytest.raises(KeyUnavailable):
            sessions.load("tuesday")
        memories.privacy.erase(user="ada")
        assert keyring.key(MONDAY) is None
