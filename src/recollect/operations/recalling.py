"""Verbs that find memories: search, list, count, show, context."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from recollect.errors import EmbeddingFailed, InvalidLayer, NotFound, QueryTooLong, RateLimited
from recollect.operations.verb import Caller, Example, Needs, Takes, Verb, argument, option
from recollect.types import Filter, Layer, Memory, MemoryType, Page, Ranking, Results, Sort, SourceType

_RECALLED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """Which memories to look at; every condition given must hold."""

    layers: tuple[Layer, ...] = option("only of this layer", (), flag="layer", short="l")
    types: tuple[MemoryType, ...] = option("only of this type", (), flag="type", short="t")
    tags: tuple[str, ...] = option("only with this tag, or one below it", (), flag="tag", short="T")
    any_tags: tuple[str, ...] = option("only with one of these tags", (), flag="any-tag")
    no_tags: tuple[str, ...] = option("without this tag", (), flag="no-tag")
    min_importance: float | None = option("only if it counts for so much")
    created_after: datetime | None = option("only if recorded then or later", flag="after")
    created_before: datetime | None = option("only if recorded earlier", flag="before")
    occurred_after: datetime | None = option("only if it happened then or later")
    occurred_before: datetime | None = option("only if it happened earlier")
    within: str | None = option("only if recorded in this span, such as 7d or 'last week'", short="w")
    content_contains: str | None = option("only with this text in it, whatever the case", flag="contains")
    authors: tuple[str, ...] = option("only by this author", (), flag="author")
    source_type: SourceType | None = option("only from there")
    has_pointer: bool | None = option("only with a pointer to a document, or only without")
    metadata: Mapping[str, Any] = option("only with this field of your own", {}, flag="meta", short="m")
    references: tuple[str, ...] = option("only what this id refers to", (), flag="reached-from")
    max_depth: int = option("how many references to follow", 1, flag="depth")
    include_forgotten: bool = option("forgotten ones as well", False, flag="forgotten")
    as_of: datetime | int | None = option("as it was then: a time, or a sequence of the journal")

    def filter(self) -> Filter:
        """The conditions as the engine takes them."""
        names = {one.name for one in fields(Filter)}
        given = {one.name: getattr(self, one.name) for one in fields(Narrowed) if one.name in names}
        return Filter(**{name: value for name, value in given.items() if value != ()})

    def wanted(self) -> Mapping[str, Any]:
        """The arguments that all verbs with conditions share."""
        return {"filter": self.filter(), "layers": self.layers or None, "as_of": self.as_of}


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(Narrowed):
    """What to look for."""

    query: str = argument("what to look for, in your own words", takes=Takes.WORDS)
    limit: int = option("at most so many", 10, short="n")
    min_score: float | None = option("only with this score or more; 0 gives whatever comes nearest")
    ranking: Ranking = option("what puts one hit before another", Ranking.BEST)
    asked_at: datetime | None = option("when it was asked, for words such as yesterday")
    explain: bool = option("say what each signal added to the score", False, short="x")


def _search(caller: Caller, given: Search) -> Results:
    return caller.view.search(
        given.query,
        limit=given.limit,
        min_score=given.min_score,
        ranking=given.ranking,
        asked_at=given.asked_at,
        explain=given.explain,
        **given.wanted(),
    )


SEARCH = Verb(
    name="search",
    input=Search,
    output=Results,
    run=_search,
    needs=Needs.READ,
    errors=(InvalidLayer, QueryTooLong, EmbeddingFailed, RateLimited),
    description="Scores go from 0 to 1. If nothing seems to be about the question, nothing is found.",
    examples=(
        Example(line="recollect search what theme does she like", says="by meaning and by words"),
        Example(line="recollect search theme --explain", says="why each memory was found, as bars"),
        Example(line="recollect search 'secur*' --type decision --within 30d", says="decisions of the last month"),
        Example(line="recollect search theme --json --limit 3", says="for a program"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class List(Narrowed):
    """Which page of which memories."""

    limit: int = option("at most so many, up to 100", 50, short="n")
    cursor: str | None = option("go on behind the page that gave this cursor")
    sort_by: Sort = option("the order", Sort.NEWEST, flag="sort", short="s")


def _list(caller: Caller, given: List) -> Page:
    return caller.view.list(limit=given.limit, cursor=given.cursor, sort_by=given.sort_by, **given.wanted())


LIST = Verb(
    name="list",
    input=List,
    output=Page,
    run=_list,
    needs=Needs.READ,
    errors=(InvalidLayer,),
    examples=(
        Example(line="recollect list", says="the newest fifty"),
        Example(line="recollect list --tag security --sort important", says="the most important first"),
        Example(line="recollect list --as-of 2d --forgotten", says="as it was two days ago, with forgotten ones"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many there are."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Narrowed):
    """Which memories to count."""


def _count(caller: Caller, given: Counted) -> Count:
    return Count(count=caller.view.count(**given.wanted()))


COUNT = Verb(
    name="count",
    input=Counted,
    output=Count,
    run=_count,
    needs=Needs.READ,
    errors=(InvalidLayer,),
    examples=(Example(line="recollect count --type decision --within 7d", says="the decisions of a week"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """Which memory to show."""

    id: str = argument("the id of the memory")
    as_of: datetime | int | None = option("as it was then: a time, or a sequence of the journal")
    include_forgotten: bool = option("even if it is forgotten", False, flag="forgotten")
    include_vector: bool = option("with its vector", False, flag="vector")


def _show(caller: Caller, given: Show) -> Memory:
    found = caller.view.get(
        given.id,
        as_of=given.as_of,
        include_forgotten=given.include_forgotten,
        include_vector=given.include_vector,
    )
    if found is None:
        raise NotFound(
            f"no memory {given.id[:64]!r} is visible here",
            operation="show",
            details={"memory_id": given.id[:64]},
            hint="check the id and the identity; a forgotten one shows with --forgotten (include_forgotten)",
        )
    return found


SHOW = Verb(
    name="show",
    input=Show,
    output=Memory,
    run=_show,
    needs=Needs.READ,
    errors=(NotFound,),
    examples=(
        Example(line="recollect show $ID", says="as it is"),
        Example(line="recollect show $ID --as-of 2030-01-07", says="as it was on that day"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as the clients of language models take it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """A memory that stayed out of a prompt, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What goes into the next call of a language model, and what it takes of the budget."""

    text: str
    messages: tuple[Message, ...]
    budget_tokens: int
    total_tokens: int
    tokens_by_part: Mapping[str, int] = field(default_factory=dict)
    included: tuple[str, ...] = ()
    left_out: tuple[Omitted, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the next call of a language model is about, and how much room there is."""

    query: str = argument("what the next call is about", takes=Takes.WORDS)
    budget_tokens: int = option("what the prompt may take", 2_000, flag="budget", short="b")
    encoding: str | None = option("count as this vocabulary does, such as o200k_base; needs recollect[tokens]")


