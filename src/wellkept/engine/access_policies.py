"""Which memories of an owner have an access policy: followed from the journal, so that a read need not look for them.

A memory is judged by its newest version, and its whole history with it: what is made private is private from its first
version on.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from wellkept import authorization
from wellkept.authorization import Reader
from wellkept.errors import PositionLost
from wellkept.filters import Where
from wellkept.ports import Journal, positions
from wellkept.ports.positions import Reached
from wellkept.types import Mark, Owner, Owners, Stored
from wellkept.types.stored import ACCESS_POLICY

_NEVER = datetime.min.replace(tzinfo=UTC)
_TAIL = 10_000
_HELD = 1_000  # owners

Policy = tuple[str, str | None]
"""The access policy of a memory, and its author."""


@dataclass(slots=True)
class _Known:
    mark: Mark
    policies: dict[str, Policy]


@dataclass(slots=True)
class AccessPolicies:
    """What an open database knows of access policies, by owner. Most owners have none, and cost one look at a mark."""

    _known: dict[Owner, _Known] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hidden(self, journal: Journal, owners: Owners, reader: Reader) -> Iterator[tuple[Owner, str]]:
        """The memories of the owners that a reader may not read."""
        limited = frozenset(owner for owner in owners if not authorization.sees_all(reader, owner))
        for owner, mark in journal.marks(limited).items() if limited else ():
            for memory_id, (policy, author) in self._of(journal, owner, mark).items():
                if not authorization.may_read(reader, owner, policy, author):
                    yield owner, memory_id

    def _of(self, journal: Journal, owner: Owner, mark: Mark) -> dict[str, Policy]:
        known = self._known.get(owner)
        if known is not None and known.mark == mark:
            return known.policies
        policies = self._followed(journal, owner, known, mark) if known is not None else None
        if policies is None:
            where = Where(now=_NEVER, states=None, has_access_policy=True)
            ids = [memory_id for _, memory_id in journal.ids({owner}, where)]
            policies = dict(_policies(journal, owner, ids))
        with self._lock:
            if len(self._known) >= _HELD:
                self._known.clear()
            self._known[owner] = _Known(mark, policies)
        return policies

    def _followed(self, journal: Journal, owner: Owner, known: _Known, mark: Mark) -> dict[str, Policy] | None:
        """What is known, with what was written since; ``None`` if it must be looked for from the start."""
        if known.mark.revision != mark.revision or not 0 <= mark.seq - known.mark.seq <= _TAIL:
            return None
        after = positions.encode(journal.settings()["epoch"], {owner: Reached(known.mark.seq)})
        try:
            changed = [memory_id for _, memory_id in journal.changed({owner}, after=after)]
        except PositionLost:
            return None  # the journal was replaced by another one
        kept = {one: policy for one, policy in known.policies.items() if one not in set(changed)}
        return kept | dict(_policies(journal, owner, changed))


def _policies(journal: Journal, owner: Owner, ids: list[str]) -> Iterator[tuple[str, Policy]]:
    for stored in journal.get({owner}, ids, payload=False) if ids else ():
        if (policy := stored.facets.get(ACCESS_POLICY)) is not None:
            yield stored.id, (policy, stored.facets.get("author"))


def readable(reader: Reader, stored: Stored) -> bool:
    """Whether a reader may read the newest version of a memory."""
    facets = stored.facets
    return authorization.may_read(reader, stored.owner, facets.get(ACCESS_POLICY), facets.get("author"))
