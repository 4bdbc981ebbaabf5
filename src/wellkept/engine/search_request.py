"""A search as a caller asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from wellkept import layers, validation
from wellkept.errors import InvalidInput, QueryTooLong
from wellkept.types import DecayPolicy, Layer, Layers, Owner, Ranking

QUERY_CHARACTERS = 32_768

_RESULTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search as it was asked for, checked."""

    text: str
    limit: int
    min_score: float | None
    ranking: Ranking
    explain: bool
    asked_at: datetime
    per_layer: int | None = None
    precedence: tuple[Layer, ...] = tuple(Layer)
    overridden: bool = False
    policies: Mapping[Owner, DecayPolicy] = field(default_factory=dict)


def checked(
    text: object,
    *,
    limit: int,
    per_layer: int | None,
    min_score: float | None,
    mode: Ranking | str,
    explain: bool,
    asked_at: datetime | None,
    now: datetime,
    precedence: Layers | None = None,
    overridden: bool = False,
) -> Search:
    """Refuse what makes no sense."""
    _check(text)
    validation.flag("explain", explain)
    return Search(
        text=str(text),
        limit=validation.integer("limit", limit, 1, _RESULTS),
        per_layer=None if per_layer is None else validation.integer("limit_per_layer", per_layer, 1, _RESULTS),
        min_score=None if min_score is None else validation.unit("min_score", min_score),
        ranking=validation.choice("ranking", Ranking, mode),
        explain=explain,
        precedence=_ranked(precedence),
        overridden=validation.flag("overridden", overridden),
        asked_at=now if asked_at is None else validation.moment("asked_at", asked_at),
    )


def _ranked(given: Layers | None) -> tuple[Layer, ...]:
    """All layers in the order in which they take precedence; those that are not named come last, as usual."""
    named = (given,) if isinstance(given, str) else validation.batch("precedence", given or (), 1_000)
    first = dict.fromkeys(layers.parse_layer(name) for name in named)
    return (*first, *(layer for layer in Layer if layer not in first))


def _check(text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("query is empty", details={"field": "query"}, hint="say what to look for")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            "query contains unpaired surrogates",
            details={"field": "query"},
            hint="decode it with errors='replace' first",
        ) from None
    if len(text) > QUERY_CHARACTERS:
        raise QueryTooLong(
            f"query has {len(text)} characters, the limit is {QUERY_CHARACTERS}",
            details={"field": "query", "limit": QUERY_CHARACTERS},
            hint="search for the few sentences that matter",
        )
