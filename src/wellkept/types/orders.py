"""The orders of listings and the rankings of searches."""

from enum import StrEnum


class Sort(StrEnum):
    """The orders of a listing. ``NEWEST`` and ``OLDEST`` use the order of recording, not the clock.

    ``RELEVANCE`` is the product of importance, decay and recency, highest first.

    >>> Sort("important") is Sort.IMPORTANT
    True
    """

    NEWEST = "newest"
    OLDEST = "oldest"
    IMPORTANT = "important"
    RECENTLY_ACCESSED = "recently_accessed"
    MOST_ACCESSED = "most_accessed"
    RELEVANCE = "relevance"


class Ranking(StrEnum):
    """How hits are ranked.

    ``BEST``, the default, combines all signals; ``SIMILARITY`` uses vectors alone; ``PRECEDENCE`` sorts by layer, most
    specific first, then by score; ``RELEVANCE`` is the product of importance, decay, recency and the quality of the
    match.

    >>> Ranking("relevance") is Ranking.RELEVANCE
    True
    """

    BEST = "best"
    SIMILARITY = "similarity"
    PRECEDENCE = "precedence"
    RELEVANCE = "relevance"
