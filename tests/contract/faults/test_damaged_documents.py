"""One damaged document beside the memories, on every store: it is named, what needs it is refused, the rest goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import apsw
import pytest

import wellkept
from tests.support.stand_ins import somebody, store_of
from tools.postgres_server import PostgresServer
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import KeyUnavailable, StoreCorrupt
from wellkept.keyrings.ram import RamKeyring
from wellkept.stores.jsonl import JsonlStore
from wellkept.testing.cases import Cases
from wellkept.types import Filter, Layer, Owner, RetentionPolicy, Status

ADA = Owner(Layer.USER, ("ada",))

Damage = Callable[[str, str, str], None]
"""Of the database ``url``: in the table or the file ``of``, the text ``old`` becomes one as long with ``x`` in it."""


def _sqlite(url: str, of: str, old: str) -> None:
    connection = apsw.Connection(url)
    for column in ("body", "value"):
        table = "records" if column == "body" else "settings"
        name = "kind" if column == "body" else "name"
        statement = f"UPDATE {table} SET {column} = replace({column}, ?, ?) WHERE {name} = ? AND {column} LIKE ?"
        connection.execute(statement, (old, _wrong(old), of, f"%{old}%"))
        if connection.changes():
            connection.close()
            return
    raise AssertionError(f"nothing to damage in {of}")


def _jsonl(url: str, of: str, old: str) -> None:
    root = Path(url.removeprefix("jsonl:"))
    settings = root / "settings.json"
    line = next((one for one in settings.read_text().splitlines() if f'"{of}"' in one and old in one), None)
    if line is not None:
        settings.write_text(settings.read_text().replace(line, line.replace(old, _wrong(old))))
        return
    pattern = "sessions/*/metadata.json" if of == "session" else f"records/{of}/**/*.json"
    for path in root.glob(pattern):
        if old in path.read_text():
            path.write_text(path.read_text().replace(old, _wrong(old)))
            return
    raise AssertionError(f"nothing to damage in {of}")


def _postgres(server: PostgresServer, url: str, of: str, old: str) -> None:
    database, texts = urlsplit(url).path[1:], f"'{old}', '{_wrong(old)}'"
    body = f"convert_to(replace(convert_from(body, 'UTF8'), {texts}), 'UTF8')"
    for change in (
        f"UPDATE wellkept.records SET body = {body} WHERE kind = '{of}'",
        f"UPDATE wellkept.settings SET value = replace(value, {texts}) WHERE name = '{of}'",
    ):
        server.execute(change, database)


def _wrong(text: str) -> str:
    """Two characters wrong, so that nobody can guess what was there."""
    return f"zz{text[2:]}" if not text.startswith("zz") else f"yy{text[2:]}"


PARTS = {
    "name": "name = substr(name, 1, 2) || 'x' || substr(name, 4)",
    "value": "value = 'xyz'",
    "checksum": "{checksum} = {zero}",
}
"""What may be damaged of a setting, and how a database is told to do it."""


def damage_setting(url: str, setting: str, part: str, server: Callable[[], PostgresServer]) -> str:
    """Damage a part of a setting; the name that it has then."""
    left = f"{setting[:2]}x{setting[3:]}" if part == "name" else setting
    if url.startswith("jsonl:"):
        file = Path(url.removeprefix("jsonl:")) / "settings.json"
        [line] = [line for line in file.read_text().splitlines() if f'"{setting}"' in line]
        name, value, checksum = re.findall('"[^"]*"', line)
        change = {"name": (name, f'"{left}"'), "value": (value, '"xyz"'), "checksum": (checksum, '"00"')}[part]
        file.write_text(file.read_text().replace(line, line.replace(*change)))
    elif url.startswith("postgres"):
        update = PARTS[part].format(checksum="digest", zero="'\\x00'")
        server().execute(f"UPDATE wellkept.settings SET {update} WHERE name = '{setting}'", urlsplit(url).path[1:])
    else:
        update = PARTS[part].format(checksum="checksum", zero="x'00'")
        with closing(apsw.Connection(url)) as connection:
            connection.execute(f"UPDATE settings SET {update} WHERE name = ?", (setting,))
            assert connection.changes() == 1
    return left


@pytest.fixture(params=["sqlite", "jsonl", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that is not there yet."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"jsonl:{tmp_path / 'memory'}" if request.param == "jsonl" else str(tmp_path / "memory.db")


@pytest.fixture
def damage(url: str, request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Change a text of a kind of records, or of a setting."""
    if url.startswith("jsonl:"):
        return lambda of, old: _jsonl(url, of, old)
    if url.startswith("postgres"):
        server = request.getfixturevalue("postgres_server")
        return lambda of, old: _postgres(server, url, of, old)
    return lambda of, old: _sqlite(url, of, old)


