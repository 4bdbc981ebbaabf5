"""Values to bytes and back."""

import base64
import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Filter, Layer, Memory, codec
from recollect.errors import InvalidInput, StoreCorrupt
from recollect.testing import builders, strategies
from recollect.testing.builders import START
from recollect.types import Owner
from tests.unit.test_validation import JSON, refused

LINES = strategies.maybe(strategies.texts(min_size=1))
OTHERS = st.fixed_dictionaries(
    dict.fromkeys(("title", "description", "language", "author", "role", "type_name", "key"), LINES)
    | {name: strategies.maybe(st.floats(0, 1)) for name in ("confidence", "relevance", "decay_factor")}
    | {"expires_at": strategies.maybe(strategies.moments()), "occurred_at": strategies.moments()}
    | {"metadata": st.dictionaries(strategies.texts(), JSON, max_size=3)}
    | {"owner": strategies.owners(), "version": st.integers(1, 2**40), "access_count": st.integers(0, 2**40)}
    | {"last_accessed_at": strategies.maybe(strategies.moments()), "updated_at": strategies.moments()}
    | {"vector": st.none() | st.just(builders.vector(1, 2))}
)


def kept_beside(memory: Memory) -> dict[str, Any]:
    """What a store keeps in columns of its own."""
    names = (
        "id",
        "content",
        "owner",
        "version",
        "created_at",
        "updated_at",
        "access_count",
        "last_accessed_at",
        "vector",
    )
    return {name: getattr(memory, name) for name in names}


@pytest.mark.req("H2", "W4")
@given(strategies.drafts(), OTHERS)
def test_every_field_of_a_memory_comes_back(draft: dict[str, Any], others: dict[str, Any]) -> None:
    owner = others.pop("owner")
    memory = replace(builders.memory(whose=owner, **draft), **others)
    body = codec.encode_body(memory)
    again = codec.decode_memory(body, **kept_beside(memory))
    assert again == memory
    assert repr(again.metadata) == repr(memory.metadata)
    assert codec.decode_memory(body.decode(), **kept_beside(memory)) == again
    assert codec.encode_body(again) == codec.encode_body(codec.decode_memory(body, **kept_beside(again)))


def test_a_body_is_json_with_what_differs_from_the_defaults() -> None:
    body = json.loads(codec.encode_body(builders.memory("tea", tags=("ui",), title="T")))
    assert {name: value for name, value in body.items() if name != "importance"} == {"tags": ["ui"], "title": "T"}
    assert body.get("importance", 0.5) == 0.5


def test_a_body_of_a_later_release_is_read() -> None:
    memory = builders.memory()
    again = codec.decode_memory(b'{"tags":["a"],"mood":"good"}', **kept_beside(memory))
    assert again == replace(memory, tags=("a",))


@pytest.mark.parametrize(
    "bad", [b"", b"{", b"[]", b'{"importance":"high"}', b'{"type":"moon"}', b"\xff", b'{"tags":[5]}']
)
def test_a_damaged_body_is_reported_with_its_memory(bad: bytes) -> None:
    memory = builders.memory("canary", version=7)
    with pytest.raises(StoreCorrupt) as caught:
        codec.decode_memory(bad, **kept_beside(memory))
    assert caught.value.details == {"memory_id": memory.id, "version": 7}
    assert "canary" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.req("H6")
@given(strategies.owners(), strategies.owners())
def test_owners_are_equal_if_their_texts_are(left: Owner, right: Owner) -> None:
    assert codec.decode_owner(codec.encode_owner(left)) == left
    assert (codec.encode_owner(left) == codec.encode_owner(right)) == (left == right)


@pytest.mark.req("H6")
def test_ids_cannot_pose_as_two_ids() -> None:
    texts = {
        codec.encode_owner(Owner(Layer.SESSION, ids))
        for ids in [("a", "b"), ("a,b",), ('a","b',), ("a", "b", ""), ("ab",), ("a\\", "b"), ("é",), ("e\u0301",)]
    }
    assert len(texts) == 8


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_are_exact_to_the_microsecond(moment: datetime) -> None:
    micros = codec.to_micros(moment)
    assert codec.from_micros(micros) == moment
    assert codec.to_micros(codec.from_micros(micros + 1) if moment.year < 9999 else moment) >= micros


