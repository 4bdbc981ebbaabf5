"""Updating: what changes, what stays, and who was first."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.memories.test_view_adding import EVERYTHING
from tests.support.refusals import error_of, refusal
from tests.support.stand_ins import HandClock, one_store, plain, sequence
from wellkept import Memories, MemoryType, View
from wellkept.errors import Conflict, InvalidInput, NotFound
from wellkept.testing.builders import START
from wellkept.types import Operation, Source, SourceType

CHANGES: list[dict[str, Any]] = [
    {"content": "Use SQLite"},
    {"type": MemoryType.FINDING},
    {"importance": 0.0},
    {"title": "Other"},
    {"description": ""},
    {"language": "de"},
    {"author": "bob"},
    {"role": "user"},
    {"type_name": "x"},
    {"confidence": 0.0},
    {"relevance": 1.0},
    {"decay_factor": 0.0},
    {"source": Source(type=SourceType.MANUAL)},
    {"references": ("one",)},
    {"occurred_at": START},
    {"expires_at": START + timedelta(days=1)},
]
CLEARED = [
    *("title", "description", "language", "author", "role", "type_name"),
    *("confidence", "relevance", "decay_factor", "source", "pointer", "expires_at"),
]


@pytest.mark.req("L6", "H3")
def test_one_field_changes_and_the_others_stay(memories: Memories, clock: HandClock) -> None:
    wrong = {}
    for change in CHANGES:
        view = memories.view(user="ada", project=f"with another {next(iter(change))}")
        created = clock.time
        before = view.add(**EVERYTHING, dangling=True)
        at = clock.forward(minutes=1)
        after = view.update(before.id, **change, dangling=True)
        differing = {name for name in before.__dataclass_fields__ if getattr(before, name) != getattr(after, name)}
        answers = {
            # An addition tells that it was not merged.
            "differing": differing - {"merged"},
            "given": {name: getattr(after, name) for name in change},
            "version and times": (after.version, after.updated_at, after.created_at),
            "read again": view.get(before.id),
            "history": [version.operation for version in view.history(before.id)],
        }
        expected = {
            "differing": {*change, "version", "updated_at"},
            "given": change,
            "version and times": (2, at, created),
            "read again": after,
            "history": [Operation.ADDED, Operation.UPDATED],
        }
        if answers != expected:
            wrong[str(change)] = {name: answers[name] for name in answers if answers[name] != expected[name]}
    assert wrong == {}


@pytest.mark.req("L6")
def test_none_clears_a_field(memories: Memories) -> None:
    left = {}
    for name in CLEARED:
        view = memories.view(user="ada", project=f"without {name}")
        nothing: dict[str, Any] = {name: None}
        after = view.update(view.add(**EVERYTHING, dangling=True).id, **nothing)
        read = view.get(after.id)
        assert read is not None
        left[name] = getattr(after, name), getattr(read, name)
    assert left == dict.fromkeys(CLEARED, (None, None))


@pytest.mark.req("L6")
def test_references_are_cleared_by_an_empty_list(view: View) -> None:
    memory = view.add(**EVERYTHING, dangling=True)
    assert view.update(memory.id, references=[]).references == ()


@pytest.mark.req("L6")
def test_some_fields_cannot_be_cleared(memories: Memories, view: View) -> None:
    memory = view.add(**EVERYTHING, dangling=True)
    names = ("content", "type", "importance", "occurred_at", "metadata")
    refusals = {name: refusal(view.update, memory.id, **{name: None}) for name in names}
    assert refusals == {name: f"update: InvalidInput of {name}" for name in names}
    assert sequence(memories) == 1


@one_store
def test_what_update_does_not_change(memories: Memories, view: View) -> None:
    memory = view.add("Likes tea")
    wrong = {}
    for name in ("owner", "layer", "created_at", "key", "version", "state", "vectors", "nonsense"):
        error = error_of(view.update, memory.id, **{name: "x"})
        if not isinstance(error, InvalidInput) or error.details["field"] != name or "add_tags" not in error.hint:
            wrong[name] = error
    assert wrong == {}
    assert sequence(memories) == 1


@pytest.mark.req("L6")
def test_tags_are_replaced(view: View) -> None:
    memory = view.add("Likes tea", tags=["a", "b"])
    assert view.update(memory.id, tags=["c"]).tags == ("c",)
    assert view.update(memory.id, tags=["d", "e"], add_tags=["f"], remove_tags=["e"]).tags == ("d", "f")
    assert view.update(memory.id, tags=[]).tags == ()
    assert view.count(filter={"any_tags": ["a", "b", "c", "d", "e", "f"]}) == 0


TAGS = st.lists(st.sampled_from("abcde"), max_size=4)


@pytest.mark.req("L6")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TAGS, TAGS, TAGS)
def test_tags_are_added_and_removed(view: View, first: list[str], added: list[str], removed: list[str]) -> None:
    memory = view.add("x", tags=first)
    after = view.update(memory.id, add_tags=added, remove_tags=removed)
    assert set(after.tags) == (set(first) - set(removed)) | set(added)
    assert len(set(after.tags)) == len(after.tags)
    assert view.count(filter={"references": None, "tags": after.tags or None}) >= 1
    assert after.version == (1 if after.tags == memory.tags else 2)
    for tag in "abcde":
        found = {one.id for one in view.list(limit=100, filter={"tags": [tag]})}
        assert (memory.id in found) == (tag in after.tags)
    view.forget(memory.id, permanent=True)


VALUES = st.sampled_from([0, 1, 1.0, True, None, "x", [1], [True], {"in": 1}])
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES)


@pytest.mark.req("L6")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OBJECTS, OBJECTS, st.lists(st.sampled_from("abcd")))
def test_metadata_is_merged(view: View, first: dict[str, Any], given: dict[str, Any], removed: list[str]) -> None:
    memory = view.add("x", metadata=first)
    after = view.update(memory.id, metadata=given, remove_metadata=removed)
    expected = {name: value for name, value in (first | given).items() if name not in removed}
    found = view.get(memory.id)
    assert found is not None
    # 1 and 1.0 are the same in JSON; True is not.
    assert dict(after.metadata) == dict(found.metadata) == expected
    assert _flags(found.metadata) == _flags(expected)


def _flags(value: Any) -> Any:
    """Where the booleans are."""
    if isinstance(value, dict):
        return {name: _flags(one) for name, one in value.items()}
    return [_flags(one) for one in value] if isinstance(value, list) else isinstance(value, bool)


def test_metadata_is_merged_on_the_first_level_only(view: View) -> None:
    memory = view.add("x", metadata={"a": {"b": 1, "c": 2}})
    assert view.update(memory.id, metadata={"a": {"b": 3}}).metadata == {"a": {"b": 3}}


def test_true_is_no_one(view: View) -> None:
    memory = view.add("x", metadata={"n": 1})
    after = view.update(memory.id, metadata={"n": True})
    assert after.version == 2
    assert after.metadata["n"] is True


UNCHANGED: list[dict[str, Any]] = [
    {},
    {"content": EVERYTHING["content"]},
    {"importance": 0.9, "type": "decision", "title": "PostgreSQL"},
    {"add_tags": ["database"], "remove_tags": ["none"], "metadata": {"n": 1}, "remove_metadata": ["zzz"]},
    {"source": EVERYTHING["source"], "pointer": EVERYTHING["pointer"], "references": EVERYTHING["references"]},
    {"expires_at": EVERYTHING["expires_at"], "occurred_at": EVERYTHING["occurred_at"]},
]


@pytest.mark.req("L6")
def test_a_change_that_changes_nothing_writes_nothing(memories: Memories, view: View, clock: HandClock) -> None:
    memory = view.add(**EVERYTHING, dangling=True)
    clock.forward(minutes=1)
    written = {str(change): (view.update(memory.id, **change), sequence(memories)) for change in UNCHANGED}
    assert written == dict.fromkeys(written, (memory, 1))


@pytest.mark.req("H11")
def test_a_version_can_be_demanded(memories: Memories, view: View) -> None:
    memory = view.add("one")
    assert view.update(memory.id, content="two", if_version=1).version == 2
    for wrong in (1, 3, 2**62):
        with pytest.raises(Conflict) as caught:
            view.update(memory.id, content="three", if_version=wrong)
        assert caught.value.details == {"memory_id": memory.id, "version": 2, "if_version": wrong}
        assert caught.value.operation == "update"
        with pytest.raises(Conflict):
            view.update(memory.id, if_version=wrong)
    assert sequence(memories) == 2
    assert view.update(memory.id, content="three", if_version=2).version == 3


NOT_FOUND: list[dict[str, Any]] = [{"title": "x"}, {}, {"title": "x", "if_version": 1}, {"vector": [1.0]}]


@pytest.mark.req("L6", "L11")
def test_what_is_not_visible_is_not_found(memories: Memories, view: View, clock: HandClock) -> None:
    foreign = memories.view(user="bob").add("bob's")
    forgotten, erased, expired = view.add_many(["forgotten", "erased", "expired"])
    view.update(expired.id, expires_at=START + timedelta(seconds=1))
    view.forget(forgotten.id)
    view.forget(erased.id, permanent=True)
    clock.forward(seconds=1)
    before = sequence(memories)
    told = set()
    for id in ("missing", foreign.id, forgotten.id, erased.id, expired.id):
        for arguments in NOT_FOUND:
            with pytest.raises(NotFound) as caught:
                view.update(id, **arguments)
            assert caught.value.details == {"memory_id": id}
            told.add(str(caught.value).replace(id, "ID"))
    assert len(told) == 1
    assert sequence(memories) == before


@pytest.mark.req("H11", "L15")
def test_racing_updates_lose_nothing(memories: Memories) -> None:
    view = memories.view(user="ada")
    memory = view.add("Likes tea")
    start = Barrier(8)

    def update(number: int) -> None:
        mine = memories.view(user="ada")
        start.wait()
        for turn in range(25):
            tags = [f"t{number}.{turn}"] if turn < 12 else []  # a memory has room for a hundred
            mine.update(memory.id, add_tags=tags, metadata={f"m{number}.{turn}": turn})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(update, range(8)))
    found = view.get(memory.id)
    assert found is not None
    assert set(found.tags) == {f"t{number}.{turn}" for number in range(8) for turn in range(12)}
    assert found.metadata == {f"m{number}.{turn}": turn for number in range(8) for turn in range(25)}
    assert found.version == 201
    assert [version.version for version in view.history(memory.id)] == list(range(1, 202))


@pytest.mark.req("H11")
def test_of_racing_updates_of_one_version_one_wins(memories: Memories) -> None:
    view = memories.view(user="ada")
    memory = view.add("0")
    start = Barrier(8)

    def update(number: int) -> bool:
        mine = memories.view(user="ada")
        start.wait()
        try:
            mine.update(memory.id, content=f"content {number}", if_version=1)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(update, range(8)))
    assert won.count(True) == 1
    found = view.get(memory.id)
    assert found is not None
    assert (found.version, found.content) == (2, f"content {won.index(True)}")


@pytest.mark.req("L6")
def test_search_follows_updates(view: View) -> None:
    memory = view.add("Lives in Paris")
    view.update(memory.id, content="Lives in Rome")
    assert view.search("Paris").hits == ()
    assert [plain(hit.memory).content for hit in view.search("Rome")] == ["Lives in Rome"]
