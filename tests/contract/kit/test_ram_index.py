"""The index in RAM finds what comparing everything finds."""

from wellkept.indexes.ram import RamIndex
from wellkept.testing import IndexConformance


class TestRamIndex(IndexConformance):
    def open_index(self) -> RamIndex:
        return RamIndex()
