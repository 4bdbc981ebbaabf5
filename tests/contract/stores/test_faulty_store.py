"""The store that fails on demand."""

import pytest

from wellkept.errors import ConfigurationError, StoreBusy, StoreFull
from wellkept.ports import Journal, Records
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.testing.builders import Writer, owner

FULL = StoreFull("no space left")
ADA = owner("ada")


def test_a_failure_before_the_call_leaves_no_trace() -> None:
    store, writes = FaultyStore(RamStore()), Writer()
    store.fail("append", FULL)
    with pytest.raises(StoreFull):
        store.journal.append([writes.add(ADA)])
    assert list(store.journal.scan({ADA})) == []
    store.journal.append([writes.add(ADA)])
    assert len(list(store.journal.scan({ADA}))) == 1


def test_a_failure_after_the_call_loses_only_the_answer() -> None:
    store, writes = FaultyStore(RamStore()), Writer()
    store.fail("append", FULL, after=True)
    with pytest.raises(StoreFull):
        store.journal.append([writes.add(ADA)])
    assert len(list(store.journal.scan({ADA}))) == 1


def test_calls_are_counted_from_now() -> None:
    store, writes = FaultyStore(RamStore()), Writer()
    store.journal.append([writes.add(ADA)])
    store.fail("append", FULL, call=2)
    store.fail("append", StoreBusy("locked"), call=3)
    store.journal.append([writes.add(ADA)])
    with pytest.raises(StoreFull):
        store.journal.append([writes.add(ADA)])
    with pytest.raises(StoreBusy):
        store.journal.append([writes.add(ADA)])
    store.journal.append([writes.add(ADA)])
    assert store.calls["append"] == 5
    assert store.journal.marks({ADA})[ADA].seq == 3


def test_records_and_the_store_itself_can_fail() -> None:
    store = FaultyStore(RamStore())
    store.fail("records.list", FULL)
    store.fail("store.check", FULL)
    with pytest.raises(StoreFull):
        store.records.list(None)
    with pytest.raises(StoreFull):
        store.check()
    assert store.check().healthy
    assert list(store.records.list(None)) == []


@pytest.mark.parametrize("method", ["remember", "records.append", "store.append", "_head", ""])
def test_only_methods_of_a_store_can_fail(method: str) -> None:
    with pytest.raises(ValueError, match="no method"):
        FaultyStore(RamStore()).fail(method, FULL)


def test_it_forwards_every_method_and_what_the_store_says_of_itself() -> None:
    wrapped = RamStore()
    store = FaultyStore(wrapped)
    for port, faulty in ((Journal, store.journal), (Records, store.records)):
        public = {name for name in vars(port) if not name.startswith("_")}
        assert public <= set(vars(type(faulty)))
        assert isinstance(faulty, port)
    assert (store.name, store.version) == (wrapped.name, wrapped.version)
    assert store.capabilities is wrapped.capabilities
    with pytest.raises(ConfigurationError):
        FaultyStore.from_url("ram:")
    store.close()
    assert store.calls["store.close"] == 1
