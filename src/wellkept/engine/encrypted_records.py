"""The records of a database with keys: where everything is encrypted, so are those that hold words of people.

A record of a session is encrypted by the key of the session, whoever keeps it: erasing the session destroys that key.
"""

import base64
import os
from dataclasses import replace
from typing import Any

from wellkept import ciphers, codec
from wellkept.errors import KeyUnavailable, Tampered
from wellkept.keyrings import lookup
from wellkept.ports import DamagedRecord, Keyring, OwnerKey, Record
from wellkept.types import Layer, Owner

FORMAT = 1
TELLING = frozenset({"session", "holds", "retention", "consolidation", "session_end"})
"""The kinds of records that hold what people wrote: preferences, reasons, tags. Others hold ids, counts and times."""

_SESSION = "session"
_ENCRYPTED = "encrypted"
_SIGN = b'{"encrypted":'
_read = codec.reader(dict[str, dict[str, Any]])


def subject(owner: Owner, kind: str, name: str) -> Owner:
    """Whom a record is about: that of a session is kept by its user."""
    return Owner(Layer.SESSION, (owner.ids[0], name)) if kind == _SESSION else owner


def subject_of(record: Record) -> Owner:
    """Whom a record is about."""
    return subject(record.owner, record.kind, record.name)


def is_encrypted(record: Record) -> bool:
    """Whether the body of a record is encrypted; of a damaged one nobody knows."""
    return not isinstance(record, DamagedRecord) and record.kind in TELLING and record.body.startswith(_SIGN)


def key_of(record: Record) -> str:
    """The id of the key that a record is encrypted by."""
    return str(_parts(record).get("key", ""))[:64]


def opened(record: Record, keyring: Keyring | None) -> Record:
    """A record as it was before it was encrypted."""
    if not is_encrypted(record):
        return record
    what = f"the record {record.kind!r}"
    key = lookup.opening_key(keyring, subject_of(record), key_of(record), what=what, kind=record.kind)
    return _decrypted(record, key)


def encrypted(record: Record, key: OwnerKey) -> Record:
    """A record whose body tells nothing."""
    sealed = ciphers.encrypt(key.secret, os.urandom(ciphers.NONCE_BYTES), record.body, *_place(record, key))
    parts = {"format": FORMAT, "key": key.id, "sealed": base64.b64encode(sealed).decode()}
    return replace(record, body=codec.encode_json({_ENCRYPTED: parts}))


def _decrypted(record: Record, key: OwnerKey) -> Record:
    try:
        sealed = base64.b64decode(_parts(record).get("sealed", ""), validate=True)
        return replace(record, body=ciphers.decrypt(key.secret, sealed, *_place(record, key)))
    except (Tampered, ValueError, TypeError):
        raise _tampered(record) from None


def _parts(record: Record) -> dict[str, Any]:
    try:
        parts = _read(record.body)[_ENCRYPTED]
    except codec.UNREADABLE:
        raise _tampered(record) from None
    if parts.get("format") != FORMAT:
        raise KeyUnavailable(
            f"the record {record.kind!r} is encrypted in a way that this release does not know",
            details={"kind": record.kind},
            hint="use the release that wrote it, or a newer one",
        )
    return parts


def _place(record: Record, key: OwnerKey) -> tuple[str | int, ...]:
    """What a body is bound to. The version is no part of it: a copy of the database counts anew."""
    return FORMAT, "record", codec.encode_owner(record.owner), record.kind, record.name, key.id


def _tampered(record: Record) -> Tampered:
    return Tampered(
        f"the record {record.kind!r} does not fit its key and its place",
        details={"kind": record.kind},
        hint="it was altered or damaged, or moved from elsewhere; restore it from a backup",
    )
