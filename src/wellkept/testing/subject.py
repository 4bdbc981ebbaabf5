"""What the parts of the kit share: the store under test and how to get at it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from wellkept.ports import Store
from wellkept.testing.builders import Writer

GENERATED = settings(
    deadline=None,
    # Without the phase that explains: on a store that syncs to disk it takes minutes.
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=[
        # One store serves all examples of a test; each example works with owners of its own.
        HealthCheck.function_scoped_fixture,
        # The tests are inherited by one class per store, and that is the point of them.
        HealthCheck.differing_executors,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
"""For tests with generated input; how many examples there are is left to the profile in use."""


class Subject(ABC):
    """The store under test."""

    @abstractmethod
    def open_store(self, place: Path) -> Store:
        """Open the store that is kept in a place: first an empty one, then that one again.

        The place is an empty folder that nothing else uses. A store that is not kept in files makes a name of its own
        from it, so that two places never share anything.
        """

    def raw_bytes(self, place: Path) -> bytes | None:  # noqa: ARG002  # subclasses read it
        """Everything that is kept in the place, read without the store; ``None`` if unreachable."""
        return None

    def url(self, place: Path) -> str | None:  # noqa: ARG002  # subclasses read it
        """What the store's ``from_url`` takes for the place; ``None`` if no URL names it."""
        return None

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        """A place that nothing else uses."""
        return tmp_path

    @pytest.fixture
    def store(self, place: Path) -> Iterator[Store]:
        """An empty store."""
        store = self.open_store(place)
        yield store
        store.close()

    @pytest.fixture
    def writes(self) -> Writer:
        """Makes the writes of a test."""
        return Writer()
