"""The text of an object."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.text import objects

# -- the text -----------------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.req("J1")
@given(st.dictionaries(st.text(max_size=3), values, min_size=1, max_size=4))
def test_every_object_has_a_text_with_every_value(data: dict[str, Any]) -> None:
    text = objects.rendered(data)
    assert text
    assert objects.with_texts(data, lambda said: said) == data

    def spoken(value: Any) -> list[str]:
        if isinstance(value, dict | list):
            inner = value.values() if isinstance(value, dict) else value
            return [said for one in inner for said in spoken(one)]
        return [value] if isinstance(value, str) else []

    if not text.startswith("{"):  # the JSON of an object that says nothing
        assert all(said in text for said in spoken(data))
