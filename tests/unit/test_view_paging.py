"""Cursors that somebody forged."""

from itertools import product

import msgspec
import pytest

from tests.support.refusals import refusal
from tests.support.stand_ins import one_store
from wellkept import View, codec
from wellkept.types import SortName


@pytest.mark.req("H3")
@one_store
def test_a_forged_position_is_refused(view: View) -> None:
    view.add_many(["one", "two", "three"])
    wrong = {}
    sorts: tuple[SortName, ...] = ("newest", "important", "relevance")
    for sort, place, number in product(sorts, ("born", "born_at"), (-(2**62), 2**63, 2**64 - 1, -(2**63))):
        cursor = view.list(limit=1, sort_by=sort).next_cursor
        assert cursor is not None
        forged = codec.encode_cursor(msgspec.structs.replace(codec.decode_cursor(cursor), **{place: number}))
        answer = refusal(view.list, limit=1, sort_by=sort, cursor=forged)
        if answer != "list: InvalidInput of cursor":
            wrong[f"{sort} {place}={number}"] = answer
    assert wrong == {}


@pytest.mark.req("H3")
@one_store
def test_a_forged_time_of_judging_is_refused(view: View) -> None:
    view.add_many(["one", "two"])
    cursor = view.list(limit=1, sort_by="relevance").next_cursor
    assert cursor is not None
    position = codec.decode_cursor(cursor)
    wrong = {}
    for judged_at in (None, 2**62, -(2**62)):
        forged = codec.encode_cursor(msgspec.structs.replace(position, judged_at=judged_at))
        answer = refusal(view.list, limit=1, sort_by="relevance", cursor=forged)
        if answer != "list: InvalidInput of cursor":
            wrong[judged_at] = answer
    assert wrong == {}


def test_a_forged_value_moves_the_position_and_nothing_else(view: View) -> None:
    view.add_many(["one", "two"])
    cursor = view.list(limit=1, sort_by="important").next_cursor
    assert cursor is not None
    kept = codec.decode_cursor(cursor)
    for value, expected in ((1e308, 0), (-1e308, 2), (-0.5, 1)):
        found = view.list(sort_by="important", cursor=codec.encode_cursor(msgspec.structs.replace(kept, value=value)))
        assert len(found) == expected
