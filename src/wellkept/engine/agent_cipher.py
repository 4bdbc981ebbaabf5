"""Encryption of an agent's snapshots: by the key that encrypts the agent's own memories, so that destroying it reaches
every copy of a snapshot as well.
"""

import base64
import binascii
import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from wellkept import ciphers, codec, sensitivity
from wellkept.engine import sensitive
from wellkept.engine.core import Engine
from wellkept.errors import Tampered
from wellkept.keyrings import lookup
from wellkept.ports import OwnerKey
from wellkept.snapshot_cipher import MARK, SnapshotCipher
from wellkept.types import Owner

FORMAT = 1
"""A part of what is bound: a later way to encrypt cannot be taken for this one."""

_VERDICTS = 10_000
_read = codec.reader(dict[str, Any])


class AgentCipher(SnapshotCipher):
    """Encrypts by the current key of an owner, as the settings ``encryption`` say at that moment."""

    def __init__(self, engine: Engine, owner: Owner, verdicts: dict[bytes, bool] | None = None) -> None:
        self._engine = engine
        self._owner = owner
        self._name = codec.encode_owner(owner)
        # By digests of texts: recognition takes far longer than encryption.
        self._verdicts: dict[bytes, bool] = {} if verdicts is None else verdicts

    @property
    def everything(self) -> bool:
        """Whether the settings ask for it."""
        return self._engine.keyring is not None and self._engine.settings.encryption.encrypt == "all"

    def check(self) -> None:
        """By the rule for memories."""
        sensitive.check_key(self._engine, "entry or item")

    def covers(self, marked: bool | None, read: Callable[[], object]) -> bool:
        """By the rule for memories: marked, recognised, or everything."""
        if marked:
            self.check()
        if self._engine.keyring is None:
            return False
        if marked is None and not self.everything:
            return bool(self._engine.detectors) and self._recognised("\n".join(sensitive.texts_in(read())))
        return bool(marked) or self.everything

    def _recognised(self, text: str) -> bool:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        verdict = self._verdicts.get(digest)
        if verdict is None:
            if len(self._verdicts) >= _VERDICTS:
                self._verdicts.clear()
            verdict = self._verdicts[digest] = bool(sensitivity.recognised(text, self._engine.detectors))
        return verdict

    def batch(self) -> SnapshotCipher:
        """One that looks each key up once."""
        return _Batch(self._engine, self._owner, self._verdicts)

    def _current(self) -> OwnerKey:
        """The current key, which is made if there is none."""
        return lookup.writing_keyring(self._engine.keyring).create(self._owner)

    def _named(self, key_id: str) -> OwnerKey:
        return lookup.opening_key(self._engine.keyring, self._owner, key_id, what="the snapshot", field="snapshot")

    def encrypt(self, told: Mapping[str, Any], *place: str) -> str:
        """By the current key."""
        key = self._current()
        nonce = os.urandom(ciphers.NONCE_BYTES)
        sealed = ciphers.encrypt(key.secret, nonce, codec.encode_json(told), *self._bound(key, place))
        return f"{MARK}{key.id}:{base64.b64encode(sealed).decode()}"

    def decrypt(self, text: str, *place: str) -> dict[str, Any]:
        """By the key that the text names."""
        key_id, _, encoded = text.removeprefix(MARK).partition(":")
        key = self._named(key_id)
        try:
            sealed = base64.b64decode(encoded, validate=True)
            return _read(ciphers.decrypt(key.secret, sealed, *self._bound(key, place)))
        except (Tampered, binascii.Error, ValueError):
            raise Tampered(
                f"the {place[0]} {place[-1]!r} of the snapshot does not fit its key and its place",
                details={"field": "snapshot", place[0]: place[-1], "key_id": key.id},
                hint="it was altered or damaged, or moved from elsewhere; restore another snapshot",
            ) from None

    def _bound(self, key: OwnerKey, place: tuple[str, ...]) -> tuple[str | int, ...]:
        return "snapshot", FORMAT, self._name, key.id, *place


class _Batch(AgentCipher):
    """For one snapshot: a key that is destroyed is missed by the next."""

    def __init__(self, engine: Engine, owner: Owner, verdicts: dict[bytes, bool]) -> None:
        super().__init__(engine, owner, verdicts)
        self._made: OwnerKey | None = None
        self._known: dict[str, OwnerKey] = {}

    def _current(self) -> OwnerKey:
        if self._made is None:
            self._made = super()._current()
        return self._made

    def _named(self, key_id: str) -> OwnerKey:
        if key_id not in self._known:
            self._known[key_id] = super()._named(key_id)
        return self._known[key_id]
