"""Another embedder takes over, while everything goes on."""

from collections.abc import Sequence
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import DIMENSION, CountingEmbedder, HandClock, Named, Opener, Switched, embedders
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import ConfigurationError, EmbedderMismatch, EmbeddingFailed, StoreBusy
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.types import Status

BATCH = 256
"""How many memories are embedded between two reports of progress."""


class WithoutLexicon:
    """An embedder that says nothing of a lexicon: its words have the built-in one."""

    name, dimension = "without a lexicon", DIMENSION

    def embed(self, texts: Sequence[str]) -> Any:
        return HashingEmbedder(DIMENSION).embed(texts)


@pytest.mark.req("L6", "L4")
def test_going_over_to_another_embedder(opener: Opener) -> None:
    memories = opener(embedder=CountingEmbedder())
    view = memories.view(user="ada")
    ids = [memory.id for memory in view.add_many(["one", "two", "three"])]
    view.forget(ids[1])
    before = (view.changes(), view.stats().bytes_used)
    told: list[tuple[int, int]] = []
    assert memories.reembed(Named("other", 32), progress=lambda done, of: told.append((done, of))) == 3
    assert told == [(3, 3)]
    assert {"embedder": "other", "dimension": "32"}.items() <= memories.settings().items()
    assert embedders(view) == dict.fromkeys(("one", "two", "three"), "other")
    assert view.changes() == before[0]
    assert view.stats().bytes_used == before[1] + 3 * 4 * (32 - DIMENSION)
    assert memories.doctor().findings == ()
    view.restore(ids[1])
    for text in ("one", "two", "three"):
        [hit] = view.search(text, ranking="similarity", limit=1)
        assert hit.memory.content == text
        assert hit.score == pytest.approx(1.0)
    view.add("four")
    assert embedders(view)["four"] == "other"
    assert memories.reembed() == 0


@pytest.mark.req("L4")
def test_views_that_were_there_before_go_over_too(opener: Opener) -> None:
    memories = opener(embedder=HashingEmbedder(DIMENSION))
    view = memories.view(user="ada")
    view.add("dark mode")
    view.search("dark mode")
    memories.reembed(HashingEmbedder(64))
    [hit] = view.search("dark mode", ranking="similarity")
    assert hit.score == pytest.approx(1.0)
    assert view.add("light mode").version == 1
    assert embedders(view) == dict.fromkeys(("dark mode", "light mode"), "hashing-64")


@pytest.mark.req("H10")
@pytest.mark.parametrize("successor", [Named("other", DIMENSION), Named("other", 64)], ids=["same size", "other size"])
def test_whoever_still_has_the_former_embedder_is_told(file_opener: Opener, successor: Named) -> None:
    """Vectors of two embedders cannot be compared, whether or not they have one length."""
    old = file_opener(embedder=HashingEmbedder(DIMENSION)).view(user="ada")
    old.add("dark mode")
    old.search("dark mode")
    file_opener(embedder=None).reembed(successor)
    for operation, attempt in (
        ("search", lambda: old.search("dark mode")),
        ("search", lambda: old.search("dark mode", ranking="similarity")),
        ("add", lambda: old.add("light mode")),
    ):
        with pytest.raises(EmbedderMismatch) as caught:
            attempt()
        assert caught.value.operation == operation
        assert caught.value.details == {"stored": "other", "given": f"hashing-{DIMENSION}"}
    assert old.count() == 1


@pytest.mark.slow
@pytest.mark.req("L4")
def test_another_embedder_takes_over_while_others_write(opener: Opener) -> None:
    """Progress is told between two batches: what is written then has no new vector yet, and gets one."""
    memories = opener(embedder=HashingEmbedder(4096))
    view = memories.view(user="ada")
    view.add_many([f"memory {number}" for number in range(BATCH + 10)])
    changed, erased = view.list(limit=2, sort_by="oldest").memories
    seen: list[str] = []

    def meanwhile(done: int, of: int) -> None:
        if not seen:
            view.add("written meanwhile")
            view.update(changed.id, content="changed meanwhile")
            view.forget(erased.id, permanent=True)
        [hit] = view.search("memory 7", ranking="similarity", limit=1)
        seen.append(f"{memories.settings()['embedder']} {hit.memory.content}")
        assert done <= of

    done = memories.reembed(Named("other", 5000), progress=meanwhile)
    assert done == BATCH + 12
    assert set(seen) == {"hashing-4096 memory 7"}
    assert memories.settings()["embedder"] == "other"
    assert memories.doctor().findings == ()
    fresh = memories.view(user="ada")
    for text in ("written meanwhile", "changed meanwhile", "memory 7"):
        [hit] = fresh.search(text, ranking="similarity", limit=1)
        assert hit.memory.content == text
        assert hit.score == pytest.approx(1.0)


@pytest.mark.req("L4")
def test_an_interrupted_change_of_embedder_is_taken_up_again(opener: Opener) -> None:
    memories = opener(embedder=CountingEmbedder())
    view = memories.view(user="ada")
    count = 2 * BATCH + 10
    view.add_many([f"memory {number}" for number in range(count)])

    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memories.reembed(Named("other", 32), progress=interrupt)
    assert memories.settings()["embedder"] == f"hashing-{DIMENSION}"
    assert view.search("memory 7", ranking="similarity").hits[0].score == pytest.approx(1.0)
    told: list[tuple[int, int]] = []
    rest = count - BATCH
    assert memories.reembed(Named("other", 32), progress=lambda *counts: told.append(counts)) == rest
    assert told == [(BATCH, rest), (rest, rest)]
    assert memories.settings()["embedder"] == "other"


