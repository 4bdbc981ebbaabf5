"""The records of a database with keys: where everything is encrypted, so are those that hold words of people.

A record of a session is encrypted by the key of the session, whoever keeps it: erasing the session destroys that key.
"""

import base64
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from wellkept import ciphers, codec
from wellkept.errors import KeyUnavailable, Tampered
from wellkept.keyrings import lookup
from wellkept.ports import DamagedRecord, Keyring, Lease, OwnerKey, Record, Records
from wellkept.types import Layer, Owner, Owners

FORMAT = 1
TELLING = frozenset({"session", "holds", "retention", "consolidation", "session_end"})
"""The kinds of records that hold what people wrote: preferences, reasons, tags. Others hold ids, counts and times."""

_SESSION = "session"
_ENCRYPTED = "encrypted"
_SIGN = b'{"encrypted":'
_read = codec.reader(dict[str, dict[str, Any]])


class EncryptedRecords(Records):
    """Encrypts what tells something, if everything is to be encrypted, or if the record was before."""

    def __init__(
        self, wrapped: Records, keyring: Keyring | None, *, everything: bool, note: Callable[[Keyring], None]
    ) -> None:
        """``note`` is called before something is encrypted: a database says which keyring it needs."""
        self._wrapped, self._keyring = wrapped, keyring
        self._everything, self._note = everything, note

    def get(self, owner: Owner, kind: str, name: str) -> Record | None:
        """One record, opened."""
        found = self._wrapped.get(owner, kind, name)
        return None if found is None else self._opened(found)

    def put(self, record: Record) -> None:
        """Encrypt a record, and keep it."""
        self._wrapped.put(self._hidden(record))

    def restore(self, record: Record) -> None:
        """Encrypt a record, and keep it with its version."""
        self._wrapped.restore(self._hidden(record))

    def _hidden(self, record: Record) -> Record:
        if record.kind not in TELLING or not (self._everything or self._was_encrypted(record)):
            return record
        keyring = lookup.writing_keyring(self._keyring)
        self._note(keyring)
        return encrypted(record, keyring.create(subject(record)))

    def _was_encrypted(self, record: Record) -> bool:
        before = self._wrapped.get(record.owner, record.kind, record.name)
        return before is not None and (isinstance(before, DamagedRecord) or is_encrypted(before))

    def drop(self, owner: Owner, kind: str, name: str) -> bool:
        """Remove a record, whether it can be opened or not."""
        return self._wrapped.drop(owner, kind, name)

    def list(
        self, owners: Owners | None, kind: str | None = None, *, after: str = "", limit: int | None = None
    ) -> Sequence[Record]:
        """Records, opened."""
        return [self._opened(one) for one in self._wrapped.list(owners, kind, after=after, limit=limit)]

    def lease(self, name: str, holder: str, ttl_ms: int) -> Lease | None:
        """Leases are in the clear."""
        return self._wrapped.lease(name, holder, ttl_ms)

    def release(self, lease: Lease) -> None:
        """Leases are in the clear."""
        self._wrapped.release(lease)

    def _opened(self, record: Record) -> Record:
        if not is_encrypted(record):
            return record
        what = f"the record {record.kind!r}"
        key = lookup.opening_key(self._keyring, subject(record), key_of(record), what=what, kind=record.kind)
        return _decrypted(record, key)


def subject(record: Record) -> Owner:
    """Whom a record is about: that of a session is kept by its user."""
    return Owner(Layer.SESSION, (record.owner.ids[0], record.name)) if record.kind == _SESSION else record.owner


def is_encrypted(record: Record) -> bool:
    """Whether the body of a record is encrypted; of a damaged one nobody knows."""
    return not isinstance(record, DamagedRecord) and record.kind in TELLING and record.body.startswith(_SIGN)


def key_of(record: Record) -> str:
    """The id of the key that a record is encrypted by."""
    return str(_parts(record).get("key", ""))[:64]


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
