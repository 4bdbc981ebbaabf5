"""Extractive summary: select the sentences with the most frequent terms, without a model."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from wellkept.text import words
from wellkept.text.tokens import Meter

# After a full stop and a space, at a line break, or after the full stops of scripts without spaces.
_BREAK = re.compile(r"(?<=[.!?])\s+|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+|(?<=[\u3002\uff01\uff1f])")
_QUOTED = re.compile(r"- (?:(system|user|assistant|tool): )?(.*)")
_SENTENCES = 10_000
"""Only the newest ones are scored, to bound the work."""


@dataclass(frozen=True)
class Sentence:
    """A sentence and its speaker."""

    speaker: str
    text: str

    @cached_property
    def terms(self) -> frozenset[int]:
        """Its terms without stop words."""
        return frozenset(words.term(word) for word in words.tokens(self.text) if not words.is_stop(word))

    @property
    def line(self) -> str:
        """The sentence as a line of the summary."""
        return f"- {self.speaker}: {self.text}" if self.speaker else f"- {self.text}"


def sentences(speaker: str, text: str) -> list[Sentence]:
    """The sentences of a text, without those made only of stop words.

    >>> [sentence.text for sentence in sentences("user", "I like tea. Why? It is 3.5 pm...")]
    ['I like tea.', 'It is 3.5 pm...']
    """
    parts = (part.strip() for part in _BREAK.split(text))
    return [found for part in parts if part and (found := Sentence(speaker, part)).terms]


def reread(text: str) -> list[Sentence]:
    """The sentences of an earlier summary, with their speakers.

    >>> reread("So far:\\n- user: Green tea it is.")
    [Sentence(speaker='user', text='Green tea it is.')]
    """
    found: list[Sentence] = []
    for line in text.splitlines()[1:]:
        quoted = _QUOTED.fullmatch(line)
        found += sentences(quoted[1] or "", quoted[2]) if quoted else sentences("", line)
    return found


def extract(said: Sequence[Sentence], lead: str, room: int, meter: Meter) -> str | None:
    """The highest-scoring sentences in their order, under a lead line, within ``room`` tokens; ``None`` if none fits.

    The score is the summed frequency of a sentence's terms, normalised by the square root of their number. A sentence
    with the same terms as one already selected is skipped.

    >>> said = sentences("user", "I like green tea. The bus was late. Green tea it is.")
    >>> print(extract(said, "So far:", 40, Meter(len)))
    So far:
    - user: I like green tea.
    """
    said = said[-_SENTENCES:]
    counts = Counter(term for sentence in said for term in sentence.terms)
    order = sorted(range(len(said)), key=lambda place: -_weight(said[place], counts))
    room_left = room - meter(lead)
    seen: set[frozenset[int]] = set()
    chosen: list[int] = []
    for place in order:
        tokens = meter("\n" + said[place].line)
        if tokens <= room_left and said[place].terms not in seen:
            room_left -= tokens
            seen.add(said[place].terms)
            chosen.append(place)
    while chosen:
        text = "\n".join((lead, *(said[place].line for place in sorted(chosen))))
        if meter(text) <= room:
            return text
        chosen.pop()  # the lowest score: a text may take more tokens than the sum of its parts
    return None


def _weight(sentence: Sentence, counts: Counter[int]) -> float:
    return math.fsum(counts[term] for term in sentence.terms) / math.sqrt(len(sentence.terms))
