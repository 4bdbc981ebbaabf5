"""What a question asks for (a number, somebody, what it was told by the assistant), whether a text has a number or a
name, and whether it only asks.
"""

import re

_NUMBER = re.compile(
    r"\b(how (many|much|old|long|far|often|big|large|tall|high|fast|late|soon)|what (time|number|year|age|version)"
    r"|which (number|year|version|port)|number|price|cost|costs|percent|percentage|budget|version|port|limit|code)\b"
)
_PERSON = re.compile(r"\bwho(m|se)?\b")
_TELL = (
    "tell|say|mention|give|provide|recommend|suggest|list|write|describe|explain|propose|advise|share|show|send|offer"
    "|answer|draft|create|generate|name|add|book|calculate|choose|find|make|note|pick|plan|promise"
)
_TOLD = (
    "told|said|mentioned|gave|provided|recommended|suggested|listed|wrote|described|explained|proposed|advised|shared"
    "|showed|sent|offered|answered|drafted|created|generated|named|added|booked|calculated|chose|found|made|noted|picked"
    "|planned|promised|given|written|shown|chosen"
)
_REPLY = re.compile(
    rf"\byou (\w+ )?({_TOLD})\b|\b(did|had|have) you (\w+ )?({_TELL}|{_TOLD})\b"
    r"|\byour (\w+ )?(answer|list|suggestion|recommendation|advice|reply|explanation|summary|draft)s?\b"
    r"|\bour (\w+ )?(chat|conversation|discussion)s?\b|\bwe (\w+ )?(discussed|talked|spoke|chatted)\b"
)
_REMIND = re.compile(r"\b(you (could|can|would|might)|(could|can|would|will) you) remind me\b")
_OF_ONESELF = re.compile(r"\b(i|i'm|i've|my|mine)\b")
_NAME = re.compile(r"[\w,;:)] [A-Z][a-z]")
_MARK = ("?", "\uff1f", "\u061f")
# A sentence that is no question, or what was announced before one.
_STATED = re.compile(r"[.!]\s|\?\s+\S[^?]*$|[\n:;\u3002\uff01]")
_ASKING = r"(do|does|did|is|are|was|were|am|can|could|will|would|should|shall|has|have|had)"
_BEGINNING = re.compile(rf"(what|which|who|whom|whose|when|where|why|how|{_ASKING})\b")
_UNMARKED = re.compile(
    rf"((what|which|whose|how)( \w+){{0,2}} {_ASKING}|(who|when|where|why) {_ASKING}|{_ASKING})"
    r" (i|you|we|they|he|she|it|the|my|our|your|their|this|that|there)\b"
)
_LONGEST = 300  # characters: a longer text tells something


def asks_number(question: str) -> bool:
    """Whether a question asks for a number.

    >>> asks_number("How many chairs do we have?"), asks_number("Who has the chairs?")
    (True, False)
    """
    return _NUMBER.search(question.lower()) is not None


def asks_person(question: str) -> bool:
    """Whether a question asks for somebody.

    >>> asks_person("Who has the chairs?"), asks_person("How many chairs do we have?")
    (True, False)
    """
    return _PERSON.search(question.lower()) is not None


def asks_reply(question: str) -> bool:
    """Whether a question asks for what the one that is asked has said before.

    >>> asks_reply("Which hotel did you recommend?"), asks_reply("Which hotel did I tell you about?")
    (True, False)
    """
    said = question.lower()
    if _REPLY.search(said):
        return True
    reminds = _REMIND.search(said)
    return reminds is not None and _OF_ONESELF.search(said, reminds.end()) is None


def has_name(text: str) -> bool:
    """Whether a text has a word in capitals within a sentence.

    >>> has_name("Ask Ada about it"), has_name("Ask somebody about it")
    (True, False)
    """
    return _NAME.search(text) is not None


def only_asks(text: str) -> bool:
    """Whether a text is a question, with its mark or without, and states nothing beside it.

    >>> only_asks("Which train do I take?"), only_asks("which train do I take"), only_asks("I take the train. Do you?")
    (True, True, False)
    """
    if len(text) > _LONGEST:
        return False
    said = text.strip().lower()
    marked = said.endswith(_MARK)
    if not (marked or _UNMARKED.match(said)) or _STATED.search(said):
        return False
    # "We pay three months in advance, is that legal?" tells something before it asks.
    return not marked or "," not in said or _BEGINNING.match(said) is not None
