"""Tokenisation for keyword search, the same in every store.

A term is a 32-bit hash of the stem of a word. Hashes keep the index small, and an erased memory leaves no vocabulary
behind.
"""

import re
import sys
import unicodedata
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

import Stemmer

from wellkept.text import languages

_WORD = re.compile(r"[^\W_]+")
_FOLDED = bytes(ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 32 for code in range(256))
_STOP = frozenset(
    """a about am an and are as at be been being but by can could did do does doing for from had has have having he her
    hers herself him himself his how i if in into is it its itself me mine my myself of on or our ours ourselves she
    should so some such than that the their theirs them themselves then there these they this those to us was we were
    what when where which while who whom whose why will with would you your yours yourself
    aint arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mustnt neednt shouldnt wasnt werent wont
    wouldnt""".split()
)

_JOINED = re.compile(r"['\u2019]|\d[.,:+]\d")  # without these, tokens are words
_NEGATED = re.compile(r"(?<=n)['\u2019](?=t\b)")
_ENDINGS = re.compile(r"(?<=[^\W_])['\u2019](?:s|re|ve|ll|d|m)\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_VERSION = re.compile(r"\bv(?=\d+\.\d)")
_MARKED = "\u0900-\u0963\u0966-\u0df3\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3"
"""The signs of scripts that write vowels as marks, which patterns take for the end of a word."""
_TOKEN = re.compile(rf"[\w{_MARKED}]+(?:(?<=\d)[.:+](?=\d)\w+)*")
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0002fa1f"
)
"""Scripts without spaces between words, and Korean, which joins particles to them."""
_DENSE_RUN = re.compile(f"([{_DENSE}]+)")

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
    return _WORD.findall(plain(text))


def plain(text: str) -> str:
    """The text case-folded and without diacritics.

    >>> plain("Le 3 f\u00e9vrier")
    'le 3 fevrier'
    """
    # Marks are removed first: normalisation sorts them, which takes seconds for thousands on one letter.
    decomposed = unicodedata.normalize("NFKD", unmarked(text.casefold()))
    decomposed = decomposed.replace("\u0438\u0306", "\u0439")  # a letter of its own, which Russian endings have
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def tokens(text: str) -> list[str]:
    """What a search compares: words, but a number, a version or a time is one, a possessive is that of its owner, and
    scripts without spaces come in characters and pairs of them. The same for questions and stored texts.

    >>> tokens("Maya's bill of $1,500 for v2.10.1 came at 10:30, she can't pay #451")
    ['maya', 'bill', 'of', '1500', 'for', '2.10.1', 'came', 'at', '10:30', 'she', 'cant', 'pay', '451']
    >>> tokens("\u6df1\u8272\u6a21") == ["\u6df1", "\u6df1\u8272", "\u8272", "\u8272\u6a21", "\u6a21"]
    True
    """
    if text.isascii():
        if _JOINED.search(text) is None:
            return words(text)
        said = text.lower()
    else:
        said = unicodedata.normalize("NFC", plain(text).replace("\u2044", "/"))
    said = _ENDINGS.sub("", _NEGATED.sub("", said.replace("_", " ")))
    said = _VERSION.sub("", _THOUSANDS.sub("", said))
    found = _TOKEN.findall(said)
    return found if said.isascii() or _DENSE_RUN.search(said) is None else list(_spread(found))


def _spread(found: Iterable[str]) -> Iterator[str]:
    """Runs of dense scripts as characters, each followed by the pair that it begins."""
    for word in found:
        for place, run in enumerate(_DENSE_RUN.split(word)):
            if place % 2 == 0:
                yield from (run,) if run else ()
                continue
            for letter, following in zip_longest(run, run[1:]):
                yield letter
                if following is not None:
                    yield letter + following


def is_dense(token: str) -> bool:
    """Whether a token is of a script without spaces between words.

    >>> is_dense("\u6df1\u8272"), is_dense("dark")
    (True, False)
    """
    return not token.isascii() and _DENSE_RUN.fullmatch(token) is not None


def is_number(token: str) -> bool:
    """Whether a token is a number, a version or a time: another one is another thing, however alike they look.

    >>> is_number("2.9"), is_number("10:30"), is_number("mp3")
    (True, True, False)
    """
    return token[:1].isdigit() and token[-1:].isdigit() and not any(map(str.isalpha, token))


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

    def __init__(self, language: str) -> None:
        self._language = language

    def __missing__(self, word: bytes) -> int:
        said = word.decode()
        stem: str = Stemmer.Stemmer(languages.of_script(said) or self._language, 0).stemWord(said)
        number = zlib.crc32(stem.encode())
        if len(self) >= _KEPT:
            self.clear()
        self[word] = number
        return number


_TERMS = _Terms(languages.ENGLISH)
_OF_LANGUAGE = {languages.ENGLISH: _TERMS, **{language: _Terms(language) for language in languages.STOPS}}
_ENGLISH_STOPS = frozenset(word.encode() for word in _STOP)


STOP_TERMS = frozenset(_TERMS[word.encode()] for word in _STOP)
"""The terms of stop words."""


def term(word: str) -> int:
    """The term of one of the ``tokens`` of a text.

    >>> [term("teas")] == terms("Tea")
    True
    """
    return _TERMS[word.encode()]


def is_stop(word: str, spoken: Iterable[str] = ()) -> bool:
    """Whether one of the ``tokens`` of a text is a stop word, such as "the": of English, or of other languages.

    >>> is_stop("the"), is_stop("theme"), is_stop("und", ["german"])
    (True, False, True)
    """
    return word in _STOP or any(word in languages.STOPS[language] for language in spoken)


def terms(text: str) -> list[int]:
    """The terms of a text, in order.

    >>> terms("prefers tea") == terms("Preferred: tea!"), len(terms("tea, tea, coffee"))
    (True, 3)
    """
    return numbered(folded(text))


def folded(text: str) -> list[bytes]:
    """The ``tokens`` of a text as UTF-8 bytes, which are faster to look up.

    >>> folded("Dark-mode!")
    [b'dark', b'mode']
    """
    if text.isascii() and _JOINED.search(text) is None:  # as in words()
        return text.encode().translate(_FOLDED).split()
    return [word.encode() for word in tokens(text)]


def numbered(said: Iterable[bytes], language: str = languages.ENGLISH) -> list[int]:
    """The terms of ``folded`` words of a language.

    >>> numbered(folded("prefers tea")) == terms("prefers tea")
    True
    >>> numbered([b"katzen"], "german") == numbered([b"katze"], "german")
    True
    """
    return list(map(_OF_LANGUAGE[language].__getitem__, said))  # a quarter faster than a comprehension


def language_of(said: Sequence[bytes]) -> str:
    """The language of a stored text, of which these are the ``folded`` words.

    >>> language_of(folded("Die Katze ist krank")), language_of(folded("The cat is ill"))
    ('german', 'english')
    """
    return languages.of_text(said, _ENGLISH_STOPS)


def languages_of(said: Sequence[str]) -> tuple[str, ...]:
    """The languages besides English that a question may be in, of which these are the ``tokens``.

    >>> languages_of(tokens("Wo wohnt die Katze?")), languages_of(tokens("Where is the cat?"))
    (('german',), ())
    """
    return languages.of_question([word.encode() for word in said], _ENGLISH_STOPS)


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
