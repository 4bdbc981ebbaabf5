"""The index in RAM finds what comparing everything finds."""

from recollect.indexes.ram import RamIndex
from recollect.testing import IndexConformance


class TestRamIndex(IndexConformance):
    def open_index(self) -> RamIndex:
        return RamIndex()
