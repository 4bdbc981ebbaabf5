"""Filters as pure functions: from what a caller writes to what every store must answer alike."""

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache, lru_cache, partial
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from wellkept import codec, validation
from wellkept.errors import InvalidInput
from wellkept.text import words
from wellkept.types import Filter, Memory, MemoryType, Owner, Place, Sort, SourceType, State, Stored, Tier
from wellkept.types.memory import DEFAULT_TRUST
from wellkept.types.stored import ACCESS_POLICY

E = TypeVar("E", bound=StrEnum)

MAX_DEPTH = 10
_AUTHORS = 1_000
_CHOICES = 1_000
_UNITS = MappingProxyType(
    {
        "s": timedelta(seconds=1),
        "second": timedelta(seconds=1),
        "m": timedelta(minutes=1),
        "minute": timedelta(minutes=1),
        "h": timedelta(hours=1),
        "hour": timedelta(hours=1),
        "d": timedelta(days=1),
        "day": timedelta(days=1),
        "w": timedelta(weeks=1),
        "week": timedelta(weeks=1),
        "month": timedelta(days=30),
        "y": timedelta(days=365),
        "year": timedelta(days=365),
    }
)
_PATTERNS = 20
# Compiled by the first filter that needs them: most need none.
_PATTERN = r"(?:[^\W_]|\*|\?(?=[^\W_]|\*))+"
_STARS = r"\*+"
_WILD = r"([*?])"
_RELATIVE = r"(?i)(?:last\s+)?(\d{1,6})?\s*([a-z]+)"


ACTIVE = frozenset({State.ACTIVE})
"""The states of what takes part in recall."""

KEPT = frozenset({State.ACTIVE, State.SUPERSEDED})
"""The states of what can be read by its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A checked filter with absolute times: what stores evaluate, as of ``now``.

    ``states`` are those that a memory may have, ``None`` for any; a memory past its expiry matches only then.
    ``without`` are ids that do not match whatever else holds. ``pattern`` is what a word of the title, the content or
    the author looks like, folded and with wildcards, as recall asks for it. ``has_access_policy`` is asked by the
    engine alone.
    """

    now: datetime
    types: frozenset[MemoryType] | None = None
    tiers: frozenset[Tier] | None = None
    tags: tuple[str, ...] = ()
    any_tags: tuple[str, ...] = ()
    no_tags: tuple[str, ...] = ()
    min_importance: float | None = None
    min_trust: float | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    occurred_after: datetime | None = None
    occurred_before: datetime | None = None
    content_contains: str | None = None
    text: tuple[str, ...] = ()
    pattern: str | None = None
    authors: frozenset[str] | None = None
    source_type: SourceType | None = None
    has_pointer: bool | None = None
    has_access_policy: bool | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    ids: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    states: frozenset[State] | None = ACTIVE


def resolve(wanted: Filter, now: datetime) -> Where:
    """Check a filter and make its times absolute.

    ``references`` are not resolved here: the engine follows them and sets ``ids``.
    """
    created_after = validation.optional_moment("filter.created_after", wanted.created_after)
    if wanted.within is not None:
        earliest = _before(now, relative(wanted.within))
        created_after = max(created_after, earliest) if created_after else earliest
    validation.integer("filter.max_depth", wanted.max_depth, 1, MAX_DEPTH)
    return Where(
        now=now,
        types=_choices("types", MemoryType, wanted.types),
        tiers=_choices("tiers", Tier, wanted.tiers),
        tags=validation.tags(wanted.tags, "filter.tags"),
        any_tags=validation.tags(wanted.any_tags, "filter.any_tags"),
        no_tags=validation.tags(wanted.no_tags, "filter.no_tags"),
        min_importance=validation.optional_unit("filter.min_importance", wanted.min_importance),
        min_trust=validation.optional_unit("filter.min_trust", wanted.min_trust),
        created_after=created_after,
        created_before=validation.optional_moment("filter.created_before", wanted.created_before),
        occurred_after=validation.optional_moment("filter.occurred_after", wanted.occurred_after),
        occurred_before=validation.optional_moment("filter.occurred_before", wanted.occurred_before),
        content_contains=_needle(wanted.content_contains),
        text=() if wanted.text is None else patterns(wanted.text),
        authors=None
        if wanted.authors is None
        else frozenset(validation.lines("filter.authors", wanted.authors, _AUTHORS)),
        source_type=None
        if wanted.source_type is None
        else validation.choice("filter.source_type", SourceType, wanted.source_type),
        has_pointer=None if wanted.has_pointer is None else validation.flag("filter.has_pointer", wanted.has_pointer),
        metadata=validation.metadata(wanted.metadata, "filter.metadata"),
        states=_states(wanted),
    )