def told(memories: wellkept.Memories) -> str:
    """All that doctor says."""
    return "; ".join(one.message for one in memories.doctor().findings)


SETTINGS = ("origin", "durability", "embedder", "dimension", "calibration", "epoch")
EMBEDDER = HashingEmbedder(dimension=64)


@pytest.mark.req("L14", "J2")
def test_one_damaged_setting_stops_nothing(url: str, request: pytest.FixtureRequest) -> None:
    wellkept.open(url, embedder=EMBEDDER, durability="relaxed").close()
    with Cases() as cases:
        for setting, part in product(SETTINGS, PARTS):
            if setting == "epoch" and not url.endswith(".db"):
                continue  # the epoch of this store stands elsewhere
            with cases.case(f"{part} of {setting}"):
                _stops_nothing(url, setting, part, lambda: request.getfixturevalue("postgres_server"))


def _stops_nothing(url: str, setting: str, part: str, server: Callable[[], PostgresServer]) -> None:
    with wellkept.open(url, embedder=EMBEDDER) as memories:
        ada = somebody(memories)
        tea, _ = ada.add("Prefers green tea"), ada.add("Lives in a harbour town")
        before = hits(ada, "green tea in the harbour")
        store_of(memories).journal.set_settings({"calibration": "0.100000 0.500000 hashing-64"})
        kept = dict(store_of(memories).journal.settings())
    left = damage_setting(url, setting, part, server)
    with wellkept.open(url, embedder=EMBEDDER) as memories:
        ada = memories.view(user=tea.owner.ids[0])
        assert hits(ada, "green tea in the harbour") == before
        assert ada.get(tea.id) is not None
        ada.add("Plays chess on Fridays")
        assert hits(ada, "chess on Fridays")[0][0] == "Plays chess on Fridays"
        health = memories.health()
        assert health.status is Status.DEGRADED
        assert repr(left) in health.components["settings"].message
        there = vectors(ada)
        [finding] = memories.doctor().findings
        assert (finding.check, finding.message) == ("settings", f"1 settings are damaged: {left!r}")
        [finding] = memories.doctor(repair=True).findings
        assert finding.repaired
        assert memories.doctor().findings == ()
        assert memories.health().status is Status.HEALTHY
        assert vectors(ada) == there
        mended = dict(store_of(memories).journal.settings())
    if part != "name" and setting == "calibration":
        kept.pop("calibration")  # it is measured again
    if part != "name" and setting == "epoch":
        del kept["epoch"], mended["epoch"]  # a new one begins
    assert mended == kept


@pytest.mark.req("L14", "J2")
def test_a_flipped_bit_may_make_a_setting_null(tmp_path: Path) -> None:
    with Cases() as cases:
        for setting in SETTINGS:
            database = tmp_path / f"{setting}.db"
            with cases.case(setting):
                with wellkept.open(database, embedder=EMBEDDER) as memories:
                    tea = memories.view(user="ada").add("Prefers green tea")
                    store_of(memories).journal.set_settings({"calibration": "0.100000 0.500000 hashing-64"})
                _make_null(database, setting)
                with wellkept.open(database, embedder=EMBEDDER) as memories:
                    assert memories.view(user="ada").get(tea.id) is not None
                    assert memories.health().status is Status.DEGRADED
                    repaired = {finding.check: finding.repaired for finding in memories.doctor(repair=True).findings}
                    assert repaired["settings"]
                    assert memories.doctor().findings == ()


