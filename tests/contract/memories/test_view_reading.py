"""Reading by id, now and in the past; accesses; expiry."""

from datetime import timedelta

import pytest

from tests.support.stand_ins import CountingEmbedder, HandClock, Opener, places, plain, sequence
from wellkept import Memories, View
from wellkept.testing.builders import START
from wellkept.types import State


def contents(view: View, **arguments: object) -> list[str]:
    return [memory.content for memory in view.list(sort_by="oldest", **arguments)]  # type: ignore[arg-type]  # passed on


@pytest.mark.req("L3")
def test_what_is_missing_is_none(view: View) -> None:
    assert view.get("missing") is None
    assert view.get("") is None
    assert view.get("\x00' OR 1=1") is None
    assert view.get_many([]) == {}
    assert view.get_many(["missing", ""]) == {}


@pytest.mark.req("L3")
def test_get_many_answers_in_the_order_asked_each_once(view: View) -> None:
    one, two, three = view.add_many(["one", "two", "three"])
    found = view.get_many(iter([three.id, one.id, "missing", three.id]))
    assert list(found) == [three.id, one.id]
    assert found == {three.id: three, one.id: one}
    assert view.get_many(two.id) == {two.id: two}


@pytest.mark.req("L3", "L7")
def test_forgotten_memories_are_read_only_on_request(view: View) -> None:
    memory = view.add("Likes tea")
    view.forget(memory.id)
    assert view.get(memory.id) is None
    assert view.get_many([memory.id]) == {}
    found = view.get(memory.id, include_forgotten=True)
    assert found is not None
    assert (found.state, found.content, found.version) == (State.FORGOTTEN, "Likes tea", 2)


@pytest.mark.req("L3", "W4")
def test_a_read_counts_as_an_access(view: View, clock: HandClock) -> None:
    memory = view.add("Likes tea")
    first = view.get(memory.id)
    assert first is not None
    assert (first.access_count, first.last_accessed_at) == (0, None)
    at = clock.forward(minutes=5)
    view.get_many([memory.id, memory.id])
    clock.forward(minutes=5)
    second = view.get(memory.id)
    assert second is not None
    assert (second.access_count, second.last_accessed_at) == (2, at)
    listed = view.list().memories[0]
    assert (listed.access_count, listed.last_accessed_at) == (3, clock.time)


@pytest.mark.req("L3")
def test_only_reads_of_the_present_by_id_are_counted(memories: Memories, view: View) -> None:
    memory = view.add("Likes tea")
    view.list()
    view.search("tea")
    view.count()
    view.stats()
    view.history(memory.id)
    view.changes()
    view.get(memory.id, as_of=view.position())
    memories.view(user="bob").get(memory.id)
    view.forget(memory.id)
    assert view.get(memory.id) is None
    view.restore(memory.id)
    found = view.get(memory.id)
    assert found is not None
    assert found.access_count == 0


@pytest.mark.req("L3")
def test_accesses_are_no_history(memories: Memories, view: View, clock: HandClock) -> None:
    memory = view.add("Likes tea")
    clock.forward(hours=1)
    for _ in range(3):
        view.get(memory.id)
    assert sequence(memories) == 1
    found = view.get(memory.id)
    assert found is not None
    assert (found.version, found.updated_at) == (1, START)
    (version,) = view.history(memory.id)
    assert version.memory == memory
    updated = view.update(memory.id, title="Tea")
    assert updated.access_count == 4
    assert view.list().memories[0].access_count == 4


@pytest.mark.req("L3")
def test_accesses_survive_closing(file_opener: Opener, clock: HandClock) -> None:
    with file_opener(clock=clock) as memories:
        view = memories.view(user="ada")
        memory = view.add("Likes tea")
        at = clock.forward(seconds=1)
        view.get(memory.id)
        view.get(memory.id)
    clock.forward(seconds=1)
    view = file_opener(clock=clock).view(user="ada")
    found = view.get(memory.id)
    assert found is not None
    assert (found.access_count, found.last_accessed_at) == (2, at)
    assert plain(found) == memory


@pytest.mark.req("L3")
def test_everything_survives_closing(file_opener: Opener, clock: HandClock) -> None:
    with file_opener(clock=clock, embedder=CountingEmbedder()) as memories:
        view = memories.view(user="ada")
        first, second, third = view.add_many(["green tea", "black tea", "cake"])
        view.update(first.id, title="Tea", metadata={"n": 1})
        view.forget(second.id, reason="too strong")
        view.forget(third.id, permanent=True)
        before = (view.list(), view.changes(), view.search("tea"), view.stats().bytes_used)
    view = file_opener(clock=clock, embedder=CountingEmbedder()).view(user="ada")
    assert (view.list(), view.changes(), view.search("tea"), view.stats().bytes_used) == before


