"""What the engine does when its store fails: it says so, and nothing is half done."""

from collections.abc import Callable

import pytest

import wellkept
from tests.support.refusals import refusal
from tests.support.stand_ins import HandClock, sequence
from wellkept import Memories, NewMemory, View
from wellkept.errors import Conflict, StoreBusy, StoreFull
from wellkept.events import Event
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore

ATTEMPTS = 100
"""How often a write is tried when other writers are faster."""


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(RamStore())


@pytest.fixture
def faulty(store: FaultyStore) -> Memories:
    return wellkept.open(store=store, clock=HandClock(), embedder=None)


@pytest.fixture
def ada(faulty: Memories) -> View:
    return faulty.view(user="ada")


WRITES: dict[str, Callable[[View, str], object]] = {
    "add": lambda view, id: view.add("new"),
    "add_many": lambda view, id: view.add_many(["new", NewMemory(content="newer", key="n")]),
    "update": lambda view, id: view.update(id, content="changed"),
    "forget": lambda view, id: view.forget(id, permanent=True),
}
READS: list[tuple[str, str, Callable[[View, str], object]]] = [
    ("get", "get", lambda view, id: view.get(id)),
    ("get_many", "get", lambda view, id: view.get_many([id])),
    ("list", "select", lambda view, id: view.list()),
    ("count", "count", lambda view, id: view.count()),
    ("history", "history", lambda view, id: view.history(id)),
    ("changes", "versions", lambda view, id: view.changes()),
    ("stats", "stats", lambda view, id: view.stats()),
    ("search", "marks", lambda view, id: view.search("tea")),
    ("search", "get", lambda view, id: view.search("tea")),
    ("update", "get", lambda view, id: view.update(id, title="x")),
    ("restore", "get", lambda view, id: view.restore(id)),
]


@pytest.mark.req("H10")
@pytest.mark.parametrize("operation", WRITES)
def test_a_failed_write_leaves_no_trace_and_can_be_repeated(
    store: FaultyStore, faulty: Memories, ada: View, operation: str
) -> None:
    heard: list[Event] = []
    memory = ada.add("green tea")
    faulty.on(Event, heard.append)
    before = (ada.list(), ada.changes(), ada.stats())
    store.fail("append", StoreFull("no space left"))
    with pytest.raises(StoreFull) as caught:
        WRITES[operation](ada, memory.id)
    assert caught.value.operation == operation
    assert caught.value.retryable
    assert heard == []
    assert (ada.list(), ada.changes(), ada.stats()) == before
    WRITES[operation](ada, memory.id)
    assert len(heard) == len(ada.changes()) - len(before[1]) + (operation == "forget")


@pytest.mark.req("H10")
def test_a_failed_read_says_so_and_can_be_repeated() -> None:
    answers = {}
    for operation, method, read in READS:
        store = FaultyStore(RamStore())
        with wellkept.open(store=store, clock=HandClock(), embedder=None) as memories:
            ada = memories.view(user="ada")
            memory = ada.add("green tea")
            store.fail(method, StoreBusy("locked"))
            answer = refusal(read, ada, memory.id).removesuffix(", without a hint")
            answers[operation, method] = answer, sequence(memories), refusal(read, ada, memory.id)
    assert answers == {
        (operation, method): (f"{operation}: StoreBusy of None", 1, "accepted") for operation, method, _ in READS
    }


@pytest.mark.req("L1", "H10")
def test_a_key_makes_a_lost_answer_harmless(store: FaultyStore, faulty: Memories, ada: View) -> None:
    store.fail("append", StoreBusy("the answer was lost"), after=True)
    with pytest.raises(StoreBusy):
        ada.add("green tea", key="k")
    again = ada.add("green tea", key="k")
    assert ada.count() == sequence(faulty) == 1
    assert ada.list().memories == (again,)


@pytest.mark.req("H11")
def test_a_conflict_in_the_store_is_tried_again(store: FaultyStore, faulty: Memories, ada: View) -> None:
    """Another writer was faster: the engine reads again, and its change stays whole."""
    memory = ada.add("green tea", key="k")
    store.fail("append", Conflict("somebody was faster"), call=1)
    store.fail("append", Conflict("somebody was faster"), call=2)
    assert ada.update(memory.id, add_tags=["a"]).tags == ("a",)
    store.fail("append", Conflict("somebody took the key"))
    assert ada.add("black tea", key="b").content == "black tea"
    store.fail("append", Conflict("somebody was faster"))
    assert ada.forget(memory.id) is True
    assert sequence(faulty) == 4


@pytest.mark.req("H11")
def test_trying_again_has_an_end(store: FaultyStore, faulty: Memories, ada: View) -> None:
    memory = ada.add("green tea")
    for call in range(1, 2 * ATTEMPTS + 1):
        store.fail("append", Conflict("somebody was faster"), call=call)
    with pytest.raises(Conflict) as caught:
        ada.update(memory.id, title="Tea")
    assert caught.value.details == {"memory_id": memory.id}
    with pytest.raises(Conflict):
        ada.add("black tea", key="k")
    assert sequence(faulty) == 1


def test_a_conflict_without_a_key_is_not_repeated(store: FaultyStore, ada: View) -> None:
    """A new id that is taken is no race; whoever made it twice should know."""
    store.fail("append", Conflict("the id is taken"))
    with pytest.raises(Conflict):
        ada.add("green tea", duplicates="keep")
    assert store.calls["append"] == 1
