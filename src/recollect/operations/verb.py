"""What an entry in the table of verbs says, and how the fields of its input are described."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from recollect.errors import (
    ConfigurationError,
    EmbedderMismatch,
    InvalidInput,
    MissingIdentifier,
    RecollectError,
    StoreError,
)
from recollect.types import Identity

if TYPE_CHECKING:
    from recollect.memories.database import Memories
    from recollect.memories.view import View

Input = TypeVar("Input")
Output = TypeVar("Output")
Progress = Callable[[int, int], None]
"""Told how many are done, of how many."""

EVERYWHERE: tuple[type[RecollectError], ...] = (
    InvalidInput,
    MissingIdentifier,
    ConfigurationError,
    EmbedderMismatch,
    StoreError,
)
"""What any verb can end with: a value that is refused, a database that does not open or does not answer."""


class Needs(StrEnum):
    """What a caller must be allowed to do, each more than the one before.

    >>> Needs.ERASE.covers(Needs.WRITE), Needs.READ.covers(Needs.WRITE)
    (True, False)
    """

    READ = "read"
    WRITE = "write"
    ERASE = "erase"
    ADMIN = "admin"

    def covers(self, other: "Needs") -> bool:
        """Whether who may do this may do the other, too."""
        order = tuple(Needs)
        return order.index(self) >= order.index(other)


class Section(StrEnum):
    """The headings under which verbs are listed."""

    REMEMBER = "Remember"
    RECALL = "Recall"
    LOOK = "Look inside"
    KEEP = "Keep in order"


class Listed(NamedTuple):
    """A verb in one line: what it does, under which heading it stands, and the module that it is written in."""

    summary: str
    section: Section
    module: str


class Takes(StrEnum):
    """How a field is given where there are words in a row, as in a terminal."""

    OPTION = "option"
    ONE = "one"
    EACH = "each"
    WORDS = "words"


class Asked(NamedTuple):
    """How a field of an input is asked for.

    ``flag`` is its name where it is given once for each value (``--tag a --tag b`` fills ``tags``). A time that is
    given as a span lies back, or ``ahead``. A field that is set can need more than its verb: see ``Verb.needed``.
    """

    help: str
    takes: Takes = Takes.OPTION
    flag: str = ""
    short: str = ""
    ahead: bool = False
    needs: Needs | None = None


_ASKED = "asked"


def option(
    text: str,
    default: Any = None,
    *,
    flag: str = "",
    short: str = "",
    ahead: bool = False,
    needs: Needs | None = None,
) -> Any:
    """A field of an input that may be left out."""
    asked = Asked(help=text, flag=flag, short=short, ahead=ahead, needs=needs)
    if isinstance(default, dict):
        return field(default_factory=dict, metadata={_ASKED: asked})
    return field(default=default, metadata={_ASKED: asked})


def argument(text: str, default: Any = MISSING, *, takes: Takes = Takes.ONE) -> Any:
    """A field of an input that is given by its place."""
    return field(default=default, metadata={_ASKED: Asked(help=text, takes=takes)})


def asked(one: "dataclasses.Field[Any]") -> Asked:
    """How a field is asked for."""
    found: Asked = one.metadata[_ASKED]
    return found


class Caller(NamedTuple):
    """Who calls a verb, and on which database; ``progress`` is told how far a long one is."""

    memories: "Memories"
    identity: Identity
    progress: Progress | None = None

    @property
    def view(self) -> "View":
        """The memories that the caller may see."""
        return self.memories.view(**_ids(self.identity))


def _ids(identity: Identity) -> Mapping[str, str | None]:
    return {one.name: getattr(identity, one.name) for one in dataclasses.fields(identity)}


class Example(NamedTuple):
    """A command line, and what it is good for. The tests run it, with the id of a memory in ``$ID``."""

    line: str
    says: str


def _always(_: Any) -> bool:
    return True


def _never(_: Caller, __: Any) -> str:
    return ""


class Verb(NamedTuple, Generic[Input, Output]):
    """One entry of the table: what can be asked of a database, and all that a surface must know to offer it.

    ``errors`` are those that the verb adds to ``EVERYWHERE``. ``creates`` says that a database which is not there is
    made, ``live`` that the answer goes on: a surface that can follow asks again from where it ended, ``standalone``
    that the input names the databases: the caller's is not asked. ``interrupted`` is what to tell whoever stopped it.
    ``asks`` says what a call would take away, such as "erase 3 memories for good", if somebody should be asked first;
    otherwise nothing. ``agrees`` tells whether the answer is yes, for programs that look at nothing else.

    >>> from recollect.operations import VERBS
    >>> forget = VERBS["forget"]
    >>> forget.needed(forget.input(ids=("x",))).value, forget.needed(forget.input(ids=("x",), permanent=True)).value
    ('write', 'erase')
    """

    name: str
    input: type[Input]
    output: type[Output]
    run: Callable[[Caller, Input], Output]
    needs: Needs
    examples: tuple[Example, ...]
    description: str = ""
    errors: tuple[type[RecollectError], ...] = ()
    creates: bool = False
    live: bool = False
    standalone: bool = False
    interrupted: str = ""
    asks: Callable[[Caller, Input], str] = _never
    agrees: Callable[[Output], bool] = _always

    @property
    def may_ask(self) -> bool:
        """Whether there are calls before which somebody should be asked."""
        return self.asks is not _never

    @property
    def fields(self) -> "tuple[dataclasses.Field[Any], ...]":
        """The fields of the input, those that are given by their place first."""
        every = dataclasses.fields(self.input)  # type: ignore[arg-type]  # every input is a dataclass; a test says so
        return tuple(sorted(every, key=lambda one: asked(one).takes is Takes.OPTION))

    def needed(self, given: Input) -> Needs:
        """What this call needs: as the verb says, or more if a field says so."""
        extra = [asked(one).needs for one in self.fields if getattr(given, one.name)]
        return max((self.needs, *filter(None, extra)), key=tuple(Needs).index)
