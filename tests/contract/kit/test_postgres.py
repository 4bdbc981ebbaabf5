"""The store on a server passes the kit."""

from hashlib import blake2b
from pathlib import Path

import pytest

from tools.postgres_server import PostgresServer
from wellkept.stores.postgres import PostgresStore
from wellkept.testing import StoreConformance


@pytest.mark.timeout(600)  # each question of the state machine is a round trip, and it asks thousands
@pytest.mark.req("L14")
class TestPostgresStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def database(self, postgres_server: PostgresServer) -> None:
        # One database for all tests: making one takes longer than most of them.
        self._url = postgres_server.url()

    def open_store(self, place: Path) -> PostgresStore:
        return PostgresStore.from_url(self.url(place))

    def url(self, place: Path) -> str:
        """A schema for each place."""
        return f"{self._url}?schema=s{blake2b(str(place).encode(), digest_size=8).hexdigest()}"
