"""What a setting may be, said so that a message can repeat it."""

from dataclasses import dataclass
from typing import Any, Protocol

_KINDS = ((bool, "true or false"), (int | float, "a number"), (str, "text"), (dict, "an object"), (list, "a list"))


class Rule(Protocol):
    """What a value must be: ``allowed`` follows the words "must be"."""

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""

    def accepts(self, value: object) -> bool:
        """Whether a value is that."""


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    allowed = "true or false"

    def accepts(self, value: object) -> bool:
        """Not a number: 1 is not true."""
        return isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a range, both ends included."""

    low: float
    high: float
    whole: bool = False

    @property
    def allowed(self) -> str:
        """The range, in words."""
        return f"a {'whole ' if self.whole else ''}number from {self.low:,} to {self.high:,}"

    def accepts(self, value: object) -> bool:
        """Neither NaN nor a bool is a number here."""
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Word:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        """The words."""
        return " or ".join(f'"{word}"' for word in self.words)

    def accepts(self, value: object) -> bool:
        """Exactly one of them."""
        return isinstance(value, str) and value in self.words


@dataclass(frozen=True, slots=True)
class Folder:
    """The path of a folder, which need not exist."""

    allowed = "the path of a folder, as text of 1 to 4096 characters"

    def accepts(self, value: object) -> bool:
        """Whatever an operating system could take for a path."""
        if not isinstance(value, str) or not 0 < len(value) <= 4096 or "\x00" in value:
            return False
        return not any("\ud800" <= character <= "\udfff" for character in value)


def described(value: Any, rule: Rule) -> str:
    """What was given, by its kind and never by its content."""
    if value is None:
        return "null"
    kind = next((words for one, words in _KINDS if isinstance(value, one)), type(value).__name__)
    if isinstance(rule, Number) and kind == "a number":
        if value != value:  # noqa: PLR0124  # whole numbers can be too large for isnan
            return "NaN"
        if not rule.low <= value <= rule.high:
            return "a smaller one" if value < rule.low else "a larger one"
        return "a fraction"
    return f"other {kind}" if isinstance(rule, Word | Folder) and kind == "text" else kind
