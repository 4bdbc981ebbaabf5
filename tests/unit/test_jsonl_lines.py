"""Lines of JSON: what a version becomes, and what is refused."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept import codec
from wellkept.stores.jsonl import lines, order
from wellkept.stores.jsonl.lines import Batch, Flaw, Line
from wellkept.testing import strategies
from wellkept.testing.cases import Cases
from wellkept.types import Layer, Operation, Owner, Stamp, Stored, Vector

MONDAY = Owner(Layer.SESSION, ("ada", "monday"))
FACETS = {
    "state": "active",
    "type": "decision",
    "tier": "session",
    "importance": 0.9,
    "created_at": 1_767_268_800_000_000,
    "occurred_at": 1_767_268_800_000_000,
    "bytes": 20,
    "text": "Use tabs",
    "tags": ["style"],
    "role": "user",
    "fields": {"why": "history"},
}


def stored(**changes: Any) -> Stored:
    fields: dict[str, Any] = {
        "owner": MONDAY,
        "id": "m1",
        "version": 1,
        "seq": 0,
        "born": 0,
        "born_at": 0,
        "recorded_at": 1_767_268_800_000_000,
        "operation": Operation.ADDED,
        "stamp": Stamp("s1"),
        "replaced": None,
        "reason": None,
        "facets": FACETS,
        "payload": b'{"language":"en","references":["m0"]}',
        "write_id": "s1",
    }
    return Stored(**(fields | changes))


@pytest.mark.req("J1")
def test_a_line_has_the_fields_of_the_format() -> None:
    found = json.loads(lines.encode(Line(stored=stored())))
    assert {name: found[name] for name in ("id", "session_id", "timestamp", "type", "content", "importance")} == {
        "id": "m1",
        "session_id": "monday",
        "timestamp": "2026-01-01T12:00:00Z",
        "type": "decision",
        "content": {"role": "user", "message": "Use tabs", "metadata": {"why": "history"}},
        "importance": 0.9,
    }
    assert found["tags"] == ["style"]
    assert found["references"] == ["m0"]
    assert found["payload"] == {"language": "en"}
    assert found["schema_version"] == 1


@pytest.mark.req("J4")
def test_the_checksum_can_be_computed_by_others() -> None:
    found = json.loads(lines.encode(Line(stored=stored())))
    checksum = found.pop("checksum")
    canonical = json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert checksum == f"sha256:{hashlib.sha256(canonical).hexdigest()}"


def test_lines_reformatted_by_a_tool_are_the_same_lines() -> None:
    line = Line(stored=stored(), after=Stamp("s0"))
    found = json.loads(lines.encode(line))
    assert lines.decode(json.dumps(dict(reversed(found.items())), indent=1).encode()) == line


@pytest.mark.req("J1")
@given(facets=strategies.drafts(), payload=st.binary(max_size=40))
def test_every_version_comes_back(facets: dict[str, Any], payload: bytes) -> None:
    line = Line(
        stored=stored(facets=codec.decode_json(codec.encode_json(facets)), payload=payload, replaced=Stamp("s0")),
        after=Stamp("s0"),
        batch=Batch("s1", 1, 2),
        vector=Vector.of("given", [1.0, 2.0]),
    )
    data = lines.encode(line)
    assert data.count(b"\n") == 1
    assert lines.decode(data) == line


@given(value=st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists, max_leaves=5))
def test_unknown_facets_are_carried_along(value: Any) -> None:
    line = Line(stored=stored(facets=FACETS | {"of_a_later_release": value, "version": value}))
    assert lines.decode(lines.encode(line)) == line


def test_characters_that_some_tools_take_for_line_ends_are_escaped() -> None:
    line = Line(stored=stored(facets=FACETS | {"text": "one\u2028two\u2029three\x85four\nfive"}))
    data = lines.encode(line)
    assert b"\xe2\x80" not in data
    assert len(data.decode().splitlines()) == 1
    assert lines.decode(data) == line


@pytest.mark.req("J4")
@given(byte=st.integers(0, 2**16), other=st.integers(0, 255))
def test_no_byte_of_a_line_can_be_changed_unnoticed(byte: int, other: int) -> None:
    line = Line(stored=stored())
    data = lines.encode(line)[:-1]
    place = byte % len(data)
    changed = data[:place] + bytes([other]) + data[place + 1 :]
    found = lines.decode(changed)
    assert isinstance(found, Flaw) or found == line


HOSTILE = {
    "nesting": b"[" * 100_000,
    "nesting in an object": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "a number": b'{"version":' + b"9" * 400 + b"}",
    "no object": b"[1,2]",
    "zeros": b"\0" * 100,
    "no text": b"\xff\xfe",
    "empty": b"{}",
}


@pytest.mark.req("J12")
def test_a_hostile_line_is_one_flaw() -> None:
    with Cases() as cases:
        for name, line in HOSTILE.items():
            with cases.case(name):
                assert isinstance(lines.decode(line), Flaw)


NONSENSE: list[dict[str, Any]] = [
    {"version": 10**30},
    {"version": True},
    {"version": -1},
    {"importance": "much"},
    {"tags": [1]},
    {"type": "rumour"},
    {"state": "lost"},
    {"tags": "style"},
    {"timestamp": "yesterday"},
    {"timestamp": 10**17},
    {"content": {"message": 7}},
    {"bytes": -5},
    {"owner": ["planet", "ada"]},
    {"owner": []},
    {"batch": {"id": "b", "place": 0, "count": 2}},
    {"vector": {"embedder": "x", "data": "AAA="}},
    {"stamp": ""},
    {"payload": "%%%"},
    {"reason": 7},
]


@pytest.mark.req("J12")
def test_a_sealed_line_that_says_nonsense_is_one_flaw() -> None:
    with Cases() as cases:
        for change in NONSENSE:
            with cases.case(change):
                _sealed_is_one_flaw(change)


def _sealed_is_one_flaw(change: dict[str, Any]) -> None:
    found = json.loads(lines.encode(Line(stored=stored())))
    del found["checksum"]
    canonical = json.dumps(found | change, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    checksum = f"sha256:{hashlib.sha256(canonical).hexdigest()}"
    assert isinstance(lines.decode(json.dumps(found | change | {"checksum": checksum}).encode()), Flaw)


def chain(*stamps: str, after: str | None = None) -> list[Line]:
    found = []
    for stamp in stamps:
        found.append(Line(stored=stored(id=stamp, stamp=Stamp(stamp)), after=None if after is None else Stamp(after)))
        after = stamp
    return found


def test_the_order_of_writing_is_found_again_whatever_the_stamps_say() -> None:
    written = chain("s5", "s2", "s9", "s1")
    assert order.ordered(reversed(written)) == written


def test_what_was_made_side_by_side_is_ordered_by_stamps() -> None:
    common, left, right = chain("s1"), chain("s2", "s5", after="s1"), chain("s3", "s4", after="s1")
    assert [line.stored.stamp for line in order.ordered([*common, *right, *left])] == ["s1", "s2", "s3", "s4", "s5"]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)), max_size=8))
def test_every_line_has_one_place_however_the_links_are_forged(links: list[tuple[int, int, int]]) -> None:
    found = [
        Line(stored=stored(id=str(one), stamp=Stamp(f"s{one}"), replaced=Stamp(f"s{two}")), after=Stamp(f"s{three}"))
        for one, two, three in links
    ]
    numbers = order.numbered(order.ordered(found), order.Numbers({}))
    assert sorted(numbers.by_stamp) == sorted({line.stored.stamp for line in found})
    assert len(set(numbers.by_stamp.values())) == len(numbers.by_stamp)


def test_what_arrives_late_is_numbered_behind_and_the_newest_stays_on_top() -> None:
    first = stored(id="m", stamp=Stamp("s1"))
    late, top = (
        stored(id="m", stamp=Stamp("s2"), replaced=Stamp("s1")),
        stored(id="m", stamp=Stamp("s3"), replaced=Stamp("s1")),
    )
    seen = order.Numbers({Stamp("s1"): 1, Stamp("s3"): 2}, 2)
    natural = order.ordered([Line(stored=first), Line(stored=top), Line(stored=late)])
    assert order.numbered(natural, seen) == order.Numbers({Stamp("s1"): 1, Stamp("s2"): 3, Stamp("s3"): 4}, 4)
