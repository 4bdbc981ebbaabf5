"""Filters: from what a caller writes to what every store must answer."""

import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.bad_values import BAD_FIELDS, JSON
from tests.support.samples import drafts, memory
from tests.unit.test_sealing import sealed
from tests.unit.test_validation import refused
from wellkept import Filter, Memory, MemoryType, filters
from wellkept.errors import InvalidInput
from wellkept.filters import Where
from wellkept.testing import strategies
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases
from wellkept.text import words
from wellkept.types import Sort, SourceType, State

TAGS = st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=4).map(".".join)


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    return memory(**draw(drafts()))


def below(tag: str, wanted: str) -> bool:
    """The hierarchy, level by level."""
    levels, asked = tag.split("."), wanted.split(".")
    return levels[: len(asked)] == asked


def plain(value: Any) -> Any:
    """A JSON value in a form in which Python's == means the same as ours."""
    if isinstance(value, Mapping):
        return {"object": {name: plain(one) for name, one in value.items()}}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return (type(value) if isinstance(value, bool | str | None) else "number", value)


PREDICATES: dict[str, Callable[[Memory, Any], bool]] = {
    "types": lambda m, w: m.type.value in [one.value for one in w],
    "tiers": lambda m, w: m.tier.value in [one.value for one in w],
    "tags": lambda m, w: not [t for t in w if not [x for x in m.tags if below(x, t)]],
    "any_tags": lambda m, w: bool([t for t in w for x in m.tags if below(x, t)]),
    "no_tags": lambda m, w: not [t for t in w for x in m.tags if below(x, t)],
    "min_importance": lambda m, w: not m.importance < w,
    "min_trust": lambda m, w: not m.trust < w,
    "created_after": lambda m, w: (m.created_at - w).total_seconds() >= 0,
    "created_before": lambda m, w: (m.created_at - w) < timedelta(),
    "occurred_after": lambda m, w: not m.occurred_at < w,
    "occurred_before": lambda m, w: not m.occurred_at >= w,
    "content_contains": lambda m, w: m.content.casefold().find(w) >= 0,
    "text": lambda m, w: all(fnmatch.filter(words.words(m.content), pattern) for pattern in w),
    "authors": lambda m, w: len({m.author} & set(w)) == 1,
    "source_type": lambda m, w: getattr(m.source, "type", None) == w,
    "has_pointer": lambda m, w: bool(m.pointer) == w,
    "has_access_policy": lambda m, w: bool(m.access_policy) == w,
    "metadata": lambda m, w: {n: plain(m.metadata.get(n, ...)) for n in w} == {n: plain(w[n]) for n in w},
    "states": lambda m, w: w is None or m.state in w,
    "now": lambda m, w: True,
}


@pytest.mark.req("L5", "J5", "H3")
@given(memories(), strategies.conditions())
def test_a_memory_matches_if_every_condition_holds(what: Memory, wanted: dict[str, Any]) -> None:
    now = wanted.get("now", START)
    states = wanted.get("states", {State.ACTIVE})
    alive = states is None or (what.state in states and not (what.expires_at and what.expires_at <= now))
    expected = alive and all(PREDICATES[name](what, value) for name, value in wanted.items())
    assert filters.matches(sealed(what), Where(**{"now": START} | wanted)) == expected


ALONE = {name: condition for name, condition in strategies.CONDITIONS.items() if name not in ("now", "states")}


@pytest.mark.req("L5", "J5")
@settings(max_examples=40)
@given(memories(), st.fixed_dictionaries(ALONE))
def test_each_condition_decides_alone(what: Memory, wanted: dict[str, Any]) -> None:
    """With everything else out of the way, so that both answers are seen."""
    what = replace(what, state=State.ACTIVE, expires_at=None)
    expected = {name: PREDICATES[name](what, value) for name, value in wanted.items()}
    assert {
        name: filters.matches(sealed(what), Where(**{"now": START} | {name: value})) for name, value in wanted.items()
    } == expected


@pytest.mark.req("L5")
@given(memories(), st.frozensets(st.sampled_from(State)))
def test_states_are_a_condition(what: Memory, states: frozenset[State]) -> None:
    what = replace(what, expires_at=None)
    assert filters.matches(sealed(what), Where(now=START, states=states)) == (what.state in states)
    assert filters.matches(sealed(what), Where(now=START)) == (what.state is State.ACTIVE)
    expired = sealed(replace(what, expires_at=START))
    assert not filters.matches(expired, Where(now=START, states=states))
    assert filters.matches(expired, Where(now=START, states=None))


