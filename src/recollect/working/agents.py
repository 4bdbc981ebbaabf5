"""What the levels of one agent's working memory have in common."""

import struct
import threading
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from recollect import codec, ids, instrument
from recollect.events import EventBus
from recollect.working.entries import Limits
from recollect.working.single_flight import Flights

if TYPE_CHECKING:
    from recollect.working.levels import Level

_TENS = struct.Struct("10s" * 50)


class AgentState:
    """What all levels of one agent share. ``lock`` guards every level; no handler, factory or decoder runs under it.

    The lock may be taken again by its own thread: a finaliser that disposes a scope can run at any allocation.
    """

    def __init__(
        self,
        agent_id: str,
        clock: Callable[[], datetime],
        bus: EventBus | None,
        limits: Limits,
        entropy: Callable[[int], bytes],
    ) -> None:
        self.id = agent_id
        self.clock = clock
        self.limits = limits
        self.lock = threading.RLock()
        self.flights = Flights()
        self.scopes: dict[str, Level] = {}  # without the agent's own level: no cycle keeps it once it is let go
        self.entries = 0
        self.fallbacks = 0  # reads that a level further down answered
        self.bus = EventBus() if bus is None else bus
        self._entropy = entropy
        self._random: list[bytes] = []

    def random(self) -> bytes:
        """Ten random bytes for an id. Asking for many at once takes little longer than asking for ten."""
        if not self._random:
            self._random = list(_TENS.unpack(self._entropy(_TENS.size)))
        return self._random.pop()

    def new_id(self, now: datetime) -> str:
        """An id that sorts by time."""
        return ids.uuid7(codec.to_micros(now) // 1000, self.random())

    def watch_over(self, level: "Level") -> None:
        """Have the operations of a level timed, if anybody watches."""
        if self.bus.watchers:
            instrument.watch_over(level, self.bus, self.id)
