"""Values that are refused, or that only just pass: cursors that nobody gave out, fields of a filter, JSON."""

import base64
import json
from typing import Any

from hypothesis import strategies as st

from wellkept.testing.builders import START

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=12,
)
"""Any JSON value."""


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"in": value}
    return value


BAD_FIELDS: dict[str, list[Any]] = {
    "types": ["nothing", ["fact", "nothing"], 5, [None], [["fact"]]],
    "tiers": ["nothing", ["semantic", "nothing"], 5, [None]],
    "tags": ["text", 5, [5], ["a\nb"], [str(n) for n in range(101)]],
    "any_tags": ["text", 5, [5], [""], [str(n) for n in range(101)]],
    "no_tags": ["text", 5, [None], [str(n) for n in range(101)]],
    "min_importance": [-0.1, 1.1, float("nan"), True, "0.5"],
    "min_trust": [-0.1, 1.1, float("nan"), True, "0.5"],
    "created_after": [START.replace(tzinfo=None), "now", 5],
    "created_before": [START.replace(tzinfo=None), "now", 5],
    "occurred_after": [START.replace(tzinfo=None), "now", 5],
    "occurred_before": [START.replace(tzinfo=None), "now", 5],
    "within": ["soon", 5, ""],
    "content_contains": ["", " ", 5, "\x00", "\ud800"],
    "text": ["", " ", "*", "** _ !", 5, ["a"], "a\nb", "a\x00", "\ud800", "a" * 1001, " ".join(map(str, range(21)))],
    "authors": ["ada", 5, [5], [""]],
    "source_type": ["moon", 5, []],
    "has_pointer": ["yes", 1, 0],
    "metadata": [None, [], "text", {"a": float("nan")}, {1: 2}],
    "max_depth": [0, 11, True, "2", None, 1.0],
    "include_forgotten": ["no", 0, None],
    "include_archived": ["no", 0, None],
    "include_superseded": ["no", 0, None],
    "include_quarantined": ["no", 0, None],
}
"""By field: what a filter refuses."""


def written(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


ADA = '["user","ada"]'
NO_PLACES: list[Any] = [
    *(None, [], {}, 5, ["a"], ["a", 0, 0], ["a", 0, 0, ADA], [5, 0, 0, ADA, 0, None, None], [[[[[[]]]]]]),
    *(["a", "0", 0, ADA, 0], ["a", 0, 1.5, ADA, 0], ["a", 0, 10**18, ADA, 0], ["a", 0, None, ADA, 0]),
    *(["a", 0, 0, owner, 0] for owner in (None, 5, "", "ada", "[]", '["moon","x"]', '["user",5]', ["user", "ada"])),
    *(["a", 0, 0, ADA, born] for born in (-1, 1.5, "0", None, 2**63, True)),
    *(["a", 0, 0, ADA, 0, at] for at in (5, ["x"], True)),
    *(["a", 0, 0, ADA, 0, None, at] for at in ("x", 1.5, 10**18)),
    ["a", 0, 0, ADA, 0, None, None, 0],
]
HOSTILE: list[Any] = [
    *(None, 5, b"text", ["x"]),
    *("", "x", "A", "====", "not a cursor", "é" * 8, "\x00", "\ud800", "A" * 100_000, "💥", "../..", "' OR 1=1 --"),
    *(written(value) for value in NO_PLACES),
    base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    base64.urlsafe_b64encode(b'["a",NaN,0,"[\\"user\\",\\"ada\\"]",0,null,null]').decode(),
    base64.urlsafe_b64encode(b"\xff\xfe").decode(),
]
"""Cursors that nobody gave out."""
