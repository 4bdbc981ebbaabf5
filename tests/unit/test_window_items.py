"""What a window holds and what recall brings: how the values are checked."""

from datetime import datetime
from typing import Any

import pytest

from tests.support.window_items import BAD_ITEMS, HOSTILE, item, memory
from wellkept import Layer
from wellkept.errors import InvalidInput
from wellkept.testing.cases import Cases
from wellkept.window import Role
from wellkept.window.items import checked_items, checked_memories


@pytest.mark.req("C1")
def test_bad_items_are_refused_by_field() -> None:
    with Cases() as cases:
        for fields, field in BAD_ITEMS:
            with cases.case(fields):
                with pytest.raises(InvalidInput) as caught:
                    checked_items("recent", [item(**fields)])
                assert caught.value.details["field"] == f"recent.{field}"
                assert caught.value.hint


def test_items_and_memories_come_out_in_one_form() -> None:
    elsewhere = datetime.fromisoformat("2026-01-07T14:00:00+02:00")
    (late,) = checked_items("recent", [item(created_at=elsewhere)])
    assert late.created_at.isoformat() == "2026-01-07T12:00:00+00:00"
    (sure,) = checked_items("recent", [item(priority=1)])
    assert type(sure.priority) is float
    (spoken,) = checked_items("recent", [item(role="user")])
    assert spoken.role is Role.USER
    (told,) = checked_memories([memory(occurred_at=elsewhere, layer="team", score=1)])
    assert (told.occurred_at.isoformat(), told.layer, type(told.score)) == (
        "2026-01-07T12:00:00+00:00",
        Layer.TEAM,
        float,
    )


BAD_MEMORIES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"id": ""}, "id"),
    ({"id": "a\nb"}, "id"),
    ({"content": None}, "content"),
    ({"author": 7}, "author"),
    ({"occurred_at": None}, "occurred_at"),
    ({"layer": "planet"}, "layer"),
    ({"score": float("nan")}, "score"),
    ({"score": float("inf")}, "score"),
    ({"score": "0.5"}, "score"),
    ({"score": True}, "score"),
)


def test_bad_memories_are_refused_by_field() -> None:
    with Cases() as cases:
        for fields, field in BAD_MEMORIES:
            with cases.case(fields):
                with pytest.raises(InvalidInput) as caught:
                    checked_memories([memory(**fields)])
                assert caught.value.details["field"] == f"recalled.{field}"


NO_LISTS: tuple[object, ...] = (
    "text",
    7,
    None,
    ["text"],
    [None],
)


def test_what_is_no_list_of_items_is_refused() -> None:
    with Cases() as cases:
        for values in NO_LISTS:
            with cases.case(values):
                with pytest.raises(InvalidInput) as caught:
                    checked_items("recalled", values)
                assert caught.value.details["field"] == "recalled"
                with pytest.raises(InvalidInput) as caught:
                    checked_memories(values)
                assert caught.value.details["field"] == "recalled"


def test_strange_content_of_memories_is_let_through() -> None:
    """Somebody else stored it: one strange memory must not keep the others out of the prompt."""
    assert [one.content for one in checked_memories([memory(content) for content in HOSTILE])] == HOSTILE
