"""The life of vectors: an embedder that is down and comes back, and what is kept of what it said."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import (
    DIMENSION,
    BrokenEmbedder,
    CountingEmbedder,
    HandClock,
    Opener,
    Switched,
    embedders,
    sequence,
    set_sleep,
)
from wellkept import NewMemory
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import ConfigurationError, EmbeddingFailed, InvalidInput, RateLimited, Unauthorized
from wellkept.recall.calibration import PAIRS
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore

LONGEST_PAUSE_S = 300
"""An embedder that failed is asked again after this time at the latest."""


class Undeclared:
    """Says nothing of its scale."""

    def __init__(self, name: str = "undeclared", dimension: int = 64) -> None:
        self.name = name
        self.dimension = dimension
        self.lexicon = None
        self.batches: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> list[Any]:
        self.batches.append(list(texts))
        return HashingEmbedder(self.dimension).embed(texts)


# --- an embedder that is down ---------------------------------------------------------------------


@pytest.mark.req("L1", "L2", "L6", "H10")
def test_while_the_embedder_is_down_memories_are_stored_and_found_by_words(opener: Opener) -> None:
    errors = ConnectionError("no network"), RateLimited("later"), RuntimeError("out of memory")
    answers = {}
    for number, error in enumerate(errors):
        embedder = Switched()
        memories = opener(embedder=embedder, name=f"memory {number}")
        view = memories.view(user="ada")
        changed = view.add("Likes coffee")
        embedder.error = error
        view.add("Likes green tea")
        view.add_many(["Lives in Rome", "Works at night"])
        view.update(changed.id, content="Likes cocoa")
        results = view.search("green tea")
        [finding] = memories.doctor().findings
        answers[repr(error)] = {
            "vectors": embedders(view),
            "hits": ([hit.memory.content for hit in results], results.semantic),
            "behind": bool(memories.settings()["behind"]),
            "finding": (finding.check, finding.repaired),
            "message": finding.message.startswith("4 memories have no vector"),
            "repair": "reembed" in finding.repair,
        }
    expected = {
        "vectors": dict.fromkeys(("Likes green tea", "Lives in Rome", "Works at night", "Likes cocoa")),
        "hits": (["Likes green tea"], False),
        "behind": True,
        "finding": ("embedder", False),
        "message": True,
        "repair": True,
    }
    assert answers == {repr(error): expected for error in errors}


@pytest.mark.req("L1")
def test_the_next_write_catches_up(opener: Opener) -> None:
    embedder = Switched()
    clock = HandClock()
    memories = opener(embedder=embedder, clock=clock)
    view = memories.view(user="ada")
    embedder.error = ConnectionError()
    waiting = [view.add(text) for text in ("one", "two", "three")]
    view.update(waiting[2].id, content="four")
    view.forget(waiting[1].id)
    embedder.error = None
    clock.forward(seconds=LONGEST_PAUSE_S)
    embedder.batches.clear()
    view.add("five")
    assert embedder.batches == [["five"], ["one", "two", "four"]]
    assert set(embedders(view).values()) == {embedder.name}
    assert "behind" not in memories.settings()
    assert memories.doctor().findings == ()
    view.add("six")
    assert embedder.batches[2:] == [["six"]]
    [hit] = view.search("four", ranking="similarity", limit=1)
    assert hit.memory.content == "four"
    assert hit.score == pytest.approx(1.0)


@pytest.mark.req("L1")
def test_many_that_wait_are_embedded_some_at_a_time(opener: Opener) -> None:
    embedder = Switched()
    clock = HandClock()
    memories = opener(embedder=embedder, clock=clock)
    view = memories.view(user="ada")
    embedder.error = ConnectionError()
    view.add_many([f"waiting {number}" for number in range(150)])
    embedder.error = None
    clock.forward(seconds=LONGEST_PAUSE_S)
    embedder.batches.clear()
    for number in range(4):
        view.add(f"written {number}")
    assert [len(batch) for batch in embedder.batches] == [1, 64, 1, 64, 1, 22, 1]
    assert memories.doctor().findings == ()


@pytest.mark.req("L1")
def test_an_embedder_that_goes_down_again_while_catching_up_loses_nothing(opener: Opener) -> None:
    up: list[bool] = [False, True, False]

    def answer(texts: Sequence[str]) -> list[Any]:
        if up and not up.pop(0):
            raise ConnectionError
        return HashingEmbedder(DIMENSION).embed(texts)

    clock = HandClock()
    memories = opener(embedder=BrokenEmbedder(answer), clock=clock)
    view = memories.view(user="ada")
    view.add("one")
    clock.forward(seconds=LONGEST_PAUSE_S)
    view.add("two")
    assert (embedders(view), up) == ({"one": None, "two": None}, [])
    assert memories.settings()["behind"]
    clock.forward(seconds=LONGEST_PAUSE_S)
    view.add("three")
    assert set(embedders(view).values()) == {f"hashing-{DIMENSION}"}


@pytest.mark.req("L1", "H10")
def test_one_that_cannot_be_embedded_does_not_stop_the_others(opener: Opener) -> None:
    """It was stored while the embedder was down; now the embedder has no good answer for it."""

    def answer(texts: Sequence[str]) -> list[Any]:
        if down:
            raise ConnectionError
        return [[0.0 if "odd" in text else 1.0] * DIMENSION for text in texts]

    down = True
    clock = HandClock()
    memories = opener(embedder=BrokenEmbedder(answer), clock=clock)
    view = memories.view(user="ada")
    view.add("odd")
    down = False
    clock.forward(seconds=LONGEST_PAUSE_S)
    assert view.add("even").version == 1
    assert embedders(view) == {"odd": None, "even": f"hashing-{DIMENSION}"}
    assert memories.doctor().findings[0].message.startswith("1 memory has no vector")
    with pytest.raises(EmbeddingFailed):
        memories.reembed()


@pytest.mark.req("L1")
def test_whoever_opens_the_file_next_catches_up(file_opener: Opener) -> None:
    embedder = Switched()
    embedder.error = ConnectionError()
    file_opener(embedder=embedder).view(user="ada").add("one")
    file_opener.close()
    later = CountingEmbedder()
    memories = file_opener(embedder=later)
    memories.view(user="ada").add("two")
    assert later.batches == [["two"], ["one"]]
    assert memories.doctor().findings == ()


SCRIPT = """
import sys
import wellkept
from wellkept.embedders.hashing import HashingEmbedder

