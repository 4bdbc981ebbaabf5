"""Whether two texts say the same in other words.

Two texts that differ only in articles, fillers and plurals say the same. Any other difference must stand in the same
place of both: one open word instead of another. How near the vectors of the texts are then decides, measured by the
number of words that differ: in a long text one word changes little of the whole, and may change everything that it
says. Numbers, names, negations, pronouns, prepositions, tenses and opposites are never exchanged, however near.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from wellkept.recall import conflicts
from wellkept.text import dates, words

SAME = 0.95
"""Texts at least so near in meaning may say the same: 0 is the nearness of unrelated texts, 1 that of equal ones."""

APART = 0.2
"""What a text may lose of its nearness for each word that differs, as a share of what one of its words makes up."""

LONGEST = 600
"""Letters: longer texts say many things, and are the same only word for word."""

_FILLERS = frozenset("a an the please really very just also too actually simply indeed quite".split())
_FUNCTION = frozenset(
    """i you he she it we they me him her us them my your his its our their mine yours this that these those who whom
    whose which what when where why how am is are was were be been being do does did have has had will would shall
    should can could may might must ought not no nor never none nothing nobody neither without cannot and or but if
    unless while until since because before after during to from of in on at by for with about against between into
    through over under above below up down out off again then once here there all any both each few more most other
    some such only own same than so s t don isn aren wasn weren won doesn didn hasn haven shouldn couldn wouldn always
    often sometimes rarely usually now ago still yet already first last next every much many less least half twice
    today tomorrow yesterday""".split()
)
_OPENING = re.compile(r"(?:^|[.!?:;\n]\s*|[\"'(\[]\s*)$")
_WORD = re.compile(r"[^\W_]+(?:[.,:/-](?=\d)[^\W_]+)*")
_PREFIXES = "in de en dis un non im ir il up down over under pre post sub super inter intra anti ex".split()
_VERBS = frozenset("is was has had does did will would can could may might must should".split())
_OPEN = "\0"  # stands for any open word in a skeleton


class Said(NamedTuple):
    """What a text says: its words in order without fillers, and its skeleton, which texts that say the same share."""

    words: tuple[str, ...]
    skeleton: tuple[str, ...]


def read(text: str) -> Said:
    """A text as its words and its skeleton: the words that must be the same, and a place for each of the others.

    >>> read("Uses the tabs").words, read("Uses tabs").skeleton == read("Loves cake").skeleton
    (('use', 'tab'), True)
    >>> read("Uses 2 tabs").skeleton == read("Uses 3 tabs").skeleton
    False
    """
    found = list(_words(text))
    return Said(
        tuple(word for word, _ in found),
        tuple(word if telling else _OPEN for word, telling in found) if len(text) <= LONGEST else (text,),
    )


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """The words of a text without fillers, each with whether no other may stand in its place; then what makes it a
    question.
    """
    found = [(match[0], match.start()) for match in _WORD.finditer(text)]
    for place, (written, start) in enumerate(found):
        word = words.plain(written)
        if word in _FILLERS:
            continue
        if word in _FUNCTION or not written.isalpha() or words.is_dense(word):
            yield word, True
            continue
        opens = _OPENING.search(text[max(0, start - 3) : start]) is not None
        following = words.plain(found[place + 1][0]) if opens and place + 1 < len(found) else ""
        named = written[:1].isupper() and (not opens or _is_subject(word, following))
        yield (word, True) if named or (len(written) > 1 and written.isupper()) else (_base(word), False)
    if text.rstrip().endswith("?"):
        yield "?", True


def _is_subject(word: str, following: str) -> bool:
    """Whether the first word of a sentence seems to be a name: a verb of the third person follows it."""
    return not word.endswith("s") and (following in _VERBS or following != _base(following))


def _base(word: str) -> str:
    """A word without the ending of a plural or of the third person, which is the same."""
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


def tells_time(text: str) -> bool:
    """Whether a text has a word for a time, so that what it says depends on when it was said.

    >>> tells_time("The demo is tomorrow"), tells_time("Likes tea")
    (True, False)
    """
    return bool(dates.tell_time(words.folded(text)))


def same(left: Said, right: Said, nearness: float | None, least: float = SAME) -> bool:
    """Whether two texts say the same. ``nearness`` is that of their vectors, ``None`` if they cannot be compared.

    >>> same(read("Prefers the dark mode"), read("prefers dark mode!"), None)
    True
    >>> same(read("A big house by the lake"), read("A large house by the lake"), 0.97)
    True
    >>> same(read("Ships on port 80"), read("Ships on port 81"), 0.99)
    False
    """
    if left.words == right.words:
        return True
    if nearness is None or nearness < least or left.skeleton != right.skeleton:
        return False
    apart = [(one, other) for one, other in zip(left.words, right.words, strict=True) if one != other]
    if (1 - nearness) * len(left.words) > APART * len(apart) or 2 * len(apart) > len(left.words):
        return False
    return not any(_excluding(one, other) for one, other in apart)


def _excluding(left: str, right: str) -> bool:
    """Whether two words are opposites, values of which one holds, or forms of one word, such as tenses."""
    if conflicts.exclusive(left, right) or words.terms(left) == words.terms(right):
        return True
    return not _rests(left).isdisjoint(_rests(right))


def _rests(word: str) -> set[str]:
    """The word, and what is left of it without each prefix that may turn it round."""
    return {word, *(word[len(prefix) :] for prefix in _PREFIXES if word.startswith(prefix) and len(word) > 4)}


def differing(texts: list[str]) -> tuple[str, ...]:
    """The words that some of the texts have and others have not, as they are written, in the order of reading.

    >>> differing(["Prefers dark mode", "Prefers the dark mode"])
    ('the',)
    """
    spelt = [{word.casefold(): word for word in _WORD.findall(text)} for text in texts]
    everywhere = set.intersection(*(set(one) for one in spelt))
    return tuple({folded: word for one in spelt for folded, word in one.items() if folded not in everywhere}.values())
