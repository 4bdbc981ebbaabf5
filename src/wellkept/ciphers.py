"""Authenticated encryption with AES-256-GCM, and keyed hashes. Pure: randomness is passed in.

What is encrypted is bound to its place by additional data: moved anywhere else, it does not open.
"""

import hashlib
import hmac
import struct
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from wellkept import extras
from wellkept.errors import Tampered

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
"""A random nonce for each encryption. A counter would repeat itself after an older copy is restored."""

TAG_BYTES = 16
_LENGTH = struct.Struct(">I")


def encrypt(secret: bytes, nonce: bytes, plain: bytes, *bound: str | int) -> bytes:
    """The nonce, the ciphertext and its tag. ``bound`` is the place that it belongs to.

    >>> sealed = encrypt(bytes(32), bytes(12), b"Likes tea", "ada", "m1", 1)
    >>> len(sealed), decrypt(bytes(32), sealed, "ada", "m1", 1)
    (37, b'Likes tea')
    """
    return nonce + _aead(secret).encrypt(nonce, plain, place(*bound))


def decrypt(secret: bytes, sealed: bytes | memoryview, *bound: str | int) -> bytes:
    """What was encrypted; ``Tampered`` if it was altered, or does not belong to this place or key."""
    nonce, rest = bytes(sealed[:NONCE_BYTES]), bytes(sealed[NONCE_BYTES:])
    try:
        opened: bytes = _aead(secret).decrypt(nonce, rest, place(*bound))
    except (_loaded()[1], ValueError):  # the latter if not even a nonce is left
        raise Tampered(
            "something encrypted does not fit its key and its place",
            hint="it was altered or damaged, or moved from elsewhere; restore it from a backup",
        ) from None
    return opened


def place(*bound: str | int) -> bytes:
    """Parts as bytes that no other parts make: each has its length in front.

    >>> place("ab", "c") != place("a", "bc")
    True
    """
    found = b""
    for part in bound:
        encoded = part.encode() if isinstance(part, str) else b"%d" % part
        found += _LENGTH.pack(len(encoded)) + encoded
    return found


def keyed_hash(secret: bytes, *parts: str) -> str:
    """A hash that nobody can make or guess without the secret: equal for equal parts.

    >>> keyed_hash(bytes(32), "tag", "health") == keyed_hash(bytes(32), "tag", "health")
    True
    """
    return hashlib.blake2b(place(*parts), key=secret, digest_size=16).hexdigest()


def derived(secret: bytes, purpose: str) -> bytes:
    """Another secret for another purpose, from which the first cannot be computed."""
    return hmac.digest(secret, purpose.encode(), hashlib.sha256)


@lru_cache(maxsize=256)
def _aead(secret: bytes) -> "AESGCM":
    """The cipher of a key: making one takes several times as long as encrypting a memory."""
    return _loaded()[0](secret)


@cache
def _loaded() -> "tuple[type[AESGCM], type[Exception]]":
    extras.require("encryption")
    from cryptography.exceptions import InvalidTag  # lazy: an extra, needed by whoever encrypts
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # lazy: as above

    return AESGCM, InvalidTag
