"""Generated memories and conditions, drawn from small pools so that they often meet.

A draft is the text and the facets of a memory without its id and owner: ``Writer.add(owner, **draft)``.
"""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from wellkept import codec
from wellkept.testing.builders import START
from wellkept.types import AccessPolicy, Layer, MemoryType, Owner, SourceType, State, Tier

Draft = dict[str, Any]

# Near misses of one another under LIKE, prefix search, case folding and normalisation.
TAGS = ("a", "a.b", "a.b.c", "ab", "A", "a%", "a_b", "axb", "a.", "*", "é", "e\u0301")
AUTHORS = ("ada", "Ada", "ad", "a%", "bob")
IMPORTANCES = (0.0, 0.1, 0.3, 0.1 + 0.2, 0.5, 1.0)
TRUSTS = (0.0, 0.2, 0.5, 0.8, 1.0)
WORDS = (
    "Straße",
    "STRASSE",
    "dark",
    "DARK",
    "Mode",
    "100%",
    "under_score",
    "back\\slash",
    "it's",
    '"quoted"',
    "ΟΔΟΣ",
    "οδος",
    "İstanbul",
    "naïve",
    "\U0001f600",
)
MOMENTS = (
    START - timedelta(days=1),
    *(START + timedelta(microseconds=micros) for micros in (-1, 0, 1)),
    *(START + timedelta(minutes=minutes) for minutes in (20, 45, 60)),
)
FIELDS = ("n", "a.b", 'q"uote', "$", "[0]", "ü", "")
# Numbers that are equal in floating point but not in truth, and values that differ in type only.
VALUES: tuple[Any, ...] = (
    *(0, 1, 1.0, True, False, None, "1", "true", "", 0.1, -1.5),
    *(2**53, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 1e308),
    *([], [1], [1.0, True], {}, {"a": 1}, {"a": 1.0}, {"a": {"b": None}}),
)


def texts(**size: int) -> st.SearchStrategy[str]:
    """Any text that can be stored: no NUL, no unpaired surrogates."""
    return st.text(
        st.characters(codec="utf-8", exclude_characters="\x00"),
        min_size=size.get("min_size", 0),
        max_size=size.get("max_size", 40),
    )


def contents() -> st.SearchStrategy[str]:
    """Words of the pool, or anything at all."""
    chosen = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
    return chosen | texts(min_size=1)


def moments() -> st.SearchStrategy[datetime]:
    """Times that often coincide, one microsecond apart or at any other."""
    seconds = st.floats(-1e9, 1e9, allow_nan=False)
    return st.sampled_from(MOMENTS) | seconds.map(lambda s: START + timedelta(seconds=s))


def fields() -> st.SearchStrategy[dict[str, Any]]:
    """A small JSON object."""
    return st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(VALUES), max_size=3)


def owners() -> st.SearchStrategy[Owner]:
    """Owners with any ids but NUL, some of them of a branch."""
    return st.builds(
        Owner,
        st.sampled_from(Layer),
        st.lists(texts(min_size=1, max_size=4), min_size=1, max_size=2).map(tuple),
        st.just("") | texts(max_size=4),
    )


def drafts() -> st.SearchStrategy[Draft]:
    """The text and facets of a memory; some texts are sealed, and are then no facet."""
    micros = moments().map(codec.to_micros)
    return st.fixed_dictionaries(
        {
            "text": contents() | contents() | st.none(),
            "type": st.sampled_from(MemoryType).map(lambda one: one.value),
            "tier": st.sampled_from(Tier).map(lambda one: one.value),
            "importance": st.sampled_from(IMPORTANCES) | st.floats(0, 1),
            "created_at": micros,
            "occurred_at": micros,
            "state": st.sampled_from([State.ACTIVE, *State]).map(lambda one: one.value),
        },
        optional={
            "tags": st.lists(st.sampled_from(TAGS), unique=True, min_size=1, max_size=4),
            "fields": fields(),
            "expires_at": micros,
            "author": st.sampled_from(AUTHORS),
            "role": st.sampled_from(("user", "assistant")),
            "session": st.sampled_from(("monday", "Monday")),
            "title": texts(),
            "source_type": st.sampled_from(SourceType).map(lambda one: one.value),
            "has_pointer": st.just(True),
            "access_policy": st.sampled_from(AccessPolicy).map(lambda one: one.value),
            "decay_factor": st.floats(0, 1),
            "trust": st.sampled_from(TRUSTS),
            "tier_set": st.just(True),
            "facet_of_a_newer_release": st.sampled_from([one for one in VALUES if one is not None]),
        },
    )


def _some(pool: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(pool), min_size=1, max_size=2, unique=True).map(tuple)


CONDITIONS: dict[str, st.SearchStrategy[Any]] = {
    "types": st.frozensets(st.sampled_from(MemoryType), max_size=5),
    "tiers": st.frozensets(st.sampled_from(Tier), max_size=4),
    "tags": _some(TAGS),
    "any_tags": _some(TAGS),
    "no_tags": _some(TAGS),
    "min_importance": st.sampled_from(IMPORTANCES),
    "min_trust": st.sampled_from(TRUSTS),
    "created_after": moments(),
    "created_before": moments(),
    "occurred_after": moments(),
    "occurred_before": moments(),
    "content_contains": (st.sampled_from(WORDS) | texts(min_size=1, max_size=3)).map(str.casefold),
    "text": _some(("da*", "*ark", "d*k", "str*se", "mode", "dark", "na*", "*a*e*", "strasse", "nothing")),
    "authors": _some(AUTHORS).map(frozenset),
    "source_type": st.sampled_from(SourceType),
    "has_pointer": st.booleans(),
    "has_access_policy": st.booleans(),
    "metadata": fields(),
    "states": st.none() | st.frozensets(st.sampled_from(State), max_size=2),
    "now": st.sampled_from(MOMENTS),
}
"""For each condition of a ``Where`` its values; ``ids`` and ``without`` are left to the tests, which know ids."""


def conditions() -> st.SearchStrategy[Draft]:
    """Up to three conditions: more would almost never be met."""
    names = st.lists(st.sampled_from(sorted(CONDITIONS)), max_size=3, unique=True)
    return names.flatmap(lambda some: st.fixed_dictionaries({name: CONDITIONS[name] for name in some}))
