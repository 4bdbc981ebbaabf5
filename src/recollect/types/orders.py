"""In which order a listing and a search answer."""

from enum import StrEnum


class Sort(StrEnum):
    """The orders of a listing. ``NEWEST`` and ``OLDEST`` follow the order of recording, whatever the clock said.

    ``RELEVANCE`` multiplies importance, decay and recency: what counts most now comes first.

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
    """What puts one hit before another.

    ``BEST`` weighs everything that is known and is the default; ``SIMILARITY`` goes by the vectors alone;
    ``PRECEDENCE`` puts the more specific layer first and then the better score; ``RELEVANCE`` multiplies importance,
    decay, recency and the quality of the match.

    >>> Ranking("relevance") is Ranking.RELEVANCE
    True
    """

    BEST = "best"
    SIMILARITY = "similarity"
    PRECEDENCE = "precedence"
    RELEVANCE = "relevance"
