"""API keys of a database: grants that are handed out as tokens."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from wellkept import validation
from wellkept.authorization import OWNERS
from wellkept.engine import api_keys
from wellkept.engine.core import Audited, Engine, operation
from wellkept.types import ApiKey, Grant, Need, NewApiKey, Owner


class ApiKeys:
    """The API keys of an open database, as ``memories.keys``: for those who run it.

    >>> import wellkept
    >>> from wellkept.types import Layer, Owner
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     made = memories.keys.create("dashboard", owners=[Owner(Layer.PROJECT, ("api",))])
    ...     view = memories.view(project="api", grant=memories.keys.grant_of(made.token))
    ...     view.count(), [key.name for key in memories.keys.list()]
    (0, ['dashboard'])
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @operation(Need.ADMIN)
    def create(
        self,
        name: str,
        *,
        owners: Iterable[Owner] | None,
        need: Need | str = Need.READ,
        expires_at: datetime | None = None,
        max_trust: float = 1.0,
        holder: str | None = None,
    ) -> NewApiKey:
        """Make a key. Its token is in the answer and cannot be asked for again: only a hash of it is stored.

        ``owners`` are those that it may reach, each id exact or ``*``; ``None`` is every owner. ``need`` is the highest
        that it allows. See :class:`wellkept.types.Grant`.

        >>> import wellkept
        >>> from wellkept.types import Layer, Owner
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     made = memories.keys.create("bot", owners=[Owner(Layer.USER, ("*",))], need="write")
        ...     memories.view(user="ada", grant=memories.keys.grant_of(made.token)).add("Likes tea").version
        1
        """
        grant = Grant(
            need=validation.choice("need", Need, need),
            owners=None if owners is None else tuple(validation.batch("owners", owners, OWNERS)),
            expires_at=expires_at,
            max_trust=max_trust,
            holder=holder,
        )
        return api_keys.create(self._engine, name, grant)

    @operation(Need.ADMIN, audited=Audited.AS_READ)
    def list(self) -> tuple[ApiKey, ...]:
        """All keys with what they allow, the oldest first, revoked ones included; never a token.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.keys.list()
        ()
        """
        return api_keys.every(self._engine)

    @operation(Need.ADMIN)
    def revoke(self, id: str) -> ApiKey:
        """Revoke a key: at once, in every process, also for views that were made with it. It stays listed.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     made = memories.keys.create("ci", owners=None)
        ...     memories.keys.revoke(made.key.id).revoked_at is None
        False
        """
        return api_keys.revoke(self._engine, id)

    @operation(Need.READ, audited=Audited.ALWAYS)
    def grant_of(self, token: str) -> Grant:
        """What a token allows, for ``memories.view(grant=)``; ``Unauthorized`` if it is unknown, revoked or expired.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.keys.grant_of(memories.keys.create("ci", owners=None).token).need.value
        'read'
        """
        return api_keys.grant_of(self._engine, token)
