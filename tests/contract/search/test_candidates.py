"""Search where candidates come from several places: the past, inactive memories, two owners with one id, dates."""

from datetime import UTC, datetime

import pytest

import wellkept
from wellkept import View
from wellkept.errors import StoreCorrupt
from wellkept.stores.ram import RamStore
from wellkept.testing.builders import Writer, owner
from wellkept.types import Layer, Results


def contents(results: Results) -> list[str]:
    return [hit.memory.content for hit in results]


@pytest.mark.req("L5")
def test_a_phrase_is_that_of_the_owner_whose_memory_has_the_id() -> None:
    """Ids are unique per owner: another owner's memory of the same id does not have the phrase."""
    store, writer = RamStore(), Writer()
    ada, api = owner("ada"), owner("api", layer=Layer.PROJECT)
    store.journal.append([writer.add(ada, "prefers dark mode", id="1"), writer.add(api, "mode: dark tea", id="1")])
    with wellkept.open(store=store, embedder=None) as memories:
        view = memories.view(user="ada", project="api")
        assert [bool(hit.reasons.get("phrase")) for hit in view.search('"dark mode"', explain=True)] == [True, False]
        assert contents(view.search('"dark mode"'))[0] == "prefers dark mode"
        assert set(contents(view.search("dark mode"))) == {"prefers dark mode", "mode: dark tea"}


@pytest.mark.req("L5")
def test_the_past_is_the_present_with_what_changed_put_back(view: View) -> None:
    kept = view.add("Tea is kept in the kitchen")
    changed = view.add("Tea is served at noon")
    gone = view.add("Tea was bought in Rome")
    position = view.position()
    view.update(changed.id, content="Coffee is served at noon")
    view.forget(gone.id)
    view.add("Tea came later")
    assert set(contents(view.search("tea", min_score=0))) == {kept.content, "Tea came later"}
    past = view.search("tea", as_of=position, min_score=0)
    assert set(contents(past)) == {kept.content, changed.content, gone.content}
    everything = view.search("tea", filter={"include_forgotten": True}, min_score=0)
    assert set(contents(everything)) == {kept.content, "Tea came later", gone.content}


def test_what_happened_on_a_day_is_found_without_any_of_its_words(view: View) -> None:
    view.add("Ada painted the fence", occurred_at=datetime(2023, 5, 7, 12, tzinfo=UTC))
    view.add("Bob slept", occurred_at=datetime(2023, 8, 1, 12, tzinfo=UTC))
    assert contents(view.search("What was done on May 7th, 2023?", min_score=0.1)) == ["Ada painted the fence"]


@pytest.mark.req("H10")
def test_a_damaged_dimension_is_told_and_mended_by_another_embedder() -> None:
    store = RamStore()
    with (
        wellkept.open(store=store, embedder="hashing-64") as memories,
        wellkept.open(store=store, embedder=None) as by_words,
    ):
        views = [memories.view(user="ada"), by_words.view(user="ada")]
        views[0].add("tea")
        store.journal.set_settings({"dimension": "many"})
        for view in views:
            with pytest.raises(StoreCorrupt) as caught:
                view.search("tea")
            assert caught.value.details == {"field": "dimension"}
        memories.reembed("static")
        assert [contents(view.search("tea")) for view in views] == [["tea"], ["tea"]]