def _states(wanted: Filter) -> frozenset[State] | None:
    archived = validation.flag("filter.include_archived", wanted.include_archived)
    superseded = validation.flag("filter.include_superseded", wanted.include_superseded)
    quarantined = validation.flag("filter.include_quarantined", wanted.include_quarantined)
    if validation.flag("filter.include_forgotten", wanted.include_forgotten):
        return None
    states = ((State.ARCHIVED, archived), (State.SUPERSEDED, superseded), (State.QUARANTINED, quarantined))
    wanted_too = [state for state, asked in states if asked]
    return ACTIVE.union(wanted_too) if wanted_too else ACTIVE


def _before(now: datetime, span: timedelta) -> datetime:
    try:
        return now - span
    except OverflowError:  # longer ago than there is a calendar: everything is within it
        return datetime.min.replace(tzinfo=UTC) if span > timedelta() else datetime.max.replace(tzinfo=UTC)


def _choices(name: str, kind: type[E], values: Iterable[E | str] | None) -> frozenset[E] | None:
    if values is None:
        return None
    given = (values,) if isinstance(values, str) else validation.batch(f"filter.{name}", values, _CHOICES)
    return frozenset(validation.choice(f"filter.{name}", kind, value) for value in given)


def _needle(value: str | None) -> str | None:
    return None if value is None else validation.content(value, "filter.content_contains").casefold()


def patterns(value: object) -> tuple[str, ...]:
    """The words of a text as recall folds them, each once; ``*`` and, within a word, ``?`` are kept.

    >>> patterns("Secur* of the Caf\u00e9")
    ('secur*', 'of', 'the', 'cafe')
    """
    found: dict[str, None] = {}
    for word in re.findall(_PATTERN, words.unmarked(validation.line("filter.text", value))):
        if "*" in word or "?" in word:
            found[pattern(word)] = None
        else:
            found.update(dict.fromkeys(words.words(word)))
    found.pop("*", None)  # any word at all
    if not 1 <= len(found) <= _PATTERNS:
        raise InvalidInput(
            f"filter.text has {len(found)} words, from 1 to {_PATTERNS} are possible",
            details={"field": "filter.text"},
            hint="use words such as 'oauth' or 'secur*'",
        )
    return tuple(found)


def pattern(word: str) -> str:
    """A word with wildcards as recall folds words: ``*`` stands for any characters, ``?`` for one.

    >>> pattern("Caf\u00e9**s"), pattern("Gr?y")
    ('cafe*s', 'gr?y')
    """
    pieces = re.split(_WILD, word)  # every other one is a wildcard
    folded = (piece if place % 2 else "".join(words.words(piece)) for place, piece in enumerate(pieces))
    return re.sub(_STARS, "*", "".join(folded))


