"""How calls are refused, so that one test compares many of them and names those that differ."""

from collections.abc import Callable

from wellkept.errors import WellkeptError

FOREIGN = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)


def error_of(call: Callable[..., object], /, *args: object, **named: object) -> WellkeptError | None:
    """The error by which a call is refused, ``None`` if it is accepted."""
    try:
        call(*args, **named)
    except WellkeptError as error:
        return error
    return None


def refusal(call: Callable[..., object], /, *args: object, **named: object) -> str:
    """For example ``search: InvalidInput of query``: the operation, the class of the error, the field that it names."""
    try:
        error = error_of(call, *args, **named)
    except FOREIGN as foreign:
        return f"{type(foreign).__name__}: {foreign}"
    if error is None:
        return "accepted"
    line = f"{error.operation}: {type(error).__name__} of {error.details.get('field')}"
    return line if error.hint else f"{line}, without a hint"
