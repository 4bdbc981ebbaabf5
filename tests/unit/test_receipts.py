"""Receipts of erasures, and a keyring that is exchanged while its database is open."""

from dataclasses import replace
from datetime import timedelta

import pytest

import wellkept
from tests.support.stand_ins import HandClock
from wellkept.keyrings.ram import RamKeyring
from wellkept.types import Layer, Owner

BOB = Owner(Layer.USER, ("bob",))


@pytest.mark.req("N7")
def test_a_receipt_is_signed_by_the_keyring_and_any_change_is_found() -> None:
    memories = wellkept.open("ram:", embedder=None, clock=HandClock())
    memories._engine.keyring = keyring = RamKeyring()
    keyring.create(BOB)
    memories.view(user="bob").add("x")
    receipt = memories.privacy.erase(user="bob")
    assert receipt.counts.keys == 1
    assert keyring.key(BOB) is None
    told = memories.privacy.verify(receipt)
    assert (told.valid, told.signed, told.checked) == (True, True, 1)
    for altered in (
        replace(receipt, counts=replace(receipt.counts, memories=2)),
        replace(receipt, remains=()),
        replace(receipt, ledger_hash="0" * 64),
        replace(receipt, erased_at=receipt.erased_at + timedelta(seconds=1)),
        replace(receipt, signature="00" * 64),
        replace(receipt, public_key="00"),
        replace(receipt, signature=None),
        replace(receipt, signature=None, public_key=None, signed_by="nobody", remains=("nothing",)),
    ):
        if altered != receipt:
            assert not memories.privacy.verify(altered).valid
    memories._engine.keyring = RamKeyring()
    assert memories.privacy.verify(receipt).problems == ("the signature is by another keyring than this database's",)
