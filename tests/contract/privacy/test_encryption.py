"""Sensitive memories are unreadable in everything that is kept, and searched and filtered as any others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import wellkept
from tests.support.encrypted_canaries import every_operation, leaks, marker
from tools.postgres_server import PostgresServer
from wellkept.errors import ConfigurationError, KeyUnavailable, Tampered
from wellkept.keyrings.file import FileKeyring
from wellkept.keyrings.master_key import FileMasterKeys
from wellkept.keyrings.ram import RamKeyring
from wellkept.stores.ram import RamStore
from wellkept.types import Layer, Owner, Stored

ADA = Owner(Layer.USER, ("ada",))
EMBEDDER = "hashing-64"
ENCRYPTED = "encrypted"
"""The facet of an encrypted version, as stores keep it."""


class Place:
    """A database of one store, and the folders in which its bytes are."""

    def __init__(self, url: str, folders: tuple[Path, ...], keys: Path) -> None:
        self.url, self.folders = url, folders
        masters = FileMasterKeys(keys / "master.key")
        masters.create()
        self.keyring = FileKeyring.create_file(keys / "memory.keys", masters)

    def open(self, **options: object) -> wellkept.Memories:
        return wellkept.open(self.url, embedder=EMBEDDER, **{"keyring": self.keyring, **options})  # type: ignore[arg-type]


@pytest.fixture(params=["sqlite", "jsonl", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    keys, folder = tmp_path / "keys", tmp_path / "kept"
    keys.mkdir()
    folder.mkdir()
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        yield Place(request.getfixturevalue("postgres_url"), (Path(server.data),), keys)
    else:
        yield Place(f"{request.param}:{folder / 'memory'}", (folder,), keys)


@pytest.mark.req("L10", "N7")
def test_no_byte_of_a_sensitive_memory_is_kept_in_the_clear(place: Place) -> None:
    mark = marker()
    with place.open() as memories:
        every_operation(memories, mark)
        assert leaks(mark, *place.folders) == []
    assert leaks(mark, *place.folders) == []


@pytest.mark.req("L10")
def test_nothing_of_what_was_plain_is_left_after_encrypting_in_place(place: Place) -> None:
    mark = marker()
    with place.open(keyring=None) as memories:
        view = memories.view(user="ada")
        one = view.add(f"{mark} is my word", tags=[mark], title=mark, metadata={"a": mark}, key=mark, author=mark)
        view.update(one.id, content=f"{mark} was changed")
        gone = view.add("will be gone")
        view.forget(gone.id, permanent=True, reason=f"{mark} why")
        view.forget(view.add(f"{mark} to forget").id, reason=f"{mark} because")
        view.search(mark)
        memories.rebuild()
    assert leaks(mark, *place.folders) != []
    with place.open() as memories:
        report = memories.encryption.encrypt(everything=True)
        assert (report.memories, report.versions) == (2, 4)
        assert memories.encryption.encrypt(everything=True).memories == 0
        view = memories.view(user="ada")
        assert view.search(f"{mark} changed").hits[0].memory.id == one.id
        assert [version.version for version in view.history(one.id)] == [1, 2]
        assert view.get(key=mark) is not None
    if place.url.startswith("postgres"):
        assert any("write-ahead log" in one for one in report.remains)
    else:
        assert report.remains == ()
        assert leaks(mark, *place.folders) == []


def test_a_plain_database_keeps_recognised_content_as_any_other() -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        memory = memories.view(user="ada").add("Bob's mail is bob@example.org")
        assert memory.sensitive is None


@pytest.mark.req("L10")
def test_what_is_marked_is_refused_without_a_key_and_says_how_to_make_one() -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        view = memories.view(user="ada")
        for fields in ({"sensitive": True}, {"metadata": {"sensitive": True}}):
            with pytest.raises(KeyUnavailable, match="wellkept keys init"):
                view.add("My secret", **fields)
        assert view.count() == 0
        one = view.add("My diary")
        with pytest.raises(KeyUnavailable):
            view.update(one.id, sensitive=True)
    plain = {"encryption": {"sensitive": "plain"}}
    with wellkept.open("ram:", embedder=None, settings=plain) as memories:
        assert memories.view(user="ada").add("My secret", sensitive=True).sensitive is True


@pytest.mark.req("L10")
def test_recognised_content_is_encrypted_unless_the_caller_says_otherwise() -> None:
    store = RamStore()
    with wellkept.open(store=store, embedder=None, keyring=RamKeyring()) as memories:
        view = memories.view(user="ada")
        found = view.add("Card 4111 1111 1111 1111")
        other = view.add("Card 4111 1111 1111 1111", sensitive=False)
        plain = view.add("Likes tea")
        assert (found.sensitive, other.sensitive, plain.sensitive) == (True, False, None)
        later = view.update(plain.id, content="Likes tea, write to ada@example.org")
        assert later.sensitive is True
        kept = {one.id: one for one in store.journal.scan({ADA})}
        assert [ENCRYPTED in kept[one.id].facets for one in (found, other, plain)] == [True, False, True]
        assert view.get(found.id) is not None


def test_recognition_is_configured_by_kind() -> None:
    settings = {"encryption": {"recognize": ["card"]}}
    with wellkept.open("ram:", embedder=None, keyring=RamKeyring(), settings=settings) as memories:
        view = memories.view(user="ada")
        assert view.add("ada@example.org").sensitive is None
        assert view.add("4111 1111 1111 1111").sensitive is True


@pytest.mark.req("L10")
def test_everything_is_encrypted_where_that_is_asked_for() -> None:
    store = RamStore()
    with wellkept.open(store=store, embedder=EMBEDDER, keyring=RamKeyring(), encrypt="all") as memories:
        view = memories.view(user="ada")
        view.add("Likes tea", tags=["food"])
        assert view.search("tea").hits[0].memory.tags == ("food",)
        [kept] = store.journal.scan({ADA}, vectors=True)
        assert ENCRYPTED in kept.facets
        assert "text" not in kept.facets
        assert b"tea" not in kept.payload
    with pytest.raises(KeyUnavailable, match="keyring"):
        wellkept.open("ram:", encrypt="all")
    with pytest.raises(ConfigurationError, match="encrypt"):
        wellkept.open("ram:", keyring=RamKeyring(), encrypt="some")  # type: ignore[arg-type]


@pytest.mark.req("L10")
def test_the_stored_vector_is_a_stand_in_of_the_same_length() -> None:
    store = RamStore()
    with wellkept.open(store=store, embedder=EMBEDDER, keyring=RamKeyring()) as memories:
        view = memories.view(user="ada")
        one = view.add("A secret about tea", sensitive=True)
        two = view.add("A secret about tea", sensitive=False)
        kept = {stored.id: stored for stored in store.journal.scan({ADA}, vectors=True)}
        hidden, shown = kept[one.id].vector, kept[two.id].vector
        assert hidden is not None
        assert shown is not None
        assert len(hidden.data) == len(shown.data)
        assert shown.data not in hidden.pieces
        assert hidden.data != shown.data
        opened = view.get(one.id, include_vector=True)
        assert opened is not None
        assert opened.vector == shown


def _altered(value: bytes) -> Iterator[bytes]:
    for place in range(0, len(value), max(1, len(value) // 40)):
        changed = bytearray(value)
        changed[place] ^= 1 << (place % 8)
        yield bytes(changed)


@pytest.mark.req("L10")
def test_a_flipped_bit_of_anything_encrypted_is_an_error_never_other_data() -> None:
    store = RamStore()
    with wellkept.open(store=store, embedder=EMBEDDER, keyring=RamKeyring()) as memories:
        view = memories.view(user="ada")
        one = view.add("A secret", sensitive=True, title="hidden")
        view.forget(view.add("other").id, permanent=True, reason="a reason")
        [kept] = store.journal.get({ADA}, [one.id], vectors=True)
        assert kept.vector is not None
        calls: list[Callable[[], object]] = [
            lambda: view.get(one.id, include_vector=True),
            view.list,
            lambda: view.list(filter={"text": "secret"}),
            lambda: view.history(one.id),
            lambda: view.search("secret"),
            lambda: memories.view(user="ada").changes(),
        ]
        for payload in _altered(kept.payload):
            store.journal.rewrite([kept._replace(payload=payload, vector=None)])
            for call in calls:
                with pytest.raises(Tampered):
                    call()
        store.journal.rewrite([kept])
        for pieces in _altered(kept.vector.pieces):
            vector = wellkept.types.Vector(kept.vector.embedder, kept.vector.data, pieces=pieces)
            store.journal.rewrite([kept._replace(vector=vector)])
            with pytest.raises((Tampered, KeyUnavailable)):
                view.get(one.id, include_vector=True)
        store.journal.rewrite([kept])
        assert view.get(one.id) is not None


@pytest.mark.req("L10")
def test_what_is_moved_to_another_memory_version_or_owner_does_not_open() -> None:
    store, keyring = RamStore(), RamKeyring()
    with wellkept.open(store=store, embedder=None, keyring=keyring) as memories:
        ada, bob = memories.view(user="ada"), memories.view(user="bob")
        one, two = (ada.add(text, sensitive=True) for text in ("One", "Two"))
        ada.update(one.id, content="One again")
        theirs = bob.add("Bob's", sensitive=True)
        first, second = store.journal.history(ADA, one.id)
        [other] = store.journal.history(ADA, two.id)
        [foreign] = store.journal.history(theirs.owner, theirs.id)
        for stolen in (first, other, foreign):
            store.journal.rewrite([second._replace(facets=stolen.facets, payload=stolen.payload)])
            with pytest.raises((Tampered, KeyUnavailable)):
                ada.get(one.id)
        store.journal.rewrite([second])
        assert ada.get(one.id) is not None


@pytest.mark.req("L10")
def test_without_the_keyring_everything_encrypted_is_an_error_and_nothing_is_written() -> None:
    store = RamStore()
    with wellkept.open(store=store, embedder=EMBEDDER, keyring=RamKeyring()) as memories:
        view = memories.view(user="ada")
        one, plain = view.add("A secret", sensitive=True, tags=["a"], key="k"), view.add("Likes tea")
        store.close = lambda: None  # type: ignore[method-assign]  # opened again below
    with wellkept.open(store=store, embedder=EMBEDDER) as memories:
        view = memories.view(user="ada")
        assert view.get(plain.id) is not None
        calls: list[Callable[[], object]] = [
            lambda: view.get(one.id),
            view.list,
            lambda: view.list(filter={"tags": ["a"]}),
            lambda: view.count(filter={"text": "secret"}),
            lambda: view.search("secret"),
            lambda: view.history(one.id),
            lambda: view.add("Plain text of an encrypted database"),
            lambda: view.update(plain.id, importance=0.1),
        ]
        for call in calls:
            with pytest.raises(KeyUnavailable):
                call()
        assert view.forget(one.id, permanent=True)
        assert view.list().total == 1
    with pytest.raises(KeyUnavailable, match="not by"):
        wellkept.open(store=store, keyring=RamKeyring())


@pytest.mark.req("N7")
def test_a_destroyed_key_makes_every_copy_unreadable() -> None:
    store, keyring = RamStore(), RamKeyring()
    with wellkept.open(store=store, embedder=None, keyring=keyring) as memories:
        ada, bob = memories.view(user="ada"), memories.view(user="bob")
        one, other = ada.add("A secret", sensitive=True), bob.add("Another", sensitive=True)
        copy: list[Stored] = list(store.journal.history(ADA, one.id))
        assert keyring.destroy(ADA) == 1
        with pytest.raises(KeyUnavailable):
            ada.get(one.id)
        assert bob.get(other.id) is not None
        keyring.create(ADA)
        store.journal.rewrite(copy)
        with pytest.raises(KeyUnavailable):
            ada.get(one.id)


def test_marking_and_unmarking_moves_the_vector_with_the_memory() -> None:
    store = RamStore()
    with wellkept.open(store=store, embedder=EMBEDDER, keyring=RamKeyring()) as memories:
        view = memories.view(user="ada")
        one = view.add("About tea")
        before = view.get(one.id, include_vector=True)
        view.update(one.id, sensitive=True)
        [kept] = store.journal.get({ADA}, [one.id], vectors=True)
        assert before is not None
        assert before.vector is not None
        assert kept.vector is not None
        assert kept.vector.data != before.vector.data
        for sensitive in (True, False):
            view.update(one.id, sensitive=sensitive, importance=0.9)
            after = view.get(one.id, include_vector=True)
            assert after is not None
            assert after.vector == before.vector
        [kept] = store.journal.get({ADA}, [one.id], vectors=True)
        assert kept.vector == before.vector


@pytest.mark.req("L10")
def test_marking_a_memory_encrypts_its_former_versions(place: Place) -> None:
    mark = marker()
    with place.open() as memories:
        view = memories.view(user="ada")
        one = view.add(f"{mark} once", tags=[mark])
        view.update(one.id, content="Something else", sensitive=True)
        assert [version.memory.content for version in view.history(one.id) if version.memory] == [
            f"{mark} once",
            "Something else",
        ]
    if not place.url.startswith("postgres"):  # there, until the rows are vacuumed
        assert leaks(mark, *place.folders) == []


def test_a_key_of_a_memory_is_unique_among_plain_and_encrypted_ones() -> None:
    with wellkept.open("ram:", embedder=None, keyring=RamKeyring()) as memories:
        view = memories.view(user="ada")
        view.add("Plain", key="a")
        view.add("Secret", key="b", sensitive=True)
        for key in ("a", "b"):
            for sensitive in (True, False):
                with pytest.raises(wellkept.errors.Conflict):
                    view.add("Other", key=key, sensitive=sensitive)
        assert view.put("a", "Plain again").version == 2
        assert view.put("b", "Secret again").version == 2
        assert [view.get(key=key).content for key in "ab"] == ["Plain again", "Secret again"]  # type: ignore[union-attr]


@pytest.mark.req("L10")
def test_an_index_kept_in_the_file_tells_nothing(tmp_path: Path) -> None:
    mark = marker()
    keyring = RamKeyring()
    url = tmp_path / "memory.db"
    with wellkept.open(url, embedder=EMBEDDER, keyring=keyring) as memories:
        view = memories.view(user="ada")
        view.add_many([wellkept.NewMemory(content=f"{mark} {number}", sensitive=True) for number in range(2_100)])
        assert len(view.search(mark).hits) > 0
    kept = url.read_bytes()
    assert b"encrypted terms" in kept or b"encrypted " in kept, "an image was written"
    assert leaks(mark, tmp_path) == []
    with wellkept.open(url, embedder=EMBEDDER, keyring=keyring) as memories:
        assert len(memories.view(user="ada").search(mark).hits) > 0


_WRITER = """
import sys, wellkept
from pathlib import Path
from wellkept.keyrings.file import FileKeyring
from wellkept.keyrings.master_key import FileMasterKeys

