"""Verbs that read across all sessions of a user: topics, about, search, memories."""

from dataclasses import dataclass

from wellkept import fields
from wellkept.errors import EmbeddingFailed, QueryTooLong, RateLimited
from wellkept.operations.conditions import MANY, ScopedPage, ScopedSearch
from wellkept.operations.sessions import SessionList
from wellkept.operations.verb import Caller, Example, Verb, argument, result
from wellkept.types import Page, Results, TagUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Tags and how many memories have them, the most used first."""

    topics: tuple[TagUsage, ...] = result("The tags and how many memories have them, the most used first.", bounds=MANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTopics:
    """An input without fields."""


def _topics(caller: Caller, _: ListTopics) -> Topics:
    return Topics(topics=caller.view.sessions.topics())


SESSIONS_TOPICS = Verb(
    name="sessions.topics",
    input=ListTopics,
    output=Topics,
    run=_topics,
    method="Sessions.topics",
    examples=(Example(line="wellkept sessions topics", says="the tags of all sessions, as bars"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Which topic."""

    topic: str = argument("A tag; tags below it count as well.", bounds=fields.ID)


def _about(caller: Caller, given: About) -> SessionList:
    return SessionList(sessions=caller.view.sessions.sessions_about(given.topic))


SESSIONS_ABOUT = Verb(
    name="sessions.about",
    input=About,
    output=SessionList,
    run=_about,
    method="Sessions.sessions_about",
    examples=(Example(line="wellkept sessions about security", says="the one with most memories about it first"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSessions(ScopedSearch):
    """What to search for in all sessions."""


def _search(caller: Caller, given: SearchSessions) -> Results:
    return caller.view.sessions.search(given.query, **given.arguments())


SESSIONS_SEARCH = Verb(
    name="sessions.search",
    input=SearchSessions,
    output=Results,
    run=_search,
    method="Sessions.search",
    errors=(QueryTooLong, EmbeddingFailed, RateLimited),
    examples=(
        Example(line="wellkept sessions search which flow for web apps", says="in all sessions"),
        Example(line="wellkept sessions search tokens --type decision --explain", says="only decisions, and why"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMemories(ScopedPage):
    """Which page of the memories of all sessions."""


def _memories(caller: Caller, given: ListMemories) -> Page:
    return caller.view.sessions.list_memories(**given.arguments())


SESSIONS_MEMORIES = Verb(
    name="sessions.memories",
    input=ListMemories,
    output=Page,
    run=_memories,
    method="Sessions.list_memories",
    examples=(Example(line="wellkept sessions memories --tag security", says="of all sessions, the newest first"),),
)
