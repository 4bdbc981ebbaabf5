"""The store that fails on demand."""

import pytest

from recollect.errors import ConfigurationError, StoreBusy, StoreFull
from recollect.ports import Store
from recollect.stores.ram import RamStore
from recollect.testing import FaultyStore
from recollect.testing.builders import memory, put

FULL = StoreFull("no space left")


def test_a_failure_before_the_call_leaves_no_trace() -> None:
    store = FaultyStore(RamStore())
    store.fail("apply", FULL)
    with pytest.raises(StoreFull):
        put(store, memory())
    assert store.sequence() == 0
    assert put(store, memory()) == [1]


def test_a_failure_after_the_call_loses_only_the_answer() -> None:
    store = FaultyStore(RamStore())
    store.fail("apply", FULL, after=True)
    with pytest.raises(StoreFull):
        put(store, memory())
    assert store.sequence() == 1


def test_calls_are_counted_from_now() -> None:
    store = FaultyStore(RamStore())
    put(store, memory())
    store.fail("apply", FULL, call=2)
    store.fail("apply", StoreBusy("locked"), call=3)
    put(store, memory())
    with pytest.raises(StoreFull):
        put(store, memory())
    with pytest.raises(StoreBusy):
        put(store, memory())
    assert put(store, memory()) == [3]
    assert store.calls["apply"] == 5


def test_only_methods_of_a_store_can_fail() -> None:
    with pytest.raises(ValueError, match="remember"):
        FaultyStore(RamStore()).fail("remember", FULL)
    with pytest.raises(ConfigurationError):
        FaultyStore.from_url("ram:")


def test_it_forwards_every_method_and_what_the_store_says_of_itself() -> None:
    public = {name for name in vars(Store) if not name.startswith("_")}
    assert public <= set(vars(FaultyStore))
    wrapped = RamStore()
    store = FaultyStore(wrapped)
    assert (store.name, store.version) == (wrapped.name, wrapped.version)
    assert store.capabilities is wrapped.capabilities