def _context(caller: Caller, given: Context) -> Prompt:
    from recollect.tokens import bpe_counter, by_characters  # lazy: only this verb needs it
    from recollect.window import ContextWindow, RecalledMemory  # lazy: as above

    view = caller.view
    window = ContextWindow(
        given.budget_tokens,
        counter=by_characters if given.encoding is None else bpe_counter(given.encoding),
        clock=lambda: datetime.now(UTC),
        recall=lambda query: [RecalledMemory.of(hit) for hit in view.search(query, limit=_RECALLED)],
    )
    composed = window.compose(given.query, budget_tokens=given.budget_tokens)
    receipt = composed.receipt
    return Prompt(
        text=composed.text,
        messages=tuple(Message(role=role, content=content) for role, content in composed.pairs),
        budget_tokens=receipt.budget_tokens,
        total_tokens=receipt.total_tokens,
        tokens_by_part={part.value: tokens for part, tokens in receipt.tokens_by_part.items()},
        included=tuple(placed.id for placed in receipt.included),
        left_out=tuple(Omitted(id=left.id, reason=left.reason.value) for left in receipt.left_out),
    )


CONTEXT = Verb(
    name="context",
    input=Context,
    output=Prompt,
    run=_context,
    needs=Needs.READ,
    errors=(QueryTooLong, EmbeddingFailed, RateLimited),
    examples=(
        Example(line="recollect context what theme does she like --budget 500", says="at most 500 tokens"),
        Example(line="recollect context theme --json", says="as messages, with a receipt"),
    ),
)
