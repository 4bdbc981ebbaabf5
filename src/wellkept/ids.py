"""Time-ordered ids (UUIDv7) and stamps (hybrid logical clock), from a given time and randomness."""

import os
import threading
from collections.abc import Callable

from wellkept.types import Stamp

ENTROPY = 10
"""The number of random bytes in an id."""

_AT_ONCE = 64


class Entropy:
    """Random bytes for ids, fetched in batches.

    Each call of ``os.urandom`` releases the GIL, which concurrent writers would contend for. The buffer is discarded
    after a fork: parent and child would otherwise generate the same ids.

    >>> Entropy(lambda size: bytes(range(size % 256)))(3)
    b'\\x00\\x01\\x02'
    """

    def __init__(self, source: Callable[[int], bytes] = os.urandom) -> None:
        self._source = source
        self._process = os.getpid()
        self._kept: list[bytes] = []

    def __call__(self, size: int) -> bytes:
        """``size`` random bytes, never returned twice."""
        if size != ENTROPY:
            return self._source(size)
        if os.getpid() != self._process:
            self._process, self._kept = os.getpid(), []
        try:
            return self._kept.pop()  # atomic, so no lock is needed
        except IndexError:
            random = self._source(ENTROPY * _AT_ONCE)
            self._kept += [random[start : start + ENTROPY] for start in range(ENTROPY, len(random), ENTROPY)]
            return random[:ENTROPY]


def uuid7(time_ms: int, entropy: bytes) -> str:
    """The UUIDv7 of a time in milliseconds and ten random bytes, as its canonical string.

    >>> uuid7(1_700_000_000_000, bytes(10))
    '018bcfe5-6800-7000-8000-000000000000'
    """
    random = int.from_bytes(entropy[:10], "big")
    return (
        f"{time_ms >> 16 & 0xFFFF_FFFF:08x}-{time_ms & 0xFFFF:04x}"
        f"-7{random >> 64 & 0xFFF:03x}"
        f"-{0x8000 | random >> 48 & 0x3FFF:04x}-{random & 0xFFFF_FFFF_FFFF:012x}"
    )


_ORIGIN = 6  # random bytes
_WRITER = 3
_LAST_MICROS = 16**14 - 1  # in the year 4253; a stamp has 14 digits for the time and 6 for the count
_LAST_COUNT = 16**6 - 1


def new_origin(entropy: Callable[[int], bytes] = os.urandom) -> str:
    """A new id for a store: twelve hexadecimal digits.

    >>> new_origin(lambda size: bytes(size))
    '000000000000'
    """
    return entropy(_ORIGIN).hex()


class StampClock:
    """Generates stamps: a hybrid logical clock, followed by the origin and a random tag of the writer.

    Stamps of one clock increase strictly, even if the wall clock goes back; the tag separates the processes that write
    to one store.

    >>> clock = StampClock("9d2e8b7a6c5d", lambda size: bytes(size))
    >>> clock.stamp(1_700_000_000_000_000)
    '060a24181e4000000000-9d2e8b7a6c5d.000000'
    >>> clock.stamp(5) > '060a24181e4000000000'
    True
    """

    def __init__(self, origin: str, entropy: Callable[[int], bytes] = os.urandom) -> None:
        self.origin = origin
        self._entropy = entropy
        self._lock = threading.Lock()
        self._process = 0
        self._writer = ""
        self._micros = 0
        self._count = 0

    def stamp(self, micros: int) -> Stamp:
        """The next stamp, at a time in microseconds since 1970."""
        return self.stamps(micros, 1)[0]

    def stamps(self, micros: int, count: int) -> list[Stamp]:
        """The next stamps, in increasing order."""
        with self._lock:
            if os.getpid() != self._process:  # a forked child is another writer
                self._process, self._writer = os.getpid(), f"{self.origin}.{self._entropy(_WRITER).hex()}"
            made = []
            for _ in range(count):
                self._tick(micros)
                made.append(Stamp(f"{self._micros:014x}{self._count:06x}-{self._writer}"))
            return made

    def observe(self, stamp: Stamp) -> None:
        """Advance the clock past a stamp from elsewhere: later stamps sort after it."""
        micros, count = stamp_time(stamp)
        with self._lock:
            self._micros, self._count = max((self._micros, self._count), (micros, count))

    def _tick(self, micros: int) -> None:
        micros = min(micros, _LAST_MICROS)
        if micros > self._micros:
            self._micros, self._count = micros, 0
        elif self._count < _LAST_COUNT:
            self._count += 1
        else:
            self._micros, self._count = self._micros + 1, 0


def stamp_time(stamp: Stamp) -> tuple[int, int]:
    """The clock of a stamp: microseconds since 1970 and a counter; ``ValueError`` if it is malformed.

    >>> stamp_time(Stamp("060a24181e4000000000-9d2e8b7a6c5d.000000"))
    (1700000000000000, 0)
    """
    clock, dash, _ = stamp.partition("-")
    if len(clock) != 20 or not dash:
        raise ValueError("not a stamp")
    return int(clock[:14], 16), int(clock[14:], 16)


def stamp_origin(stamp: Stamp) -> str:
    """The origin of a stamp.

    >>> stamp_origin(Stamp("060a24181e4000000000-9d2e8b7a6c5d.000000"))
    '9d2e8b7a6c5d'
    """
    return stamp.partition("-")[2].partition(".")[0]
