"""A circuit breaker: an embedder that did not answer is left alone for a while, which grows with every failure."""

from datetime import datetime
from threading import Lock

FIRST_PAUSE_S = 5.0
"""How long the embedder is left alone after its first failure; twice as long after each further one."""

LONGEST_PAUSE_S = 300.0
"""The longest pause, unless the embedder asks for a longer one (Retry-After)."""

_DOUBLINGS = 16


class CircuitBreaker:
    """Says whether the embedder may be asked now. While it is open, one caller asks after each pause.

    >>> from datetime import UTC, datetime, timedelta
    >>> now, breaker = datetime(2026, 1, 1, tzinfo=UTC), CircuitBreaker()
    >>> _ = breaker.failed(now)
    >>> breaker.open, breaker.admits(now + timedelta(seconds=4)), breaker.admits(now + timedelta(seconds=5))
    (True, False, True)
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._failures = 0
        self._since: datetime | None = None
        self._pause_s = 0.0
        self._suspect = False

    @property
    def open(self) -> bool:
        """Whether the embedder failed when it was asked last."""
        return self._failures > 0

    @property
    def suspect(self) -> bool:
        """Whether the embedder may well be down: then it is asked once, and no call is repeated."""
        return self._suspect or self._failures > 0

    def suspected(self) -> None:
        """The embedder was down when the database was used last."""
        self._suspect = True

    def admits(self, now: datetime) -> bool:
        """Whether the embedder may be asked. Of several callers after a pause, one is told so."""
        if not self._failures:
            return True
        with self._lock:
            if self._failures and self._remaining_s(now):
                return False
            self._since = now
            return True

    def remaining_s(self, now: datetime) -> float:
        """The seconds until the embedder is asked again."""
        with self._lock:
            return self._remaining_s(now) if self._failures else 0.0

    def _remaining_s(self, now: datetime) -> float:
        waited = self._pause_s if self._since is None else (now - self._since).total_seconds()
        return max(0.0, self._pause_s - waited) if waited >= 0 else 0.0  # a clock that was set back must not block

    def failed(self, now: datetime, retry_after_s: float = 0.0) -> bool:
        """Note a failure; whether it is the first one."""
        with self._lock:
            first = self._failures == 0
            grown = FIRST_PAUSE_S * 2.0 ** min(self._failures, _DOUBLINGS)
            self._failures, self._since = self._failures + 1, now
            self._pause_s = max(min(grown, LONGEST_PAUSE_S), retry_after_s)
            return first

    def worked(self) -> bool:
        """Note an answer; whether there were failures before."""
        if not self._failures and not self._suspect:
            return False
        with self._lock:
            back, self._failures, self._suspect = self._failures > 0, 0, False
            return back
