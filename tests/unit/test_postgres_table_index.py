"""The index in tables of a PostgreSQL server finds what comparing everything finds."""

from collections.abc import Iterator

import pytest

from wellkept.ports import Index
from wellkept.stores.postgres import options, search_schema
from wellkept.stores.postgres.search_tables import TableIndex
from wellkept.stores.postgres.server import Server
from wellkept.testing import IndexConformance


class TestTableIndex(IndexConformance):
    @pytest.fixture(autouse=True)
    def _tables(self, postgres_url: str) -> Iterator[None]:
        self.server = Server(options.parse(f"{postgres_url}?schema=public"))
        self.server.write(lambda session: [session.run(one) for one in search_schema.UP])
        yield
        self.server.close()

    def open_index(self) -> Index:
        index = TableIndex(self.server)
        index.drop()
        return index