url, keys, mark = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
ring = FileKeyring(keys / "memory.keys", FileMasterKeys(keys / "master.key"))
with wellkept.open(url, embedder="hashing-64", keyring=ring) as memories:
    view = memories.view(user="ada")
    for number in range(100_000):
        one = view.add(f"{mark} {number}", sensitive=True, tags=[mark], key=f"{mark} {number}", title=mark)
        if number % 3 == 0:
            view.update(one.id, content=f"{mark} changed")
        if number % 5 == 0:
            view.forget(one.id, permanent=number % 2 == 0, reason=mark)
        print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.req("L10")
def test_a_killed_process_leaves_nothing_in_the_clear_and_loses_nothing(place: Place, tmp_path: Path) -> None:
    mark = marker()
    command = [sys.executable, "-c", _WRITER, place.url, str(tmp_path / "keys"), mark]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(12)]
        process.kill()
    assert lines[-1].strip() == "11"
    assert leaks(mark, *place.folders) == []
    with place.open() as memories:
        assert memories.view(user="ada").count(filter={"tags": [mark]}) >= 9
        assert memories.encryption.check().fits
    assert leaks(mark, *place.folders) == []


@pytest.mark.req("L10")
def test_new_data_keys_and_retired_ones(place: Place) -> None:
    with place.open() as memories:
        view = memories.view(user="ada")
        one = view.add("A secret about tea", sensitive=True, tags=["a.b"], key="k")
        view.update(one.id, content="A secret about coffee")
        gone = view.add("gone", sensitive=True)
        view.forget(gone.id, permanent=True, reason="why")
        before = place.keyring.key(ADA)
        done = memories.encryption.rotate(data=True, retire=True)
        assert done.encrypted.memories == 1
        assert done.retired == 1
        assert before is not None
        assert place.keyring.key(ADA, before.id) is None
        assert [version.memory.content for version in view.history(one.id) if version.memory] == [
            "A secret about tea",
            "A secret about coffee",
        ]
        assert view.search("coffee").hits[0].memory.id == one.id
        assert view.list(filter={"tags": ["a"]}).total == 1
        assert view.get(key="k") is not None
        assert view.history(gone.id)[0].reason == "why"
        assert memories.encryption.check().fits


