"""Statistics, as a pure function."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.samples import memory
from tests.unit.test_sealing import memories, sealed
from wellkept import Memory, MemoryType, statistics
from wellkept.testing.builders import START, vector
from wellkept.types import State, Stats, TagUsage


@pytest.mark.req("L8")
@settings(max_examples=30)
@given(st.lists(memories(), max_size=5))
def test_a_tally_counts_what_is_there(found: list[Memory]) -> None:
    stats = statistics.tally(map(sealed, found), START)
    active = [m for m in found if m.state is State.ACTIVE and (m.expires_at is None or m.expires_at > START)]
    assert stats.active == len(active)
    assert stats.archived == sum(m.state is State.ARCHIVED for m in found)
    assert stats.superseded == sum(m.state is State.SUPERSEDED for m in found)
    assert stats.quarantined == sum(m.state is State.QUARANTINED for m in found)
    away = stats.archived + stats.superseded + stats.quarantined + sum(m.state is State.MOVED for m in found)
    assert stats.forgotten == len(found) - len(active) - away
    assert dict(stats.by_type) == {kind: n for kind in MemoryType if (n := sum(m.type is kind for m in active))}
    assert {usage.tag: usage.count for usage in stats.top_tags} == Counter(tag for m in active for tag in m.tags)
    assert stats.oldest == min((m.created_at for m in active), default=None)
    assert stats.newest == max((m.created_at for m in active), default=None)
    assert stats.bytes_used == sum(statistics.footprint(sealed(m)) for m in found)


@pytest.mark.req("L8")
def test_an_empty_tally() -> None:
    assert statistics.tally([], START) == Stats()


@pytest.mark.req("L8")
@given(st.dictionaries(st.text(max_size=3), st.integers(1, 4), max_size=30))
def test_the_most_used_tags_come_first(counts: dict[str, int]) -> None:
    ranked = statistics.top(counts.items())
    assert len(ranked) == min(len(counts), statistics.TOP_TAGS)
    assert list(ranked) == [
        TagUsage(tag=tag, count=counts[tag]) for tag in sorted(counts, key=lambda tag: (-counts[tag], tag))[:20]
    ]


def test_bytes_are_those_of_the_memory_and_of_its_vector() -> None:
    bare = sealed(memory("tea"))
    assert statistics.footprint(bare) == bare.facets["bytes"]
    assert statistics.footprint(bare._replace(vector=vector(1, 2, 3))) == bare.facets["bytes"] + 12
    assert statistics.footprint(sealed(memory("tea", state=State.ARCHIVED))) == 0


def test_usage_is_a_share_of_the_limit() -> None:
    assert Stats(bytes_used=25, bytes_limit=200).percent_used == 12.5
    assert Stats(bytes_used=25).percent_used == 0.0


def test_expiry_is_judged_by_the_time_given() -> None:
    one = sealed(memory(expires_at=START))
    assert statistics.tally([one], START).active == 0
    assert statistics.tally([one], START - timedelta(microseconds=1)).active == 1
