"""The state that all levels of one agent's working memory share."""

import struct
import threading
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from wellkept import codec, ids, instrument
from wellkept.events import EventBus, WorkingMemoryRemoved, WorkingMemorySet
from wellkept.snapshot_cipher import SnapshotCipher
from wellkept.working.entry import Limits, Slot
from wellkept.working.single_flight import SingleFlight

if TYPE_CHECKING:
    from wellkept.working.scope_chain import Level
    from wellkept.working.search import Meaning

_TENS = struct.Struct("10s" * 50)


class AgentState:
    """Shared by all levels of one agent. ``lock`` guards every level; no handler, factory or decoder runs under it.

    The lock is reentrant: a finaliser that disposes a scope can run at any allocation.
    """

    def __init__(
        self,
        agent_id: str,
        user_id: str,
        *,
        clock: Callable[[], datetime],
        bus: EventBus | None,
        limits: Limits,
        entropy: Callable[[int], bytes],
        cipher: SnapshotCipher,
    ) -> None:
        self.id = agent_id
        self.user_id = user_id
        self.clock = clock
        self.limits = limits
        self.cipher = cipher
        self.lock = threading.RLock()
        self.single_flight = SingleFlight()
        self.scopes: dict[str, Level] = {}  # without the root level: no reference cycle keeps it alive
        self.entries = 0
        self.fallbacks = 0  # reads answered by a parent level
        self.bus = EventBus() if bus is None else bus
        self.meaning: Meaning | None = None  # set where there is an embedder
        self._entropy = entropy
        self._random: list[bytes] = []

    def random(self) -> bytes:
        """Ten random bytes for an id. Fetched in batches of 50: a batch costs little more than a single fetch."""
        if not self._random:
            self._random = list(_TENS.unpack(self._entropy(_TENS.size)))
        return self._random.pop()

    def new_id(self, now: datetime) -> str:
        """A new time-ordered id (UUIDv7)."""
        return ids.uuid7(codec.to_micros(now) // 1000, self.random())

    def instrument(self, level: "Level") -> None:
        """Time the operations of a level, if any watcher is registered."""
        if self.bus.watchers:
            instrument.watch_over(level, self.bus, self.id)

    def emit_set(self, level: "Level", key: str, slot: Slot, is_update: bool, now: datetime) -> None:
        """Tell that a key was set. Never called with the lock held."""
        if self.bus.wants(WorkingMemorySet):
            self.bus.emit(
                WorkingMemorySet(
                    at=now,
                    agent_id=self.id,
                    user_id=self.user_id,
                    key=key,
                    type_name=slot.type_name,
                    is_update=is_update,
                    scope_id=level._id,
                    scope_name=level._name,
                )
            )

    def emit_removed(self, level: "Level", key: str, now: datetime) -> None:
        """Tell that a key was removed. Never called with the lock held."""
        if self.bus.wants(WorkingMemoryRemoved):
            self.bus.emit(
                WorkingMemoryRemoved(
                    at=now,
                    agent_id=self.id,
                    user_id=self.user_id,
                    key=key,
                    scope_id=level._id,
                    scope_name=level._name,
                )
            )
