"""How calls are refused, told in one line each, so that one test compares many of them and names those that differ."""

from collections.abc import Callable

from wellkept.errors import WellkeptError

FOREIGN = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)


def refusal(call: Callable[..., object], /, *args: object, **named: object) -> str:
    """For example ``search: InvalidInput of query``: the operation, the class of the error, the field that it names."""
    try:
        call(*args, **named)
    except WellkeptError as error:
        line = f"{error.operation}: {type(error).__name__} of {error.details.get('field')}"
        return line if error.hint else f"{line}, without a hint"
    except FOREIGN as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"
