"""A database with an index that its user chose: searched in the place of the store's, and followed as any other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import wellkept
import wellkept.aio
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import ConfigurationError, StoreError
from wellkept.indexes.ram import RamIndex
from wellkept.keyrings.ram import RamKeyring
from wellkept.ports import Corpus
from wellkept.stores.postgres import PostgresStore
from wellkept.stores.ram import RamStore
from wellkept.types import Layer, Mark, Owner, Owners, Stored

EMBEDDER = HashingEmbedder(64)
ADA, BOB = Owner(Layer.USER, ("ada",)), Owner(Layer.USER, ("bob",))


class Watched(RamIndex):
    """Remembers what it was given and what was taken from it."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[Owner, str]] = []
        self.gone: list[str] = []
        self.closed = 0
        self.error: Exception | None = None

    def load(self, owner: Owner, stored: Iterable[Stored], dimension: int, upto: Mark) -> None:
        stored = list(stored)
        self.given += [(owner, one.id) for one in stored]
        super().load(owner, stored, dimension, upto)

    def follow(self, owner: Owner, stored: Sequence[Stored], gone: Sequence[str], upto: Mark) -> None:
        if self.error is not None:
            raise self.error
        self.given += [(owner, one.id) for one in stored]
        self.gone += gone
        super().follow(owner, stored, gone, upto)

    def corpus(self, owners: Owners, terms: Sequence[int]) -> Corpus:
        if self.error is not None:
            raise self.error
        return super().corpus(owners, terms)

    def close(self) -> None:
        self.closed += 1
        super().close()


def _found(memories: wellkept.Memories, text: str = "tea", user: str = "ada") -> list[str]:
    return [hit.memory.content for hit in memories.view(user=user).search(text)]