def test_keys_are_made_beside_the_database_and_found_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WELLKEPT_MASTER_KEY_FILE", str(tmp_path / "safe" / "master.key"))
    url = tmp_path / "memory.db"
    with wellkept.open(url, embedder=None) as memories:
        made = memories.encryption.init()
        assert made.keyring == f"{url}.keys"
        one = memories.view(user="ada").add("A secret", sensitive=True)
        with pytest.raises(ConfigurationError, match="already"):
            memories.encryption.init()
    with wellkept.open(url, embedder=None) as memories:
        assert memories.view(user="ada").get(one.id) is not None
        assert memories.encryption.check(recovery_code=made.recovery_code.lower()).recovery is True
        again = memories.encryption.rotate()
        assert again.recovery_code not in (None, made.recovery_code)
        assert memories.encryption.check(recovery_code=made.recovery_code).fits is False
    (tmp_path / "safe" / "master.key").unlink()
    with wellkept.open(url, embedder=None) as memories:
        with pytest.raises(KeyUnavailable):
            memories.view(user="ada").get(one.id)
        memories.encryption.init(recover=again.recovery_code)
        assert memories.view(user="ada").get(one.id) is not None


def test_vectors_that_come_later_are_encrypted_too() -> None:
    store, keyring = RamStore(), RamKeyring()
    with wellkept.open(store=store, embedder=EMBEDDER, keyring=keyring) as memories:
        view = memories.view(user="ada")
        one = view.add("A secret about tea", sensitive=True)
        assert memories.reembed("hashing-32") == 1
        [kept] = store.journal.get({ADA}, [one.id], vectors=True)
        assert kept.vector is not None
        assert kept.vector.dimension == 32
        assert kept.vector.values == (1.0, *[0.0] * 31)
        assert view.search("tea", ranking="similarity").hits[0].memory.id == one.id


