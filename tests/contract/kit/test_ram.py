"""The store in RAM keeps the contract."""

import pickle
from pathlib import Path

from wellkept.stores.ram import RamStore
from wellkept.testing import StoreConformance


class TestRamStore(StoreConformance):
    def open_store(self, place: Path) -> RamStore:
        self.opened = RamStore()
        return self.opened

    def raw_bytes(self, place: Path) -> bytes:
        journal = {name: kept for name, kept in vars(self.opened.journal).items() if name not in ("_lock", "_store")}
        return pickle.dumps((journal, self.opened.records.kept))

    def url(self, place: Path) -> str:
        return "ram:"
