"""A version as the store keeps it if it is sensitive, and back.

In the clear stay what every store must know (state, type, importance, times, size) and keyed hashes of what filters ask
for exactly: key, tags, author and session. Everything else, the reason included, is in the payload, encrypted. The
vector is encrypted beside a stand-in, which says only how long it is: an embedding tells nearly as much as its text.
"""

import base64
import os
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from wellkept import ciphers, codec
from wellkept.errors import KeyUnavailable, Tampered
from wellkept.ports import OwnerKey
from wellkept.types import Owner, Stored, Vector, Write

FORMAT = 1
ENCRYPTED = "encrypted"
"""The facet that names the key of an encrypted version."""

MARK = "\x1fencrypted"
"""The tag of everything that is encrypted. No caller can give it: tags have no control characters."""

PLAIN_KEY = "plain_key"
"""The facet with the key of a memory that is not encrypted, but whose owner has keys: the facet ``key`` is hashed."""

CLEAR = frozenset({"state", "type", "tier", "importance", "created_at", "occurred_at", "expires_at", "bytes"})
"""The facets that stay as they are."""

_HASHED = ("key", "author", "session")
_SIGN = "\x1f"
_VECTOR = b"\x1fencrypted vector 1\0"
_REASON = "\x1fencrypted:"
_read_head = codec.reader(dict[str, Any])

Keys = Callable[[Owner, str], OwnerKey]
"""Gives the key of an owner by its id, or raises ``KeyUnavailable``."""


def is_encrypted(facets: Mapping[str, Any]) -> bool:
    """Whether facets are those of an encrypted version."""
    return ENCRYPTED in facets


def hashed(key: OwnerKey, name: str, value: str) -> str:
    """What stands in the facets for a value: equal for equal values of one owner, and told from plain ones."""
    return _SIGN + ciphers.keyed_hash(key.blind, name, value)


def tag_hashes(key: OwnerKey, tags: tuple[str, ...]) -> list[str]:
    """The hashes of tags and of every level above them, so that a filter by a level finds what is below it."""
    found: dict[str, None] = {}
    for tag in tags:
        levels = tag.split(".")
        for depth in range(1, len(levels) + 1):
            found[hashed(key, "tag", ".".join(levels[:depth]))] = None
    return list(found)


# -- versions -----------------------------------------------------------------------------------------------------


def encrypted(write: Write, key: OwnerKey) -> Write:
    """A write that tells nothing but what must stay in the clear."""
    facets, payload = _concealed(write, key)
    vector = write.vector
    return write._replace(
        facets=facets,
        payload=payload,
        reason=None,
        vector=None if vector is None else encrypted_vector(vector, key, write.owner, write.id),
        digest=None,
    )


def concealed(stored: Stored, key: OwnerKey) -> Stored:
    """A stored version that was not encrypted, or by another key, as it is with this one. Its vector is left out."""
    facets, payload = _concealed(stored, key)
    return stored._replace(facets=facets, payload=payload, reason=None, vector=None)


def _concealed(version: Write | Stored, key: OwnerKey) -> tuple[dict[str, Any], bytes]:
    """The facets and the payload of an encrypted version."""
    facets = version.facets
    shown = {name: facets[name] for name in facets if name in CLEAR}
    shown |= {name: hashed(key, name, facets[name]) for name in _HASHED if facets.get(name) is not None}
    shown["tags"] = [MARK, *tag_hashes(key, tuple(facets.get("tags", ())))]
    shown[ENCRYPTED] = {"format": FORMAT, "key": key.id}
    told: dict[str, Any] = {"facets": {name: value for name, value in facets.items() if name not in CLEAR}}
    if version.reason is not None:
        told["reason"] = version.reason
    head = codec.encode_json(told)
    plain = struct.pack(">I", len(head)) + head + version.payload
    return shown, _Place(version.owner, version.id, "payload", version.version).encrypt(key, plain)


def opened(stored: Stored, keys: Keys) -> Stored:
    """A version as it was before it was encrypted; one that is not encrypted as it is."""
    named = stored.facets.get(ENCRYPTED)
    if named is None:
        vector = stored.vector
        return _with_plain_key(stored)._replace(
            reason=_opened_reason(stored, keys),
            vector=None if vector is None else opened_vector(vector, keys, stored.owner, stored.id),
        )
    key_id = _key_id(named, stored)
    key = keys(stored.owner, key_id)
    plain = _Place(stored.owner, stored.id, "payload", stored.version).decrypt(key, stored.payload)
    (length,) = struct.unpack(">I", plain[:4])
    head = _read_head(plain[4 : 4 + length])
    vector = stored.vector
    if vector is not None and not is_encrypted_vector(vector):
        raise Tampered(
            f"the vector of memory {stored.id!r} is not encrypted as the memory is",
            details={"memory_id": stored.id, "field": "vector", "key_id": key_id},
            hint="it was altered or damaged; run 'wellkept reembed', or restore it from a backup",
        )
    return stored._replace(
        facets={name: value for name, value in stored.facets.items() if name in CLEAR} | head["facets"],
        payload=plain[4 + length :],
        reason=head.get("reason"),
        vector=None if vector is None else opened_vector(vector, keys, stored.owner, stored.id),
    )


def with_hashed_key(write: Write, key: OwnerKey) -> Write:
    """A write that is not encrypted, of an owner that has keys: its own key is hashed as that of encrypted ones is, so
    that the store can tell whether it is taken.
    """
    name = write.facets.get("key")
    if name is None:
        return write
    return write._replace(facets={**write.facets, "key": hashed(key, "key", name), PLAIN_KEY: name})