def _make_null(database: Path, setting: str) -> None:
    """What a flipped bit in the header of a row can do, and no statement, as long as the schema says NOT NULL."""
    rewrite = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = 'settings'"
    for statement, values in (  # a new connection reads what the one before has made of the schema
        (rewrite, ("value TEXT NOT NULL", "value TEXT")),
        ("UPDATE settings SET value = NULL WHERE name = ?", (setting,)),
        (rewrite, ("value TEXT", "value TEXT NOT NULL")),
    ):
        with closing(apsw.Connection(str(database))) as connection:
            connection.execute(statement, values)
            assert connection.changes() == 1


def vectors(view: wellkept.View) -> list[object]:
    return [one.vector for one in view.get_many([one.id for one in view.list()], include_vector=True).values()]


def hits(view: wellkept.View, text: str) -> list[tuple[str, float]]:
    return [(hit.memory.content, hit.score) for hit in view.search(text)]


@pytest.mark.req("L14", "N3", "J2")
def test_a_damaged_hold_refuses_every_erasure_and_nothing_else(url: str, damage: Callable[[str, str], None]) -> None:
    with wellkept.open(url, embedder=None) as memories:
        ada = memories.view(user="ada")
        held, free = ada.add("Wants a refund", tags=["legal"]), ada.add("Likes tea")
        memories.upkeep.hold(Filter(tags=["legal"]), reason="case 17")
    damage("holds", "case 17")
    with wellkept.open(url, embedder=None) as memories:
        ada = memories.view(user="ada")
        assert "holds" in told(memories)
        for id in (held.id, free.id):
            with pytest.raises(StoreCorrupt, match="holds") as caught:
                ada.forget(id, permanent=True)
            assert caught.value.hint
            assert "case" not in str(caught.value)
        with pytest.raises(StoreCorrupt):
            memories.upkeep.hold(Filter(tags=["other"]), reason="case 18")
        more = ada.add("Likes cake")
        assert {one.id for one in ada.list()} == {held.id, free.id, more.id}
        assert [one.memory.id for one in ada.search("cake").hits] == [more.id]
        assert ada.forget(more.id)
        assert ada.update(free.id, content="Likes green tea").version == 2


