"""Vectors that come while memories are encrypted in place: none stays in the clear."""

from collections.abc import Callable

import pytest

import wellkept
from wellkept.errors import Tampered
from wellkept.keyrings.ram import RamKeyring
from wellkept.stores.ram import RamStore
from wellkept.types import Layer, Owner

ADA = Owner(Layer.USER, ("ada",))


def _first(before: Callable[[], object], call: Callable[..., object]) -> Callable[..., object]:
    """A call before which something else happens, once."""
    waiting = [before]

    def hooked(*args: object, **options: object) -> object:
        if waiting:
            waiting.pop()()
        return call(*args, **options)

    return hooked


@pytest.mark.req("L10", "N1")
@pytest.mark.parametrize("step", ["embed", "rewrite"])
def test_a_vector_that_comes_while_its_memory_is_encrypted_is_encrypted(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Either call happens between what the other one read and what it writes."""
    store, keyring = RamStore(), RamKeyring()
    one = wellkept.open(store=store, embedder=None, keyring=keyring).view(user="ada").add("Likes tea")
    with wellkept.open(store=store, embedder="hashing-64", keyring=keyring) as memories:

        def encrypt() -> object:
            return memories.encryption.encrypt(everything=True)

        other, call = (encrypt, memories.reembed) if step == "embed" else (memories.reembed, encrypt)
        monkeypatch.setattr(store.journal, step, _first(other, getattr(store.journal, step)))
        call()
        [kept] = store.journal.get({ADA}, [one.id], vectors=True)
        assert kept.vector is not None
        assert kept.vector.pieces.startswith(b"\x1fencrypted vector "), "as stores keep a vector that is encrypted"
        assert memories.view(user="ada").search("tea").hits[0].memory.id == one.id
        assert memories.encryption.check().fits


@pytest.mark.req("L10")
def test_a_plain_vector_of_an_encrypted_memory_is_told_and_made_anew() -> None:
    store, keyring = RamStore(), RamKeyring()
    with wellkept.open(store=store, embedder="hashing-64", keyring=keyring) as memories:
        view = memories.view(user="ada")
        one, other = view.add("Likes tea", sensitive=True), view.add("Likes tea a lot")
        [shown] = store.journal.get({ADA}, [other.id], vectors=True)
        [kept] = store.journal.get({ADA}, [one.id], vectors=True)
        store.journal.rewrite([kept._replace(vector=shown.vector)])
        with pytest.raises(Tampered):
            view.get(one.id, include_vector=True)
        assert memories.encryption.check().failed == (one.id,)
        memories.reembed("hashing-32")
        assert memories.encryption.check().fits
