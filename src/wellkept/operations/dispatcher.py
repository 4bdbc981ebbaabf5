"""The one place where verbs are called: decode strictly, check the grant, run, encode.

Every surface comes in here, for plain data by ``call`` or for values of Python by ``request``. Errors leave as
``WellkeptError`` with the name of the verb; ``failures.report`` maps them for the edges.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Generic, NamedTuple

from wellkept.codec import strict
from wellkept.engine import journal
from wellkept.errors import InvalidInput, WellkeptError
from wellkept.operations import payloads, schemas
from wellkept.operations.table import VERBS
from wellkept.operations.verb import Caller, Input, Output, Verb


class Request(NamedTuple, Generic[Input, Output]):
    """A call whose input was checked and which the grant of the caller allows."""

    verb: Verb[Input, Output]
    caller: Caller
    input: Input

    def question(self) -> str:
        """What the call would take away, if a person should confirm it first; otherwise an empty text."""
        with _errors_named(self.verb.name):
            return self.verb.asks(self.caller, self.input)

    def run(self) -> Output:
        """Run the verb; the answer as a value of Python."""
        with _errors_named(self.verb.name):
            return self.verb.run(self.caller, self.input)


def call(name: str, caller: Caller, payload: object) -> Any:
    """Call a verb with a plain mapping, as decoded from JSON; the answer is plain data, ready for JSON.

    >>> import wellkept
    >>> from wellkept.types import Identity
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     caller = Caller(memories=memories, identity=Identity(user="ada"))
    ...     _ = call("add", caller, {"content": ["Likes tea"], "tags": ["drinks"]})
    ...     call("count", caller, {"filter": {"tags": ["drinks"]}})
    {'count': 1}
    """
    return strict.to_jsonable(request(name, caller, payload).run())


def request(name: str, caller: Caller, payload: object) -> Request[Any, Any]:
    """A call of a verb, decoded and allowed but not yet run, for surfaces that ask or show something before or after.

    Times in the payload may be given as values of ``datetime``.
    """
    verb = find(name)
    given = payloads.decoded(verb, payload)
    with _errors_named(name):
        journal.authorize(caller.memories._engine.shared, caller.grant, caller.identity, verb.needed(given))
    return Request(verb, caller, given)


def find(name: object) -> Verb[Any, Any]:
    """The verb of a name.

    >>> find("serach")
    Traceback (most recent call last):
    ...
    wellkept.errors.InvalidInput: no verb is named 'serach' (did you mean 'search'?)
    """
    if isinstance(name, str) and name in VERBS:
        return VERBS[name]
    shown = repr(name[:40]) if isinstance(name, str) else f"of type {type(name).__name__}"
    raise InvalidInput(
        f"no verb is named {shown}", details={"field": "verb"}, hint=payloads.nearest(str(name)[:40], VERBS)
    )


def schema(name: str) -> dict[str, Any]:
    """The JSON schemas of the input and the answer of a verb.

    >>> schema("count")["output"]["properties"]["count"]["minimum"]
    0
    """
    verb = find(name)
    return deepcopy({"input": schemas.input_schema(verb), "output": schemas.output_schema(verb)})  # those are cached


@contextmanager
def _errors_named(name: str) -> Iterator[None]:
    """Errors get the name of the verb, whatever the engine calls the operation."""
    try:
        yield
    except WellkeptError as error:
        error.operation = name
        raise
