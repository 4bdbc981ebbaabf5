"""What callers may write, field by field."""

import array
import enum
import json
import math
import struct
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.bad_values import JSON, nested
from wellkept import Identity, MemoryType
from wellkept import validation as v
from wellkept.errors import ContentTooLong, InvalidInput
from wellkept.testing.cases import Cases
from wellkept.types import KnowledgePointer, PointerType, Source, SourceType, Vector

ANYTHING_BUT_TEXT = st.none() | st.integers() | st.floats() | st.binary() | st.lists(st.text()) | st.booleans()


def refused(function: Callable[..., Any], *arguments: object, field: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        function(*arguments)
    assert caught.value.details["field"] == field
    assert caught.value.hint
    return caught.value


@pytest.mark.req("L1")
@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1))
def test_content_is_any_text_that_says_something(text: str) -> None:
    if text.strip():
        assert v.content(text) is text
    else:
        refused(v.content, text, field="content")


@pytest.mark.req("L1")
def test_content_that_is_none() -> None:
    with Cases() as cases:
        for bad in ("", " ", "\n\t\u2003", "a\x00b", "\ud800", "a\udfffb", b"bytes", None, 7, ["x"]):
            with cases.case(bad):
                refused(v.content, bad, field="content")


@pytest.mark.req("L1")
@pytest.mark.parametrize(("letter", "size"), [("a", 1), ("é", 2), ("語", 3), ("😀", 4)])
def test_content_is_measured_in_bytes(letter: str, size: int) -> None:
    limit = v.CONTENT_BYTES // size
    assert v.content(letter * limit)
    error = refused(v.content, letter * (limit + 1), field="content")
    assert isinstance(error, ContentTooLong)
    assert error.details["bytes"] == (limit + 1) * size > error.details["limit"] == 10 * 1024 * 1024


@given(st.text(st.characters(), max_size=6))
def test_a_line_has_no_control_characters(text: str) -> None:
    clean = all(unicodedata.category(letter) not in {"Cc", "Cs", "Zl", "Zp"} for letter in text)
    if text and clean:
        assert v.line("title", text) == text
    else:
        refused(v.line, "title", text, field="title")


def test_a_line_has_a_length() -> None:
    assert v.line("title", "é" * v.LINE_CHARACTERS)
    refused(v.line, "title", "é" * (v.LINE_CHARACTERS + 1), field="title")
    assert v.line("user", "x" * 5, 5)
    refused(v.line, "user", "x" * 6, 5, field="user")


@given(ANYTHING_BUT_TEXT)
def test_a_line_is_text(value: object) -> None:
    refused(v.line, "title", value, field="title")
    if value is None:
        assert v.optional_line("title", value) is None
    else:
        refused(v.optional_line, "title", value, field="title")
    refused(v.text_id, value, field="id")


@given(st.text(st.characters(codec="utf-8")))
def test_an_id_is_any_text_that_can_be_written(text: str) -> None:
    assert v.text_id(text) == text
    refused(v.text_id, text + "\udc80", field="id")


def test_a_description_may_have_lines() -> None:
    assert v.description("one\ntwo\r\n\tthree") == "one\ntwo\r\n\tthree"
    assert v.description(None) is None
    assert v.description("") == ""
    assert v.description("x" * v.DESCRIPTION_CHARACTERS)
    for bad in ("x" * (v.DESCRIPTION_CHARACTERS + 1), "a\x00", "\ud800", 5, b"x"):
        refused(v.description, bad, field="description")


@given(st.integers(-3, 3) | st.floats() | st.sampled_from([0.0, 1.0, -0.0, 5e-324, 1 + 2**-52, math.nan, math.inf]))
def test_a_unit_is_from_zero_to_one(value: float) -> None:
    if value in (0, 1) or 0 < value < 1:
        found = v.unit("importance", value)
        assert found == value
        assert type(found) is float
    else:
        refused(v.unit, "importance", value, field="importance")


def test_a_unit_is_a_number() -> None:
    with Cases() as cases:
        for bad in (True, False, None, "0.5", [0.5], 0.5j):
            with cases.case(bad):
                refused(v.unit, "importance", bad, field="importance")


@given(st.datetimes(timezones=st.timezones() | st.sampled_from([timezone(timedelta(hours=14)), UTC])))
def test_a_moment_is_kept_in_utc(moment: datetime) -> None:
    try:
        expected = moment.astimezone(UTC)  # a local time that a clock change leaves out equals nothing else
    except OverflowError:
        refused(v.moment, "occurred_at", moment, field="occurred_at")
    else:
        found = v.moment("occurred_at", moment)
        assert found == expected
        assert found.utcoffset() == timedelta()


@given(st.datetimes() | st.dates() | st.text() | st.integers())
def test_a_moment_has_a_time_zone(value: object) -> None:
    refused(v.moment, "occurred_at", value, field="occurred_at")


