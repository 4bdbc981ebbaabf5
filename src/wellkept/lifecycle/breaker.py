"""The breaker: how much of what an owner has upkeep may take at once."""

MAX_SHARE = 0.3
"""The largest share of an owner's memories that a run takes, unless the caller allows more."""

ALWAYS_ALLOWED = 10
"""So many memories of an owner may go however large their share is."""


def trips(taken: int, of: int, max_share: float = MAX_SHARE) -> bool:
    """Whether a run takes too much.

    >>> trips(31, 100), trips(30, 100), trips(10, 10)
    (True, False, False)
    """
    return taken > allowed(of, max_share)


def allowed(of: int, max_share: float = MAX_SHARE) -> int:
    """How many of an owner's memories may go at once.

    >>> allowed(100), allowed(12)
    (30, 10)
    """
    return max(ALWAYS_ALLOWED, int(max_share * of + 1e-9))
