"""Chunking: split long texts into passages, each short enough for one vector to represent it."""

import re
import unicodedata

_ENDS = (". ", "! ", "? ", "; ", "\u3002", "\uff01", "\uff1f")  # Chinese sets no space after a sentence
_TEXT = re.compile(r"\S")
_JOINER = "\u200d"
_MARKS = frozenset({"Mn", "Mc", "Me"})
_CHARACTER = 16


def split(text: str, size: int = 800) -> tuple[tuple[int, int], ...]:
    """The spans of a text's passages: in order, at most ``size`` characters each, none of them blank.

    A passage holds as many whole paragraphs as fit. A paragraph longer than ``size`` is split after a sentence, else
    at a space, else between characters. Runs in linear time.

    >>> text = "Tea. Ada drinks it. Coffee."
    >>> [text[start:end] for start, end in split(text, 20)], split(text)
    (['Tea. Ada drinks it.', 'Coffee.'], ((0, 27),))
    """
    if size < 1:
        raise ValueError("size must be at least 1")
    if len(text) <= size:
        return ((0, len(text)),) if text.strip() else ()
    spans = []
    start = _skip(text, 0)
    while start < len(text):
        border = _border(text, start, size)
        spans.append((start, start + len(text[start:border].rstrip())))
        start = _skip(text, border)
    return tuple(spans)


def _skip(text: str, start: int) -> int:
    """The position of the first non-space character from ``start``."""
    match = _TEXT.search(text, start)
    return match.start() if match else len(text)


def _border(text: str, start: int, size: int) -> int:
    """The end of the passage that begins at ``start``, possibly with trailing space."""
    limit = start + size
    if limit >= len(text):
        return len(text)
    line = text.rfind("\n", start, limit + 1)
    following = start if line < 0 else _skip(text, line)
    if line >= 0 and _fits(text, following, size):
        return line
    sentence = max(text.rfind(end, following, limit + len(end) - 1) for end in _ENDS)
    if sentence >= 0:
        return sentence + 1
    return line if line >= 0 else _between_words(text, start, limit)


def _fits(text: str, start: int, size: int) -> bool:
    """Whether the paragraph that begins at ``start`` fits into one passage."""
    return len(text) - start <= size or text.find("\n", start, start + size + 1) >= 0


def _between_words(text: str, start: int, limit: int) -> int:
    """The last space up to ``limit``, else a boundary between two characters."""
    if text[limit].isspace():
        return limit
    whole = text[start : limit + 1].rsplit(None, 1)  # ten times as fast as a pattern
    return start + len(whole[0]) if len(whole) > 1 else _between_characters(text, start, limit)


def _between_characters(text: str, start: int, limit: int) -> int:
    """The last grapheme boundary up to ``limit``; ``limit`` if none is near."""
    for at in range(limit, max(start, limit - _CHARACTER), -1):
        if not _continues(text, at):
            return at
    return limit


def _continues(text: str, at: int) -> bool:
    """Whether the code point at ``at`` belongs to the same grapheme as the one before it."""
    return (
        unicodedata.category(text[at]) in _MARKS
        or _JOINER in text[at - 1 : at + 1]
        or "\U0001f3fb" <= text[at] <= "\U0001f3ff"  # skin tone modifiers
        or "\udc00" <= text[at] <= "\udfff"  # low surrogates
    )