@pytest.mark.parametrize("kind", [MemoryType, SourceType, PointerType])
def test_a_choice_is_one_of_an_enumeration(kind: type[enum.Enum]) -> None:
    for member in kind:
        assert v.choice("type", kind, member) is v.choice("type", kind, member.value) is member
    wrong: list[object] = ["", "FACT", "nothing", None, 5, [], {}, 10**5000, b"fact"]
    for bad in wrong:
        error = refused(v.choice, "type", kind, bad, field="type")
        assert all(member.value in error.hint for member in kind)


@given(st.integers(), st.integers(-5, 5), st.integers(-5, 5))
def test_an_integer_is_within_bounds(value: int, low: int, high: int) -> None:
    if value in range(low, high + 1):
        assert v.integer("limit", value, low, high) == value
    else:
        refused(v.integer, "limit", value, low, high, field="limit")


def test_an_integer_is_no_other_number() -> None:
    with Cases() as cases:
        for bad in (True, 1.0, "1", None, [1]):
            with cases.case(bad):
                refused(v.integer, "limit", bad, 0, 5, field="limit")


NO_FLAGS: tuple[object, ...] = ("no", "", 0, 1, None, [])


def test_a_flag_is_not_guessed() -> None:
    with Cases() as cases:
        for bad in NO_FLAGS:
            with cases.case(bad):
                assert v.flag("permanent", True) is True
                assert v.flag("permanent", False) is False
                refused(v.flag, "permanent", bad, field="permanent")


@given(st.lists(st.sampled_from(["a", "b", "a.b", "ü"])))
def test_lines_are_kept_once_in_their_order(values: list[str]) -> None:
    expected = [value for place, value in enumerate(values) if value not in values[:place]]
    assert list(v.lines("tags", iter(values), 10)) == expected == list(v.tags(values)) == list(v.references(values))


NO_LISTS_OF_LINES: tuple[object, ...] = (
    "text",
    "",
    b"",
    0,
    5,
    False,
    [""],
    ["a\nb"],
    [None],
    [["a"]],
    ["x" * 257],
)


@pytest.mark.parametrize("function", [v.tags, v.references])
def test_lines_are_lists_of_lines(function: Callable[..., Any]) -> None:
    with Cases() as cases:
        for bad in NO_LISTS_OF_LINES:
            with cases.case(bad):
                if bad == b"":
                    assert function(bad) == ()  # an empty list of numbers: nothing is wrong with nothing
                    continue
                refused(function, bad, field=function.__name__)
                refused(function, bad, "filter.any_tags", field="filter.any_tags")


def test_lines_have_a_number() -> None:
    assert len(v.tags(str(n) for n in range(v.TAGS))) == v.TAGS
    refused(v.tags, [str(n) for n in range(v.TAGS + 1)], field="tags")
    assert len(v.references(str(n) for n in range(v.REFERENCES))) == v.REFERENCES
    refused(v.references, [str(n) for n in range(v.REFERENCES + 1)], field="references")


def test_several_are_iterable() -> None:
    with Cases() as cases:
        for bad in ("text", 5, None):
            with cases.case(bad):
                assert list(v.several("ids", ("a", 5))) == ["a", 5]
                refused(v.several, "ids", bad, field="ids")


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON, max_size=4))
def test_metadata_is_a_copy_of_any_json(value: dict[str, Any]) -> None:
    copy = v.metadata(value)
    assert copy == value
    assert repr(copy) == repr(value)  # True has not become 1
    assert not _shared(copy, value)


