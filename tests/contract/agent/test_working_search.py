"""Working memory is searched exactly: by meaning where there is an embedder, by words otherwise."""

from collections.abc import Sequence
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import ONCE, HandClock
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import InvalidInput, ScopeDisposed
from wellkept.working import WorkingMemory

ENTRIES: dict[str, object] = {
    "build": "The nightly build fails on the second runner",
    "theme": "The user prefers the dark theme",
    "plan": ["read the log", {"then": "ask Grace about the database"}],
    "count": 3,
}


@pytest.fixture
def working(clock: HandClock) -> WorkingMemory:
    working = WorkingMemory("debugger", clock=clock)
    for key, value in ENTRIES.items():
        working.set(key, value)
    return working


def keys(working: Any, query: str, **given: Any) -> list[str]:
    return [match.entry.key for match in working.search(query, **given)]


@pytest.mark.req("W2")
def test_words_find_keys_and_values_and_nothing_else(working: WorkingMemory) -> None:
    assert keys(working, "Which build fails?") == ["build"]
    assert keys(working, "Grace, the database and the build") == ["plan", "build"]
    assert keys(working, "count") == ["count"]
    assert keys(working, "submarine") == keys(working, "the") == []
    assert keys(working, "build theme plan count", limit=2) == ["build", "theme"]
    [match] = working.search("dark theme")
    assert (match.entry.value, match.score, match.semantic) == (ENTRIES["theme"], 1.0, False)
    assert match.entry.access_count == 0


@pytest.mark.req("W2", "W3")
def test_a_scope_finds_what_it_sees(working: WorkingMemory) -> None:
    with working.create_scope("subtask") as scope:
        scope.set("theme", "light, for the demo")
        assert keys(scope, "dark") == []
        assert keys(scope, "build") == ["build"]
        assert keys(working, "dark") == ["theme"]
    with pytest.raises(ScopeDisposed) as caught:
        scope.search("build")
    assert caught.value.operation == "search"


@pytest.mark.req("W2")
def test_the_embedder_finds_by_meaning_and_changes_are_seen() -> None:
    with wellkept.open("ram:") as memories:
        working = memories.agent("debugger").working
        assert working.search("anything") == []
        for key, value in ENTRIES.items():
            working.set(key, value)
        best = working.search("Which colour scheme does she like?")[0]
        assert (best.entry.key, best.semantic) == ("theme", True)
        assert 0 < best.score <= 1
        working.set("theme", "The compiler is slow")
        working.set("colours", "She likes the bright colour scheme")
        working.remove("plan")
        found = keys(working, "Which colour scheme does she like?")
        assert found[0] == "colours"
        assert "plan" not in found


class Failing(HashingEmbedder):
    """Fails while ``down``, and counts the texts that it embeds."""

    down = False
    texts = 0

    def embed(self, texts: Sequence[str]) -> Any:
        if self.down:
            raise ConnectionError
        self.texts += len(texts)
        return super().embed(texts)


@pytest.mark.req("W2")
def test_each_entry_is_embedded_once_and_words_do_while_the_embedder_is_down() -> None:
    embedder = Failing(64)
    with wellkept.open("ram:", embedder=embedder, retry=ONCE) as memories:
        working = memories.agent("debugger").working
        for key, value in ENTRIES.items():
            working.set(key, value)
        working.search("build")
        before = embedder.texts
        assert [match.semantic for match in working.search("build")[:1]] == [True]
        assert embedder.texts == before + 1  # the question
        embedder.down = True
        assert [(match.entry.key, match.semantic) for match in working.search("build")] == [("build", False)]


@pytest.mark.req("W6")
@pytest.mark.parametrize(
    ("query", "given", "field"), [("", {}, "query"), (7, {}, "query"), ("x", {"limit": 0}, "limit")]
)
def test_bad_searches_are_refused(working: WorkingMemory, query: Any, given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        working.search(query, **given)
    assert (caught.value.operation, caught.value.details["field"]) == ("search", field)
