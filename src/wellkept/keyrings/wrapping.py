"""Keys wrapped by a master key: each bound to its keyring, its owner and its id, so that none opens anywhere else."""

import hashlib
import os

from wellkept import ciphers, codec
from wellkept.errors import KeyUnavailable, Tampered
from wellkept.ports import OwnerKey
from wellkept.types import Owner

FORMAT = 1
SIGNING = "signing"


def fingerprint(master: bytes) -> str:
    """Tells master keys apart and reveals nothing of them."""
    return hashlib.sha256(ciphers.derived(master, "wellkept: which master key")).hexdigest()[:16]


def new_key(blind: bytes | None = None) -> OwnerKey:
    """A random key; of an owner that has one, with the same ``blind``."""
    return OwnerKey(os.urandom(8).hex(), os.urandom(ciphers.KEY_BYTES), blind or os.urandom(ciphers.KEY_BYTES))


def wrap(master: bytes, ring: str, owner: Owner, key: OwnerKey) -> bytes:
    """A data key as a keyring keeps it."""
    return _wrap(master, key.secret + key.blind, ring, codec.encode_owner(owner), key.id)


def unwrap(master: bytes, ring: str, owner: Owner, key_id: str, wrapped: bytes) -> OwnerKey:
    """A data key as it was before it was wrapped."""
    both = _unwrap(master, wrapped, ring, codec.encode_owner(owner), key_id)
    return OwnerKey(key_id, both[: ciphers.KEY_BYTES], both[ciphers.KEY_BYTES :])


def wrap_seed(master: bytes, ring: str, seed: bytes) -> bytes:
    """The seed of signatures as a keyring keeps it."""
    return _wrap(master, seed, ring, SIGNING, SIGNING)


def unwrap_seed(master: bytes, ring: str, wrapped: bytes) -> bytes:
    """The seed of signatures."""
    return _unwrap(master, wrapped, ring, SIGNING, SIGNING)


def _wrap(master: bytes, plain: bytes, ring: str, owner: str, key_id: str) -> bytes:
    return ciphers.encrypt(master, os.urandom(ciphers.NONCE_BYTES), plain, "keyring", FORMAT, ring, owner, key_id)


def _unwrap(master: bytes, wrapped: bytes, ring: str, owner: str, key_id: str) -> bytes:
    try:
        return ciphers.decrypt(master, wrapped, "keyring", FORMAT, ring, owner, key_id)
    except Tampered:
        raise Tampered(
            f"the key {key_id!r} in the keyring was altered",
            details={"key_id": key_id},
            hint="restore the keyring from a copy of it; the data of this key cannot be read without",
        ) from None


def wrong_master(expected: str) -> KeyUnavailable:
    """What is raised where no master key at hand opens a keyring."""
    return KeyUnavailable(
        "the master key at hand is not the one of this keyring",
        details={"master": expected},
        hint="set WELLKEPT_MASTER_KEY, or write it anew from the recovery code: wellkept keys init --recover FILE",
    )