def relative(value: object) -> timedelta:
    """A span of time: itself, or what a text such as ``7d``, ``last hour`` or ``last 30 days`` means.

    >>> relative("last 7 days").days
    7
    """
    if isinstance(value, timedelta):
        return value
    match = re.fullmatch(_RELATIVE, value.strip()) if isinstance(value, str) else None
    name = match[2].lower() if match else ""
    unit = _UNITS.get(name.removesuffix("s") if len(name) > 3 else name)  # "days", but not "ms"
    if match is None or unit is None or (match[1] is None and "last" not in match[0].lower()):
        raise InvalidInput(
            "within is not a span of time",
            details={"field": "filter.within"},
            hint="use a timedelta or a text such as '7d', '12h', 'last week', 'last 30 days'",
        )
    return int(match[1] or 1) * unit


def visible(memory: Memory, now: datetime) -> bool:
    """Whether a memory takes part in recall: active, and not past its expiry."""
    return memory.state is State.ACTIVE and (memory.expires_at is None or memory.expires_at > now)


def visible_at(stored: Stored, now: int) -> bool:
    """Whether a stored memory can be read by its id, at a time in microseconds since 1970: superseded ones can."""
    facets = stored.facets
    return facets["state"] in KEPT and ((end := facets.get("expires_at")) is None or end > now)


def tagged(tags: tuple[str, ...], wanted: str) -> bool:
    """Whether a tag, or one below it in the hierarchy, is there.

    >>> tagged(("security.authentication",), "security"), tagged(("security",), "sec")
    (True, False)
    """
    below = f"{wanted}."
    for tag in tags:  # noqa: SIM110  # a third of the time of a generator in any()
        if tag == wanted or tag.startswith(below):
            return True
    return False


def anything(where: Where) -> bool:
    """Whether a filter asks for nothing but what takes part in recall."""
    return where.states == ACTIVE and len(conditions(where)) == 1


Condition = Callable[[Stored], bool]


def matches(stored: Stored, where: Where) -> bool:
    """Whether a memory meets every condition. The definition that all journals are compared with.

    Conditions on the content of a memory whose text is sealed are met: the engine applies them to what it opened.
    """
    return matching(where)(stored)


def matching(where: Where) -> Condition:
    """``matches`` for many memories: what a filter does not ask for costs nothing."""
    asked = conditions(where)
    if not asked:
        return lambda stored: True  # noqa: ARG005  # anything
    if len(asked) == 1:
        return asked[0]

    def fits(stored: Stored) -> bool:
        for condition in asked:  # noqa: SIM110  # a third of the time of a generator in all()
            if not condition(stored):
                return False
        return True

    return fits


def conditions(where: Where) -> list[Condition]:
    """What a filter asks for, the cheap and selective conditions first."""
    asked: list[Condition] = []
    if (ids := where.ids) is not None:
        asked.append(lambda stored: stored.id in ids)
    if without := where.without:
        asked.append(lambda stored: stored.id not in without)
    if (types := where.types) is not None:
        asked.append(lambda stored: stored.facets["type"] in types)
    if (tiers := where.tiers) is not None:
        asked.append(lambda stored: stored.facets["tier"] in tiers)
    asked += _at_least(where)
    asked += _in_time(where)
    if where.tags or where.any_tags or where.no_tags:
        fits = cache(partial(has_tags, where=where))  # many memories have the same tags
        asked.append(lambda stored: fits(tuple(stored.facets.get("tags", ()))))
    if (authors := where.authors) is not None:
        asked.append(lambda stored: stored.facets.get("author") in authors)
    if (source_type := where.source_type) is not None:
        asked.append(lambda stored: stored.facets.get("source_type") == source_type)
    asked += _flagged(where)
    if (states := where.states) is not None:
        asked.append(partial(_shown, states=states, now=codec.to_micros(where.now)))
    asked += [partial(_has_field, name=name, value=value) for name, value in where.metadata.items()]
    if (needle := where.content_contains) is not None:
        asked.append(lambda stored: (text := stored.facets.get("text")) is None or contains(text, needle))
    if where.text:
        worded = wording(where.text)
        asked.append(lambda stored: (text := stored.facets.get("text")) is None or worded(text))
    if where.pattern is not None:
        asked.append(partial(_has_pattern, wanted=(where.pattern,)))
    return asked