def _shared(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left is right or any(_shared(left[name], right[name]) for name in left)
    if isinstance(left, list):
        return left is right or any(map(_shared, left, right))
    return False


@pytest.mark.slow
def test_metadata_has_a_depth_and_a_size() -> None:
    assert v.metadata(nested(v.METADATA_DEPTH))
    for depth in (v.METADATA_DEPTH + 1, 100_000):
        refused(v.metadata, nested(depth), field="metadata")
    room = v.METADATA_BYTES - len('{"a":""}')
    assert v.metadata({"a": "x" * room})
    refused(v.metadata, {"a": "x" * (room + 1)}, field="metadata")
    units: list[list[Any]] = [[[]], [{"": [0]}]]
    for unit in units:
        dense: dict[str, Any] = {"a": unit * 3, "": unit}
        count = 3 + (v.METADATA_BYTES - len(packed(dense))) // len(packed(unit)[1:])
        dense["a"] = unit * count
        assert v.METADATA_BYTES - len(packed(unit)) < len(packed(dense)) <= v.METADATA_BYTES
        assert v.metadata(dense) == dense


def packed(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


@pytest.mark.slow
def test_metadata_that_holds_itself_many_times_is_refused_at_once() -> None:
    """Thirty lists, as JSON a billion."""
    value: list[Any] = []
    for _ in range(30):
        value = [value, value]
    refused(v.metadata, {"a": value}, field="metadata")
    endless: dict[str, Any] = {}
    endless["a"] = [endless, endless]
    refused(v.metadata, endless, field="metadata")


class Colour(str, enum.Enum):  # noqa: UP042  # the older form, whose str() is its name
    RED = "red"


def test_metadata_of_look_alikes_becomes_plain_json() -> None:
    found = v.metadata({"c": Colour.RED, "t": (1, 2), "i": enum.IntEnum("N", "ONE").ONE})  # type: ignore[attr-defined]
    assert found == {"c": "red", "t": [1, 2], "i": 1}
    assert [type(value) for value in found.values()] == [str, list, int]


NO_JSON: tuple[object, ...] = (
    *(math.nan, math.inf, -math.inf, 2**63, -(2**63) - 1, 10**5000, {1}, b"x", object(), 1j),
    *("\ud800", {"\ud800": 1}, {1: 2}, {None: 1}, [{"a": [math.nan]}], datetime(2026, 1, 1, tzinfo=UTC)),
)


def test_metadata_is_json() -> None:
    with Cases() as cases:
        for bad in NO_JSON:
            with cases.case(bad):
                refused(v.metadata, {"a": bad}, field="metadata")
                refused(v.metadata, {"a": bad}, "filter.metadata", field="filter.metadata")
                refused(v.json_value, "value", bad, field="value")


def test_metadata_is_a_mapping() -> None:
    with Cases() as cases:
        for bad in (None, [], "", "text", 5, [("a", 1)]):
            with cases.case(bad):
                refused(v.metadata, bad, field="metadata")


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=9).filter(any))
def test_vectors_are_kept_to_the_bit(numbers: list[float]) -> None:
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    for given_as in (
        numbers,
        tuple(numbers),
        iter(numbers),
        data,
        array.array("f", numbers),
        array.array("d", numbers),
        np.array(numbers, dtype=np.float32),
        np.array(numbers, dtype=np.float64),
        np.array(numbers, dtype=">f4"),
        np.array(numbers * 2, dtype=np.float32)[: len(numbers)],
    ):
        assert v.vector(given_as, "toy") == Vector("toy", data)
    assert v.vector(Vector.of("other", numbers), "toy") == Vector("other", data)


def test_half_precision_vectors_are_taken() -> None:
    assert v.vector(np.array([0.5, 2], dtype=np.float16), "toy").values == (0.5, 2.0)


NO_VECTORS: tuple[object, ...] = (
    *([], [0.0, -0.0], [math.nan], [1, math.inf], [math.inf, -math.inf], [1e39], "text", ["1"], [None], [[1.0]]),
    *(5, object(), b"123", b"", np.ones((2, 2), dtype=np.float32), np.float32(1), [1j], np.array(["a"])),
    *(Vector("toy", b"123"), Vector("toy", b""), Vector("toy", struct.pack("<f", math.nan))),
    [1.0] * (v.DIMENSIONS + 1),
)


def test_what_is_no_vector() -> None:
    with Cases() as cases:
        for bad in NO_VECTORS:
            with cases.case(bad):
                refused(v.vector, bad, "toy", field="vector")


NO_NAMES: tuple[Any, ...] = ("", "a\nb", 5, None)


def test_a_vector_names_its_embedder() -> None:
    with Cases() as cases:
        for name in NO_NAMES:
            with cases.case(name):
                refused(v.vector, Vector(name, struct.pack("<f", 1)), "toy", field="vector.embedder")


def test_sources_and_pointers_are_checked_part_by_part() -> None:
    moment = datetime(2026, 1, 1, 3, tzinfo=timezone(timedelta(hours=3)))
    assert v.source(None) is None
    assert v.source(Source(type="manual")) == Source(type=SourceType.MANUAL)  # type: ignore[arg-type]  # as edges do
    pointer = KnowledgePointer(source_type=PointerType.ADR, source_id="a", content_hash="h", synced_at=moment)
    assert v.pointer(None) is None
    assert v.pointer(pointer) == pointer
    for value in ("manual", {"type": "manual"}, 5):
        refused(v.source, value, field="source")
        refused(v.pointer, value, field="pointer")
    refused(v.source, Source(type="moon"), field="source.type")  # type: ignore[arg-type]  # the point of the test
    refused(v.source, Source(type=SourceType.MANUAL, reference="a\nb"), field="source.reference")
    for name, bad in (("source_type", "moon"), ("source_id", ""), ("content_hash", 5), ("synced_at", "now")):
        fields: dict[str, Any] = {"source_type": "adr", "source_id": "a", "content_hash": "h", "synced_at": moment}
        fields[name] = bad
        refused(v.pointer, KnowledgePointer(**fields), field=f"pointer.{name}")


@pytest.mark.req("H1")
def test_ids_of_identities_are_lines() -> None:
    with Cases() as cases:
        for name in ("agent", "user", "session", "project", "team", "org", "company"):
            with cases.case(name):
                good = Identity(**{name: "x" * v.ID_CHARACTERS})
                assert v.identity(good) == good
                for bad in ("", "a\nb", "a\x00", "\x7f", "\u2028", "\ud800", "x" * (v.ID_CHARACTERS + 1), 5, b"a"):
                    refused(v.identity, Identity(**{name: bad}), field=name)  # type: ignore[arg-type]  # the point of the test
