"""The kit as one class."""

from recollect.testing.basics import Basics
from recollect.testing.capabilities import Capabilities
from recollect.testing.concurrency import Concurrency
from recollect.testing.embedding import Embedding
from recollect.testing.erasure import Erasure
from recollect.testing.isolation import Isolation
from recollect.testing.machine import AnyOrder
from recollect.testing.positions import Positions
from recollect.testing.queries import Queries
from recollect.testing.quotas import Guards, Quotas
from recollect.testing.records import Leases, RecordsOfOwners
from recollect.testing.rewriting import Rewriting


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
    >>> from recollect.ports import Store
    >>> from recollect.stores.ram import RamStore
    >>> class TestRamStore(StoreConformance):
    ...     def open_store(self, place: Path) -> Store:
    ...         return RamStore()
    >>> kit = TestRamStore()
    >>> kit.test_what_a_store_says_of_itself(kit.open_store(Path("anywhere")))
    """
