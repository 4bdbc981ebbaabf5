"""The index in tables of a PostgreSQL server finds what comparing everything finds."""

from collections.abc import Iterator

import pytest

from tools.postgres_server import PostgresServer
from wellkept.ports import Index
from wellkept.stores.postgres import options, search_schema
from wellkept.stores.postgres.search_tables import TableIndex
from wellkept.stores.postgres.server import Server
from wellkept.testing import IndexConformance


@pytest.fixture(scope="module")
def server(postgres_server: PostgresServer) -> Iterator[Server]:
    """A database with the tables of the index; each test begins with empty ones."""
    url = postgres_server.create()
    server = Server(options.parse(f"{url}?schema=public"))
    server.write(lambda session: [session.run(one) for one in search_schema.UP])
    yield server
    server.close()
    postgres_server.drop(url)


class TestTableIndex(IndexConformance):
    @pytest.fixture(autouse=True)
    def _tables(self, server: Server) -> None:
        self.server = server

    def open_index(self) -> Index:
        index = TableIndex(self.server)
        index.drop()
        return index
