"""More specific layers override less specific ones that answer the same question differently."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.samples import memory as memory_of
from wellkept.recall import precedence
from wellkept.recall.duplicates import Found
from wellkept.testing import builders
from wellkept.types import Layer

RANK = tuple(Layer)
TEXTS = st.sampled_from(["Indent with tabs", "Indent with spaces", "Use spaces for indentation", "Drink tea", "?!"])


def found(content: str, layer: Layer = Layer.USER, **fields: Any) -> Found:
    return Found(memory=memory_of(content, builders.owner("ada", layer=layer), **fields), score=0.5)


def test_the_more_specific_layer_overrides_and_names_the_others() -> None:
    company, team, user = (
        found(f"We indent code with {what}", layer)
        for what, layer in (("tabs", Layer.COMPANY), ("care", Layer.TEAM), ("spaces", Layer.USER))
    )
    tea = found("Drink tea at noon", Layer.COMPANY)
    assert precedence.overriding([company, tea, team, user], RANK) == [tea, user]
    assert set(user.overrides) == {team.memory.id, company.memory.id}
    assert precedence.overriding([company, tea, team, user], tuple(reversed(RANK))) == [company, tea]
    assert precedence.overriding([company, tea, team, user], RANK, keep=True) == [company, tea, team, user]
    assert set(user.overrides) == {team.memory.id, company.memory.id}


def test_the_same_key_conflicts_whatever_the_words() -> None:
    user, company = found("tabs", Layer.USER, key="style"), found("nothing alike", Layer.COMPANY, key="style")
    assert precedence.overriding([company, user], RANK) == [user]
    keyless = [found("tabs", Layer.USER), found("nothing alike", Layer.COMPANY)]
    assert precedence.overriding(keyless, RANK) == keyless


@pytest.mark.parametrize(
    "fields",
    [{"author": "bob"}, {"type": "event"}, {"type": "conversation"}, {"content": "Indent with tabs" + " x" * 200}],
)
def test_what_others_said_and_what_happened_is_not_overridden(fields: dict[str, Any]) -> None:
    pair = [found("Indent with spaces"), found(**{"content": "Indent with tabs", "layer": Layer.COMPANY, **fields})]
    assert precedence.overriding(pair, RANK) == pair


@pytest.mark.req("H4")
@given(some=st.lists(st.builds(found, TEXTS, st.sampled_from(Layer)), max_size=8))
def test_what_is_overridden_was_less_specific_and_nothing_is_lost(some: list[Found]) -> None:
    kept = precedence.overriding(some, RANK)
    assert kept == [one for one in some if one in kept], "the order is left as it was"
    by_id = {one.memory.id: one for one in some}
    named = [id for one in kept for id in one.overrides]
    assert sorted([*named, *(one.memory.id for one in kept)]) == sorted(by_id)
    for one in kept:
        assert all(RANK.index(one.memory.layer) < RANK.index(by_id[id].memory.layer) for id in one.overrides)
