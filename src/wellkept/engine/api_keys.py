"""API keys: grants that are handed out as tokens, kept as records of the whole database.

A token has 256 random bits. Of such a secret a plain SHA-256 says nothing, and a slow hash would protect nothing more:
that is for passwords, which can be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from wellkept import authorization, codec, validation
from wellkept.errors import Conflict, InvalidInput, LimitReached, NotFound, StoreError, Unauthorized
from wellkept.ports import Record, Records, sound
from wellkept.types import ApiKey, Grant, Need, NewApiKey
from wellkept.types.owners import DATABASE

if TYPE_CHECKING:
    from wellkept.engine.core import Engine  # which holds engines of grants to what is said here

KEYS = 10_000
"""How many API keys a database keeps; revoked and expired ones make room."""

_KIND = "api_key"
_PREFIX = "wk"
_ID_BYTES = 8
_SECRET_BYTES = 32
_TOKEN_CHARACTERS = 128
_USED = timedelta(hours=1)  # how exactly the last use is known
_ATTEMPTS = 100


def create(engine: Engine, name: str, grant: Grant) -> NewApiKey:
    """Make a key. Its token is returned here, and nowhere else."""
    validation.name("name", name)
    if authorization.checked(grant).key is not None:
        raise InvalidInput(
            "the grant was made for another API key",
            details={"field": "grant"},
            hint="pass a grant of your own: Grant(need=..., owners=...)",
        )
    now = engine.clock()
    if grant.expires_at is not None:
        validation.future("expires_at", grant.expires_at, now)
    _make_room(engine, now)
    id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    key = ApiKey(id=id, name=name, grant=replace(grant, key=id), created_at=now)
    body = _encoded(key, _hash(secret))
    engine.records.put(Record(owner=DATABASE, kind=_KIND, name=id, body=body, version=1, updated_at=now))
    return NewApiKey(key=key, token=f"{_PREFIX}_{id}_{secret}")


def _make_room(engine: Engine, now: datetime) -> None:
    """Where there are too many keys, those that no longer work go."""
    kept = every(engine)
    if len(kept) < KEYS:
        return
    ended = [
        one for one in kept if one.revoked_at or (one.grant.expires_at is not None and one.grant.expires_at <= now)
    ]
    if not ended:
        raise LimitReached(
            f"there are {KEYS} API keys already", details={"limit": KEYS}, hint="revoke those that are not needed"
        )
    for one in ended:
        engine.records.drop(DATABASE, _KIND, one.id)


def every(engine: Engine) -> tuple[ApiKey, ...]:
    """All keys, the oldest first."""
    found = (_decoded(record.body)[0] for record in sound(engine.records.list({DATABASE}, _KIND)))
    return tuple(sorted(found, key=lambda one: (one.created_at, one.id)))


def revoke(engine: Engine, id: str) -> ApiKey:
    """Revoke a key: from now on it allows nothing, in any process. Revoking twice keeps the first time."""
    return _changed(engine, id, lambda key, now: key if key.revoked_at else replace(key, revoked_at=now))


def grant_of(engine: Engine, token: object) -> Grant:
    """What the key of a token allows; ``Unauthorized`` if there is none, or it was revoked or has expired."""
    known, secret = _parsed(token)
    record = engine.records.get(DATABASE, _KIND, known) if known else None
    key, kept = (None, _hash("")) if record is None else _decoded(record.body)
    if not hmac.compare_digest(kept, _hash(secret)) or record is None or key is None:
        raise Unauthorized(
            "the API key is not known here",
            details={"field": "token"},
            hint="check that it is complete and of this database; make another one with keys.create",
        )
    _check_not_revoked(key)
    now = engine.clock()
    authorization.check(key.grant, Need.READ, now)
    if key.last_used_at is None or now - key.last_used_at >= _USED:
        body = _encoded(replace(key, last_used_at=now), kept)
        with suppress(StoreError, Conflict):  # bookkeeping: a revocation meanwhile wins, and a full disk stops nobody
            engine.records.put(replace(record, body=body, version=record.version + 1, updated_at=now))
    return key.grant


def check_valid(records: Records, id: str) -> None:
    """Raise ``Unauthorized`` if a key was revoked or removed; its grant says when it expires."""
    record = records.get(DATABASE, _KIND, id)
    if record is None:
        raise _revoked(id)
    _check_not_revoked(_decoded(record.body)[0])


def _check_not_revoked(key: ApiKey) -> None:
    if key.revoked_at is not None:
        raise _revoked(key.id)


def _revoked(id: str) -> Unauthorized:
    return Unauthorized(
        f"the API key {id[:64]!r} was revoked", details={"key": id[:64]}, hint="use another key, or create one"
    )


def _changed(engine: Engine, id: str, decide: Callable[[ApiKey, datetime], ApiKey]) -> ApiKey:
    validation.line("id", id)
    for _ in range(_ATTEMPTS):
        record = engine.records.get(DATABASE, _KIND, id)
        if record is None:
            raise NotFound(
                f"there is no API key {id[:64]!r}", details={"key": id[:64]}, hint="keys.list() has their ids"
            )
        key, kept = _decoded(record.body)
        now = engine.clock()
        after = decide(key, now)
        if after == key:
            return key
        try:
            engine.records.put(replace(record, body=_encoded(after, kept), version=record.version + 1, updated_at=now))
        except Conflict:
            continue
        return after
    raise Conflict("the API key kept changing while it was written", details={"key": id}, hint="try again")


def _parsed(token: object) -> tuple[str, str]:
    """The id and the secret of a token; empty texts if it has none."""
    if not isinstance(token, str) or not token.isascii() or len(token) > _TOKEN_CHARACTERS:
        return "", ""
    prefix, _, rest = token.partition("_")
    known, _, secret = rest.partition("_")
    return (known, secret) if prefix == _PREFIX and known.isalnum() and secret else ("", "")


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _encoded(key: ApiKey, kept: bytes) -> bytes:
    grant = key.grant
    return codec.encode_json(
        {
            "id": key.id,
            "name": key.name,
            "sha256": kept.hex(),
            "need": grant.need.value,
            "owners": None if grant.owners is None else [codec.encode_owner(owner) for owner in grant.owners],
            "max_trust": grant.max_trust,
            "holder": grant.holder,
            "expires_at": _micros(grant.expires_at),
            "created_at": _micros(key.created_at),
            "last_used_at": _micros(key.last_used_at),
            "revoked_at": _micros(key.revoked_at),
        }
    )


def _decoded(body: bytes) -> tuple[ApiKey, bytes]:
    kept: dict[str, Any] = codec.decode_json(body)
    owners = kept["owners"]
    grant = Grant(
        need=Need(kept["need"]),
        owners=None if owners is None else tuple(codec.decode_owner(owner) for owner in owners),
        expires_at=_time(kept["expires_at"]),
        max_trust=kept["max_trust"],
        holder=kept["holder"],
        key=kept["id"],
    )
    key = ApiKey(
        id=kept["id"],
        name=kept["name"],
        grant=grant,
        created_at=codec.from_micros(kept["created_at"]),
        last_used_at=_time(kept["last_used_at"]),
        revoked_at=_time(kept["revoked_at"]),
    )
    return key, bytes.fromhex(kept["sha256"])


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else codec.to_micros(moment)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else codec.from_micros(micros)
