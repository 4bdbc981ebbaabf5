"""Values to bytes and back."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.bad_values import ADA, HOSTILE, JSON
from tests.unit.test_validation import refused
from wellkept import Filter, Layer, codec
from wellkept.errors import InvalidInput
from wellkept.testing import strategies
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases
from wellkept.types import Owner


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
    st.builds(
        codec.Cursor,
        fingerprint=st.text(st.characters(codec="utf-8")),
        value=st.floats(-1e9, 1e9),
        born_at=st.integers(-(10**17), 10**17),
        owner=strategies.owners().map(codec.encode_owner),
        born=st.integers(0, 2**62),
        at=st.none() | st.text(st.characters(codec="utf-8")),
        judged_at=st.none() | st.integers(-(10**17), 10**17),
    )
)
def test_cursors_come_back_and_fit_into_urls(cursor: codec.Cursor) -> None:
    text = codec.encode_cursor(cursor)
    assert codec.decode_cursor(text) == cursor
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@pytest.mark.req("H3")
def test_hostile_cursors_are_refused() -> None:
    with Cases() as cases:
        for hostile in HOSTILE:
            with cases.case(hostile):
                refused(codec.decode_cursor, hostile, field="cursor")


@pytest.mark.req("H3")
def test_a_cursor_must_be_unchanged() -> None:
    cursor = codec.encode_cursor(codec.Cursor(fingerprint="fingerprint", value=0.5, born_at=7, owner=ADA, born=1))
    with Cases() as cases:
        for noise in ("!", " ", "\n", "é", ".", "\x00", "!!!!", "\n\n\n\n"):
            for place in (0, 3, len(cursor) // 2, len(cursor)):
                with cases.case(f"{noise!r} at {place}"):
                    refused(codec.decode_cursor, cursor[:place] + noise + cursor[place:], field="cursor")


@given(st.text())
def test_any_text_is_a_cursor_or_is_refused(text: str) -> None:
    try:
        found = codec.decode_cursor(text)
    except InvalidInput:
        return
    assert isinstance(found, codec.Cursor)


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
