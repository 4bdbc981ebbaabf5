"""The tense of a text: which of two days called Friday it means."""

from wellkept.text import words

_PAST = frozenset("did was were had happened went been".split())
_AHEAD = frozenset("is are am will shall going coming upcoming next do does have has planned scheduled".split())
_PLANNED = frozenset("planned scheduled".split())
_DONE = _PAST | frozenset(
    """ate began bought broke brought built came drank drove fell felt flew found gave got heard held kept left lost
    made met paid ran rode said sang sat saw sent slept sold spent spoke stood swam taught thought told took went woke
    won wore wrote""".split()
)
_NO_VERBS = _PLANNED | frozenset(
    "allowed bed based breed embed feed hundred indeed need red required seed speed weed".split()
)
_TELLS = frozenset(
    """say said tell told talk talked discuss discussed mention mentioned announce announced decide decided decision
    decisions learn learned learnt note noted notes know known new plan plans planned schedule scheduled agree agreed
    remember spoke record recorded add added""".split()
)
_HAPPENS = frozenset("happen happened happening happens".split())


def of(text: str) -> int:
    """-1 if a text tells of the past or asks about it, 1 for what is or will be, 0 if its words do not say.

    >>> of("What did I do on Friday?"), of("The party is on Friday"), of("Friday")
    (-1, 1, 0)
    """
    said = frozenset(words.words(text))
    if not _PAST.isdisjoint(said) and _PLANNED.isdisjoint(said):
        return -1
    return int(not _AHEAD.isdisjoint(said))


def tells_of_deeds(text: str) -> bool:
    """Whether a text has a verb in the past: something was done, whatever else it says of times to come.

    >>> tells_of_deeds("Borrowed the book until 2 December"), tells_of_deeds("The exam is on 2 December")
    (True, False)
    """
    said = frozenset(words.words(text)) - _NO_VERBS
    return not _DONE.isdisjoint(said) or any(word.endswith("ed") and len(word) > 3 for word in said)


def asks_what_was_told(question: str) -> bool:
    """Whether a question asks for what was said, decided or noted at a time, of whatever time it tells.

    >>> asks_what_was_told("What did we decide last week?"), asks_what_was_told("What did we do last week?")
    (True, False)
    """
    return not _TELLS.isdisjoint(words.words(question))


def asks_what_happened(question: str) -> bool:
    """Whether a question asks for whatever happened: that something was announced is part of it.

    >>> asks_what_happened("What happened last week?"), asks_what_happened("What did we do last week?")
    (True, False)
    """
    return not _HAPPENS.isdisjoint(words.words(question))
