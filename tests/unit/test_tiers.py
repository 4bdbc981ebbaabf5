"""The rule by which a tier follows."""

import pytest

from wellkept import Layer, MemoryType, layers
from wellkept.types import State


@pytest.mark.req("H13")
def test_the_tier_follows_from_layer_then_state_then_fact_then_type() -> None:
    """Every combination, against the rule as it is written down."""
    for layer in Layer:
        for type in MemoryType:
            for state in State:
                for is_fact in (False, True):
                    if layer == "session":
                        wanted = "session"
                    elif state == "archived":
                        wanted = "archival"
                    elif is_fact:
                        wanted = "procedural"
                    elif layer in ("user", "agent") and type in ("preference", "correction"):
                        wanted = "personal"
                    elif type in ("conversation", "event"):
                        wanted = "episodic"
                    else:
                        wanted = "semantic"
                    assert layers.tier_of(layer, type, state, is_fact=is_fact) == wanted, (layer, type, state, is_fact)
