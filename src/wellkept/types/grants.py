"""What a caller may do, the access policies of memories, and the API keys that grants are handed out as."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from wellkept.types.owners import Owner

ANY_ID = "*"
"""In an owner of a grant: any id. Ids are otherwise compared exactly; there are no prefixes and no patterns."""


class Need(StrEnum):
    """What a call needs to be allowed; each includes the ones before it.

    >>> Need.ERASE.covers(Need.WRITE), Need.READ.covers(Need.WRITE)
    (True, False)
    """

    READ = "read"
    WRITE = "write"
    ERASE = "erase"
    ADMIN = "admin"

    def covers(self, other: "Need") -> bool:
        """Whether a caller with this need granted may make a call that needs the other."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {need: rank for rank, need in enumerate(Need)}


class AccessPolicy(StrEnum):
    """Who may read a memory, beside its author, among those who may read its layer; each includes the ones before it.

    ``PRIVATE``: nobody else. ``RESTRICTED``: named readers who may write. ``SHARED``: named readers, that is those
    with a user, an agent or a grant's holder. ``ORGANIZATION``: also unnamed readers of an organisation or a company.
    ``PUBLIC``: everybody. Without a policy, the layer alone decides. ``docs/guides/grants.md`` has the table.

    >>> [policy.value for policy in AccessPolicy]
    ['private', 'restricted', 'shared', 'organization', 'public']
    """

    PRIVATE = "private"
    RESTRICTED = "restricted"
    SHARED = "shared"
    ORGANIZATION = "organization"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a caller may do: up to which need, for which owners, and until when.

    ``owners`` is ``None`` for every owner. The owner of a user includes the sessions and agents of that user. An id of
    an owner is compared exactly, or is ``*`` for any: ``Owner(Layer.USER, ("*",))`` is every user.
    ``need`` is the highest one granted; ``admin`` concerns the whole database and takes effect only for every owner.
    From ``expires_at`` on, the grant allows nothing. What is written under it is trusted at most as ``max_trust`` says.
    ``holder`` is who reads and writes, where access policies ask for that; without one, whom the identity names.
    ``key`` is the id of the API key that the grant was made for: once that is revoked, the grant allows nothing.
    The default allows everything.

    >>> from wellkept.types import Layer
    >>> reader = Grant(need=Need.READ, owners=(Owner(Layer.USER, ("ada",)),))
    >>> reader.need.covers(Need.READ), reader.need.covers(Need.WRITE), reader.expires_at
    (True, False, None)
    """

    need: Need = Need.ADMIN
    owners: tuple[Owner, ...] | None = None
    expires_at: datetime | None = None
    max_trust: float = 1.0
    holder: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """What is known of an API key; its token is not.

    ``last_used_at`` is exact to about an hour. ``revoked_at`` is ``None`` while the key works, or did until it expired.

    >>> from datetime import UTC, datetime
    >>> made = datetime(2030, 1, 7, tzinfo=UTC)
    >>> ApiKey(id="k1", name="ci", grant=Grant(need=Need.READ), created_at=made).revoked_at is None
    True
    """

    id: str
    name: str
    grant: Grant
    created_at: datetime
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApiKey:
    """An API key that was just created. Only here is its token told; it is stored as a hash alone.

    >>> from datetime import UTC, datetime
    >>> made = ApiKey(id="k1", name="ci", grant=Grant(), created_at=datetime(2030, 1, 7, tzinfo=UTC))
    >>> "wk_" in repr(NewApiKey(key=made, token="wk_k1_secret"))
    False
    """

    key: ApiKey
    token: str = field(repr=False)
