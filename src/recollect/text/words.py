"""Tokenisation for keyword search, the same in every store.

A term is a 32-bit hash of the stem of a word. Hashes keep the index small, and an erased memory leaves no vocabulary
behind.
"""

import re
import sys
import unicodedata
import zlib
from array import array
from collections.abc import Iterable, Sequence

import Stemmer

_WORD = re.compile(r"[^\W_]+")
_FOLDED = bytes(ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 32 for code in range(256))
_STOP = frozenset(
    """a about am an and are as at be been being but by can could did do does doing for from had has have having he her
    hers him his how i if in into is it its me my of on or our she should so some such than that the their them then
    there these they this those to was we were what when where which while who whom whose why will with would you
    your""".split()
)


_NEGATED = re.compile(r"\b[^\W_]+n['\u2019]t\b", re.IGNORECASE)
_ENDINGS = re.compile(r"(?<=[^\W_])['\u2019](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)

TERM_BYTES = 4
"""The size of a packed term."""

_KEPT = 65_536
_PAIRED_MARKS = "\u0f73\u0f75\u0f81"  # Tibetan vowels that decompose into two combining marks


def words(text: str) -> list[str]:
    """The words of a text, case-folded and without diacritics.

    >>> words("Dark-mode at the Café!")
    ['dark', 'mode', 'at', 'the', 'cafe']
    """
    if text.isascii():  # the same words, ten times as fast as the pattern
        return text.encode().translate(_FOLDED).decode().split()
    # Marks are removed first: normalisation sorts them, which takes seconds for thousands on one letter.
    decomposed = unicodedata.normalize("NFKD", unmarked(text.casefold()))
    return _WORD.findall("".join(letter for letter in decomposed if not unicodedata.combining(letter)))


def spaced(text: str) -> str:
    """The ``words`` of a text joined and surrounded by spaces, for fast substring checks.

    >>> " mode " in spaced("Dark-mode!"), " mode " in spaced("Modest")
    (True, False)
    """
    if text.isascii():
        return f" {text.encode().translate(_FOLDED).decode()} "
    return f" {' '.join(words(text))} "


def unmarked(text: str) -> str:
    """The text without combining marks: it has the same ``words``.

    Bounds the cost of normalisation, which sorts the marks of a letter: with thousands of them it takes seconds.

    >>> unmarked("Cafe\u0301"), words("Cafe\u0301") == words("Cafe")
    ('Cafe', True)
    """
    if text.isascii():
        return text
    spelt = text.replace("\u0345", "\u03b9")  # the one mark that case-folds to a letter
    return "".join(letter for letter in spelt if not _is_mark(letter))


def _is_mark(letter: str) -> bool:
    return unicodedata.combining(letter) != 0 or letter in _PAIRED_MARKS


class _Terms(dict[bytes, int]):
    """A cache from word to term. ``__missing__`` takes a third of the time of ``functools.cache``."""

    def __missing__(self, word: bytes) -> int:
        stem: str = Stemmer.Stemmer("english", 0).stemWord(word.decode())
        number = zlib.crc32(stem.encode())
        if len(self) >= _KEPT:
            self.clear()
        self[word] = number
        return number


_TERMS = _Terms()


STOP_TERMS = frozenset(_TERMS[word.encode()] for word in _STOP)
"""The terms of stop words."""


def term(word: str) -> int:
    """The term of one of the ``words`` of a text.

    >>> [term("teas")] == terms("Tea")
    True
    """
    return _TERMS[word.encode()]


def is_stop(word: str) -> bool:
    """Whether one of the ``words`` of a text is a stop word, such as "the".

    >>> is_stop("the"), is_stop("theme")
    (True, False)
    """
    return word in _STOP


def terms(text: str) -> list[int]:
    """The terms of a text, in order.

    >>> terms("prefers tea") == terms("Preferred: tea!"), len(terms("tea, tea, coffee"))
    (True, 3)
    """
    return numbered(folded(text))


def folded(text: str) -> list[bytes]:
    """The ``words`` of a text as UTF-8 bytes, which are faster to look up.

    >>> folded("Dark-mode!")
    [b'dark', b'mode']
    """
    if text.isascii():  # as in words()
        return text.encode().translate(_FOLDED).split()
    return [word.encode() for word in words(text)]


def numbered(said: Iterable[bytes]) -> list[int]:
    """The terms of ``folded`` words.

    >>> numbered(folded("prefers tea")) == terms("prefers tea")
    True
    """
    return list(map(_TERMS.__getitem__, said))  # a quarter faster than a comprehension


def asked(query: str) -> Sequence[int]:
    """The distinct terms of a query; stop words only if there are no others.

    >>> len(asked("What is the theme?")), len(asked("the"))
    (1, 1)
    """
    found = words(query)
    content_words = [word for word in found if word not in _STOP]
    return list(dict.fromkeys(_TERMS[word.encode()] for word in content_words or found))


def uncontracted(query: str) -> str:
    """A question without the endings of contractions and possessives, and without negated auxiliaries: none of them
    says what it is about. Stored texts keep theirs, so that phrases stand.

    >>> uncontracted("What's in Maya's bag that she can't find?")
    'What in Maya bag that she  find?'
    """
    if "'" not in query and "\u2019" not in query:
        return query
    return _ENDINGS.sub("", _NEGATED.sub("", query))


def searchable(content: str, title: str | None, author: str | None = None) -> str:
    """The text that keyword search indexes. The author comes last, so that title and content stay adjacent.

    >>> searchable("Use tabs", "Style", "Ada").split("\\n")
    ['Style', 'Use tabs', 'Ada']
    """
    return "\n".join(part for part in (title, content, author) if part)


def pack(numbers: Iterable[int]) -> bytes:
    """Terms as little-endian 32-bit integers.

    >>> len(pack(terms("tea, tea, coffee"))) // TERM_BYTES
    3
    """
    packed = array("I", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
