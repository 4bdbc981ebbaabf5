"""What an entry in the table of verbs says, and how the fields of its input are declared."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from wellkept import fields
from wellkept.errors import (
    ConfigurationError,
    EmbedderMismatch,
    InvalidInput,
    MissingIdentifier,
    StoreError,
    Unauthorized,
    WellkeptError,
)
from wellkept.types import Grant, Identity, Need
from wellkept.types.bounds import UNBOUNDED, Bounds

if TYPE_CHECKING:
    from wellkept.engine.core import Declared
    from wellkept.memories.database import Memories
    from wellkept.memories.view import View

Input = TypeVar("Input")
Output = TypeVar("Output")
Progress = Callable[[int, int], None]
"""Called with how many steps are done, and how many there are."""

EVERYWHERE: tuple[type[WellkeptError], ...] = (
    InvalidInput,
    MissingIdentifier,
    Unauthorized,
    ConfigurationError,
    EmbedderMismatch,
    StoreError,
)
"""The errors of every verb: input that is refused, a caller without the grant, a database that does not open or
does not answer.
"""


class Section(StrEnum):
    """The headings under which verbs are listed."""

    REMEMBER = "Remember"
    RECALL = "Recall"
    LOOK = "Look inside"
    KEEP = "Keep in order"


class Listed(NamedTuple):
    """A verb in one line: what it does, under which heading it is listed, and the module that defines it."""

    summary: str
    section: Section
    module: str


class Takes(StrEnum):
    """How a field is given on a command line: as an option, by its position, or as a group of options.

    ``ONE`` takes one word, ``EACH`` any number of them, ``WORDS`` joins them; where a field takes several texts,
    ``WORDS`` joins only words without spaces, and quoted texts stay texts of their own. ``FILE`` takes the name of a
    file, whose text is the value. The fields of a ``GROUP``, which is a dataclass, are options of their own.
    """

    OPTION = "option"
    ONE = "one"
    EACH = "each"
    WORDS = "words"
    FILE = "file"
    GROUP = "group"


class Parameter(NamedTuple):
    """How a field of an input is described, bounded, and given on a command line.

    ``flag`` is its name on the command line if that differs from the field's name, as where each value has a flag of
    its own (``--tag a --tag b`` fills ``tags``); ``short`` is a letter for it. A span of time such as ``7d`` lies in
    the past, or in the future if ``ahead`` is set. ``method`` is what a call that sets the field calls beside the
    method of its verb, such as ``Memories.configure``.
    """

    description: str
    bounds: Bounds = UNBOUNDED
    takes: Takes = Takes.OPTION
    flag: str = ""
    short: str = ""
    ahead: bool = False
    method: str = ""


_PARAMETER = "parameter"


def option(
    description: str,
    default: Any = None,
    *,
    bounds: Bounds = UNBOUNDED,
    flag: str = "",
    short: str = "",
    ahead: bool = False,
    method: str = "",
) -> Any:
    """A field of an input that may be left out."""
    parameter = Parameter(description=description, bounds=bounds, flag=flag, short=short, ahead=ahead, method=method)
    return _field(parameter, default)


def argument(description: str, default: Any = MISSING, *, bounds: Bounds = UNBOUNDED, takes: Takes = Takes.ONE) -> Any:
    """A field of an input that a command line gives by its position."""
    return _field(Parameter(description=description, bounds=bounds, takes=takes), default)


def group(description: str, default: Any = None) -> Any:
    """A field of an input that is a dataclass of its own; its fields are options of the command line."""
    return _field(Parameter(description=description, takes=Takes.GROUP), default)


def result(description: str, default: Any = MISSING, *, bounds: Bounds = UNBOUNDED) -> Any:
    """A field of an answer."""
    return _field(Parameter(description=description, bounds=bounds), default)


def memory_field(name: str, default: Any = None, *, description: str = "") -> Any:
    """A field of an input that is a field of a memory: as the table of fields declares it."""
    one = fields.MEMORY[name]
    return option(
        description or one.description, default, bounds=one.bounds, flag=one.flag, short=one.short, ahead=one.ahead
    )


def _field(parameter: Parameter, default: Any) -> Any:
    metadata = {_PARAMETER: parameter}
    if isinstance(default, dict) or (isinstance(default, type) and dataclasses.is_dataclass(default)):
        made = default if isinstance(default, type) else dict
        return dataclasses.field(default_factory=made, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def parameter_of(one: "dataclasses.Field[Any]") -> Parameter:
    """How a field of an input is described, bounded and given."""
    found: Parameter = one.metadata[_PARAMETER]
    return found


class Caller(NamedTuple):
    """Who calls a verb, on which database, and with which grant; ``progress`` is told how far a long call is."""

    memories: "Memories"
    identity: Identity
    progress: Progress | None = None
    grant: Grant = Grant()

    @property
    def view(self) -> "View":
        """The memories that the caller may see."""
        return self.memories._view(self.identity, None if self.grant == Grant() else self.grant)

    @property
    def now(self) -> datetime:
        """The time by the clock that the database was opened with."""
        return self.memories._engine.clock()


class Example(NamedTuple):
    """A command line, and what it does. The tests run it, with the id of a memory in ``$ID``."""

    line: str
    says: str


def _always(_: Any) -> bool:
    return True


def _never(_: Caller, __: Any) -> str:
    return ""


class Verb(NamedTuple, Generic[Input, Output]):
    """One entry of the table: an operation, and everything that a surface must know to offer it.

    ``method`` is the one that it calls, such as ``View.forget``: what a call needs is declared there, and a field of
    the input with the name of an argument that changes it does so as well. Of several methods, it is the one that needs
    most. A verb that calls none names its need. ``errors`` are those that the verb adds to ``EVERYWHERE``.
    ``creates``: a database that does not exist is made. ``makes_keys``: the keys that the settings ask for need not be
    there yet.
    ``live``: the answer can be continued; a surface that can follow calls again from where the last answer ended.
    ``standalone``: the input names the databases, and the caller's is not used. ``interrupted`` is the hint for a user
    who stopped the call. ``asks`` returns what a call would take away, such as "erase 3 memories for good", if a person
    should confirm it first, and otherwise an empty text. ``agrees`` tells whether the answer is a yes, for programs
    that look at nothing but the exit code.

    >>> from wellkept.operations import VERBS
    >>> forget = VERBS["forget"]
    >>> forget.needed(forget.input(ids=("x",))).value, forget.needed(forget.input(ids=("x",), permanent=True)).value
    ('write', 'erase')
    """

    name: str
    input: type[Input]
    output: type[Output]
    run: Callable[[Caller, Input], Output]
    method: str | Need
    examples: tuple[Example, ...]
    description: str = ""
    errors: tuple[type[WellkeptError], ...] = ()
    creates: bool = False
    makes_keys: bool = False
    live: bool = False
    standalone: bool = False
    interrupted: str = ""
    asks: Callable[[Caller, Input], str] = _never
    agrees: Callable[[Output], bool] = _always

    @property
    def may_ask(self) -> bool:
        """Whether there are calls that a person should confirm first."""
        return self.asks is not _never

    @property
    def fields(self) -> "tuple[dataclasses.Field[Any], ...]":
        """The fields of the input: those that a command line gives by position, the input's own, inherited ones."""
        own = [name for kind in self.input.__mro__ for name in inspect.get_annotations(kind)]
        every = dataclasses.fields(self.input)  # type: ignore[arg-type]  # every input is a dataclass; a test says so
        return tuple(
            sorted(every, key=lambda one: (parameter_of(one).takes in (Takes.OPTION, Takes.GROUP), own.index(one.name)))
        )

    @property
    def needs(self) -> Need:
        """What a call needs if no field changes that."""
        return self.needed_with({})

    def needed(self, given: Input) -> Need:
        """What a call with this input needs."""
        return self.needed_with({one.name: getattr(given, one.name) for one in self.fields})

    def needed_with(self, values: Mapping[str, object]) -> Need:
        """What a call needs that gives these values to fields of the input."""
        more = (parameter_of(one).method for one in self.fields if values.get(one.name))
        return max((_needed(method, values) for method in (self.method, *more) if method), key=tuple(Need).index)


def _needed(method: str | Need, given: Mapping[str, object]) -> Need:
    """What a call of a method with these arguments needs, as it is declared there."""
    if isinstance(method, Need):
        return method
    from wellkept import memories  # lazy: help and completion need no engine

    kind, _, name = method.partition(".")
    declared: Declared = getattr(getattr(memories, kind), name).declared
    return declared.needed(given)