def test_a_text_that_is_no_facet_is_left_for_the_engine_to_judge() -> None:
    """A store cannot read it: it must not leave out what may match."""
    one = sealed(memory("dark mode"))
    hidden = one._replace(facets={name: value for name, value in one.facets.items() if name != "text"})
    for where in (Where(now=START, content_contains="light"), Where(now=START, text=("light",))):
        assert not filters.matches(one, where)
        assert filters.matches(hidden, where)
        assert not filters.matches(hidden, replace(where, min_importance=0.9))


def test_ids_are_a_condition() -> None:
    one = sealed(memory())
    assert filters.matches(one, Where(now=START, ids=frozenset({one.id, "x"})))
    assert not filters.matches(one, Where(now=START, ids=frozenset({"x"})))
    assert not filters.matches(one, Where(now=START, ids=frozenset()))
    assert filters.matches(one, Where(now=START, without=frozenset({"x"})))
    assert not filters.matches(one, Where(now=START, without=frozenset({one.id}), ids=frozenset({one.id})))


@pytest.mark.req("J5")
@given(st.lists(TAGS, max_size=3).map(tuple), TAGS)
def test_tags_form_a_hierarchy(tags: tuple[str, ...], wanted: str) -> None:
    assert filters.tagged(tags, wanted) == any(below(tag, wanted) for tag in tags)


@pytest.mark.req("J5")
def test_tags_are_compared_level_by_level() -> None:
    with Cases() as cases:
        for tag, wanted, found in (
            ("security.authentication", "security", True),
            ("security", "security", True),
            ("security", "security.authentication", False),
            ("securities", "security", False),
            ("Security", "security", False),
            ("a%b", "a", False),
            ("a.b.c", "a.b", True),
            ("x.a", "a", False),
        ):
            with cases.case(tag, wanted):
                assert filters.tagged((tag,), wanted) is found


@given(JSON, JSON)
def test_json_values_are_compared_as_json(left: Any, right: Any) -> None:
    assert filters.same_json(left, right) == (plain(left) == plain(right))
    assert filters.same_json(left, left)


COMPARED: tuple[tuple[Any, Any, bool], ...] = (
    (True, 1, False),
    (False, 0, False),
    (1, 1.0, True),
    ("1", 1, False),
    (None, False, False),
    ([1, True], [1.0, True], True),
    ([1, True], [1, 1], False),
    ({"a": 0}, {"a": False}, False),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ({"a": 1}, {"a": 1, "b": None}, False),
    ([1, 2], [2, 1], False),
    ({}, [], False),
    (2**53 + 1, float(2**53), False),
)


def test_json_values_that_python_confuses() -> None:
    with Cases() as cases:
        for left, right, same in COMPARED:
            with cases.case(left, right):
                assert filters.same_json(left, right) is filters.same_json(right, left) is same


SPANS: tuple[tuple[timedelta | str, timedelta], ...] = (
    ("7d", timedelta(days=7)),
    ("12h", timedelta(hours=12)),
    ("90m", timedelta(minutes=90)),
    ("2w", timedelta(days=14)),
    ("1y", timedelta(days=365)),
    ("0d", timedelta()),
    (" 30 days ", timedelta(days=30)),
    ("last hour", timedelta(hours=1)),
    ("last week", timedelta(days=7)),
    ("last month", timedelta(days=30)),
    ("last 30 days", timedelta(days=30)),
    ("LAST 3 Months", timedelta(days=90)),
    ("last 2 years", timedelta(days=730)),
    ("5 minutes", timedelta(minutes=5)),
    (timedelta(seconds=3), timedelta(seconds=3)),
)


@pytest.mark.req("J5")
def test_relative_times() -> None:
    with Cases() as cases:
        for text, span in SPANS:
            with cases.case(text):
                assert filters.relative(text) == span


NO_SPANS: tuple[Any, ...] = (
    "",
    "7",
    "d",
    "day",
    "last",
    "7ms",
    "7 ds",
    "-7d",
    "7.5d",
    "7d 2h",
    "next week",
    "1234567d",
    7,
    None,
    b"7d",
)


def test_what_is_no_relative_time() -> None:
    with Cases() as cases:
        for bad in NO_SPANS:
            with cases.case(bad):
                refused(filters.relative, bad, field="filter.within")


@pytest.mark.req("J5")
@given(strategies.moments(), st.timedeltas(timedelta(0), timedelta(days=4000)), st.none() | strategies.moments())
def test_within_counts_from_now(now: datetime, span: timedelta, after: datetime | None) -> None:
    where = filters.resolve(Filter(within=span, created_after=after), now)
    assert where.created_after == max(now - span, after or now - span)


