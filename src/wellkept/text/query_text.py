"""The query parser: words, "quoted phrases", patterns such as secur* and gr?y, and names.

Every text is a valid query: anything that is not part of the syntax counts as words.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from wellkept.text import languages, words

# A quotation mark after a letter or digit opens no phrase (5" nails). A star on both sides is emphasis (*really*), a
# question mark at the end of a word ends a question. What goes on behind a pattern is something else (page?id=3).
_SYNTAX = re.compile(
    r"""
    (?<!\w) ["\u201c\u201d] (?P<quoted> [^"\u201c\u201d]* ) ["\u201c\u201d]
    | (?<![^\W_]) (?<![*?]) (?P<pattern> \*? [^\W_]++ (?: [*?] [^\W_]++ )*+ \*? ) (?![\w*=&/%])
    """,
    re.VERBOSE,
)
_LEAST = 2  # letters of a pattern
_LOOKED_UP = 64  # words that are stemmed in other languages as well
_MARKS = re.compile(r'["\u201c\u201d*]|\?(?=[^\W_])')
_WILD = re.compile(r"[*?]")
_NEW_SENTENCE = re.compile(r"\?(?=[A-Z])")
_SENTENCES = re.compile(r"""(?P<end> [.!?\u2026] ["\u201d')\]]* (?=\s) | \n ) | (?P<word> [^\W_]+ )""", re.VERBOSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A parsed query; each part in query order, without duplicates.

    ``words`` are the folded words of ``terms``, one for each. ``names`` are a subset of the terms, and so are the terms
    of ``phrases`` that are not stop words. ``patterns`` are folded and not among the terms. ``lone``: the
    whole query is one word. ``others`` are terms that words have in other languages, each with the place of its word.
    """

    terms: tuple[int, ...]
    words: tuple[str, ...]
    phrases: tuple[tuple[int, ...], ...]
    patterns: tuple[str, ...]
    names: tuple[int, ...]
    lone: bool = False
    others: tuple[tuple[int, int], ...] = ()

    @property
    def every(self) -> tuple[int, ...]:
        """All terms, those of other languages too."""
        return tuple(dict.fromkeys((*self.terms, *(term for _, term in self.others))))

    @property
    def literal(self) -> bool:
        """Whether something is wanted as it is written: a phrase or a pattern."""
        return bool(self.phrases or self.patterns)


def parse(text: str) -> Asked:
    """Parse a query. Never fails.

    >>> asked = parse('What did Ada say about "dark mode" and secur*?')
    >>> asked.words, asked.patterns
    (('ada', 'say', 'dark', 'mode'), ('secur*',))
    >>> asked.phrases == ((words.term("dark"), words.term("mode")),), asked.names == (words.term("ada"),)
    (True, True)
    """
    bare = words.unmarked(text)  # a combining accent must not end a word
    plain, quoted, patterns = _read(bare)
    said = words.tokens(plain)
    spoken = words.languages_of(said)
    detected = spoken if len(spoken) < len(languages.STOPS) else ()
    behind = _content_terms(said, detected, has_patterns=bool(patterns))
    first = detected[0] if detected else languages.ENGLISH
    phrases = (tuple(words.numbered(words.folded(part), first)) for part in quoted)
    names = {name: None for name in map(words.term, _names(bare)) if name in behind}
    return Asked(
        terms=tuple(behind),
        words=tuple(behind.values()),
        phrases=tuple(dict.fromkeys(phrase for phrase in phrases if len(phrase) > 1)),
        patterns=tuple(dict.fromkeys(patterns)),
        lone=len(said) == 1,
        names=tuple(names),
        others=tuple(_others(behind, spoken, names)),
    )


def _read(text: str) -> tuple[str, list[str], list[str]]:
    """The text without patterns, the quoted phrases, and the patterns. A wildcard within quotes is text."""
    if _MARKS.search(text) is None:  # most queries are plain words
        return text, [], []
    plain, quoted, patterns, at = [], [], [], 0
    for match in _SYNTAX.finditer(text):
        if match["pattern"] is None:
            quoted.append(match["quoted"])
        elif (pattern := _pattern(match["pattern"])) is not None:
            patterns.append(pattern)
            plain.append(text[at : match.start()])
            at = match.end()
    return " ".join([*plain, text[at:]]), quoted, patterns


def _pattern(word: str) -> str | None:
    """A word with wildcards, folded; nothing if it has none, or is emphasis, a sum, or two unspaced sentences."""
    pieces = _WILD.split(word)
    if len(pieces) == 1 or (not pieces[0] and not pieces[-1]) or _NEW_SENTENCE.search(word):
        return None
    folded = [words.words(piece) for piece in pieces]
    if any(len(one) > 1 for one in folded) or sum(len(one[0]) for one in folded if one) < _LEAST:
        return None
    if all(piece.isdigit() for piece in pieces if piece):
        return None
    letters = iter("".join(one) for one in folded)
    return next(letters) + "".join(f"{wild}{next(letters)}" for wild in _WILD.findall(word))


def _others(behind: Mapping[int, str], spoken: Sequence[str], names: Container[int]) -> Iterator[tuple[int, int]]:
    """The stems that words have in the languages the query may be in; of names in all, since they are the same."""
    for place, (term, word) in enumerate(islice(behind.items(), _LOOKED_UP)):
        known = languages.STOPS if term in names else spoken
        stems = dict.fromkeys(words.numbered([word.encode()], language)[0] for language in known)
        yield from ((place, other) for other in stems if other != term and other not in words.STOP_TERMS)


def _content_terms(found: Iterable[str], spoken: Sequence[str], *, has_patterns: bool) -> dict[int, str]:
    """The terms of words with the first word of each; stop words only if there are no other words and no patterns."""
    found = list(found)
    content_words = [word for word in found if not words.is_stop(word, spoken)]
    if any(len(word) > 1 and words.is_dense(word) for word in content_words):  # pairs say more than single characters
        content_words = [word for word in content_words if len(word) > 1 or not words.is_dense(word)]
    behind: dict[int, str] = {}
    for word in content_words if content_words or has_patterns else found:
        behind.setdefault(words.term(word), word)
    return behind


def _names(text: str) -> Iterator[str]:
    """The folded capitalised words that do not begin a sentence, without stop words such as "I"."""
    begins = True
    for match in _SENTENCES.finditer(text):
        word = match["word"]
        if word and word[0].isupper() and not begins:
            yield from (folded for folded in words.tokens(word) if not words.is_stop(folded))
        begins = word is None
