"""Whether the grant of a caller allows a call: pure functions."""

from datetime import datetime

from recollect import layers, validation
from recollect.errors import Unauthorized
from recollect.types import Grant, Identity, Layer, Need, Owner


def authorize(grant: Grant, identity: Identity, need: Need, now: datetime) -> None:
    """Raise ``Unauthorized`` unless the grant allows a call of that need with that identity now.

    >>> from datetime import UTC
    >>> authorize(Grant(need=Need.READ), Identity(user="ada"), Need.WRITE, datetime(2030, 1, 7, tzinfo=UTC))
    Traceback (most recent call last):
    ...
    recollect.errors.Unauthorized: this call needs 'write', the grant allows 'read' (use a grant that allows 'write')
    """
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
    if grant.owners is None:
        return
    if need is Need.ADMIN:
        raise Unauthorized(
            "this call concerns the whole database, the grant covers only some owners",
            details={"needed": need.value, "granted": grant.need.value},
            hint="use a grant for every owner",
        )
    for owner in layers.owners_of(layers.settle(validation.identity(identity))):
        if not covers(grant.owners, owner):
            raise Unauthorized(
                f"the grant does not cover the {owner.layer.value} that the identity names",
                details={"needed": need.value, "granted": grant.need.value, "layer": owner.layer.value},
                hint="use an identity within the owners of the grant, or a grant that covers them",
            )


def covers(owners: tuple[Owner, ...], owner: Owner) -> bool:
    """Whether an owner is one of those granted, or a session or an agent of a user who is.

    >>> covers((Owner(Layer.USER, ("ada",)),), Owner(Layer.SESSION, ("ada", "monday")))
    True
    >>> covers((Owner(Layer.SESSION, ("ada", "monday")),), Owner(Layer.USER, ("ada",)))
    False
    """
    if owner in owners:
        return True
    return owner.layer in (Layer.SESSION, Layer.AGENT) and Owner(Layer.USER, owner.ids[:1]) in owners