def _has_pattern(stored: Stored, wanted: tuple[str, ...]) -> bool:
    facets = stored.facets
    text = facets.get("text")
    return text is None or has_words(words.searchable(text, facets.get("title"), facets.get("author")), wanted)


def _shown(stored: Stored, states: frozenset[State], now: int) -> bool:
    expires_at = stored.facets.get("expires_at")
    return stored.facets["state"] in states and (expires_at is None or expires_at > now)


def _at_least(where: Where) -> Iterator[Condition]:
    if (important := where.min_importance) is not None:
        yield lambda stored: stored.facets["importance"] >= important
    if (trusted := where.min_trust) is not None:
        yield lambda stored: stored.facets.get("trust", DEFAULT_TRUST) >= trusted


def _flagged(where: Where) -> Iterator[Condition]:
    if (pointing := where.has_pointer) is not None:
        yield lambda stored: stored.facets.get("has_pointer", False) is pointing
    if (policied := where.has_access_policy) is not None:
        yield lambda stored: (ACCESS_POLICY in stored.facets) is policied


def _in_time(where: Where) -> Iterator[Condition]:
    for name, after, before in (
        ("created_at", where.created_after, where.created_before),
        ("occurred_at", where.occurred_after, where.occurred_before),
    ):
        if after is not None:
            yield partial(_not_before, name=name, moment=codec.to_micros(after))
        if before is not None:
            yield partial(_before_moment, name=name, moment=codec.to_micros(before))


def _not_before(stored: Stored, name: str, moment: int) -> bool:
    return bool(stored.facets[name] >= moment)


def _before_moment(stored: Stored, name: str, moment: int) -> bool:
    return bool(stored.facets[name] < moment)


def has_tags(tags: tuple[str, ...], where: Where) -> bool:
    """Whether tags are such as a filter asks for."""
    fits = partial(tagged, tags)
    if not all(map(fits, where.tags)) or any(map(fits, where.no_tags)):
        return False
    return not where.any_tags or any(map(fits, where.any_tags))


def contains(content: str, folded: str) -> bool:
    """Whether the content has the (already case-folded) text in it."""
    return folded in content.casefold()


def has_words(content: str, wanted: Iterable[str]) -> bool:
    """Whether the content has a word for each of the ``patterns``.

    >>> has_words("Security first", ("first", "sec*ty")), has_words("Security", ("cur*",))
    (True, False)
    """
    return wording(wanted)(content)


def wording(wanted: Iterable[str]) -> Callable[[str], bool]:
    """``has_words`` for many texts."""
    looked_for = [_looked_for(pattern) for pattern in wanted]
    letters = [piece.strip(" ") for one in looked_for for piece in one.pieces]

    def fits(content: str) -> bool:
        if content.isascii():  # most texts have not even the letters, and looking for those takes a fifth of the time
            lowered = content.lower()
            for piece in letters:
                if piece not in lowered:
                    return False
        spaced = words.spaced(content)
        return all(one.is_in(spaced) for one in looked_for)

    return fits


class _LookedFor(NamedTuple):
    """A word, or a pattern with wildcards: the pieces that must stand somewhere, and how they make up one word.

    Most texts have not even the pieces, and looking for those takes a tenth of the time.
    """

    pieces: tuple[str, ...]
    whole: re.Pattern[str] | None = None

    def is_in(self, spaced: str) -> bool:
        return all(piece in spaced for piece in self.pieces) and (self.whole is None or bool(self.whole.search(spaced)))