@pytest.mark.parametrize("span", ["999999y", timedelta.max])
def test_a_time_before_all_times_leaves_nothing_out(span: Any) -> None:
    one = sealed(memory(created_at=datetime(1, 1, 2, tzinfo=START.tzinfo)))
    assert filters.matches(one, filters.resolve(Filter(within=span), START))


def test_a_resolved_filter_is_checked_and_absolute() -> None:
    there = timezone(timedelta(hours=2))
    where = filters.resolve(
        Filter(
            types="decision",
            tags=["a", "a"],
            any_tags=("b",),
            no_tags=iter(["c"]),
            min_importance=1,
            min_trust=0,
            created_before=START.astimezone(there),
            occurred_after=START.astimezone(there),
            occurred_before=START,
            content_contains="STRASSE ß",
            text="Secur** *RIT* ß-Caf\u00e9 cafe * _",
            authors=["ada"],
            source_type="manual",
            has_pointer=False,
            metadata={"a": (1,)},
            include_forgotten=True,
        ),
        START,
    )
    assert where == Where(
        now=START,
        types=frozenset({MemoryType.DECISION}),
        tags=("a",),
        any_tags=("b",),
        no_tags=("c",),
        min_importance=1.0,
        min_trust=0.0,
        created_before=START,
        occurred_after=START,
        occurred_before=START,
        content_contains="strasse ss",
        text=("secur*", "*rit*", "ss", "cafe"),
        authors=frozenset({"ada"}),
        source_type=SourceType.MANUAL,
        has_pointer=False,
        metadata={"a": [1]},
        states=None,
    )
    assert filters.resolve(Filter(), START) == Where(now=START)


@pytest.mark.req("L5")
def test_a_bad_condition_names_its_field() -> None:
    with Cases() as cases:
        for name, bad in [(name, bad) for name, values in BAD_FIELDS.items() for bad in values]:
            with cases.case(name, bad):
                with pytest.raises(InvalidInput) as caught:
                    filters.resolve(Filter(**{name: bad}), START)
                assert caught.value.details["field"] == f"filter.{name}"
                assert caught.value.hint


def test_every_field_of_a_filter_is_checked() -> None:
    assert set(Filter.__dataclass_fields__) == {*BAD_FIELDS, "references", "keyed"}  # followed by the engine


@given(memories(), strategies.moments())
def test_visible_is_active_and_not_expired(what: Memory, now: datetime) -> None:
    expired = what.expires_at is not None and not now < what.expires_at
    assert filters.visible(what, now) == (what.state is State.ACTIVE and not expired)
    assert filters.matches(sealed(what), Where(now=now)) == filters.visible(what, now)


@pytest.mark.req("L5", "L9")
@settings(max_examples=30)
@given(st.lists(memories(), max_size=6), st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_sort_values_put_the_greatest_first(found: list[Memory], counts: list[int]) -> None:
    touched = [
        replace(
            what,
            id=str(place),
            access_count=count,
            last_accessed_at=START + timedelta(seconds=count) if count else None,
        )
        for place, (what, count) in enumerate(zip(found, counts, strict=False))
    ]
    never = datetime.min.replace(tzinfo=START.tzinfo)
    for sort, values in (
        (Sort.IMPORTANT, {m.id: m.importance for m in touched}),
        (Sort.MOST_ACCESSED, {m.id: float(m.access_count) for m in touched}),
        (Sort.RECENTLY_ACCESSED, {m.id: ((m.last_accessed_at or never) - never) / timedelta(days=1) for m in touched}),
    ):
        places = {m.id: filters.sort_value(sealed(m), sort) for m in touched}
        ordered = [values[one] for one in sorted(places, key=places.__getitem__)]
        assert ordered == sorted(values.values(), reverse=True)
    assert {filters.sort_value(sealed(m), sort) for m in touched for sort in (Sort.NEWEST, Sort.OLDEST)} <= {0.0}


@pytest.mark.req("J5")
@example(word="aba", pattern="ab*ba")  # the pieces may not share letters
@example(word="abab", pattern="*ba*ab")
@example(word="", pattern="*")  # where there is no word
@given(word=st.text("ab", max_size=12), pattern=st.text("ab*", min_size=1, max_size=8))
def test_stars_stand_for_any_letters(word: str, pattern: str) -> None:
    """Compared with the standard library's own matching of file names."""
    assert filters.has_words(word, [pattern]) == bool(word and fnmatch.fnmatchcase(word, pattern))


@pytest.mark.req("J5")
def test_no_pattern_makes_matching_slow() -> None:
    """A pattern that takes a matcher which tries every combination longer than the age of the world."""
    pattern = filters.patterns("*a" * 200 + "*b")
    assert not filters.has_words("a" * 100_000, pattern)
    assert filters.has_words("a" * 100_000 + "b", pattern)
