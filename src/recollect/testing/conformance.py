"""The kit as one class."""

from pathlib import Path

import pytest

from recollect.testing.agreement import Agreement
from recollect.testing.basics import Basics
from recollect.testing.concurrency import Concurrency
from recollect.testing.conversations import Conversations
from recollect.testing.copying import Copying
from recollect.testing.embedding import Embedding
from recollect.testing.isolation import Isolation
from recollect.testing.journal import Journal
from recollect.testing.machine import run_machine
from recollect.testing.promises import Promises
from recollect.testing.queries import Queries
from recollect.testing.quotas import Quotas
from recollect.testing.recall import Recall
from recollect.testing.records import Records


class StoreConformance(
    Basics,
    Journal,
    Queries,
    Recall,
    Conversations,
    Agreement,
    Embedding,
    Copying,
    Isolation,
    Quotas,
    Concurrency,
    Records,
    Promises,
):
    """Everything that a store must do, as pytest tests: subclass it and say how to open yours.

    Give ``raw_bytes`` and ``url`` as well where you can: without them the tests of erasing and of
    several processes have nothing to look at. Tests are marked with the requirements that they
    prove; register the marker (``markers = ["req: a requirement"]``) in your pytest settings.

    >>> from recollect.ports import Store
    >>> from recollect.stores.ram import RamStore
    >>> class TestRamStore(StoreConformance):
    ...     def open_store(self, place: Path) -> Store:
    ...         return RamStore()
    >>> kit = TestRamStore()
    >>> kit.test_sequences_rise(kit.open_store(Path("anywhere")))
    """

    @pytest.mark.req("H5", "H6")
    def test_state_machine(self, place: Path) -> None:
        """Anything in any order, compared with plain dictionaries."""
        run_machine(self.open_store, place)