@pytest.mark.parametrize("kind", ["ram", "sqlite", "jsonl", "postgres"])
def test_it_is_searched_in_the_place_of_the_stores_and_follows_the_journal(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url: Any = f"{kind}:{tmp_path / 'memory'}"
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url") + "?ram_rows=0"  # its own index is in tables of the server
    store = RamStore() if kind == "ram" else None
    index = Watched()
    with wellkept.open(None if store else url, store=store, embedder=EMBEDDER, index=index) as memories:
        view = memories.view(user="ada")
        tea, coffee = view.add("Likes green tea"), view.add("Likes coffee")
        assert _found(memories)[0] == "Likes green tea"
        assert index.given == [(ADA, tea.id), (ADA, coffee.id)]
        view.update(coffee.id, content="Likes black tea")
        assert set(_found(memories, "black tea")) == {"Likes green tea", "Likes black tea"}
        view.forget(tea.id)
        assert _found(memories) == ["Likes black tea"]
        assert tea.id in index.gone
        if kind != "ram":
            with wellkept.open(url, embedder=EMBEDDER) as others:
                others.view(user="ada").add("Likes white tea")
            assert set(_found(memories)) == {"Likes black tea", "Likes white tea"}, "what others write is followed"
        memories.rebuild()
        assert index.followed(ADA) is None
        assert "Likes black tea" in _found(memories)
    assert index.closed == 1
    if kind == "postgres":
        with closing(PostgresStore.from_url(url)) as served:
            assert served.index.followed(ADA) is None, "the index of the store was not asked"


def test_it_finds_what_the_index_of_the_database_finds(tmp_path: Path) -> None:
    answers = []
    with wellkept.open(tmp_path / "memory.db", embedder=EMBEDDER) as memories:
        memories.view(user="ada").add_many([f"Note {number} about tea, the {number % 7}th" for number in range(60)])
    for index in (None, RamIndex()):
        with wellkept.open(tmp_path / "memory.db", embedder=EMBEDDER, index=index) as memories:
            hits = memories.view(user="ada").search("the 3th note about tea", limit=20)
            answers.append([(hit.memory.id, hit.score) for hit in hits])
    assert answers[0] == answers[1]


def test_databases_do_not_see_each_other_through_their_indexes(tmp_path: Path) -> None:
    one, two = RamIndex(), RamIndex()
    first = wellkept.open(tmp_path / "one.db", embedder=EMBEDDER, index=one)
    second = wellkept.open(tmp_path / "two.db", embedder=EMBEDDER, index=two)
    first.view(user="ada").add("Likes green tea")
    second.view(user="ada").add("Likes black tea")
    assert (_found(first), _found(second)) == (["Likes green tea"], ["Likes black tea"])

    with pytest.raises(ConfigurationError, match="serves another open database") as caught:
        wellkept.open(tmp_path / "three.db", embedder=EMBEDDER, index=one)
    assert caught.value.details == {"field": "index"}
    assert caught.value.operation == "open"
    assert _found(first) == ["Likes green tea"], "whoever has it keeps it"
    first.close()
    with wellkept.open(tmp_path / "two.db", embedder=EMBEDDER, index=one) as again:
        first.close()  # once more: it is no longer its index
        assert _found(again) == ["Likes black tea"], "at the same mark of the same owner, nothing of the other is left"
        with pytest.raises(ConfigurationError, match="serves another"):
            wellkept.open(tmp_path / "one.db", embedder=EMBEDDER, index=one)
    second.close()


def test_it_never_has_what_is_encrypted() -> None:
    store, keyring = RamStore(), RamKeyring()
    index = Watched()
    with wellkept.open(store=store, embedder=EMBEDDER, keyring=keyring, index=index) as memories:
        memories.view(user="ada").add("My IBAN is DE89370400440532013000")
        tea = memories.view(user="bob").add("Likes tea")
        assert _found(memories, "IBAN") == ["My IBAN is DE89370400440532013000"]
        assert _found(memories, "tea", "bob") == ["Likes tea"]
        assert index.given == [(BOB, tea.id)], "who has a key is searched in RAM"


def test_what_gets_encrypted_leaves_it(tmp_path: Path) -> None:
    index = Watched()
    with wellkept.open(tmp_path / "memory.db", embedder=EMBEDDER, index=index) as memories:
        memories.view(user="ada").add("Likes tea")
        assert _found(memories) == ["Likes tea"]
        assert index.followed(ADA) is not None
        memories.encryption.init(master_key_file=tmp_path / "master.key")
        memories.encryption.encrypt(everything=True)
        assert index.followed(ADA) is None
        given = list(index.given)
        assert _found(memories) == ["Likes tea"]
        assert index.given == given


def test_what_is_erased_leaves_it_at_once() -> None:
    index = Watched()
    with wellkept.open("ram:", embedder=EMBEDDER, index=index) as memories:
        view = memories.view(user="ada")
        tea, coffee, cake = view.add("Likes tea"), view.add("Likes coffee"), view.add("Likes cake")
        bobs = memories.view(user="bob")
        bobs_tea = bobs.add("Likes tea")
        _found(memories)
        view.forget(tea.id, permanent=True)
        assert index.gone == [tea.id], "without a search: it may keep what it holds elsewhere"
        memories.privacy.erase(user="ada")
        assert set(index.gone) == {tea.id, coffee.id, cake.id}
        assert index.corpus({ADA}, ()).memories == 0
        assert index.followed(BOB) is None, "nobody else's is loaded for it"
        _found(memories, user="bob")
        index.error = StoreError("the index does not answer")
        assert bobs.forget(bobs_tea.id, permanent=True)
        assert not bobs.list(), "an index that is down keeps nobody from erasing"


def test_its_health_is_part_of_the_databases() -> None:
    index = Watched()
    with wellkept.open("ram:", embedder=EMBEDDER, index=index) as memories:
        assert memories.health().components["index"].message != "not used yet"
        index.error = StoreError("the index does not answer")
        health = memories.health()
        assert health.status.value == health.components["index"].status.value == "degraded"
        assert health.components["index"].message == "PROVIDER_ERROR"


@pytest.mark.req("H10")
def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    for wrong in (5, "ram:", RamIndex, object(), {}):
        with pytest.raises(ConfigurationError) as caught:
            wellkept.open(tmp_path / "memory.db", index=wrong)  # type: ignore[arg-type]  # the point of the test
        assert caught.value.details == {"field": "index"}
        assert caught.value.hint == "pass what wellkept.ports.Index describes"
    assert list(tmp_path.iterdir()) == []


def test_an_index_that_fails_to_close_keeps_no_store_open(tmp_path: Path) -> None:
    class Failing(RamIndex):
        def close(self) -> None:
            raise StoreError("the index does not answer")

    store = RamStore()
    memories = wellkept.open(store=store, embedder=EMBEDDER, index=Failing())
    with pytest.raises(StoreError, match="the index does not answer"):
        memories.close()
    with pytest.raises(StoreError):
        store.journal.settings()
    memories.close()


def test_async_code_chooses_it_as_well() -> None:
    index = Watched()

    async def main() -> list[str]:
        async with wellkept.aio.open("ram:", embedder=EMBEDDER, index=index) as memories:
            view = memories.view(user="ada")
            await view.add("Likes tea")
            return [hit.memory.content for hit in await view.search("tea")]

    assert asyncio.run(main()) == ["Likes tea"]
    assert index.given
    assert index.closed == 1
