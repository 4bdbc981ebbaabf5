"""Vectors: made in one batch, given by the caller, or refused with nothing stored."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.refusals import error_of
from tests.support.stand_ins import DIMENSION, BrokenEmbedder, CountingEmbedder, Opener, sequence
from wellkept import NewMemory
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import EmbedderMismatch, EmbeddingFailed, InvalidInput
from wellkept.types import Vector

ROW = [1.0] * DIMENSION


def embedded(text: str) -> Vector:
    return Vector.of(f"hashing-{DIMENSION}", HashingEmbedder(DIMENSION).embed([text])[0])


@pytest.mark.req("L1", "L2")
def test_one_batch_for_all_texts(opener: Opener) -> None:
    embedder = CountingEmbedder()
    view = opener(embedder=embedder).view(user="ada")
    one = view.add("one")
    many = view.add_many(["two", NewMemory(content="given", vector=ROW), "three"])
    assert embedder.batches == [["one"], ["two", "three"]]
    view.add_many([])
    view.add_many([NewMemory(content="given too", vector=ROW)])
    assert len(embedder.batches) == 2
    found = view.get_many([one.id, *(memory.id for memory in many)], include_vector=True)
    assert [memory.vector for memory in found.values()] == [
        embedded("one"),
        embedded("two"),
        Vector.of(embedder.name, ROW),
        embedded("three"),
    ]
    assert all(memory.vector is None for memory in view.get_many(found).values())


@pytest.mark.req("L8")
def test_embeddings_are_counted(opener: Opener) -> None:
    memories = opener(embedder=CountingEmbedder())
    view = memories.view(user="ada")
    assert (view.stats().embeddings_made, view.stats().average_embedding_ms) == (0, 0.0)
    _, two = view.add_many(["one", "two"])
    view.update(two.id, content="three")
    view.add("given", vector=ROW)
    view.search("one")
    stats = view.stats()
    assert stats.embeddings_made == 3
    assert stats.average_embedding_ms > 0


@pytest.mark.req("L8")
def test_embeddings_are_counted_by_owner(opener: Opener) -> None:
    memories = opener(embedder=CountingEmbedder())
    ada, bob = memories.view(user="ada", team="core"), memories.view(user="bob")
    ada.add_many(["one", NewMemory(content="two", layer="team"), NewMemory(content="three", layer="team")])
    ada.search("one")
    assert (bob.stats().embeddings_made, bob.stats().average_embedding_ms) == (0, 0.0)
    bob.add("four")
    assert bob.stats().embeddings_made == 1
    assert ada.stats().embeddings_made == 3
    assert ada.stats(layers=["team"]).embeddings_made == 2


@pytest.mark.req("L6")
def test_only_what_is_embedded_is_embedded_again(opener: Opener) -> None:
    """The content, its title and who said it; nothing else."""
    embedder = CountingEmbedder()
    view = opener(embedder=embedder).view(user="ada")
    memory = view.add("one")
    view.update(memory.id, type="event", importance=0.9, add_tags=["a"], metadata={"a": 1}, session="s", role="user")
    view.forget(memory.id)
    view.restore(memory.id)
    assert embedder.batches == [["one"]]
    kept = view.get(memory.id, include_vector=True)
    assert kept is not None
    assert kept.vector == embedded("one")
    view.update(memory.id, content="two")
    assert embedder.batches == [["one"], ["two"]]
    view.update(memory.id, title="Two", author="Ada")
    assert embedder.batches == [["one"], ["two"], ["Ada: Two\ntwo"]]
    titled = view.get(memory.id, include_vector=True)
    assert titled is not None
    assert titled.vector == embedded("Ada: Two\ntwo")
    view.update(memory.id, content="three", vector=ROW)
    view.update(memory.id, vector=[2.0] * DIMENSION)
    assert len(embedder.batches) == 3
    changed = view.get(memory.id, include_vector=True)
    assert changed is not None
    assert changed.vector == Vector.of(embedder.name, [2.0] * DIMENSION)
    assert changed.version == 8


BROKEN: dict[str, Callable[[Sequence[str]], Any]] = {
    "nan": lambda texts: [[math.nan, *ROW[1:]]] * len(texts),
    "infinity": lambda texts: [[math.inf, *ROW[1:]]] * len(texts),
    "beyond 32 bits": lambda texts: [[1e300, *ROW[1:]]] * len(texts),
    "too few": lambda texts: [ROW] * (len(texts) - 1),
    "too many": lambda texts: [ROW] * (len(texts) + 1),
    "none": lambda texts: [],
    "nothing": lambda texts: None,
    "too short": lambda texts: [ROW[1:]] * len(texts),
    "too long": lambda texts: [[*ROW, 1.0]] * len(texts),
    "empty rows": lambda texts: [[]] * len(texts),
    "zeros": lambda texts: [[0.0] * DIMENSION] * len(texts),
    "texts": lambda texts: ["x" * DIMENSION] * len(texts),
    "one bad row": lambda texts: [*([ROW] * (len(texts) - 1)), [math.nan] * DIMENSION],
}


@pytest.mark.req("L1", "L2", "L6", "H10")
def test_a_broken_embedder_stores_nothing(opener: Opener) -> None:
    wrong: dict[str, object] = {}
    for fault, broken in BROKEN.items():
        embedder = BrokenEmbedder(lambda texts: [ROW] * len(texts))
        memories = opener(embedder=embedder, name=fault)
        view = memories.view(user="ada")
        memory = view.add("good")
        before = view.stats()
        embedder.answer = broken
        errors = {
            "add": error_of(view.add, "bad"),
            "add_many": error_of(view.add_many, ["bad", "worse", "worst"]),
            "update": error_of(view.update, memory.id, content="bad"),
            "search": error_of(view.search, "bad"),
        }
        for operation, error in errors.items():
            answer = error and (type(error), error.operation, error.retryable, error.details)
            if answer != (EmbeddingFailed, operation, True, {"embedder": embedder.name}):
                wrong[f"{operation}, {fault}"] = answer
        if (sequence(memories), view.stats()) != (1, before):
            wrong[f"{fault}, stored"] = view.stats()
        embedder.answer = lambda texts: [ROW] * len(texts)
        assert view.update(memory.id, content="good again").version == 2, fault
    assert wrong == {}


@pytest.mark.req("L1")
def test_vectors_without_an_embedder(opener: Opener) -> None:
    memories = opener()
    view = memories.view(user="ada")
    plain, given = view.add("plain"), view.add("given", vector=[3.0, 4.0])
    found = view.get_many([plain.id, given.id], include_vector=True)
    assert [memory.vector for memory in found.values()] == [None, Vector.of("given", [3.0, 4.0])]
    assert {"embedder": "given", "dimension": "2"}.items() <= memories.settings().items()


@pytest.mark.req("L1")
def test_a_store_holds_the_vectors_of_one_embedder(opener: Opener) -> None:
    memories = opener(embedder=CountingEmbedder())
    view = memories.view(user="ada")
    memory = view.add("one")
    for attempt in (
        lambda: view.add("two", vector=Vector.of("another", ROW)),
        lambda: view.add_many(["two", NewMemory(content="three", vector=Vector.of("another", ROW))]),
        lambda: view.update(memory.id, vector=Vector.of("another", ROW)),
    ):
        with pytest.raises(EmbedderMismatch) as caught:
            attempt()
        assert caught.value.details == {"stored": f"hashing-{DIMENSION}", "given": "another"}
        assert caught.value.hint
    for bad in (ROW[1:], [*ROW, 1.0]):
        for attempt in (lambda: view.add("x", vector=bad), lambda: view.update(memory.id, vector=bad)):  # noqa: B023  # called at once
            with pytest.raises(InvalidInput) as refused:
                attempt()
            assert refused.value.details["field"] == "vector"
    assert sequence(memories) == 1


def test_another_embedder_cannot_open_the_file(file_opener: Opener) -> None:
    opener = file_opener
    opener(embedder=CountingEmbedder()).view(user="ada").add("one")
    with pytest.raises(EmbedderMismatch) as caught:
        opener(embedder=HashingEmbedder(99))
    assert caught.value.operation == "open"
    assert caught.value.details == {"stored": f"hashing-{DIMENSION}", "given": "hashing-99"}
    assert opener().view(user="ada").count() == 1


@pytest.mark.req("L4")
def test_large_and_tiny_vectors_have_directions_too(opener: Opener) -> None:
    embedder = BrokenEmbedder(lambda texts: [[1.0] + [0.0] * (DIMENSION - 1)] * len(texts))
    view = opener(embedder=embedder).view(user="ada")
    rows = {"huge": 3e38, "plain": 2.0, "tiny": 1e-38}
    for name, size in rows.items():
        view.add(name, vector=[size, size] + [0.0] * (DIMENSION - 2))
    hits = view.search("something", ranking="similarity").hits
    assert {hit.memory.content for hit in hits} == set(rows)
    assert [hit.score for hit in hits] == pytest.approx([math.sqrt(0.5)] * 3, rel=1e-4)
