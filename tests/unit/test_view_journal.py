"""The statistics of a view, against the function that counts."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.samples import stored
from tests.support.stand_ins import CountingEmbedder, HandClock, Opener, somebody
from wellkept import Layer, Memories, MemoryType, NewMemory, statistics
from wellkept.testing.builders import START
from wellkept.types import TagUsage

ACTIONS = st.lists(
    st.tuples(st.sampled_from(["add", "update", "forget", "restore", "erase"]), st.integers(0, 5)), max_size=12
)


@pytest.mark.req("L8")
def test_statistics_by_hand(opener: Opener, clock: HandClock) -> None:
    memories = opener(clock=clock, embedder=CountingEmbedder())
    view = memories.view(user="ada", team="core")
    assert (view.stats().active, view.stats().oldest, view.stats().bytes_used) == (0, None, 0)
    one = view.add("eins", type="preference", tags=["a", "b"])
    clock.forward(hours=1)
    view.add_many([NewMemory(content="zwei", tags=["a"]), NewMemory(content="drei", layer="team", tags=["a", "c"])])
    latest = clock.forward(hours=1)
    gone = view.add("vier", tags=["z"])
    expired = view.add("fünf", expires_at=latest + timedelta(microseconds=1))
    erased = view.add("sechs")
    view.forget(gone.id)
    view.forget(erased.id, permanent=True)
    memories.view(user="bob", team="other").add("not ada's", tags=["a"])
    clock.forward(microseconds=1)
    stats = view.stats()
    assert (stats.active, stats.forgotten) == (3, 2)
    assert dict(stats.by_type) == {MemoryType.FACT: 2, MemoryType.PREFERENCE: 1}
    assert stats.top_tags == (TagUsage(tag="a", count=3), TagUsage(tag="b", count=1), TagUsage(tag="c", count=1))
    assert (stats.oldest, stats.newest) == (START, latest - (latest - START) / 2)
    kept = [*view.list(), *(m for m in (view.get(id, include_forgotten=True) for id in (gone.id, expired.id)) if m)]
    assert stats.bytes_used == sum(statistics.footprint(stored(one)) for one in kept) + 5 * 4 * 16
    assert (stats.bytes_limit, stats.percent_used) == (None, 0.0)
    assert stats.embeddings_made == 6, "bob's is not among them"
    assert view.stats(layers=["team"]).active == view.stats(layers=[Layer.TEAM]).active == 1
    before = stats.bytes_used
    view.update(one.id, content="eins!!")
    assert view.stats().bytes_used == before + statistics.footprint(stored(one)) + 2, "both versions count"


@pytest.mark.req("L8")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(ACTIONS)
def test_statistics_agree_with_the_pure_function(memories: Memories, actions: list[tuple[str, int]]) -> None:
    view = somebody(memories)
    ids: list[str] = []
    for turn, (action, number) in enumerate(actions):
        if action == "add" or not ids:
            ids.append(view.add(f"memory {turn}", tags=[f"t{number}"], type=list(MemoryType)[number]).id)
        elif action == "update" and view.get(ids[number % len(ids)]):
            view.update(ids[number % len(ids)], add_tags=[f"u{turn}"], content="ü" * turn + "!")
        elif action == "restore":
            view.restore(ids[number % len(ids)])
        else:
            view.forget(ids[number % len(ids)], permanent=action == "erase")
    everything = view._engine.journal.scan(view._owners, vectors=True)
    assert view.stats() == statistics.tally(everything, START)
