"""What a grant allows, and who may read a memory that has an access policy: pure functions."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from wellkept import layers, validation
from wellkept.errors import InvalidInput, Unauthorized
from wellkept.types import AccessPolicy, Grant, Identity, Layer, Need, Owner
from wellkept.types.grants import ANY_ID
from wellkept.types.owners import DEFAULT_USER

OWNERS = 1_000
"""How many owners a grant may name."""

_OF_A_PERSON = frozenset({Layer.AGENT, Layer.USER, Layer.SESSION})
_OF_AN_ORGANIZATION = frozenset({AccessPolicy.ORGANIZATION, AccessPolicy.PUBLIC})
_NAMED = _OF_AN_ORGANIZATION | {AccessPolicy.SHARED}


# -- grants -------------------------------------------------------------------------------------------------------


def checked(grant: object) -> Grant:
    """A grant whose values can be relied on: an id that is not text would match nothing, or everything.

    >>> checked(Grant(owners=(Owner(Layer.USER, ("ada", "bob")),)))
    Traceback (most recent call last):
    ...
    wellkept.errors.InvalidInput: the user layer has 1 ids, not 2 (pass Owner(layer, ids) with the ids of the layer)
    """
    if not isinstance(grant, Grant):
        raise InvalidInput(
            f"grant is a {type(grant).__name__}", details={"field": "grant"}, hint="pass a wellkept.types.Grant"
        )
    validation.choice("need", Need, grant.need)
    validation.optional_moment("expires_at", grant.expires_at)
    validation.unit("max_trust", grant.max_trust)
    if grant.holder is not None:
        validation.user("holder", grant.holder)
    if grant.owners is not None:
        owners = validation.batch("owners", grant.owners, OWNERS)
        if not owners:
            raise InvalidInput(
                "a grant names no owner",
                details={"field": "owners"},
                hint="name the owners, use * for any id, or None for every owner",
            )
        for owner in owners:
            layers.checked("owners", owner)
    return grant


def owner_of_text(text: str) -> Owner:
    """The owner that a text names: its layer and its ids with colons between them. The last id may have colons itself.

    >>> owner_of_text("session:ada:monday").ids, owner_of_text("user:*").ids
    (('ada', 'monday'), ('*',))
    """
    name, _, rest = text.partition(":")
    layer = layers.parse_layer(name)
    return layers.checked("owners", Owner(layer, tuple(rest.split(":", len(layers.REQUIRED_IDS[layer]) - 1))))


def text_of_owner(owner: Owner) -> str:
    """An owner as ``owner_of_text`` reads it.

    >>> text_of_owner(Owner(Layer.SESSION, ("ada", "monday")))
    'session:ada:monday'
    """
    return ":".join((owner.layer.value, *owner.ids))


def authorize(grant: Grant, identity: Identity, need: Need, now: datetime) -> None:
    """Raise ``Unauthorized`` unless the grant allows a call of that need with that identity now.

    >>> from datetime import UTC
    >>> authorize(Grant(need=Need.READ), Identity(user="ada"), Need.WRITE, datetime(2030, 1, 7, tzinfo=UTC))
    Traceback (most recent call last):
    ...
    wellkept.errors.Unauthorized: this call needs 'write', the grant allows 'read' (use a grant that allows 'write')
    """
    check(grant, need, now)
    if grant.owners is not None:
        covered_owners(grant, layers.settle(validation.identity(identity)))


def check(grant: Grant, need: Need, now: datetime) -> None:
    """Raise ``Unauthorized`` if the grant has expired, or does not reach so far."""
    if grant.expires_at is not None and now >= grant.expires_at:
        raise Unauthorized(
            f"the grant expired at {grant.expires_at.isoformat()}",
            details={"needed": need.value, "granted": grant.need.value, "expired_at": grant.expires_at.isoformat()},
            hint="use a grant that has not expired",
        )
    if not grant.need.covers(need):
        raise Unauthorized(
            f"this call needs {need.value!r}, the grant allows {grant.need.value!r}",
            details={"needed": need.value, "granted": grant.need.value},
            hint=f"use a grant that allows {need.value!r}",
        )
    if need is Need.ADMIN and grant.owners is not None:
        raise Unauthorized(
            "this call concerns the whole database, the grant covers only some owners",
            details={"needed": need.value, "granted": grant.need.value},
            hint="use a grant for every owner",
        )


def covered_owners(grant: Grant, identity: Identity) -> tuple[Owner, ...]:
    """The owners of a settled identity, all of which the grant must cover; ``Unauthorized`` otherwise.

    A user who was named only to say whose session or agent is meant need not be covered, and is left out then.

    >>> agent = Owner(Layer.AGENT, ("*", "debugger"))
    >>> [one.layer.value for one in covered_owners(Grant(owners=(agent,)), Identity(agent="debugger", user="ada"))]
    ['agent']
    """
    named = layers.owners_of(identity)
    found = tuple(owner for owner in named if grant.owners is None or covers(grant.owners, owner))
    belonging = {layers.user_of(owner) for owner in found}
    for owner in named:
        if owner not in found and owner not in belonging:
            check_covered(grant, owner)
    return found


def check_covered(grant: Grant, owner: Owner) -> None:
    """Raise ``Unauthorized`` unless the grant covers an owner."""
    if grant.owners is not None and not covers(grant.owners, owner):
        raise Unauthorized(
            f"the grant does not cover the {owner.layer.value} that the identity names",
            details={"granted": grant.need.value, "layer": owner.layer.value},
            hint="use an identity within the owners of the grant, or a grant that covers them",
        )


def covers(owners: Iterable[Owner], owner: Owner) -> bool:
    """Whether an owner is one of those granted, or a session or an agent of a user who is.

    >>> covers((Owner(Layer.USER, ("ada",)),), Owner(Layer.SESSION, ("ada", "monday")))
    True
    >>> covers((Owner(Layer.SESSION, ("ada", "*")),), Owner(Layer.USER, ("ada",)))
    False
    >>> covers((Owner(Layer.USER, ("ad*",)),), Owner(Layer.USER, ("ada",)))
    False
    """
    asked = (owner, layers.user_of(owner))
    return any(_is_named(one, other) for one in owners for other in asked if other is not None)


def _is_named(granted: Owner, owner: Owner) -> bool:
    if (granted.layer, granted.branch, len(granted.ids)) != (owner.layer, owner.branch, len(owner.ids)):
        return False
    if "" in owner.ids:  # that of the whole database's own records
        return False
    return all(wanted in (ANY_ID, given) for wanted, given in zip(granted.ids, owner.ids, strict=True))


# -- access policies ----------------------------------------------------------------------------------------------


class Reader(NamedTuple):
    """Who reads: the user, the names that it may be an author by, and the policies that it meets in any case."""

    user: str | None
    names: frozenset[str]
    policies: frozenset[AccessPolicy]


def reader_of(grant: Grant, identity: Identity) -> Reader:
    """Who reads with a grant: its holder, or whom the identity names.

    >>> reader = reader_of(Grant(need=Need.READ), Identity(user="ada", project="api"))
    >>> sorted(policy.value for policy in reader.policies)
    ['organization', 'public', 'shared']
    """
    given = (identity.user, identity.agent) if grant.holder is None else (grant.holder,)
    names = frozenset(one for one in given if one is not None and one != DEFAULT_USER)
    met: frozenset[AccessPolicy] = frozenset({AccessPolicy.PUBLIC})
    if names:
        met = _NAMED | {AccessPolicy.RESTRICTED} if grant.need.covers(Need.WRITE) else _NAMED
    elif identity.org is not None or identity.company is not None:
        met = _OF_AN_ORGANIZATION
    return Reader(given[0], names, met)


def may_read(reader: Reader, owner: Owner, policy: str | None, author: str | None) -> bool:
    """Whether somebody who may read a layer may read a memory in it.

    A user is the author of whatever stands in the user's own layer, sessions and agents.

    >>> core = Owner(Layer.TEAM, ("core",))
    >>> bob = reader_of(Grant(), Identity(user="bob", team="core"))
    >>> [may_read(bob, core, policy, author="ada") for policy in (None, "shared", "private")]
    [True, True, False]
    >>> may_read(bob, core, "private", author="bob")
    True
    """
    if policy is None or policy in reader.policies or (author is not None and author in reader.names):
        return True
    return owner.layer in _OF_A_PERSON and owner.ids[0] == reader.user


def check_author(owner: Owner, policy: str | None, author: str | None) -> None:
    """Refuse a private memory in a layer of several people that nobody could read, because it names no author."""
    if policy == AccessPolicy.PRIVATE and author is None and owner.layer not in _OF_A_PERSON:
        raise InvalidInput(
            "a private memory of a shared layer needs an author",
            details={"field": "author"},
            hint="pass author=...: only who reads under that id will see it",
        )


def sees_all(reader: Reader, owner: Owner) -> bool:
    """Whether a reader may read all memories of an owner, whatever their policies.

    >>> sees_all(reader_of(Grant(), Identity(user="ada")), Owner(Layer.USER, ("ada",)))
    True
    """
    return may_read(reader, owner, AccessPolicy.PRIVATE, None)