@pytest.mark.req("L3", "L5", "N6")
def test_the_past_by_position_and_by_time(view: View, clock: HandClock) -> None:
    times = [clock.time - timedelta(seconds=1)]
    memory = view.add("Lives in Paris")
    times.append(clock.forward(hours=1))
    clock.forward(hours=1)
    view.update(memory.id, content="Lives in Rome", add_tags=["home"])
    times.append(clock.time)
    clock.forward(hours=1)
    other = view.add("Likes tea")
    view.forget(memory.id)
    times.append(clock.time)
    # After each write: what a reader saw then. The last two were made at the same time.
    seen = {0: [], 1: ["Lives in Paris"], 2: ["Lives in Rome"], 3: ["Lives in Rome", "Likes tea"], 4: ["Likes tea"]}
    where = places(view)
    for number, expected in seen.items():
        place = where[number]
        assert contents(view, as_of=place) == expected
        assert view.count(as_of=place) == len(expected)
        found = view.get_many([memory.id, other.id], as_of=place)
        assert sorted(one.content for one in found.values()) == sorted(expected)
        words = {hit.memory.content for hit in view.search("lives likes paris rome tea", as_of=place)}
        assert words == set(expected)
    for at, number in zip(times, (0, 1, 2, 4), strict=True):
        assert contents(view, as_of=at) == seen[number]
        assert view.list(as_of=at).total == view.count(as_of=at) == len(seen[number])
        assert view.get(memory.id, as_of=at) == view.get(memory.id, as_of=where[number])
        assert view.search("lives", as_of=at).hits == view.search("lives", as_of=where[number]).hits
    before = view.get(memory.id, as_of=where[4], include_forgotten=True)
    assert before is not None
    assert before.state is State.FORGOTTEN


@pytest.mark.req("L5")
def test_filters_hold_for_the_past_as_it_was(view: View) -> None:
    memory = view.add("Lives in Paris", tags=["a"], importance=0.1)
    view.update(memory.id, add_tags=["b"], remove_tags=["a"], importance=0.9)
    _, first, second = places(view)
    for place, tag, other in ((first, "a", second), (second, "b", first)):
        assert view.count(filter={"tags": [tag]}, as_of=place) == 1
        assert view.count(filter={"tags": [tag]}, as_of=other) == 0
    assert view.count(filter={"min_importance": 0.5}, as_of=first) == 0
    assert view.count(filter={"min_importance": 0.5}, as_of=view.position()) == 1


@pytest.mark.req("L11")
def test_the_past_belongs_to_its_owner(memories: Memories, view: View) -> None:
    memory = view.add("Likes tea")
    bob = memories.view(user="bob")
    place = view.position()
    assert bob.get(memory.id, as_of=place) is None
    assert bob.list(as_of=place).memories == ()
    assert bob.search("tea", as_of=place).hits == ()


@pytest.mark.req("W4")
def test_what_expired_is_gone_everywhere(view: View, clock: HandClock) -> None:
    memory = view.add("short-lived tea", expires_at=START + timedelta(seconds=10), tags=["t"])
    lasting = view.add("lasting tea")
    clock.forward(seconds=9.999999)
    assert view.get(memory.id) is not None
    assert view.count() == view.stats().active == len(view.search("tea")) == 2
    clock.forward(microseconds=1)
    assert view.get(memory.id) is None
    assert contents(view) == ["lasting tea"]
    assert [hit.memory.id for hit in view.search("tea")] == [lasting.id]
    stats = view.stats()
    assert (stats.active, stats.forgotten, stats.top_tags) == (1, 1, ())
    kept = view.get(memory.id, include_forgotten=True)
    assert kept is not None
    assert kept.state is State.ACTIVE
    assert contents(view, filter={"include_forgotten": True}) == ["short-lived tea", "lasting tea"]


@pytest.mark.req("W4")
def test_expiry_can_be_moved_while_there_is_time(view: View, clock: HandClock) -> None:
    memory = view.add("tea", expires_at=START + timedelta(seconds=10))
    view.update(memory.id, expires_at=START + timedelta(seconds=20))
    clock.forward(seconds=15)
    assert view.get(memory.id) is not None
    view.update(memory.id, expires_at=None)
    clock.forward(days=1000)
    found = view.get(memory.id)
    assert found is not None
    assert found.expires_at is None
