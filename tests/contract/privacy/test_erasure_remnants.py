"""What an erasure or an encryption could leave behind: beside damage, after a kill, in older backups."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import wellkept
from tests.contract.privacy.test_encryption import ENCRYPTED
from tests.contract.privacy.test_erasure import place, restored, saved
from tests.support.encrypted_canaries import marker
from tests.support.erased_person import open_database
from wellkept.errors import Tampered
from wellkept.keyrings.ram import RamKeyring
from wellkept.stores.ram import RamStore
from wellkept.types import Layer, Owner, Stored

ADA = Owner(Layer.USER, ("ada",))


@pytest.mark.req("N7")
def test_a_damaged_memory_does_not_hide_what_was_made_from_an_erased_one() -> None:
    store = RamStore()
    with wellkept.open(store=store, embedder=None, keyring=RamKeyring()) as memories:
        told = memories.view(team="core").add("Told by Bob")
        ada = memories.view(user="ada", team="core")
        damaged = ada.add("Damaged", layer="user", sensitive=True)
        made = ada.add("Made of it", layer="user", sensitive=True, derived_from=[told.id])
        _alter(store, damaged.id)
        with pytest.raises(Tampered):
            ada.get(damaged.id)
        assert memories.privacy.plan(ids=[told.id]).derived == ((made.owner, made.id),)


def _alter(store: RamStore, id: str) -> None:
    [kept] = store.journal.history(ADA, id)
    store.journal.rewrite([kept._replace(payload=bytes([kept.payload[0] ^ 1]) + kept.payload[1:])])


@pytest.mark.req("J8", "N7")
@pytest.mark.parametrize("url", ["memory.db", "jsonl:notes"])
def test_an_older_backup_does_not_bring_back_the_reason_of_a_single_memory(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mark, here, backup = marker(), place(url, tmp_path), tmp_path / "backup"
    with open_database(url) as memories:
        view = memories.view(user="ada")
        one = view.add("To be erased")
        view.forget(one.id, permanent=True, reason=mark)
    backup.mkdir()
    saved(here, backup / here.name)
    with open_database(url) as memories:
        memories.privacy.erase(ids=[one.id])
    restored(backup / here.name, here)
    assert _reasons(url, one.id) == [None]  # the ledger beside it is replayed


def _reasons(url: str, id: str) -> list[str | None]:
    with open_database(url) as memories:
        return [version.reason for version in memories.view(user="ada").history(id)]


class Killed(BaseException):
    """The end of a process, as far as its database sees it."""


@pytest.mark.req("L10", "N1")
def test_killed_while_a_memory_is_marked_leaves_nothing_plain_behind_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either the memory is as it was, or its former versions are encrypted too."""
    store = RamStore()

    def killed(versions: Sequence[Stored]) -> None:
        raise Killed

    with wellkept.open(store=store, embedder=None, keyring=RamKeyring()) as memories:
        view = memories.view(user="ada")
        one = view.add("A secret, as will be seen")
        with monkeypatch.context() as patched:
            patched.setattr(store.journal, "rewrite", killed)
            with pytest.raises(Killed):
                view.update(one.id, sensitive=True)
        [before] = store.journal.history(ADA, one.id)
        assert ENCRYPTED not in before.facets
        view.update(one.id, sensitive=True)
        assert all(ENCRYPTED in version.facets for version in store.journal.history(ADA, one.id))


@pytest.mark.req("L10")
def test_a_damaged_reason_is_told_as_such() -> None:
    store = RamStore()
    with wellkept.open(store=store, embedder=None, keyring=RamKeyring()) as memories:
        view = memories.view(user="ada")
        one = view.add("A secret", sensitive=True)
        view.forget(one.id, permanent=True, reason="Nobody needs it")
        [kept] = [version for version in store.journal.history(ADA, one.id) if version.reason]
        store.journal.rewrite([kept._replace(reason=f"{kept.reason}!")])
        with pytest.raises(Tampered):
            view.history(one.id)
