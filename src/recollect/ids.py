"""Time-ordered ids (UUIDv7), made from a given time and given randomness."""

import os
from collections.abc import Callable

ENTROPY = 10
"""The random bytes of an id."""

_AT_ONCE = 64


class Entropy:
    """The random bytes of single ids, fetched for many at once.

    Each call of the system's source lets go of the interpreter's lock, and threads that add would fight for it. What
    was fetched before a fork is the parent's: a child that used it would give ids that the parent gives as well.

    >>> Entropy(lambda size: bytes(range(size % 256)))(3)
    b'\\x00\\x01\\x02'
    """

    def __init__(self, source: Callable[[int], bytes] = os.urandom) -> None:
        self._source = source
        self._process = os.getpid()
        self._kept: list[bytes] = []

    def __call__(self, size: int) -> bytes:
        """So many random bytes, which nobody else gets."""
        if size != ENTROPY:
            return self._source(size)
        if os.getpid() != self._process:
            self._process, self._kept = os.getpid(), []
        try:
            return self._kept.pop()  # one step, so that it needs no lock
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