@pytest.mark.req("H10")
def test_a_change_of_embedder_stops_while_the_next_one_is_down(opener: Opener) -> None:
    memories = opener(embedder=CountingEmbedder())
    view = memories.view(user="ada")
    view.add("one")
    successor = Switched()
    successor.name = "other"
    successor.error = ConnectionError()
    with pytest.raises(EmbeddingFailed) as caught:
        memories.reembed(successor)
    assert (caught.value.operation, caught.value.details) == ("reembed", {"embedder": "other"})
    assert "again" in caught.value.hint
    assert embedders(view) == {"one": f"hashing-{DIMENSION}"}
    successor.error = None
    assert memories.reembed(successor) == 1


@pytest.mark.req("H10")
@pytest.mark.parametrize("method", ["unembedded", "embed", "adopt"])
def test_a_store_that_fails_leaves_the_former_embedder_in_place(method: str) -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=CountingEmbedder(), clock=HandClock()) as memories:
        view = memories.view(user="ada")
        view.add("one")
        store.fail(method, StoreBusy("locked"))
        with pytest.raises(StoreBusy):
            memories.reembed(Named("other", 32))
        assert memories.settings()["embedder"] == f"hashing-{DIMENSION}"
        assert view.search("one", ranking="similarity").hits[0].score == pytest.approx(1.0)
        memories.reembed(Named("other", 32))
        assert embedders(view) == {"one": "other"}


@pytest.mark.req("H10")
def test_opening_with_another_embedder_says_what_to_run(file_opener: Opener) -> None:
    file_opener(embedder=CountingEmbedder()).view(user="ada").add("one")
    with pytest.raises(EmbedderMismatch) as caught:
        file_opener(embedder=Named("other", 32))
    assert caught.value.details == {"stored": f"hashing-{DIMENSION}", "given": "other"}
    assert "memories.reembed" in caught.value.hint
    # And that works: open it without one, and go over.
    memories = file_opener(embedder=None)
    assert memories.reembed(Named("other", 32)) == 1
    file_opener.close()
    assert file_opener(embedder=Named("other", 32)).doctor().findings == ()


@pytest.mark.req("H10")
def test_a_file_of_an_embedder_that_nobody_knows(file_opener: Opener) -> None:
    file_opener(embedder=Named("my own")).view(user="ada").add("one")
    file_opener.close()
    with pytest.raises(EmbedderMismatch) as caught:
        file_opener(embedder="default")
    assert caught.value.details == {"stored": "my own"}
    assert "embedder=None" in caught.value.hint
    memories = file_opener(embedder=None)
    assert memories.health().status is Status.HEALTHY
    assert memories.doctor().findings == ()
    assert [hit.memory.content for hit in memories.view(user="ada").search("one")] == ["one"]
    memories.reembed("static")
    file_opener.close()
    assert file_opener(embedder="default").settings()["embedder"] == "wellkept-words-1"


def test_a_file_names_the_lexicon_of_its_words_where_the_embedder_is_none(opener: Opener) -> None:
    memories = opener(embedder="static", name="filled")
    memories.view(user="ada").add("one")
    assert "lexicon" not in memories.settings()
    memories.reembed(WithoutLexicon())
    assert memories.settings()["lexicon"] == "wellkept-words-1"
    assert opener(embedder=WithoutLexicon(), name="new").settings()["lexicon"] == "wellkept-words-1"


@pytest.mark.req("L1")
def test_the_default_is_the_embedder_that_the_file_was_filled_with(file_opener: Opener) -> None:
    file_opener(embedder="hashing-64").view(user="ada").add("one")
    file_opener.close()
    view = file_opener(embedder="default").view(user="ada")
    view.add("two")
    assert embedders(view) == {"one": "hashing-64", "two": "hashing-64"}


@pytest.mark.req("L1")
def test_a_file_with_vectors_of_callers_gets_none_by_default(file_opener: Opener) -> None:
    file_opener(embedder=None).view(user="ada").add("one", vector=[1.0, 2.0])
    file_opener.close()
    view = file_opener(embedder="default").view(user="ada")
    view.add("two")
    assert embedders(view) == {"one": "given", "two": None}


@pytest.mark.req("H10")
def test_there_must_be_an_embedder_to_embed_with(opener: Opener) -> None:
    memories = opener()
    memories.view(user="ada").add("one")
    with pytest.raises(ConfigurationError) as caught:
        memories.reembed()
    assert caught.value.hint
    for bad in (5, object()):
        with pytest.raises(ConfigurationError):
            memories.reembed(bad)  # type: ignore[arg-type]  # the point of the test
    assert memories.doctor().findings == ()


@pytest.mark.req("L1")
def test_doctor_gives_memories_the_vectors_they_lack(opener: Opener) -> None:
    embedder = Switched()
    memories = opener(embedder=embedder)
    view = memories.view(user="ada")
    embedder.error = ConnectionError()
    view.add_many(["one", "two"])
    embedder.error = None
    [finding] = memories.doctor(repair=True).findings
    assert (finding.check, finding.repaired) == ("embedder", True)
    assert memories.doctor().findings == ()
    assert embedders(view) == {"one": embedder.name, "two": embedder.name}
    assert not memories.settings().get("behind")
