"""What is sensitive in working memory and in a context is unreadable in snapshots, and its key brings it back."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import wellkept
from tests.support.encrypted_canaries import forms, marker
from wellkept.errors import InvalidInput, KeyUnavailable, Tampered, WellkeptError
from wellkept.events import Event
from wellkept.keyrings.ram import RamKeyring
from wellkept.memories import AgentMemory, AgentSnapshot
from wellkept.types import Layer, Owner
from wellkept.window import ContextWindow, WindowSnapshot
from wellkept.working import WorkingMemory, WorkingSnapshot

BOT = Owner(Layer.AGENT, ("ada", "bot"))
MARK = "\x1fencrypted:"
CONTENT_BYTES = 10 * 1024 * 1024
"""The longest content that a memory or an item can have."""


@pytest.fixture
def keyring() -> RamKeyring:
    return RamKeyring()


@pytest.fixture
def me(keyring: RamKeyring) -> Iterator[AgentMemory]:
    with opened(keyring) as memories:
        yield memories.agent("bot", user="ada")


def opened(keyring: RamKeyring | None, **options: Any) -> wellkept.Memories:
    return wellkept.open("ram:", embedder=None, keyring=keyring, **options)


def fill(me: AgentMemory, word: str, *, sensitive: bool | None = True) -> None:
    """A word in whatever an entry and an item can hold, on every level, beside something plain."""
    more: dict[str, Any] = {"tags": [f"{word}.deep"], "metadata": {word: word}, "sensitive": sensitive}
    me.working.set("step", 3)
    me.working.set(f"the {word}", {"value": [word]}, **more)
    scope = me.working.create_scope("plan" if sensitive else f"{word} plan")
    scope.set(word, word, **more)
    assert scope.create_scope("inner").get_or_set("own", lambda: word, sensitive=sensitive) == word
    me.context.add("user", "Good morning")
    me.context.add("tool", f"It is {word}", sensitive=sensitive, source=word, priority=0.9)
    me.context.pin(me.context.items[-1].id)


def texts(value: object) -> Iterator[bytes]:
    """Every text that can be reached from a value."""
    if isinstance(value, str | bytes):
        yield value.encode() if isinstance(value, str) else value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from texts(name)
            yield from texts(one)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from texts(one)
    elif is_dataclass(value):
        for field in fields(value):
            yield from texts(getattr(value, field.name))


def tells(word: str, *values: object) -> list[str]:
    return [name for value in values for name, form in forms(word).items() for text in texts(value) if form in text]


def contents(me: AgentMemory) -> tuple[object, ...]:
    """All that an agent holds, as callers see it."""
    levels = [dict(me.working.all()), *(scope.local_entries() for scope in me.working.active_scopes())]
    names = [(scope.id, scope.name) for scope in me.working.active_scopes()]
    return levels, names, me.context.items


@pytest.mark.req("P9", "L10")
def test_nothing_sensitive_can_be_read_in_a_snapshot_and_all_of_it_comes_back(me: AgentMemory) -> None:
    word = marker()
    fill(me, word)
    before = contents(me)
    for taken in (me.snapshot(), me.working.snapshot(), me.context.snapshot()):
        assert tells(word, taken, repr(taken)) == []
    snapshot = me.snapshot()
    text = snapshot.to_json()
    assert tells(word, text, json.loads(text), snapshot.context.plain()) == []
    assert (snapshot.format, snapshot.working.version, snapshot.context.format) == (2, 2, 2)
    assert snapshot.working.entries[0].content == "3"
    assert snapshot.context.items[0].content == "Good morning"
    me.clear()
    me.restore(AgentSnapshot.from_json(text))
    assert contents(me) == before
    me.context.restore(json.loads(json.dumps(snapshot.context.plain())))
    assert contents(me) == before
    assert me.snapshot().to_json() != text  # every encryption has a nonce of its own


@pytest.mark.req("P9")
def test_everything_is_encrypted_where_that_is_asked_for(keyring: RamKeyring) -> None:
    word = marker()
    with opened(keyring, encrypt="all") as memories:
        me = memories.agent("bot", user="ada")
        fill(me, word, sensitive=False)
        before, snapshot = contents(me), me.snapshot()
        for one in (word, "Good morning"):
            assert tells(one, snapshot, snapshot.to_json()) == []
        assert all(entry.key == entry.id for entry in snapshot.working.entries)
        assert all(scope.name.startswith(MARK) for scope in snapshot.working.scopes)
        me.clear()
        me.restore(snapshot)
        assert contents(me) == before


@pytest.mark.req("P9")
def test_a_snapshot_without_anything_sensitive_is_as_every_release_reads_it(me: AgentMemory) -> None:
    me.working.set("step", 3)
    me.context.add("user", f"{MARK}k1:AAAA is how it begins")
    snapshot = me.snapshot()
    assert (snapshot.format, snapshot.working.version, snapshot.context.format) == (1, 1, 1)
    me.restore(snapshot)
    me.context.add("user", "My secret", sensitive=True)
    before = me.context.items
    me.restore(me.snapshot())
    assert me.context.items == before  # also the text that looks like an encrypted one


@pytest.mark.req("L10", "P9")
def test_what_is_recognised_is_encrypted_unless_the_caller_says_otherwise(keyring: RamKeyring) -> None:
    mail = "bob@example.org"
    with opened(keyring) as memories:
        me = memories.agent("bot", user="ada")
        me.working.set("who", {"mail": [mail]})
        me.context.add("user", f"Write to\n{mail}")
        assert tells(mail, me.snapshot()) == []
        me.restore(me.snapshot())
        assert me.working.get("who") == {"mail": [mail]}
        entry = me.working.entry("who")
        assert entry is not None
        assert entry.sensitive is None
        me.clear()
        me.working.set("who", mail, sensitive=False)
        assert tells(mail, me.snapshot().working)
    kinds = ["secret", "card", "iban", "national_id", "phone", "health"]  # all but email
    for keys, settings in ((None, {}), (RamKeyring(), {"encryption": {"recognize": kinds}})):
        with opened(keys, settings=settings) as memories:
            me = memories.agent("bot", user="ada")
            me.working.set("who", mail)
            assert me.snapshot().format == 1


@pytest.mark.req("L10")
def test_what_is_marked_is_refused_without_a_key_and_changes_nothing() -> None:
    with opened(None) as memories:
        me = memories.agent("bot", user="ada")
        scope = me.working.create_scope("plan")

        def never() -> str:
            raise AssertionError("the factory ran")

        with pytest.raises(KeyUnavailable, match="wellkept keys init"):
            me.working.set("pin", "4711", sensitive=True)
        with pytest.raises(KeyUnavailable, match="wellkept keys init"):
            scope.set("pin", "4711", metadata={"sensitive": True})
        with pytest.raises(KeyUnavailable, match="wellkept keys init"):
            scope.get_or_set("pin", never, sensitive=True)
        with pytest.raises(KeyUnavailable, match="wellkept keys init"):
            me.context.add("user", "4711", sensitive=True)
        assert me.stats().working_entries == me.stats().context_items == 0
    with opened(None, settings={"encryption": {"sensitive": "plain"}}) as memories:
        me = memories.agent("bot", user="ada")
        me.working.set("pin", "4711", sensitive=True)
        saved = me.snapshot()
        assert tells("4711", saved)
    with opened(None) as memories:  # the mark is kept, so that it cannot be written in the clear again
        me = memories.agent("bot", user="ada")
        me.restore(saved)
        with pytest.raises(KeyUnavailable):
            me.snapshot()


@pytest.mark.req("L10")
def test_parts_of_no_database_have_no_keys() -> None:
    now = datetime(2026, 1, 7, tzinfo=UTC)
    working, window = WorkingMemory("bot", clock=lambda: now), ContextWindow(100, clock=lambda: now)
    with pytest.raises(KeyUnavailable, match="wellkept keys init"):
        working.set("pin", "4711", sensitive=True)
    with pytest.raises(KeyUnavailable, match="wellkept keys init"):
        window.add("user", "4711", sensitive=True)


@pytest.mark.req("L10")
@pytest.mark.parametrize("wrong", [1, "yes", []])
def test_a_mark_is_true_or_false(me: AgentMemory, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="sensitive"):
        me.working.set("a", 1, sensitive=wrong)
    with pytest.raises(InvalidInput, match="sensitive"):
        me.working.get_or_set("a", lambda: 1, sensitive=wrong)
    with pytest.raises(InvalidInput, match="sensitive"):
        me.context.add("user", "a", sensitive=wrong)
    saved = me.snapshot()
    me.context.add("user", "a")
    items = tuple(replace(item, sensitive=wrong) for item in me.context.snapshot().items)
    with pytest.raises(InvalidInput, match="sensitive"):
        me.context.restore(replace(saved.context, items=items))


@pytest.mark.req("L10")
def test_a_mark_stays_until_the_caller_takes_it_away_or_the_entry_ends(me: AgentMemory) -> None:
    def marked(level: Any = me.working) -> bool | None:
        mark: bool | None = level.all()["pin"].sensitive
        return mark

    me.working.set("pin", "4711", sensitive=True)
    me.working.set("pin", "4712")
    assert marked() is True
    me.working.set("pin", "4713", tags=["door"])
    assert marked() is True
    scope = me.working.create_scope("plan")
    scope.set("pin", "4714", sensitive=True)
    assert scope.local_entries()["pin"].sensitive is True
    me.working.set("pin", "4715", sensitive=False)
    assert marked() is False
    scope.merge_to_parent()
    assert marked() is True
    me.working.remove("pin")
    me.working.set("pin", "4716")
    assert marked() is None
    item = me.context.add("user", "4711", sensitive=True)
    assert me.context.pin(item.id).sensitive is True


@pytest.mark.req("L10")
@pytest.mark.parametrize("strategy", ["oldest", "extractive"])
def test_an_item_that_leaves_the_context_is_a_sensitive_memory_and_its_summary_is_sensitive(
    me: AgentMemory, strategy: Any
) -> None:
    me.context.add("user", "The word is tea and the colour is green. " * 10, sensitive=True)
    me.context.add("user", "Good morning")
    done = me.context.compact(60, strategy=strategy)
    assert [memory.sensitive for memory in me.long_term.list()] == [True]
    summaries = [item.sensitive for item in done.items if item.id == done.receipt.summary_id]
    assert summaries == ([True] if strategy == "extractive" else [])


@pytest.mark.req("P9", "N7")
def test_with_a_lost_or_destroyed_key_nothing_is_restored_and_nothing_is_changed(
    me: AgentMemory, keyring: RamKeyring
) -> None:
    me.context.add("user", "My word", sensitive=True)
    in_context = me.snapshot()
    me.context.clear()
    me.working.set("word", "My word", sensitive=True)
    saved = me.snapshot()
    keyring.destroy(BOT)
    me.working.set("word", "another")
    me.context.add("user", "Good morning")
    before = contents(me)
    for one in (in_context, saved, AgentSnapshot.from_json(saved.to_json())):
        with pytest.raises(KeyUnavailable, match="destroyed"):
            me.restore(one)
        assert contents(me) == before
    for keys in (None, RamKeyring()):
        with opened(keys) as memories:
            other = memories.agent("bot", user="ada")
            other.working.set("mine", 1)
            with pytest.raises(KeyUnavailable):
                other.restore(saved)
            with pytest.raises(KeyUnavailable):
                other.working.restore(saved.working)
            assert other.working.keys() == ("mine",)


@pytest.mark.req("P9")
def test_former_keys_open_older_snapshots_until_they_are_retired(me: AgentMemory, keyring: RamKeyring) -> None:
    me.working.set("word", "My word", sensitive=True)
    saved = me.snapshot()
    keyring.renew(BOT)
    me.restore(saved)
    later = me.snapshot()
    keyring.retire(BOT)
    me.restore(later)
    with pytest.raises(KeyUnavailable):
        me.restore(saved)
    assert me.working.get("word") == "My word"


@pytest.mark.req("N7")
def test_erasing_a_person_destroys_the_key_of_an_agent_that_has_snapshots_alone(keyring: RamKeyring) -> None:
    with opened(keyring) as memories:
        me = memories.agent("bot", user="ada")
        me.working.set("word", "My word", sensitive=True)
        saved = me.snapshot()
        memories.privacy.erase(user="ada")
        with pytest.raises(KeyUnavailable):
            memories.agent("bot", user="ada").restore(saved)


def _flipped(text: str, at: int) -> str:
    return text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]


@pytest.mark.req("P9", "L10")
def test_a_flipped_bit_is_an_error_and_never_other_data(me: AgentMemory) -> None:
    me.working.set("word", "My word", sensitive=True)
    me.context.add("user", "My word", sensitive=True)
    saved, before = me.snapshot(), contents(me)
    (entry,), (item,) = saved.working.entries, saved.context.items
    start = entry.content.index(":", len(MARK)) + 1
    for at in range(len(MARK), len(entry.content.rstrip("=")) - 1):  # the last digit may have bits that say nothing
        wrong = replace(entry, content=_flipped(entry.content, at))
        with pytest.raises(Tampered if at >= start else WellkeptError):
            me.restore(replace(saved, working=replace(saved.working, entries=(wrong,))))
    for at in range(start, len(item.content.rstrip("=")) - 1, 7):
        changed = replace(item, content=_flipped(item.content, at))
        with pytest.raises(Tampered):
            me.restore(replace(saved, context=replace(saved.context, items=(changed,))))
    for cut in (MARK, entry.content[:start], entry.content[:-8]):
        with pytest.raises((Tampered, KeyUnavailable)):
            me.working.restore(replace(saved.working, entries=(replace(entry, content=cut),)))
    assert contents(me) == before


@pytest.mark.req("P9", "L10")
def test_what_is_moved_to_another_place_does_not_open(me: AgentMemory, keyring: RamKeyring) -> None:
    me.working.set("a", "My word", sensitive=True)
    me.working.set("b", "Her word", sensitive=True)
    scope = me.working.create_scope("plan")
    me.context.add("user", "My word", sensitive=True)
    me.context.add("user", "Her word", sensitive=True)
    saved, before = me.snapshot(), contents(me)
    one, two = saved.working.entries
    first, second = saved.context.items
    swapped = (replace(one, content=two.content), replace(two, content=one.content))
    into_scope = replace(saved.working.scopes[0], entries=(one,))
    moved: list[WorkingSnapshot | WindowSnapshot] = [
        replace(saved.working, entries=swapped),
        replace(saved.working, entries=(two,), scopes=(into_scope,)),
        replace(saved.working, entries=(replace(one, content=first.content),)),
        replace(saved.context, items=(replace(first, content=second.content), second)),
        replace(saved.context, items=(replace(first, content=one.content),)),
    ]
    for other in moved:
        with pytest.raises(Tampered):
            me.working.restore(other) if isinstance(other, WorkingSnapshot) else me.context.restore(other)
    assert contents(me) == before
    assert scope.id == into_scope.id
    with opened(keyring) as memories:  # the key of the other agent is another one
        keyring.create(Owner(Layer.AGENT, ("ada", "rob")))
        rob = memories.agent("rob", user="ada")
        with pytest.raises(KeyUnavailable):
            rob.working.restore(replace(saved.working, agent_id="rob"))


@pytest.mark.req("P9")
def test_an_encrypted_snapshot_that_calls_itself_plain_is_refused(me: AgentMemory) -> None:
    me.working.set("a", "My word", sensitive=True)
    saved = me.working.snapshot()
    with pytest.raises(InvalidInput):
        me.working.restore(replace(saved, version=1))
    with pytest.raises(InvalidInput):
        assert saved.entries[0].value
    assert me.working.get("a") == "My word"


@pytest.mark.req("L10")
def test_no_value_shows_in_representations_events_and_logs(
    keyring: RamKeyring, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    word, told = marker(), list[object]()
    with opened(keyring) as memories:
        memories.on(Event, told.append)
        memories.watch(told.append)
        me = memories.agent("bot", user="ada")
        me.working.set("own", word, sensitive=True, tags=[word], metadata={word: word}, ttl=timedelta(hours=1))
        me.context.add("user", word, sensitive=True)
        me.restore(me.snapshot())
        shown = [repr(one) for one in (me.working.entry("own"), me.working.all(), me.context.items, me.snapshot())]
        shown += [repr(me.working.search(word)), *map(repr, told), caplog.text]
    assert told
    assert tells(word, shown, told) == []


@pytest.mark.req("P9")
def test_texts_of_the_greatest_length_come_back(keyring: RamKeyring) -> None:
    with opened(keyring) as memories:
        me = memories.agent("bot", user="ada", context_tokens=CONTENT_BYTES)
        longest = me.working.limits.entry_bytes - 2
        me.working.set("a", "x" * longest, sensitive=True)
        me.context.add("user", "x" * CONTENT_BYTES, sensitive=True)
        saved = me.snapshot()
        me.clear()
        me.restore(AgentSnapshot.from_json(saved.to_json()))
        assert len(me.working.get("a")) == longest
        me.context.restore(saved.context.plain())
        assert len(me.context.items[0].content) == CONTENT_BYTES