def test_times_by_hand() -> None:
    assert codec.to_micros(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1
    assert codec.to_micros(START) == int(START.timestamp()) * 1_000_000
    assert codec.from_micros(-1).tzinfo is UTC


@given(
    st.tuples(
        st.text(st.characters(codec="utf-8")),
        st.floats(-1e9, 1e9),
        st.integers(0, 2**62),
        st.none() | st.integers(0, 9),
        st.none() | st.integers(-(2**62), 2**62),
    )
)
def test_cursors_come_back_and_fit_into_urls(position: codec.Cursor) -> None:
    text = codec.encode_cursor(*position)
    assert codec.decode_cursor(text) == position
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def written(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


NO_POSITIONS: list[Any] = [
    *(None, [], {}, 5, ["a"], ["a", 0, 0], ["a", 0, 0, 0, 0, 0], [5, 0, 0, None, None], [[[[[[]]]]]]),
    *(["a", "0", 0, None, None], ["a", 0, 1.5, None, None], ["a", 0, 0, "x", None], ["a", 0, None, None, None]),
    *(["a", 0, 0, 0], ["a", 0, 0, None, "x"], ["a", 0, 0, None, 1.5]),
]
HOSTILE: list[Any] = [
    *(None, 5, b"text", ["x"]),
    *("", "x", "A", "====", "not a cursor", "é" * 8, "\x00", "\ud800", "A" * 100_000, "💥", "../..", "' OR 1=1 --"),
    *(written(value) for value in NO_POSITIONS),
    base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    base64.urlsafe_b64encode(b'["a",NaN,0,null,null]').decode(),
    base64.urlsafe_b64encode(b"\xff\xfe").decode(),
]


@pytest.mark.req("H3")
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: ascii(text)[:16])
def test_hostile_cursors_are_refused(hostile: str) -> None:
    refused(codec.decode_cursor, hostile, field="cursor")


@pytest.mark.req("H3")
@pytest.mark.parametrize("noise", ["!", " ", "\n", "é", ".", "\x00", "!!!!", "\n\n\n\n"])
def test_a_cursor_must_be_unchanged(noise: str) -> None:
    cursor = codec.encode_cursor("fingerprint", 0.5, 7, None)
    for place in (0, 3, len(cursor) // 2, len(cursor)):
        refused(codec.decode_cursor, cursor[:place] + noise + cursor[place:], field="cursor")


@given(st.text())
def test_any_text_is_a_cursor_or_is_refused(text: str) -> None:
    try:
        found = codec.decode_cursor(text)
    except InvalidInput:
        return
    assert isinstance(found, tuple)


@given(st.text(st.characters(codec="utf-8"), max_size=9), st.text(st.characters(codec="utf-8"), max_size=9))
def test_checksums_tell_texts_apart(left: str, right: str) -> None:
    assert len(codec.checksum(left)) == 16
    assert (codec.checksum(left) == codec.checksum(right)) == (left == right)


def test_checksums_stay_the_same_in_every_release() -> None:
    assert codec.checksum("tea").hex() == hashlib.blake2b(b"tea", digest_size=16).hexdigest()


@given(JSON)
def test_json_comes_back(value: Any) -> None:
    encoded = codec.encode_json(value)
    assert repr(codec.decode_json(encoded)) == repr(value)
    assert json.loads(encoded) == value


def test_filters_are_made_from_mappings() -> None:
    assert codec.to_filter({"types": ["fact"], "max_depth": 2}) == Filter(types=["fact"], max_depth=2)
    assert codec.to_filter({}) == Filter()


@pytest.mark.parametrize(
    ("fields", "named"), [({"colour": 1}, "colour"), ({1: 2}, "1"), ({1: 2, "a": 3, None: 4}, "1")]
)
def test_an_unknown_field_of_a_filter_is_named(fields: Any, named: str) -> None:
    error = refused(codec.to_filter, fields, field=f"filter.{named}")
    assert "min_importance" in error.hint