_ENCRYPTER = """
import os, sys, wellkept
from pathlib import Path
from wellkept.keyrings.file import FileKeyring
from wellkept.keyrings.master_key import FileMasterKeys

url, keys = sys.argv[1], Path(sys.argv[2])
ring = FileKeyring(keys / "memory.keys", FileMasterKeys(keys / "master.key"))

def killed(done, total):
    if done >= 64:
        os.kill(os.getpid(), 9)

with wellkept.open(url, embedder="hashing-64", keyring=ring) as memories:
    memories.encryption.encrypt(everything=True, progress=killed)
"""


@pytest.mark.slow
@pytest.mark.req("L10")
def test_encrypting_in_place_goes_on_after_a_kill(place: Place, tmp_path: Path) -> None:
    mark = marker()
    with place.open(keyring=None) as memories:
        memories.view(user="ada").add_many([f"{mark} number {number}" for number in range(150)])
    command = [sys.executable, "-c", _ENCRYPTER, place.url, str(tmp_path / "keys")]
    assert subprocess.run(command, check=False).returncode == -9
    with place.open() as memories:
        view = memories.view(user="ada")
        assert view.count(filter={"text": mark}) == 150
        assert 0 < memories.encryption.check().encrypted < 150
        assert memories.encryption.encrypt(everything=True).memories < 150
        assert memories.encryption.check().encrypted == 150
        assert view.search(f"{mark} number 7").hits
    if not place.url.startswith("postgres"):
        assert leaks(mark, *place.folders) == []


@pytest.mark.req("L10", "L14")
def test_a_converted_database_stays_encrypted_and_opens_with_the_same_keyring(place: Place, tmp_path: Path) -> None:
    mark, folder = marker(), tmp_path / "copy"
    folder.mkdir()
    with place.open() as memories:
        one = memories.view(user="ada").add(f"The {mark}", sensitive=True, tags=[mark], key=mark)
        memories.view(user="ada").update(one.id, content=f"Another {mark}")
    target = f"{'sqlite' if place.url.startswith('jsonl') else 'jsonl'}:{folder / 'memory'}"
    wellkept.convert(place.url, target)
    assert leaks(mark, folder) == []
    with wellkept.open(target, embedder=EMBEDDER, keyring=place.keyring) as memories:
        view = memories.view(user="ada")
        assert view.search(mark).hits[0].memory.id == one.id
        assert len(view.history(one.id)) == 2
    with wellkept.open(target, embedder=EMBEDDER) as memories, pytest.raises(KeyUnavailable):
        memories.view(user="ada").get(one.id)