with wellkept.open(sys.argv[1], embedder=HashingEmbedder(16)) as memories:
    memories.view(user="ada").add("two")
    print(len(memories.doctor().findings))
"""


@pytest.mark.req("L1")
def test_another_process_catches_up(file_opener: Opener, tmp_path: Path) -> None:
    embedder = Switched()
    embedder.error = ConnectionError()
    view = file_opener(embedder=embedder).view(user="ada")
    view.add("one")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "memory.db")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
    assert embedders(view) == {"one": embedder.name, "two": embedder.name}


@pytest.mark.req("H10")
@pytest.mark.parametrize("error", [ConfigurationError("wrong key"), Unauthorized("not yours")])
def test_what_waiting_cannot_mend_is_raised(opener: Opener, error: Exception) -> None:
    """A wrong key would go unnoticed for ever if memories were just stored without vectors."""
    embedder = Switched()
    memories = opener(embedder=embedder)
    view = memories.view(user="ada")
    memory = view.add("one")
    embedder.error = error
    for attempt in (lambda: view.add("two"), lambda: view.search("one"), lambda: view.update(memory.id, content="x")):
        with pytest.raises(type(error)) as caught:
            attempt()
        assert caught.value is error
    assert sequence(memories) == 1
    assert "behind" not in memories.settings()


@pytest.mark.req("H10")
def test_bad_answers_are_asked_for_again_before_giving_up(opener: Opener) -> None:
    answers: list[Callable[[Sequence[str]], list[Any]]] = []
    asked: list[int] = []
    paused: list[float] = []

    def answer(texts: Sequence[str]) -> list[Any]:
        asked.append(len(texts))
        return answers.pop(0)(texts) if answers else [[1.0] * DIMENSION for _ in texts]

    memories = opener(embedder=BrokenEmbedder(answer), retry=None)
    set_sleep(memories, paused.append)
    view = memories.view(user="ada")
    answers[:] = [lambda texts: []] * 2
    assert view.add("one").version == 1
    assert (asked, paused) == ([1, 1, 1], [1.0, 2.0])
    answers[:] = [lambda texts: []] * 3
    with pytest.raises(EmbeddingFailed):
        view.add("two")
    assert view.count() == 1


@pytest.mark.req("L1", "H10")
@pytest.mark.parametrize("embedder", ["default", "hashing-64"])
def test_a_vector_that_the_embedder_could_not_have_made_is_refused(opener: Opener, embedder: str) -> None:
    memories = opener(embedder=embedder)
    view = memories.view(user="ada")
    for attempt in (
        lambda: view.add("x", vector=[1.0, 2.0]),
        lambda: view.add_many([NewMemory(content="x", vector=[1.0])]),
    ):
        with pytest.raises(InvalidInput) as caught:
            attempt()
        assert caught.value.details["field"] == "vector"
    assert (sequence(memories), memories.settings().get("embedder")) == (0, None)
    view.add("Likes tea")
    assert [hit.memory.content for hit in view.search("tea")] == ["Likes tea"]


# --- what is kept: vectors by their text, and the scale -------------------------------------------


class Slow(CountingEmbedder):
    """Worth remembering the answers of."""

    slow = True


@pytest.mark.req("L1", "L2")
def test_a_slow_embedder_embeds_the_same_text_once(file_opener: Opener) -> None:
    embedder = Slow()
    memories = file_opener(embedder=embedder)
    ada, bob = memories.view(user="ada"), memories.view(user="bob")
    first = ada.add("Likes tea")
    bob.add_many(["Likes tea", "Likes cake"])
    ada.update(first.id, content="Likes cake")
    assert embedder.batches == [["Likes tea"], ["Likes cake"]]
    assert embedders(ada) == {"Likes cake": embedder.name}
    [hit] = ada.search("Likes cake", ranking="similarity")
    assert hit.score == pytest.approx(1.0)
    # Who said it belongs to what is embedded.
    ada.add("Likes tea", author="Ada")
    assert embedder.batches[-1] == ["Ada: Likes tea"]


def test_a_quick_embedder_is_asked_again(opener: Opener) -> None:
    embedder = CountingEmbedder()
    view = opener(embedder=embedder).view(user="ada")
    view.add("Likes tea")
    view.add("Likes tea")
    assert embedder.batches == [["Likes tea"]] * 2


TEXTS = [text for pair in PAIRS for text in pair]


@pytest.mark.req("L4")
def test_the_scale_of_an_embedder_is_estimated_once_from_what_is_stored(opener: Opener) -> None:
    """A search embeds its question and nothing else, however slow the embedder is."""
    embedder = Undeclared()
    memories = opener(embedder=embedder)
    view = memories.view(user="ada")
    view.add("Likes tea")
    view.search("tea")
    assert "calibration" not in memories.settings(), "one memory says nothing"
    view.add_many(TEXTS)
    embedder.batches.clear()
    view.search("tea")
    kept = memories.settings()["calibration"]
    view.add_many(["Likes tea"] * 70)
    view.search("tea")
    assert memories.settings()["calibration"] == kept
    assert [batch for batch in embedder.batches if batch != ["Likes tea"] * 70] == [["tea"]] * 2
    low, high = map(float, kept.split()[:2])
    assert 0 <= low < 0.3 < high < 0.8
    if opener.kind == "sqlite":
        opener.close()
        again = Undeclared()
        memories = opener(embedder=again)
        memories.view(user="ada").search("tea")
        assert again.batches == [["tea"]]
        assert memories.settings()["calibration"] == kept


@pytest.mark.req("N8")
def test_the_scale_of_one_embedder_is_not_used_for_another(opener: Opener) -> None:
    memories = opener(embedder=Undeclared())
    view = memories.view(user="ada")
    view.add_many(TEXTS)
    view.search("tea")
    former = memories.settings()["calibration"]
    memories.reembed(Undeclared("another", 256))
    memories.view(user="ada").search("tea")
    assert memories.settings()["calibration"] != former


@pytest.mark.req("L8")
def test_the_scale_is_not_taken_from_the_memories_of_others(opener: Opener) -> None:
    memories = opener(embedder=Undeclared())
    memories.view(user="ada").add_many(TEXTS)
    memories.view(user="bob").search("tea")
    assert "calibration" not in memories.settings()


def test_while_too_little_is_stored_a_scale_is_looked_for_ever_more_rarely() -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=Undeclared()) as memories:
        view = memories.view(user="ada")
        view.add("Likes tea")
        assert all(view.search("tea").semantic for _ in range(20))
    assert store.calls["select"] == 5


def test_an_embedder_that_says_what_its_cosines_mean_is_believed(opener: Opener) -> None:
    embedder = CountingEmbedder()
    memories = opener(embedder=embedder)
    view = memories.view(user="ada")
    view.add("Likes tea")
    view.search("tea")
    assert embedder.batches == [["Likes tea"], ["tea"]]
    assert "calibration" not in memories.settings()


class Batched(CountingEmbedder):
    """Takes two texts at once."""

    batch = 2


@pytest.mark.req("L2")
def test_batches_are_as_large_as_the_embedder_takes(opener: Opener) -> None:
    embedder = Batched()
    memories = opener(embedder=embedder)
    view = memories.view(user="ada")
    view.add_many(["one", "two", "three", "four", "five"])
    assert embedder.batches == [["one", "two"], ["three", "four"], ["five"]]
    assert sequence(memories) == 5
    assert set(embedders(view).values()) == {embedder.name}


class Asking(CountingEmbedder):
    """Embeds questions differently."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[list[str]] = []

    def embed_query(self, texts: Sequence[str]) -> list[Any]:
        self.questions.append(list(texts))
        return HashingEmbedder.embed(self, ["tea" for _ in texts])


@pytest.mark.req("L4")
def test_questions_are_embedded_as_questions(opener: Opener) -> None:
    embedder = Asking()
    view = opener(embedder=embedder).view(user="ada")
    view.add_many(["tea", "coffee"])
    [hit] = view.search("something to drink", ranking="similarity")
    assert hit.memory.content == "tea"
    assert hit.score == pytest.approx(1.0)
    assert embedder.questions == [["something to drink"]]
    assert embedder.batches == [["tea", "coffee"]]


@pytest.mark.req("L8")
def test_passages_count_as_embeddings(opener: Opener) -> None:
    embedder = CountingEmbedder()
    view = opener(embedder=embedder).view(user="ada")
    long = "\n".join(f"{number} " + "word " * 150 for number in range(3))
    view.add(long, title="Words", author="Ada")
    [batch] = embedder.batches
    assert len(batch) == view.stats().embeddings_made == 3
    assert all(text.startswith("Ada: Words\n") for text in batch)
