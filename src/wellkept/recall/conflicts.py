"""Whether two texts answer one question differently: the same topic, and another value.

A text is read as a topic and a value: "Ann lives in" and "Rome", "indentation" and "tabs". Two texts conflict if their
topics have the same words and their values have different ones, or if one denies what the other says. A value that can
stand beside another ("likes tea", "likes cake") is no conflict. The rule is cautious: it misses conflicts rather than
taking a memory out that contradicts nothing.
"""

import re
from typing import NamedTuple

from wellkept.text import words

_CHOOSING = frozenset("use prefer choose pick take adopt".split())
_PURPOSE = frozenset("for when as".split())
_SAYING = frozenset("please always we you should must may shall the a an our all every to do be".split())
_DENYING = frozenset("no not never none nothing nobody neither nor without cannot don doesn isn aren won t".split())
_LINKS = frozenset(
    """is are was were has have had with in on at by after before to from into at most least needs need may must via
    using prefers every""".split()
)
_ADDING = frozenset("like likes love loves enjoy enjoys speak speaks know knows has have own owns met visited".split())
"""Verbs whose objects can stand beside each other."""


_EXCLUSIVE = tuple(
    frozenset(group.split())
    for group in (
        "tab tabs space spaces",
        "dark light",
        "short long brief detailed",
        "monday tuesday wednesday thursday friday saturday sunday",
        "mondays tuesdays wednesdays thursdays fridays saturdays sundays",
        "daily weekly monthly yearly hourly",
        "morning noon afternoon evening night",
        "english german french spanish italian portuguese dutch chinese japanese",
        "always never sometimes",
        "on off",
        "public private",
        "coffee tea",
        "camelcase snake_case kebab-case",
    )
)
"""Words of which one at a time holds, so that a topic of one word is enough."""

_WORD = r"[^\W_]+"
_UNKNOWN = "unknown"  # how an unknown verb links its object
_BEING = frozenset("is are was were".split())
_ARTICLES = frozenset("a an".split())
_NUMBERS = frozenset("one two three four five six seven eight nine ten eleven twelve once twice".split())


class Said(NamedTuple):
    """What a text says, as far as it can be told: the terms of its topic and of its value, whether it denies
    and whether its value can stand beside others, the word that links the two, and the terms that are numbers."""

    topic: frozenset[int]
    value: frozenset[int]
    denies: bool
    adds: bool
    manner: str
    numbers: frozenset[int]


def read(text: str) -> Said:
    """A text as topic and value.

    >>> read("Use tabs for indentation").topic == read("Indent with tabs").topic
    True
    """
    said = re.findall(_WORD, text.casefold())
    denies = any(word in _DENYING for word in said)
    said = [word for word in said if word not in _DENYING]
    past = any(word.endswith("ed") for word in said) and _BEING.isdisjoint(
        said
    )  # what happened can have happened twice
    adds = past or any(word in _ADDING for word in said)
    numbers = _terms([word for word in said if word.isdecimal() or word in _NUMBERS])
    if said and said[0] in _CHOOSING:
        for place, word in enumerate(said[2:], start=2):
            if word in _PURPOSE:
                return Said(_terms(said[place + 1 :]), _terms(said[1:place]), denies, adds, "with", numbers)
        return Said(frozenset(), _terms(said[1:]), denies, adds, "", numbers)
    for place in range(len(said) - 2, 0, -1):
        if said[place] in _LINKS:
            start = place
            while said[start - 1] in _LINKS and start > 1:
                start -= 1
            adds = adds or (said[place] in _BEING and said[place + 1] in _ARTICLES)  # one can be several things
            return Said(_terms(said[:start]), _terms(said[place + 1 :]), denies, adds, said[place], numbers)
    if len(said) > 2 and said[0] in _LINKS:  # "prefers dark mode": which mode?
        return Said(_terms([said[0], said[-1]]), _terms(said[1:-1]), denies, adds, "", numbers)
    return Said(_terms(said[:-1]), _terms(said[-1:]), denies, adds, _UNKNOWN, numbers)


def _terms(said: list[str]) -> frozenset[int]:
    return frozenset(term for word in said if word not in _SAYING for term in words.terms(word))


_GROUPS = tuple(_terms(list(group)) for group in _EXCLUSIVE)
_LANGUAGES = _terms(["english"])


def exclusive(left: str, right: str) -> bool:
    """Whether of two words one at a time holds.

    >>> exclusive("tabs", "spaces"), exclusive("tabs", "coffee")
    (True, False)
    """
    return any(left in group and right in group for group in _EXCLUSIVE)


def conflicting(left: Said, right: Said) -> bool:
    """Whether two texts answer one question differently.

    >>> conflicting(read("Ann lives in Rome"), read("Ann lives in Berlin"))
    True
    >>> conflicting(read("Ann works in Berlin"), read("Bob works in Berlin"))
    False
    """
    if left.denies != right.denies:
        return bool(left.topic | left.value) and left.topic | left.value == right.topic | right.value
    if not left.topic or left.topic != right.topic or left.manner != right.manner:
        return False
    ours, theirs = left.value - right.value, right.value - left.value
    if not ours or not theirs:
        return False  # one of them says more than the other, not something else
    if ours <= left.numbers and theirs <= right.numbers:
        return True
    if left.adds or right.adds:
        return False
    for group in _GROUPS:
        if ours <= group and theirs <= group:
            return left.manner != _UNKNOWN or _LANGUAGES.isdisjoint(group)  # many languages can be known or supported
    return len(left.topic) > 1 and left.manner != _UNKNOWN  # a topic of one word may be of many things
