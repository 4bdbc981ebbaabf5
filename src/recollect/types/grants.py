"""What a caller may do."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from recollect.types.owners import Owner


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
        order = tuple(Need)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a caller may do: up to which need, for which owners, and until when.

    ``owners`` is ``None`` for every owner. The owner of a user includes the sessions and agents of that user.
    ``need`` is the highest one granted; ``admin`` concerns the whole database and takes effect only for every owner.
    From ``expires_at`` on, the grant allows nothing. The default allows everything.

    >>> from recollect.types import Layer
    >>> reader = Grant(need=Need.READ, owners=(Owner(Layer.USER, ("ada",)),))
    >>> reader.need.covers(Need.READ), reader.need.covers(Need.WRITE), reader.expires_at
    (True, False, None)
    """

    need: Need = Need.ADMIN
    owners: tuple[Owner, ...] | None = None
    expires_at: datetime | None = None
