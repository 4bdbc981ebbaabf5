"""The query parser: words, "quoted phrases", prefixes such as secur*, and names.

Every text is a valid query: anything that is not part of the syntax counts as words.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from recollect.text import words

# A quotation mark after a letter or digit opens no phrase (5" nails). A star makes a prefix only at the end of a word,
# and not on both sides (*emphasis*).
_SYNTAX = re.compile(
    r"""
    (?<!\w) ["\u201c\u201d] (?P<quoted> [^"\u201c\u201d]* ) ["\u201c\u201d]
    | (?<![^\W_]) (?<!\*) (?P<prefix> [^\W_]{2,}+ ) \* (?![\w*])
    """,
    re.VERBOSE,
)
_MARKS = re.compile(r'["\u201c\u201d*]')
_SENTENCES = re.compile(r"""(?P<end> [.!?\u2026] ["\u201d')\]]* (?=\s) | \n ) | (?P<word> [^\W_]+ )""", re.VERBOSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A parsed query; each part in query order, without duplicates.

    ``words`` are the folded words of ``terms``, one for each. ``names`` are a subset of the terms, and so are the terms
    of ``phrases`` that are not stop words. ``prefixes`` are folded and not among the terms.
    """

    terms: tuple[int, ...]
    words: tuple[str, ...]
    phrases: tuple[tuple[int, ...], ...]
    prefixes: tuple[str, ...]
    names: tuple[int, ...]

    @property
    def literal(self) -> bool:
        """Whether something is wanted as it is written: a phrase or a prefix."""
        return bool(self.phrases or self.prefixes)


def parse(text: str) -> Asked:
    """Parse a query. Never fails.

    >>> asked = parse('What did Ada say about "dark mode" and secur*?')
    >>> asked.words, asked.prefixes
    (('ada', 'say', 'dark', 'mode'), ('secur',))
    >>> asked.phrases == ((words.term("dark"), words.term("mode")),), asked.names == (words.term("ada"),)
    (True, True)
    """
    bare = words.unmarked(text)  # a combining accent must not end a word
    plain, quoted, prefixes = _read(bare)
    said = words.words(words.uncontracted(plain)) or words.words(plain)
    behind = _content_terms(said, has_prefixes=bool(prefixes))
    phrases = (tuple(words.terms(part)) for part in quoted)
    return Asked(
        terms=tuple(behind),
        words=tuple(behind.values()),
        phrases=tuple(dict.fromkeys(phrase for phrase in phrases if len(phrase) > 1)),
        prefixes=tuple(dict.fromkeys(prefixes)),
        names=tuple(dict.fromkeys(name for name in map(words.term, _names(bare)) if name in behind)),
    )


def _read(text: str) -> tuple[str, list[str], list[str]]:
    """The text without prefixes, the quoted phrases, and the prefixes. A star within quotes is text."""
    if _MARKS.search(text) is None:  # most queries are plain words
        return text, [], []
    plain, quoted, prefixes, at = [], [], [], 0
    for match in _SYNTAX.finditer(text):
        if match["prefix"] is None:
            quoted.append(match["quoted"])
            continue
        folded = words.words(match["prefix"])
        if len(folded) == 1 and len(folded[0]) > 1:
            prefixes += folded
            plain.append(text[at : match.start()])
            at = match.end()
    return " ".join([*plain, text[at:]]), quoted, prefixes


def _content_terms(found: Iterable[str], *, has_prefixes: bool) -> dict[int, str]:
    """The terms of words with the first word of each; stop words only if there are no other words and no prefixes."""
    found = list(found)
    content_words = [word for word in found if not words.is_stop(word)]
    behind: dict[int, str] = {}
    for word in content_words if content_words or has_prefixes else found:
        behind.setdefault(words.term(word), word)
    return behind


def _names(text: str) -> Iterator[str]:
    """The folded capitalised words that do not begin a sentence, without stop words such as "I"."""
    begins = True
    for match in _SENTENCES.finditer(text):
        word = match["word"]
        if word and word[0].isupper() and not begins:
            yield from (folded for folded in words.words(word) if not words.is_stop(folded))
        begins = word is None
