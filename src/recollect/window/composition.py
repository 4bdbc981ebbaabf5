"""What composing answers: the prompt, and a receipt for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from recollect.window.items import Role


class Part(StrEnum):
    """The parts of a prompt, in its order.

    >>> [part.value for part in Part]
    ['pinned', 'recalled', 'recent']
    """

    PINNED = "pinned"
    RECALLED = "recalled"
    RECENT = "recent"


class Reason(StrEnum):
    """Why something stayed out: no room, said already, or not important enough.

    >>> Reason("budget") is Reason.BUDGET
    True
    """

    BUDGET = "budget"
    DUPLICATE = "duplicate"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True)
class Placed:
    """Something that went in: the id of an item, or of a memory in the part ``recalled``.

    >>> Placed("018b", Part.RECALLED, 12).tokens
    12
    """

    id: str
    part: Part
    tokens: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that stayed out, and why.

    >>> LeftOut("018b", Part.RECALLED, Reason.BUDGET).reason.value
    'budget'
    """

    id: str
    part: Part
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What went into a prompt, what stayed out and why. Everything that was given is in one of the two.

    ``total_tokens`` is what the prompt takes in the form that takes more, text or messages, and never above
    ``budget_tokens``. ``tokens_by_part`` is that of the messages, with what the client's format adds to each.

    >>> Receipt(budget_tokens=10, total_tokens=0, tokens_by_part={}).left_out
    ()
    """

    budget_tokens: int
    total_tokens: int
    tokens_by_part: Mapping[Part, int]
    included: tuple[Placed, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class Composition:
    """A prompt, as text and as messages, with its receipt. ``pairs`` are the messages as role and content.

    >>> receipt = Receipt(budget_tokens=10, total_tokens=5, tokens_by_part={})
    >>> Composition("[user]\\nHi", (("user", "Hi"),), receipt).messages()
    [{'role': 'user', 'content': 'Hi'}]
    """

    text: str
    pairs: tuple[tuple[str, str], ...]
    receipt: Receipt

    def messages(self, *, system: bool = True) -> list[dict[str, str]]:
        """The prompt in the form that the clients of language models take. The list is the caller's own.

        Some clients take what the system says apart from the messages: give them ``system`` and ask without it here.
        """
        return [{"role": role, "content": content} for role, content in self.pairs if system or role != Role.SYSTEM]

    @property
    def system(self) -> str:
        """What the system says, as one text."""
        return "\n\n".join(content for role, content in self.pairs if role == Role.SYSTEM)
