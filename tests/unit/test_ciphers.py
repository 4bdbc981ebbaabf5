"""Ciphers: what they encrypt opens with its key and in its place only."""

import pytest

from wellkept import ciphers
from wellkept.errors import Tampered


def test_what_is_encrypted_opens_only_in_its_place() -> None:
    sealed = ciphers.encrypt(bytes(32), bytes(12), b"tea", "ada", "m1", 1)
    assert ciphers.decrypt(bytes(32), sealed, "ada", "m1", 1) == b"tea"
    for secret, bound in (
        (bytes(32), ("ada", "m1", 2)),
        (bytes(32), ("ada", "m", "11")),
        (b"x" * 32, ("ada", "m1", 1)),
    ):
        with pytest.raises(Tampered):
            ciphers.decrypt(secret, sealed, *bound)
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 1
        with pytest.raises(Tampered):
            ciphers.decrypt(bytes(32), bytes(altered), "ada", "m1", 1)
