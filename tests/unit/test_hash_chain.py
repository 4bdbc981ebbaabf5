"""Chains of hashes: whatever is altered or removed is found, but for the end, which an anchor holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept import hash_chain
from wellkept.hash_chain import GENESIS

BODIES = st.lists(st.dictionaries(st.sampled_from("abc"), st.integers() | st.text(max_size=3), max_size=3), min_size=1)


def chain(bodies: list[dict[str, object]]) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    previous = GENESIS
    for number, body in enumerate(bodies, start=1):
        made.append(hash_chain.linked(body, number, previous))
        previous = str(made[-1]["hash"])
    return made


@pytest.mark.req("N7")
@given(bodies=BODIES, pick=st.integers(0, 1_000), how=st.sampled_from(["drop", "change", "repeat", "rehash"]))
def test_a_chain_is_whole_until_anything_in_it_changes(bodies: list[dict[str, object]], pick: int, how: str) -> None:
    whole = chain(bodies)
    assert hash_chain.broken(whole) is None
    place = pick % len(whole)
    altered: list[dict[str, object]] = list(whole)
    if how == "drop":
        del altered[place]
        if place == len(whole) - 1:  # what an anchor is for
            assert hash_chain.broken(altered) is None
            return
    elif how == "repeat":
        altered.insert(place, altered[place])
    else:
        entry = {**altered[place], "d": 1}
        altered[place] = {**entry, "hash": hash_chain.digest(entry)} if how == "rehash" else entry
        if how == "rehash" and place == len(whole) - 1:
            assert altered[place]["hash"] != whole[place]["hash"]
            return
    broken = hash_chain.broken(altered)
    assert broken is not None
    assert broken.seq in (place + 1, place + 2)
