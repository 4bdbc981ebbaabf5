"""The ledger of erasures: which of two entries about one owner holds."""

from dataclasses import replace
from datetime import timedelta

import pytest

from wellkept.engine import ledger
from wellkept.testing.builders import START
from wellkept.types import ErasureCounts, ErasureScope, Layer, LedgerEntry, Owner

ADA = Owner(Layer.USER, ("ada",))


@pytest.mark.req("N7")
def test_an_older_erasure_that_is_taken_over_later_takes_nothing_back() -> None:
    salt = "00" * ledger.SALT
    newer = LedgerEntry(
        seq=1,
        previous="",
        id="newer",
        at=START + timedelta(days=2),
        scope=ErasureScope.OWNER,
        salt=salt,
        owners=(ledger.hashed(salt, ADA),),
        memories=(),
        counts=ErasureCounts(),
    )
    older = replace(newer, seq=2, id="older", at=START)
    assert ledger.Ledger([newer, older]).until(ADA) == ledger.Ledger([newer]).until(ADA)
