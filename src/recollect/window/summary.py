"""A summary without a model: the sentences that say most of what a conversation is about, as they were said."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from recollect.text import words
from recollect.text.tokens import Meter

# After a full stop and a space, at a line break, or behind the full stops that need no space.
_BREAK = re.compile(r"(?<=[.!?])\s+|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+|(?<=[\u3002\uff01\uff1f])")
_QUOTED = re.compile(r"- (?:(system|user|assistant|tool): )?(.*)")
_SENTENCES = 10_000
"""No more are looked at, the newest: a conversation of that length is not summed up by quoting it."""


@dataclass(frozen=True)
class Sentence:
    """Something said: who said it, and the words that tell."""

    speaker: str
    text: str

    @cached_property
    def telling(self) -> frozenset[int]:
        """The stems of its words, without those such as "the"."""
        return frozenset(words.term(word) for word in words.words(self.text) if not words.is_stop(word))

    @property
    def line(self) -> str:
        """The sentence as a line of a summary."""
        return f"- {self.speaker}: {self.text}" if self.speaker else f"- {self.text}"


def sentences(speaker: str, text: str) -> list[Sentence]:
    """The sentences of a text that have words in them.

    >>> [sentence.text for sentence in sentences("user", "I like tea. Why? It is 3.5 pm...")]
    ['I like tea.', 'It is 3.5 pm...']
    """
    parts = (part.strip() for part in _BREAK.split(text))
    return [found for part in parts if part and (found := Sentence(speaker, part)).telling]


def reread(text: str) -> list[Sentence]:
    """The sentences of an earlier summary, with those who said them.

    >>> reread("So far:\\n- user: Green tea it is.")
    [Sentence(speaker='user', text='Green tea it is.')]
    """
    found: list[Sentence] = []
    for line in text.splitlines()[1:]:
        quoted = _QUOTED.fullmatch(line)
        found += sentences(quoted[1] or "", quoted[2]) if quoted else sentences("", line)
    return found


def extract(said: Sequence[Sentence], lead: str, room: int, meter: Meter) -> str | None:
    """The most telling sentences in their order, under a first line, in at most ``room`` tokens; none if none fits.

    A sentence tells much if it uses the words that are used most. Long ones are not preferred for their length alone,
    and one that uses the same words as another says nothing new.

    >>> said = sentences("user", "I like green tea. The bus was late. Green tea it is.")
    >>> print(extract(said, "So far:", 40, Meter(len)))
    So far:
    - user: I like green tea.
    """
    said = said[-_SENTENCES:]
    counts = Counter(term for sentence in said for term in sentence.telling)
    order = sorted(range(len(said)), key=lambda place: -_weight(said[place], counts))
    room_left = room - meter(lead)
    seen: set[frozenset[int]] = set()
    chosen: list[int] = []
    for place in order:
        tokens = meter("\n" + said[place].line)
        if tokens <= room_left and said[place].telling not in seen:
            room_left -= tokens
            seen.add(said[place].telling)
            chosen.append(place)
    while chosen:
        text = "\n".join((lead, *(said[place].line for place in sorted(chosen))))
        if meter(text) <= room:
            return text
        chosen.pop()  # the least telling of them: a text may take more than its parts
    return None


def _weight(sentence: Sentence, counts: Counter[int]) -> float:
    return math.fsum(counts[term] for term in sentence.telling) / math.sqrt(len(sentence.telling))
