"""The values that ``compose`` returns: a prompt and its receipt."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from wellkept.types.representation import hiding
from wellkept.window.items import Role


class Part(StrEnum):
    """The parts of a prompt, in order.

    >>> [part.value for part in Part]
    ['pinned', 'recalled', 'recent']
    """

    PINNED = "pinned"
    RECALLED = "recalled"
    RECENT = "recent"


class Reason(StrEnum):
    """Why something was left out: over budget, a duplicate, too low a priority, or too little trusted.

    >>> Reason("budget") is Reason.BUDGET
    True
    """

    BUDGET = "budget"
    DUPLICATE = "duplicate"
    PRIORITY = "priority"
    TRUST = "trust"


@dataclass(frozen=True, slots=True)
class Placed:
    """An included input: the id of an item, or of a memory in the part ``recalled``.

    >>> Placed("018b", Part.RECALLED, 12).tokens
    12
    """

    id: str
    part: Part
    tokens: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An input that was left out, and why.

    >>> LeftOut("018b", Part.RECALLED, Reason.BUDGET).reason.value
    'budget'
    """

    id: str
    part: Part
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a prompt includes, and what was left out and why. Every input is in one of the two.

    ``total_tokens`` counts the larger of the two forms, text or messages, and never exceeds ``budget_tokens``.
    ``tokens_by_part`` counts the messages, with the tokens that the client's format adds to each.

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
    """A prompt as text and as messages, with its receipt. ``pairs`` are the messages as (role, content).

    >>> receipt = Receipt(budget_tokens=10, total_tokens=5, tokens_by_part={})
    >>> Composition("[user]\\nHi", (("user", "Hi"),), receipt).messages()
    [{'role': 'user', 'content': 'Hi'}]
    """

    text: str
    pairs: tuple[tuple[str, str], ...]
    receipt: Receipt

    __repr__ = hiding("text", "pairs")

    def messages(self, *, system: bool = True) -> list[dict[str, str]]:
        """The prompt as a new list of messages in the form that LLM clients take.

        For clients with a separate parameter for the system prompt, pass it ``system`` and use ``system=False`` here.
        """
        return [{"role": role, "content": content} for role, content in self.pairs if system or role != Role.SYSTEM]

    @property
    def system(self) -> str:
        """The system messages as one text."""
        return "\n\n".join(content for role, content in self.pairs if role == Role.SYSTEM)