@lru_cache(maxsize=1_000)
def _looked_for(pattern: str) -> _LookedFor:
    """Each piece is taken at its earliest place and stays there, so that no pattern takes longer than reading a word
    once.
    """
    pieces = re.split(r"[*?]", f" {pattern} ")
    if len(pieces) == 1:
        return _LookedFor(tuple(pieces))
    first, *rest = (re.escape(piece).replace(r"\?", "[^ ]") for piece in pattern.split("*"))
    within = "".join(f"(?>[^ ]*?{piece})" for piece in rest[:-1])
    ending = f"[^ ]*{rest[-1]}" if rest else ""
    whole = re.compile(f" (?=[^ ]){first}{within}{ending} ")  # a word has a letter
    return _LookedFor(tuple(piece for piece in pieces if piece.strip()), whole)


def _has_field(stored: Stored, name: str, value: Any) -> bool:
    fields = stored.facets.get("fields", {})
    # What is the same is equal, too, and most fields are not even that.
    return name in fields and fields[name] == value and same_json(fields[name], value)


def has_fields(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether the metadata has every wanted field with exactly that JSON value."""
    for name, value in wanted.items():  # noqa: SIM110  # a third of the time of a generator in all()
        if name not in metadata or not same_json(metadata[name], value):
            return False
    return True


def same_json(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same; true is not 1, but 1 is 1.0.

    >>> same_json(True, 1), same_json({"a": [1]}, {"a": [1.0]})
    (False, True)
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def sort_value(stored: Stored, sort: Sort) -> float:
    """What a listing is ordered by before the order of recording; smaller comes first."""
    return SORT_VALUES[sort](stored)


SORT_VALUES: Mapping[Sort, Callable[[Stored], float]] = MappingProxyType(
    {
        Sort.NEWEST: lambda stored: 0.0,  # noqa: ARG005  # the order of recording decides
        Sort.OLDEST: lambda stored: 0.0,  # noqa: ARG005  # as above
        Sort.IMPORTANT: lambda stored: -stored.facets["importance"],
        Sort.MOST_ACCESSED: lambda stored: -stored.access_count,
        Sort.RECENTLY_ACCESSED: lambda stored: -(stored.last_accessed_at or 0),
    }
)
"""``sort_value`` for many memories."""


def place_of(stored: Stored, value: float) -> Place:
    """The place of a memory in a listing."""
    return Place(value, stored.born_at, stored.owner, stored.born)


def page(
    found: Iterable[Stored],
    sort: Sort,
    *,
    after: Place | None,
    offset: int,
    limit: int | None,
    value: Callable[[Stored], float] | None = None,
) -> list[Stored]:
    """What one page takes of all memories that match, in its order; of equals the newest first, unless the oldest are
    asked for. ``value`` stands for an order that no store knows.
    """
    value_of = value or SORT_VALUES[sort]
    sign = 1 if sort is Sort.OLDEST else -1
    placed = ((_rank(place_of(one, value_of(one)), sign), one) for one in found)
    if after is not None:
        last = _rank(after, sign)
        placed = ((rank, one) for rank, one in placed if rank > last)
    if limit is None:
        return [one for _, one in sorted(placed, key=itemgetter(0))[offset:]]
    first = heapq.nsmallest(offset + limit, placed, key=itemgetter(0))
    return [one for _, one in first[offset:]]


def _rank(place: Place, sign: int) -> tuple[float, int, "_Name", int]:
    return place.value, sign * place.born_at, _name(place.owner, sign), sign * place.born


class _Name(NamedTuple):
    """An owner's name that sorts upwards or downwards: texts have no sign."""

    text: str
    sign: int

    def __lt__(self, other: "_Name") -> bool:  # type: ignore[override]  # only names are compared
        return self.text < other.text if self.sign > 0 else self.text > other.text

    def __gt__(self, other: "_Name") -> bool:  # type: ignore[override]  # as above
        return other < self


@lru_cache
def _name(owner: Owner, sign: int) -> _Name:
    """The name of an owner, which thousands of memories in a row may have."""
    return _Name(codec.encode_owner(owner), sign)
