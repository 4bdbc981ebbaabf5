"""Text as terms: what the keyword search compares, the same in every store.

A term is the stem of a word as a number of 32 bits. Numbers instead of words keep the index small, and an erased
memory leaves no vocabulary behind.
"""

import re
import sys
import unicodedata
import zlib
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache

import Stemmer

_WORD = re.compile(r"[^\W_]+")
_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}
_STOP = frozenset(
    """a about am an and are as at be been being but by can could did do does doing for from had has have having he her
    hers him his how i if in into is it its me my of on or our she should so some such than that the their them then
    there these they this those to was we were what when where which while who whom whose why will with would you
    your""".split()
)


TERM_BYTES = 5
"""What a packed term takes: four for its number, one for how often it is there."""


def words(text: str) -> list[str]:
    """The words of a text, case-folded and without diacritics.

    >>> words("Dark-mode at the Café!")
    ['dark', 'mode', 'at', 'the', 'cafe']
    """
    if text.isascii():
        return text.lower().translate(_SPACES).split()  # a fifth of the time that the pattern takes
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return _WORD.findall("".join(letter for letter in decomposed if not unicodedata.combining(letter)))


@lru_cache(maxsize=65_536)
def term(word: str) -> int:
    """The number of a word's stem.

    >>> term("prefers") == term("preferred")
    True
    """
    stem: str = Stemmer.Stemmer("english", 0).stemWord(word)
    return zlib.crc32(stem.encode())


def terms(text: str) -> dict[int, int]:
    """How often each term is in a text.

    >>> sorted(terms("tea, tea, coffee").values())
    [1, 2]
    """
    found: dict[int, int] = {}
    for number in map(term, words(text)):
        found[number] = found.get(number, 0) + 1  # half the time of a Counter, for texts of this size
    return found


def asked(query: str) -> Sequence[int]:
    """The terms that a query asks for, each once; words such as "the" only if there are no others.

    >>> len(asked("What is the theme?")), len(asked("the"))
    (1, 1)
    """
    found = words(query)
    telling = [word for word in found if word not in _STOP]
    return list(dict.fromkeys(map(term, telling or found)))


def searchable(content: str, title: str | None) -> str:
    """What a keyword search looks at."""
    return f"{title}\n{content}" if title else content


def pack(found: Mapping[int, int]) -> bytes:
    """Terms as bytes: their numbers in order, four bytes each, then how often each is there, at most 255.

    >>> len(pack(terms("tea, tea, coffee"))) // TERM_BYTES
    2
    """
    numbers = sorted(found)
    packed = array("I", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    counts = list(map(found.__getitem__, numbers))
    if max(counts, default=0) > 255:
        counts = [min(255, times) for times in counts]
    return packed.tobytes() + bytes(counts)
