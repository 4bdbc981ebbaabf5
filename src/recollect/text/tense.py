"""The tense of a text: which of two days called Friday it means."""

from recollect.text import words

_PAST = frozenset("did was were had happened went been".split())
_AHEAD = frozenset("is are am will shall going coming upcoming next do does have has planned scheduled".split())
_PLANNED = frozenset("planned scheduled".split())


def of(text: str) -> int:
    """-1 if a text tells of the past or asks about it, 1 for what is or will be, 0 if its words do not say.

    >>> of("What did I do on Friday?"), of("The party is on Friday"), of("Friday")
    (-1, 1, 0)
    """
    said = frozenset(words.words(text))
    if not _PAST.isdisjoint(said) and _PLANNED.isdisjoint(said):
        return -1
    return int(not _AHEAD.isdisjoint(said))