@pytest.mark.req("L14", "J2")
def test_a_damaged_session_stops_no_other(url: str, damage: Callable[[str, str], None]) -> None:
    with wellkept.open(url, embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        for day in ("monday", "tuesday"):
            sessions.create(day, metadata={"mark": f"mark of {day}"}).view.add(f"Talked on {day}")
    damage("session", "mark of monday")
    with wellkept.open(url, embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        assert [one.id for one in sessions.list()] == ["tuesday"]
        assert sessions.load("tuesday").view.add("Talked again").version == 1
        with pytest.raises(StoreCorrupt, match="monday"):
            sessions.load("monday")
        assert re.search("monday", told(memories))
        assert {one.content for one in memories.view(user="ada", session="monday").list()} == {"Talked on monday"}
        plan = memories.upkeep.plan()
        assert not plan.steps
        assert memories.privacy.plan(user="ada").counts.memories == 3
        sessions.delete("monday", permanent=True)
        assert told(memories) == ""
        assert sessions.create("monday").view.list().total == 0


@pytest.mark.req("L14", "N3")
def test_a_damaged_policy_lets_nothing_go_by_another_one(url: str, damage: Callable[[str, str], None]) -> None:
    with wellkept.open(url, embedder=None) as memories:
        ada = memories.view(user="ada")
        ada.add("Likes tea")
        soon = RetentionPolicy(long_term_age=timedelta(microseconds=1), automatic=True)
        memories.upkeep.set_retention(soon)
        memories.upkeep.set_retention(replace(soon, long_term_age=timedelta(days=9999)), owner=ADA)
    damage("retention", "long_term_age")
    with wellkept.open(url, embedder=None) as memories:
        ada = memories.view(user="ada")
        assert "retention" in told(memories)
        with pytest.raises(StoreCorrupt, match="retention"):
            memories.upkeep.run()
        assert [one.content for one in ada.list()] == ["Likes tea"]
        assert ada.add("Likes cake").version == 1


@pytest.mark.req("L14")
def test_a_damaged_key_is_refused_and_the_others_work(url: str, damage: Callable[[str, str], None]) -> None:
    with wellkept.open(url, embedder=None) as memories:
        memories.view(user="ada").add("Likes tea")
        bad, good = (memories.keys.create(name, owners=[ADA]) for name in ("first key", "other key"))
    damage("api_key", "first key")
    with wellkept.open(url, embedder=None) as memories:
        with pytest.raises(StoreCorrupt):
            memories.keys.grant_of(bad.token)
        ada = memories.view(user="ada", grant=memories.keys.grant_of(good.token))
        assert [one.content for one in ada.list()] == ["Likes tea"]
        assert [one.id for one in memories.keys.list()] == [good.key.id]
        assert bad.key.id in told(memories)


@pytest.mark.req("L14", "J2")
def test_settings_that_announce_something_to_do_are_looked_into(url: str, damage: Callable[[str, str], None]) -> None:
    with wellkept.open(url, embedder=None) as memories:
        memories.upkeep.set_retention(RetentionPolicy(long_term_age=timedelta(days=9), automatic=True))
        memories.view(user="ada").add("Likes tea")
    damage("upkeep", "yes")
    with wellkept.open(url, embedder=None) as memories:
        assert "'upkeep'" in told(memories)
        assert memories.upkeep.run_due() is None  # it was looked whether anything is due
        assert memories.upkeep.next_due() is not None
        assert [one.memory.content for one in memories.view(user="ada").search("tea")] == ["Likes tea"]
        memories.upkeep.set_retention(RetentionPolicy(long_term_age=timedelta(days=9), automatic=False))
        assert told(memories) == ""


@pytest.mark.req("L14", "L10")
def test_which_keyring_a_database_needs_is_known_by_its_checksum(url: str, damage: Callable[[str, str], None]) -> None:
    keyring = RamKeyring()
    with wellkept.open(url, embedder=None, keyring=keyring) as memories:
        memories.view(user="ada").add("A secret", sensitive=True)
        memories.view(user="ada").add("Likes tea")
    damage("keyring", keyring.id)
    with wellkept.open(url, embedder=None, keyring=keyring) as memories:
        assert {one.content for one in memories.view(user="ada").list()} == {"A secret", "Likes tea"}
        assert "'keyring'" in told(memories)
    with pytest.raises(StoreCorrupt, match="keyring"):
        wellkept.open(url, embedder=None, keyring=RamKeyring())
    with wellkept.open(url, embedder=None) as memories:
        with pytest.raises(KeyUnavailable):
            memories.view(user="ada").list()
        with pytest.raises(KeyUnavailable):
            memories.view(user="ada").add("Another secret", sensitive=True)
    with wellkept.open(url, embedder=None, keyring=keyring) as memories:
        memories.view(user="ada").add("Another secret", sensitive=True)
        assert told(memories) == "", "what encrypts says again by which keyring"


# -- plain files ----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a session that has preferences."""
    root = tmp_path / "memory"
    with wellkept.open(f"jsonl:{root}", embedder=None) as memories:
        ada = memories.view(user="ada")
        ada.add("Likes tea")
        for day in ("monday", "tuesday"):
            ada.sessions.create(day, preferences={"language": "de"}).view.add(f"Talked on {day}")
    return root


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


@pytest.mark.req("J2", "J4")
def test_preferences_and_the_configuration_may_be_edited_by_hand(folder: Path) -> None:
    metadata = "sessions/monday@ada/metadata.json"
    edit(folder / metadata, '"language": "de"', '"language": "it"')
    edit(folder / metadata, '"custom": {}', '"custom": {"tone": "warm"}')
    edit(folder / "config.json", '"compaction_threshold": 0.9', '"compaction_threshold": 0.5')
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        diagnosis = memories.doctor()
        assert diagnosis.findings == ()
        assert diagnosis.facts["edited_by_hand"] == f"config.json, {metadata} (preferences)"
        session = memories.view(user="ada").sessions.load("monday")
        assert (session.preferences.language, session.preferences.get("tone")) == ("it", "warm")
        assert session.config.compaction_threshold == 0.5
        session.preferences.set("tone", "dry")
        assert memories.doctor().facts["edited_by_hand"] == "config.json", "what is written anew is the store's again"


@pytest.mark.req("J2", "J4", "H10")
@pytest.mark.parametrize("edited", ['"language": 7', '"language": "two\\nlines"', '"language": ["de"]'])
def test_an_edit_that_is_no_preference_is_named_and_stops_nothing_else(folder: Path, edited: str) -> None:
    edit(folder / "sessions/monday@ada/metadata.json", '"language": "de"', edited)
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        with pytest.raises(StoreCorrupt, match="'monday'"):
            sessions.load("monday")
        assert [one.id for one in sessions.list()] == ["tuesday"]
        sessions.load("tuesday").view.add("Talked again")
        [finding] = memories.doctor().findings
        assert (finding.check, "'monday'" in finding.message) == ("sessions", True)
        assert memories.view(user="ada").list().total == 1


@pytest.mark.req("J4", "L14")
@pytest.mark.parametrize(("old", "new"), [('"user_id": "ada"', '"user_id": "bob"'), ('"version": 1,', '"version": 7,')])
def test_other_edits_of_a_description_are_damage(folder: Path, old: str, new: str) -> None:
    file = folder / "sessions/monday@ada/metadata.json"
    file.write_text(file.read_text().replace(old, new))
    with wellkept.open(f"jsonl:{folder}", embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        with pytest.raises(StoreCorrupt, match="'monday'"):
            sessions.load("monday")
        assert "metadata.json" in told(memories)
        assert memories.doctor(repair=True).healthy
        assert file.with_name("metadata.json.damaged").exists()
        sessions.delete("monday", permanent=True)
        assert not file.with_name("metadata.json.damaged").exists()


@pytest.mark.req("J4", "L14")
@pytest.mark.parametrize("flip", [0x01, 0x15])
def test_one_wrong_byte_of_the_settings_is_told_and_mended_wherever_it_is(folder: Path, flip: int) -> None:
    file = folder / "settings.json"
    sound = file.read_bytes()
    for at in range(len(sound) - 1):
        file.write_bytes(sound[:at] + bytes([sound[at] ^ flip]) + sound[at + 1 :])
        with closing(JsonlStore(folder)) as store:
            assert [one.check for one in store.check().findings] == ["settings"], at
            assert store.check(repair=True).healthy, at
            assert store.check().findings == (), at
        assert file.read_bytes() == sound, at


@pytest.mark.req("J4", "J11")
@pytest.mark.parametrize(
    "name", ["records/leases.json", "derived/users/ada/numbers.json", "derived/users/ada/index.json"]
)
def test_other_small_files_have_a_checksum(folder: Path, name: str) -> None:
    with closing(JsonlStore(folder)) as store:
        assert store.records.lease("upkeep", "here", 1)
        file = folder / name
        file.write_text(re.sub(r"\d", lambda digit: str(9 - int(digit[0])), file.read_text(), count=1))
        [finding] = store.check().findings
        assert name in finding.message
        assert store.check(repair=True).healthy
        assert store.check().findings == ()
