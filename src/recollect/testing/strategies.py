"""Generated memories and conditions, drawn from small pools so that they often meet.

A draft is the fields of a memory without its id and owner: tests give both when they store it.
"""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from recollect.testing.builders import START
from recollect.types import (
    KnowledgePointer,
    Layer,
    MemoryType,
    Owner,
    PointerType,
    Source,
    SourceType,
    State,
)

Draft = dict[str, Any]

# Near misses of one another under LIKE, prefix search, case folding and normalisation.
TAGS = ("a", "a.b", "a.b.c", "ab", "A", "a%", "a_b", "axb", "a.", "*", "é", "e\u0301")
AUTHORS = ("ada", "Ada", "ad", "a%", "bob")
ROLES = ("user", "assistant", "tool")
SESSIONS = ("monday", "Monday", "mon")
IMPORTANCES = (0.0, 0.1, 0.3, 0.1 + 0.2, 0.5, 1.0)
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
# A day before, at the same time but for a microsecond, and minutes of which some belong to one conversation.
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


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A value or nothing."""
    return st.none() | strategy


def metadata() -> st.SearchStrategy[dict[str, Any]]:
    """A small JSON object."""
    return st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(VALUES), max_size=3)


def owners() -> st.SearchStrategy[Owner]:
    """Owners with any ids, NUL included: a store must keep apart whatever it is given."""
    ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
    return st.builds(Owner, st.sampled_from(Layer), st.lists(ids, min_size=1, max_size=2).map(tuple))


def drafts() -> st.SearchStrategy[Draft]:
    """The fields of a memory."""
    unit = st.sampled_from(IMPORTANCES) | st.floats(0, 1)
    pointer = st.builds(
        KnowledgePointer,
        source_type=st.sampled_from(PointerType),
        source_id=st.just("adr-1"),
        content_hash=st.just("sha256:00"),
        synced_at=moments(),
    )
    return st.fixed_dictionaries(
        {
            "content": contents(),
            "type": st.sampled_from(MemoryType),
            "importance": unit,
            "tags": st.lists(st.sampled_from(TAGS), unique=True, max_size=4).map(tuple),
            "metadata": metadata(),
            "created_at": moments(),
        },
        optional={
            "occurred_at": moments(),
            "expires_at": maybe(moments()),
            "state": st.sampled_from(State),
            "author": st.sampled_from(AUTHORS),
            "role": st.sampled_from(ROLES),
            "session": st.sampled_from(SESSIONS),
            "title": maybe(texts()),
            "description": maybe(texts()),
            "confidence": maybe(unit),
            "source": st.builds(Source, type=st.sampled_from(SourceType), reference=maybe(texts())),
            "pointer": maybe(pointer),
            "references": st.lists(texts(), max_size=3).map(tuple),
        },
    )


def sketches() -> st.SearchStrategy[Draft]:
    """Drafts of few choices, for tests that are about order: they are quick to make and to shrink."""
    return st.fixed_dictionaries(
        {
            "content": st.sampled_from(WORDS),
            "importance": st.sampled_from(IMPORTANCES),
            "tags": st.sampled_from([(), ("a",), ("a.b", "*")]),
            "created_at": st.sampled_from(MOMENTS),
            "expires_at": st.sampled_from([None, *MOMENTS]),
            "author": st.sampled_from([None, *AUTHORS[:2]]),
            "session": st.sampled_from([None, None, SESSIONS[0]]),
        }
    )


def vectors(dimension: int = 4) -> st.SearchStrategy[tuple[float, ...]]:
    """The numbers of a vector, in few directions so that many agree."""
    return st.tuples(*[st.integers(-3, 3).map(float)] * dimension).filter(any)


def questions() -> st.SearchStrategy[str]:
    """Search texts: words of the pool and names, phrases in quotes, and beginnings of words."""
    word = st.sampled_from((*WORDS, *AUTHORS))
    phrase = st.lists(st.sampled_from(WORDS), min_size=2, max_size=2).map(lambda some: f'"{" ".join(some)}"')
    beginning = st.sampled_from(("da*", "str*", "stra*", "unde*", "ista*", "na*", "οδ*", "ad*"))
    return st.lists(word | phrase | beginning, min_size=1, max_size=3).map(" ".join)


def _some(pool: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(pool), min_size=1, max_size=2, unique=True).map(tuple)


def _needles() -> st.SearchStrategy[str]:
    return (st.sampled_from(WORDS) | texts(min_size=1, max_size=3)).map(str.casefold)


CONDITIONS: dict[str, st.SearchStrategy[Any]] = {
    "types": st.frozensets(st.sampled_from(MemoryType), max_size=5),
    "tags": _some(TAGS),
    "any_tags": _some(TAGS),
    "no_tags": _some(TAGS),
    "min_importance": st.sampled_from(IMPORTANCES),
    "created_after": moments(),
    "created_before": moments(),
    "occurred_after": moments(),
    "occurred_before": moments(),
    "content_contains": _needles(),
    "text": _some(("da*", "*ark", "d*k", "str*se", "mode", "dark", "na*", "*a*e*", "strasse", "nothing")),
    "authors": _some(AUTHORS).map(frozenset),
    "source_type": st.sampled_from(SourceType),
    "has_pointer": st.booleans(),
    "metadata": metadata(),
    "include_forgotten": st.just(True),
    "now": st.sampled_from(MOMENTS),
}
"""For each condition of a ``Where`` but ``ids``, which only a test knows, its values."""


def conditions() -> st.SearchStrategy[dict[str, Any]]:
    """Up to three conditions: more would almost never be met."""
    names = st.lists(st.sampled_from(sorted(CONDITIONS)), max_size=3, unique=True)
    return names.flatmap(lambda some: st.fixed_dictionaries({n: CONDITIONS[n] for n in some}))
