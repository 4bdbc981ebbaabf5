"""What is worth keeping of a conversation, by rule: sentences that are plainly a preference, a decision, a correction
or a dated event.

A rule knows a few words of English. It would rather miss a sentence than keep chatter: a function of your own, such as
one that asks a language model, finds more.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from wellkept.text import dates
from wellkept.types import Memory, MemoryType

_SHORTEST, _LONGEST = 8, 400  # characters of a sentence
_SPEAKER = "user"


class Statement(NamedTuple):
    """A sentence that is worth keeping, and the kind of thing that it is."""

    content: str
    type: MemoryType


def statements(turn: Memory) -> Iterator[Statement]:
    """The sentences of a turn that are worth keeping. What assistants and tools say is no news about the user.

    >>> from wellkept.testing.builders import START, owner
    >>> turn = Memory(
    ...     id="m1",
    ...     content="Hi there! I prefer tea. Could you look it up? We decided to use PostgreSQL.",
    ...     owner=owner("ada"),
    ...     created_at=START,
    ...     updated_at=START,
    ...     occurred_at=START,
    ...     role="user",
    ... )
    >>> [(one.content, one.type.value) for one in statements(turn)]
    [('I prefer tea.', 'preference'), ('We decided to use PostgreSQL.', 'decision')]
    """
    if turn.role != _SPEAKER:
        return
    for sentence in _sentences(turn.content):
        kind = _kind(sentence, turn)
        if kind is not None:
            yield Statement(sentence, kind)


def _sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.lstrip().startswith((">", "```")):  # quoted from somebody else, or code
            continue
        for sentence in _ends().split(line):
            plain = sentence.strip()
            if _SHORTEST <= len(plain) <= _LONGEST and not plain.endswith("?"):
                yield plain


def _kind(sentence: str, turn: Memory) -> MemoryType | None:
    if _doubts().search(sentence):
        return None
    for kind, pattern in (
        (MemoryType.CORRECTION, _corrections()),
        (MemoryType.DECISION, _decisions()),
        (MemoryType.PREFERENCE, _preferences()),
    ):
        if pattern.search(sentence):
            return kind
    at = turn.occurred_at
    dated = dates.ranges(sentence, asked_at=at, first=at, last=at)
    return MemoryType.EVENT if dated and _happens().search(sentence) else None


@cache
def _ends() -> re.Pattern[str]:
    return re.compile(r"(?<=[.!?])\s+")


@cache
def _doubts() -> re.Pattern[str]:
    """What is only supposed, asked or told of others."""
    return re.compile(r"(?i)^(?:if|what if|maybe|perhaps|suppose|imagine|would|could|should|can|do|does|did|is|are)\b")


@cache
def _corrections() -> re.Pattern[str]:
    return re.compile(
        r"(?i)^(?:no|actually|wait|sorry|correction)\b[,:]"
        r"|\b(?:that's|that is|this is|it's|it is) (?:wrong|incorrect|not right|not true|a mistake)\b"
        r"|\bi meant\b|\bi misspoke\b"
    )


@cache
def _decisions() -> re.Pattern[str]:
    return re.compile(
        r"(?i)\b(?:i|we)(?:'ve| have)? (?:decided|agreed|chose|chosen|settled) (?:to|on|that|for)\b"
        r"|\b(?:i|we)(?:'ll| will| are going to|'re going to) (?:use|go with|switch to|move to|adopt|drop)\b"
        r"|\blet's (?:use|go with|switch to|stick with|drop)\b|\bthe decision is\b"
    )


@cache
def _preferences() -> re.Pattern[str]:
    return re.compile(
        r"(?i)\b(?:i|we) (?:really |strongly |always |usually |much )?(?:prefer|like|love|enjoy|hate|dislike)\b"
        r"|\b(?:i|we) (?:don't|do not|can't|cannot) (?:like|stand|eat|drink)\b"
        r"|\bmy favou?rite\b|\bplease (?:always|never|call me)\b|\b(?:i|we) (?:always|never) (?:use|want|eat|drink)\b"
        r"|^call me\b|\bi'm allergic to\b|\bi am allergic to\b"
    )


@cache
def _happens() -> re.Pattern[str]:
    return re.compile(r"(?i)\b(?:i|we|my|our)\b")
