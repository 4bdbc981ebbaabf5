"""Verbs that ask across all sessions of a user: topics, about, search, memories."""

from dataclasses import dataclass
from datetime import datetime

from recollect.errors import EmbeddingFailed, QueryTooLong, RateLimited
from recollect.operations.conditions import Conditions
from recollect.operations.sessions import Listing
from recollect.operations.verb import Caller, Example, Needs, Takes, Verb, argument, option
from recollect.types import Page, Ranking, Results, Sort, TagUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Tags and how many memories carry them, the most used first."""

    topics: tuple[TagUsage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """An input without fields."""


def _topics(caller: Caller, _: Every) -> Topics:
    return Topics(topics=caller.view.sessions.topics())


SESSIONS_TOPICS = Verb(
    name="sessions.topics",
    input=Every,
    output=Topics,
    run=_topics,
    needs=Needs.READ,
    examples=(Example(line="recollect sessions topics", says="the tags of all sessions, as bars"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """About what."""

    topic: str = argument("a tag; those below it count as well")


def _about(caller: Caller, given: About) -> Listing:
    return Listing(sessions=caller.view.sessions.sessions_about(given.topic))


SESSIONS_ABOUT = Verb(
    name="sessions.about",
    input=About,
    output=Listing,
    run=_about,
    needs=Needs.READ,
    examples=(Example(line="recollect sessions about security", says="the one with the most of it first"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Across(Conditions):
    include_forgotten: bool = option("forgotten ones as well", False, flag="forgotten")
    as_of: datetime | int | None = option("as it was then: a time, or a sequence of the journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(_Across):
    """What to look for in all sessions."""

    query: str = argument("what to look for, in your own words", takes=Takes.WORDS)
    limit: int = option("at most so many", 10, short="n")
    min_score: float | None = option("only with this score or more; 0 gives whatever comes nearest")
    ranking: Ranking = option("what puts one hit before another", Ranking.BEST)
    asked_at: datetime | None = option("when it was asked, for words such as yesterday")
    explain: bool = option("say what each signal added to the score", False, short="x")


def _search(caller: Caller, given: Search) -> Results:
    return caller.view.sessions.search(
        given.query,
        limit=given.limit,
        min_score=given.min_score,
        ranking=given.ranking,
        filter=given.filter(),
        as_of=given.as_of,
        asked_at=given.asked_at,
        explain=given.explain,
    )


SESSIONS_SEARCH = Verb(
    name="sessions.search",
    input=Search,
    output=Results,
    run=_search,
    needs=Needs.READ,
    errors=(QueryTooLong, EmbeddingFailed, RateLimited),
    examples=(
        Example(line="recollect sessions search which flow for web apps", says="in all sessions that there are"),
        Example(line="recollect sessions search tokens --type decision --explain", says="only decisions, and why"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memories(_Across):
    """Which page of the memories of all sessions."""

    limit: int = option("at most so many, up to 100", 50, short="n")
    cursor: str | None = option("go on behind the page that gave this cursor")
    offset: int = option("leave out so many first", 0)
    sort_by: Sort = option("the order", Sort.NEWEST, flag="sort", short="s")


def _memories(caller: Caller, given: Memories) -> Page:
    return caller.view.sessions.list_memories(
        limit=given.limit,
        cursor=given.cursor,
        offset=given.offset,
        filter=given.filter(),
        sort_by=given.sort_by,
        as_of=given.as_of,
    )


SESSIONS_MEMORIES = Verb(
    name="sessions.memories",
    input=Memories,
    output=Page,
    run=_memories,
    needs=Needs.READ,
    examples=(Example(line="recollect sessions memories --tag security", says="of all sessions, the newest first"),),
)
