"""What a setting may be, said so that an error can repeat it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wellkept import validation
from wellkept.errors import InvalidInput

_TYPES = ((bool, "true or false"), (int | float, "a number"), (str, "text"), (Mapping, "a section"), (list, "a list"))


class Kind:
    """What a setting may be. ``allowed`` follows the words "must be"."""

    __slots__ = ()

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        raise NotImplementedError

    def accepts(self, value: object) -> bool:
        """Whether a value read from a file is allowed."""
        raise NotImplementedError

    def holds(self, value: object) -> bool:
        """Whether a value given in a program is allowed."""
        return self.accepts(value)

    def value(self, given: Any) -> Any:
        """What an accepted value of a file means."""
        return given

    def parse(self, text: str) -> object:
        """A text of the environment as a file would have it."""
        return text

    def text(self, value: Any) -> str:
        """A value as a text that can be parsed."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Flag(Kind):
    """True or false."""

    @property
    def allowed(self) -> str:
        """Both words."""
        return "true or false"

    def accepts(self, value: object) -> bool:
        """A bool and no number: 1 is not true."""
        return isinstance(value, bool)

    def parse(self, text: str) -> object:
        """The words of TOML, and 1 and 0, which are usual in the environment."""
        return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower(), text)

    def text(self, value: Any) -> str:
        """The words of TOML."""
        return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A number in a range, both ends included; ``none`` is a word for ``None``, such as "never"."""

    low: float
    high: float
    whole: bool = False
    none: str = ""

    @property
    def allowed(self) -> str:
        """The range."""
        words = f"a {'whole ' if self.whole else ''}number from {self.low:,} to {self.high:,}"
        return f'{words} or "{self.none}"' if self.none else words

    def accepts(self, value: object) -> bool:
        """Neither NaN nor a bool is a number."""
        if self.none and value == self.none:
            return True
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        return self.low <= value <= self.high

    def holds(self, value: object) -> bool:
        """In a program, ``None`` instead of the word for it."""
        return value is None if self.none and not isinstance(value, int | float) else self.accepts(value)

    def value(self, given: Any) -> Any:
        """The number, or ``None``."""
        return None if isinstance(given, str) else given

    def parse(self, text: str) -> object:
        """A number where it is one; otherwise the text, which is refused later."""
        for read in (int, float):
            try:
                return read(text)
            except ValueError:
                continue
        return text.strip()

    def text(self, value: Any) -> str:
        """The number, or the word."""
        return self.none if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Word(Kind):
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
class Words(Kind):
    """A list of words from a few; in the environment, separated by commas."""

    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        """The words."""
        return f"a list of {', '.join(self.words)}"

    def accepts(self, value: object) -> bool:
        """No word that is not known."""
        return isinstance(value, list | tuple) and all(isinstance(word, str) and word in self.words for word in value)

    def value(self, given: Any) -> Any:
        """The words as a tuple, which cannot be changed."""
        return tuple(given)

    def parse(self, text: str) -> object:
        """The words between the commas."""
        return [word.strip() for word in text.split(",")]

    def text(self, value: Any) -> str:
        """The words with commas between them."""
        return ",".join(value)


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """One line of text; ``reserved`` are texts that it may not be."""

    characters: int = validation.LINE_CHARACTERS
    reserved: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """How long it may be, and what it may not be."""
        words = f"one line of text, 1 to {self.characters:,} characters"
        return f"{words}, but not {' or '.join(map(repr, self.reserved))}" if self.reserved else words

    def accepts(self, value: object) -> bool:
        """Not empty or blank, and without control characters."""
        try:
            validation.name("", value, self.characters)
        except InvalidInput:
            return False
        return value not in self.reserved


def described(value: Any, kind: Kind | None = None) -> str:
    """What was given, by its type and never by its content."""
    if value is None or value == "":
        return "null" if value is None else "empty text"
    if isinstance(value, str) and value.isspace():
        return "blank text"
    words = next((words for one, words in _TYPES if isinstance(value, one)), type(value).__name__)
    if isinstance(kind, Number) and words == "a number":
        if value != value:  # noqa: PLR0124  # whole numbers can be too large for isnan
            return "NaN"
        if not kind.low <= value <= kind.high:
            return "a smaller one" if value < kind.low else "a larger one"
        return "a fraction"
    return f"other {words}" if isinstance(kind, Word | Text | Number) and words == "text" else words