def _with_plain_key(stored: Stored) -> Stored:
    if PLAIN_KEY not in stored.facets:
        return stored
    facets = dict(stored.facets)
    facets["key"] = facets.pop(PLAIN_KEY)
    return stored._replace(facets=facets)


def _key_id(named: object, stored: Stored) -> str:
    if not isinstance(named, dict) or not isinstance(key_id := named.get("key"), str):
        raise Tampered(
            f"memory {stored.id!r} does not say by which key it is encrypted",
            details={"memory_id": stored.id, "version": stored.version},
            hint="restore it from a backup",
        )
    if named.get("format") != FORMAT:
        raise KeyUnavailable(
            f"memory {stored.id!r} is encrypted in a way that this release does not know",
            details={"memory_id": stored.id, "key_id": key_id},
            hint="use the release that wrote it, or a newer one",
        )
    return key_id


# -- vectors ------------------------------------------------------------------------------------------------------


def encrypted_vector(vector: Vector, key: OwnerKey, owner: Owner, id: str) -> Vector:
    """A stand-in of the same length, with the vector encrypted where its words would stand."""
    if vector.pieces.startswith(_VECTOR):
        return vector
    row = struct.pack("<f", 1.0) + bytes(4 * (vector.dimension - 1))
    spans = b"".join(struct.pack(">II", *span) for span in vector.spans)
    plain = struct.pack(">II", len(vector.data), len(spans)) + vector.data + spans + vector.pieces
    sealed = _Place(owner, id, "vector", vector.embedder).encrypt(key, plain)
    name = key.id.encode()
    return Vector(
        vector.embedder,
        row * (len(vector.data) // len(row)),
        tuple((0, 0) for _ in vector.spans),
        _VECTOR + bytes([len(name)]) + name + sealed,
    )


def is_encrypted_vector(vector: Vector) -> bool:
    """Whether a vector is a stand-in."""
    return vector.pieces.startswith(_VECTOR)


def key_of_vector(vector: Vector) -> str | None:
    """The id of the key that a vector is encrypted by; ``None`` if it is plain."""
    if not vector.pieces.startswith(_VECTOR):
        return None
    rest = vector.pieces[len(_VECTOR) :]
    return rest[1 : 1 + rest[0]].decode("ascii", "replace") if rest else ""


def opened_vector(vector: Vector, keys: Keys, owner: Owner, id: str) -> Vector:
    """The vector behind a stand-in; another one as it is."""
    if not vector.pieces.startswith(_VECTOR):
        return vector
    key = keys(owner, key_of_vector(vector) or "")
    sealed = vector.pieces[len(_VECTOR) + 1 + len(key.id) :]
    plain = _Place(owner, id, "vector", vector.embedder).decrypt(key, sealed)
    size, spans = struct.unpack(">II", plain[:8])
    data, packed, pieces = plain[8 : 8 + size], plain[8 + size : 8 + size + spans], plain[8 + size + spans :]
    return Vector(vector.embedder, data, tuple(struct.iter_unpack(">II", packed)), pieces)


# -- reasons of what is erased ------------------------------------------------------------------------------------


def encrypted_reason(reason: str, key: OwnerKey, owner: Owner, id: str) -> str:
    """The reason of a tombstone, which has no payload."""
    sealed = _Place(owner, id, "reason").encrypt(key, reason.encode())
    return f"{_REASON}{key.id}:{base64.b64encode(sealed).decode()}"


def key_of_reason(reason: str) -> str | None:
    """The id of the key that a reason is encrypted by; ``None`` if it is plain."""
    return reason.removeprefix(_REASON).partition(":")[0] if reason.startswith(_REASON) else None


def _opened_reason(stored: Stored, keys: Keys) -> str | None:
    """The reason of a tombstone; none once its key was destroyed, since nothing else of the memory is left."""
    reason = stored.reason
    if reason is None or not reason.startswith(_REASON):
        return reason
    key_id, _, sealed = reason.removeprefix(_REASON).partition(":")
    try:
        key = keys(stored.owner, key_id)
    except KeyUnavailable:
        return None
    return _Place(stored.owner, stored.id, "reason").decrypt(key, _decoded(sealed)).decode()


def _decoded(text: str) -> bytes:
    """What base64 stands for; nothing, which no key opens, if it was damaged."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


# -- places -------------------------------------------------------------------------------------------------------


_name = lru_cache(maxsize=1_000)(codec.encode_owner)


class _Place(NamedTuple):
    """Where something encrypted belongs; ``of`` is the version of a payload, or the embedder of a vector."""

    owner: Owner
    id: str
    field: str
    of: str | int = ""

    def _bound(self, key: OwnerKey) -> tuple[str | int, ...]:
        return FORMAT, _name(self.owner), self.id, self.field, self.of, key.id

    def encrypt(self, key: OwnerKey, plain: bytes) -> bytes:
        return ciphers.encrypt(key.secret, os.urandom(ciphers.NONCE_BYTES), plain, *self._bound(key))

    def decrypt(self, key: OwnerKey, sealed: bytes) -> bytes:
        try:
            return ciphers.decrypt(key.secret, sealed, *self._bound(key))
        except Tampered:
            raise Tampered(
                f"the {self.field} of memory {self.id!r} does not fit its key and its place",
                details={"memory_id": self.id, "field": self.field, "key_id": key.id},
                hint="it was altered or damaged, or moved from elsewhere; restore it from a backup",
            ) from None
