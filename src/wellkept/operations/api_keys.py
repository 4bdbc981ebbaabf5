"""Verbs of API keys: keys, keys.list, keys.create, keys.revoke."""

from dataclasses import dataclass
from datetime import datetime

from wellkept import fields
from wellkept.authorization import OWNERS, owner_of_text, text_of_owner
from wellkept.errors import InvalidInput, LimitReached, NotFound
from wellkept.operations.conditions import MANY
from wellkept.operations.maintenance import Nothing
from wellkept.operations.verb import Caller, Example, Verb, argument, option, result
from wellkept.types import ApiKey, Need
from wellkept.types.bounds import Bounds

_OWNERS = Bounds(max_length=OWNERS, each=fields.LINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An API key, without its token."""

    id: str = result("The id of the key.", bounds=fields.ID)
    name: str = result("What it was named.", bounds=fields.ID)
    need: Need = result("The highest need that it allows.")
    owners: tuple[str, ...] | None = result("The owners that it reaches; null for every owner.", bounds=_OWNERS)
    max_trust: float = result("How far what is written with it is trusted at most.", bounds=fields.UNIT)
    holder: str | None = result("Who uses it, where access policies ask for that.", bounds=fields.ID)
    created_at: datetime = result("When it was created.")
    expires_at: datetime | None = result("When it expires.")
    last_used_at: datetime | None = result("When it was last used, exact to about an hour.")
    revoked_at: datetime | None = result("When it was revoked.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """All API keys."""

    keys: tuple[Key, ...] = result("The keys, the oldest first.", bounds=MANY)


def _shown(key: ApiKey) -> Key:
    owners = key.grant.owners
    return Key(
        id=key.id,
        name=key.name,
        need=key.grant.need,
        owners=None if owners is None else tuple(map(text_of_owner, owners)),
        max_trust=key.grant.max_trust,
        holder=key.grant.holder,
        created_at=key.created_at,
        expires_at=key.grant.expires_at,
        last_used_at=key.last_used_at,
        revoked_at=key.revoked_at,
    )


def _list(caller: Caller, _: Nothing) -> Keys:
    return Keys(keys=tuple(_shown(one) for one in caller.memories.keys.list()))


KEYS = Verb(
    name="keys",
    input=Nothing,
    output=Keys,
    run=_list,
    method="ApiKeys.list",
    examples=(Example(line="wellkept keys", says="the API keys, and what they allow"),),
)

KEYS_LIST = Verb(
    name="keys.list",
    input=Nothing,
    output=Keys,
    run=_list,
    method="ApiKeys.list",
    examples=(Example(line="wellkept keys list", says="the same"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateKey:
    """What the key is named, and what it allows."""

    name: str = argument("A name for the key, such as that of the program that uses it.", bounds=fields.ID)
    need: Need = option("The highest need that it allows.", Need.READ)
    owners: tuple[str, ...] = option(
        "An owner that it reaches, such as project:api, session:ada:monday or user:* for every user.",
        (),
        bounds=_OWNERS,
        flag="for",
    )
    everything: bool = option("Reach every owner.", False)
    expires_at: datetime | None = option("When it expires.", flag="expires", ahead=True)
    max_trust: float = option("How far what is written with it is trusted at most.", 1.0, bounds=fields.UNIT)
    holder: str | None = option("Who uses it, where access policies ask for that.", bounds=fields.ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedKey:
    """A new API key, with its token: the only time that it is told."""

    token: str = result("The token. It is not stored and cannot be shown again.", bounds=fields.ID)
    key: Key = result("What is known of the key.")


def _create(caller: Caller, given: CreateKey) -> CreatedKey:
    if bool(given.owners) == given.everything:
        raise InvalidInput(
            "give either owners or everything",
            details={"field": "owners"},
            hint="name the owners, such as project:api, or say that it reaches everything",
        )
    made = caller.memories.keys.create(
        given.name,
        owners=None if given.everything else [owner_of_text(one) for one in given.owners],
        need=given.need,
        expires_at=given.expires_at,
        max_trust=given.max_trust,
        holder=given.holder,
    )
    return CreatedKey(token=made.token, key=_shown(made.key))


KEYS_CREATE = Verb(
    name="keys.create",
    input=CreateKey,
    output=CreatedKey,
    run=_create,
    method="ApiKeys.create",
    errors=(LimitReached,),
    creates=True,
    description="The token is shown once and stored as a hash. A key for some owners reaches nothing else.",
    examples=(
        Example(line="wellkept keys create dashboard --for project:api --expires 90d", says="reads one project"),
        Example(line="wellkept keys create bot --for 'user:*' --need write", says="reads and writes for any user"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeKey:
    """Which key."""

    id: str = argument("The id of the key.", bounds=fields.ID)


def _revoke(caller: Caller, given: RevokeKey) -> Key:
    return _shown(caller.memories.keys.revoke(given.id))


KEYS_REVOKE = Verb(
    name="keys.revoke",
    input=RevokeKey,
    output=Key,
    run=_revoke,
    method="ApiKeys.revoke",
    errors=(NotFound,),
    description="It allows nothing from then on, in any process.",
    examples=(Example(line="wellkept keys revoke $KEY", says="it no longer works"),),
)
