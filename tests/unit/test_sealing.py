"""Memories to facets and payload, and back."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.bad_values import JSON
from tests.support.samples import drafts, maybe, memory
from wellkept import Memory, View, codec, layers, statistics
from wellkept.engine.sealing import KNOWN, seal, unseal, version_of
from wellkept.errors import StoreCorrupt
from wellkept.lifecycle import duplicates
from wellkept.testing import strategies
from wellkept.testing.builders import START, vector
from wellkept.testing.cases import Cases
from wellkept.types import Operation, Position, Stamp, State, Stored, Tier, Write
from wellkept.types.stored import ALWAYS_THERE

LINES = maybe(strategies.texts(min_size=1))
OTHERS = st.fixed_dictionaries(
    dict.fromkeys(("title", "description", "language", "author", "role", "type_name", "session"), LINES)
    | {"key": LINES.filter(lambda key: not duplicates.is_mark(key))}  # a caller's has no control characters
    | {name: maybe(st.floats(0, 1)) for name in ("confidence", "relevance", "decay_factor")}
    | {"expires_at": maybe(strategies.moments()), "occurred_at": strategies.moments()}
    | {"metadata": st.dictionaries(strategies.texts(), JSON, max_size=3)}
    | {"owner": strategies.owners(), "version": st.integers(1, 2**40), "access_count": st.integers(0, 2**40)}
    | {"last_accessed_at": maybe(strategies.moments()), "updated_at": strategies.moments()}
    | {"vector": st.none() | st.just(vector(1, 2))}
    | {"tier": st.sampled_from(Tier), "tier_set": st.booleans()}
)


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    """Memories with any fields."""
    made = layers.with_tier(replace(memory(**draw(drafts())), **draw(OTHERS)))
    return replace(made, forgotten_at=made.updated_at) if made.state is State.FORGOTTEN else made


def stored(what: Memory, facets: Any, payload: bytes) -> Stored:
    """The version that a journal would keep of a sealed memory."""
    return Stored(
        owner=what.owner,
        id=what.id,
        version=what.version,
        seq=1,
        born=1,
        born_at=codec.to_micros(what.created_at),
        recorded_at=codec.to_micros(what.updated_at),
        operation=Operation.ADDED,
        stamp=Stamp("060a24181e4000000000-9d2e8b7a6c5d.000000"),
        replaced=None,
        reason=None,
        facets=facets,
        payload=payload,
        access_count=what.access_count,
        last_accessed_at=None if what.last_accessed_at is None else codec.to_micros(what.last_accessed_at),
        vector=what.vector,
    )


def sealed(what: Memory) -> Stored:
    """A memory sealed, and its facets written as JSON and read again, as every store does."""
    facets, payload = seal(what)
    return stored(what, codec.decode_json(codec.encode_json(facets)), payload)


@pytest.mark.req("H2", "W4")
@given(memories())
def test_every_field_of_a_memory_comes_back(what: Memory) -> None:
    again = unseal(sealed(what))
    assert again == what
    assert repr(again.metadata) == repr(dict(what.metadata)), "true is not 1, and 1 is not 1.0"
    assert seal(again) == seal(what)


@given(memories())
def test_facets_and_payload_are_plain_json(what: Memory) -> None:
    facets, payload = seal(what)
    assert json.loads(json.dumps(facets)) == facets
    assert set(facets) <= KNOWN
    assert {*ALWAYS_THERE, "text"} <= set(facets)
    rest = json.loads(payload) if payload else {}
    assert isinstance(rest, dict)
    assert not {"content", "text"} & set(rest)


def test_what_a_memory_does_not_have_takes_no_room() -> None:
    facets, payload = seal(memory("tea"))
    assert set(facets) == {*ALWAYS_THERE, "text"}
    assert payload == b""
    assert facets["bytes"] == len("tea") + len("{}")


def test_bytes_are_content_named_facets_and_payload() -> None:
    bare = seal(memory("tea"))[0]["bytes"]
    for more, grown in (
        ({"content": "Tee für 2"}, len("Tee für 2".encode()) - len("tea")),
        ({"tags": ("ui",)}, len('"tags":["ui"]')),
        ({"title": "T"}, len('"title":"T"')),
        ({"language": "en"}, len('{"language":"en"}')),
        ({"importance": 0.123456}, 0),
        ({"state": State.FORGOTTEN}, 0),
    ):
        what = memory(**({"content": "tea"} | more))
        assert sealed(what).facets["bytes"] - bare == grown, more
        assert statistics.footprint(sealed(replace(what, vector=vector(1, 2)))) - bare == grown + 8


NEWER: dict[str, Any] = {"season": "spring", "charm": 0.7, "weather": "m2", "mood": {"deep": [1, None]}}


@given(memories(), memories(), st.dictionaries(st.sampled_from(sorted(NEWER)), JSON, min_size=1))
def test_what_a_newer_release_wrote_survives_an_update(before: Memory, after: Memory, newer: dict[str, Any]) -> None:
    facets, payload = seal(before)
    rest = (codec.decode_json(payload) if payload else {}) | {"from_later": newer}
    known = stored(before, {**facets, **newer}, codec.encode_json(rest))
    assert unseal(known) == before, "what is not known is passed over"
    changed, kept = seal(after, known)
    assert {name: changed[name] for name in newer} == newer
    assert codec.decode_json(kept)["from_later"] == newer
    assert unseal(stored(after, changed, kept)) == after, "nothing that this release knows is left over from before"
    assert changed["bytes"] > seal(after)[0]["bytes"], "it takes room"


@pytest.mark.req("H2")
def test_what_a_newer_release_wrote_survives_the_verbs_of_a_view(view: View) -> None:
    added = view.add("Likes tea", language="en", title="Tea")
    engine = view._engine
    [found] = engine.journal.get({added.owner}, [added.id])
    rest = codec.decode_json(found.payload) | {"from_later": [1]}
    write = {"facets": {**found.facets, "charm": 0.7}, "payload": codec.encode_json(rest)}
    again = view.update(added.id, importance=0.9)
    [head] = engine.journal.get({added.owner}, [added.id])
    engine.journal.append([_next(engine, head, write)])
    view.update(again.id, title="Green tea")
    view.forget(added.id)
    view.restore(added.id)
    [last] = engine.journal.get({added.owner}, [added.id])
    assert last.facets["charm"] == 0.7
    assert codec.decode_json(last.payload) == {"language": "en", "from_later": [1]}
    read = view.get(added.id)
    assert read is not None
    assert (read.title, read.language, read.version) == ("Green tea", "en", 6)


def _next(engine: Any, head: Stored, write: dict[str, Any]) -> Any:
    """The version that a newer release would append."""
    return Write(
        owner=head.owner,
        id=head.id,
        version=head.version + 1,
        expected=head.version,
        operation=Operation.UPDATED,
        stamp=engine.stamps.stamp(head.recorded_at),
        recorded_at=head.recorded_at,
        replaced=head.stamp,
        keeps_vector=True,
        **write,
    )


CANARY = "canary in the text"
DAMAGED: list[tuple[dict[str, Any], bytes]] = [
    *(({}, payload) for payload in (b"{", b"[]", b"5", b"null", b'"text"', b"\xff", b"\x00", b"[" * 9_000)),
    *(({}, payload) for payload in (b'{"confidence":"high"}', b'{"pointer":5}', b'{"references":"m1"}')),
    *(({"type": value}, b"") for value in ("moon", 5, None, ["fact"])),
    *(({"state": value}, b"") for value in ("lost", 5, None)),
    *(({"tier": value}, b"") for value in ("quick", 5, None)),
    *(({"created_at": value}, b"") for value in (None, "now", 10**18, -(10**18), 2**70, ["x"])),
    *(({"expires_at": value}, b"") for value in ("now", 10**18)),
    *(({"importance": value}, b"") for value in ("high", None)),
    *(({"tags": value}, b"") for value in (5, [5], None)),
    *(({"text": value}, b"") for value in (None, 5)),
    *(({"fields": value}, b"") for value in (5, [1], "x")),
    *(({"source_type": value}, b"") for value in ("moon", 5)),
    *(({"title": value}, b"") for value in (5, ["x"])),
]


@pytest.mark.req("J11")
def test_damage_is_reported_with_its_memory_and_without_content() -> None:
    what = memory(CANARY, version=7, description=CANARY)
    with Cases() as cases:
        for facets, payload in DAMAGED:
            with cases.case(f"{facets} {payload[:40]!r}"):
                with pytest.raises(StoreCorrupt) as caught:
                    unseal(stored(what, {**seal(what)[0], **facets}, payload))
                assert caught.value.details == {"memory_id": what.id, "version": 7}
                assert "canary" not in str(caught.value)
                assert caught.value.hint


def test_a_facet_that_must_be_there_is_missed() -> None:
    what = memory(CANARY)
    with Cases() as cases:
        for name in ("text", "type", "tier", "state", "created_at", "occurred_at"):
            facets = {known: value for known, value in seal(what)[0].items() if known != name}
            with cases.case(name), pytest.raises(StoreCorrupt):
                unseal(stored(what, facets, b""))


def test_what_a_store_holds_is_given_as_a_copy() -> None:
    one = sealed(memory(metadata={"list": [1]}))
    unseal(one).metadata["list"].append(2)
    assert unseal(one).metadata == {"list": [1]}


def test_a_version_says_all_that_is_stored_of_it() -> None:
    what = memory(version=3, updated_at=START + timedelta(hours=1))
    one = sealed(what)._replace(reason="asked to", operation=Operation.UPDATED, replaced=Stamp("before"))
    version = version_of(one, Position("here"))
    assert version.memory == what
    assert (version.memory_id, version.owner, version.version) == (what.id, what.owner, 3)
    assert (version.operation, version.reason, version.position) == (Operation.UPDATED, "asked to", "here")
    assert (version.recorded_at, version.stamp, version.replaced) == (what.updated_at, one.stamp, "before")
    gone = version_of(one._replace(operation=Operation.ERASED, facets={}, payload=b""))
    assert (gone.memory, gone.operation) == (None, Operation.ERASED)
