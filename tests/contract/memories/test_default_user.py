"""Who names no user."""

import pytest

from wellkept import Layer, Memories
from wellkept.errors import InvalidInput
from wellkept.types import Owner


@pytest.mark.req("H1")
def test_the_default_user_is_reached_by_leaving_the_user_out_and_by_no_name(memories: Memories) -> None:
    for named in (
        lambda: memories.view(user="default"),
        lambda: memories.view(user="default", project="api"),
        lambda: memories.view(agent="debugger", user="default"),
        lambda: memories.agent("debugger", user="default"),
        lambda: memories.agent("debugger", user="default", session="monday"),
    ):
        with pytest.raises(InvalidInput) as caught:
            named()
        assert caught.value.details["field"] == "user"
        assert caught.value.operation in ("view", "agent")
        assert "leave the user out" in caught.value.hint
    kept = memories.agent("debugger").long_term.add("Likes tea", layer="user")
    assert kept.owner == Owner(Layer.USER, ("default",))
    assert memories.view(agent="writer").get(kept.id) == kept
    assert memories.view(user="Default").get(kept.id) is None  # another name, and nobody's in particular
