"""The kit as one class."""

from wellkept.testing.basics import Basics
from wellkept.testing.capabilities import Capabilities
from wellkept.testing.concurrency import Concurrency
from wellkept.testing.embedding import Embedding
from wellkept.testing.erasure import Erasure
from wellkept.testing.isolation import Isolation
from wellkept.testing.machine import AnyOrder
from wellkept.testing.positions import Positions
from wellkept.testing.queries import Queries
from wellkept.testing.quotas import Guards, Quotas
from wellkept.testing.records import Leases, RecordsOfOwners
from wellkept.testing.rewriting import Rewriting


class StoreConformance(
    Basics,
    Positions,
    Queries,
    Isolation,
    Quotas,
    Guards,
    Embedding,
    RecordsOfOwners,
    Leases,
    Concurrency,
    Capabilities,
    Erasure,
    Rewriting,
    AnyOrder,
):
    """Everything that a store must do, as pytest tests: subclass it and say how to open yours.

    Give ``raw_bytes`` and ``url`` as well where you can: without them the tests of erasing and of several processes
    have nothing to look at. Tests are marked with the requirements that they prove; register the marker
    (``markers = ["req: a requirement"]``) in your pytest settings.

    >>> from pathlib import Path
    >>> from wellkept.ports import Store
    >>> from wellkept.stores.ram import RamStore
    >>> class TestRamStore(StoreConformance):
    ...     def open_store(self, place: Path) -> Store:
    ...         return RamStore()
    >>> kit = TestRamStore()
    >>> kit.test_what_a_store_says_of_itself(kit.open_store(Path("anywhere")))
    """
