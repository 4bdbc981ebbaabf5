"""The seams: what a store, an embedder and a clock must be.

A store author subclasses :class:`Store`, implements its abstract methods, declares its capabilities and runs the kit in
``recollect.testing``. The other methods have defaults built on ``scan``, ``filters`` and ``recall``: correct but slow.
Override them for speed; the kit holds the overrides to the same answers.
"""

from typing import TYPE_CHECKING

from recollect import exports

if TYPE_CHECKING:
    from recollect.ports.checks import check_quota, check_record, check_vector, taken
    from recollect.ports.models import Clock, Embedder, Lexicon, Reranker
    from recollect.ports.queries import Query
    from recollect.ports.store import Capabilities, Owners, Store, Stored
    from recollect.ports.values import Embedded, Quota, Record
    from recollect.ports.writes import Write

__all__ = [  # noqa: RUF022  # the order of the reference
    "Clock",
    "Owners",
    "Embedder",
    "Lexicon",
    "Reranker",
    "Capabilities",
    "Write",
    "Quota",
    "Embedded",
    "Record",
    "Stored",
    "Query",
    "Store",
    "check_record",
    "check_vector",
    "check_quota",
    "taken",
]

if not TYPE_CHECKING:  # who checks types sees the imports above
    __getattr__, __dir__ = exports.on_demand(
        __name__,
        {
            "checks": "check_quota check_record check_vector taken",
            "models": "Clock Embedder Lexicon Reranker",
            "queries": "Query",
            "store": "Capabilities Owners Store Stored",
            "values": "Embedded Quota Record",
            "writes": "Write",
        },
    )
