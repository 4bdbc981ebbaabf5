"""What each error is at the edges: an exit code for a shell, a status for HTTP, a report for programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from wellkept import errors
from wellkept.errors import WellkeptError

ANSWERED_NO = 1
USAGE = 2
UNEXPECTED = 70
INTERRUPTED = 130
PIPE_CLOSED = 141


class Failure(NamedTuple):
    """The exit code and the HTTP status of an error."""

    exit_code: int
    http_status: int


FAILURES: Mapping[type[WellkeptError], Failure] = MappingProxyType(
    {
        WellkeptError: Failure(UNEXPECTED, 500),
        errors.InvalidInput: Failure(USAGE, 400),
        errors.ContentTooLong: Failure(USAGE, 413),
        errors.NotFound: Failure(3, 404),
        errors.Conflict: Failure(4, 409),
        errors.Held: Failure(5, 423),
        errors.UpkeepRefused: Failure(4, 409),
        errors.NotACopy: Failure(4, 409),
        errors.PositionLost: Failure(4, 410),
        errors.Unsupported: Failure(6, 501),
        errors.Unauthorized: Failure(5, 403),
        errors.PlanRestriction: Failure(5, 402),
        errors.QuotaExceeded: Failure(9, 507),
        errors.ConfigurationError: Failure(6, 500),
        errors.KeyUnavailable: Failure(6, 503),
        errors.Tampered: Failure(10, 500),
        errors.EmbeddingFailed: Failure(7, 502),
        errors.RateLimited: Failure(7, 429),
        errors.ScopeDisposed: Failure(4, 409),
        errors.StoreError: Failure(8, 503),
        errors.StoreFull: Failure(9, 507),
        errors.StoreReadOnly: Failure(9, 403),
        errors.StoreCorrupt: Failure(10, 500),
        errors.NotAStore: Failure(10, 500),
        errors.SchemaTooNew: Failure(10, 500),
    }
)
"""A class that is not listed has the entry of its nearest base class."""

EXIT_CODES: Mapping[int, str] = MappingProxyType(
    {
        0: "It worked.",
        ANSWERED_NO: "It ran, and the answer is no: `doctor` found something wrong, there was nothing to forget or"
        " restore for an id.",
        USAGE: "The command line or a value is invalid. Nothing was changed.",
        3: "The memory does not exist or belongs to another owner.",
        4: "A conflict: the version changed, the key is taken, the target holds something else, or upkeep would take"
        " too much.",
        5: "The caller is not authorized, the plan does not include it, or the memory is held.",
        6: "The configuration is wrong: the database, the embedder, the keys, `wellkept.toml`.",
        7: "The embedder failed or limits the rate. Try again later.",
        8: "The store failed or is busy. Nothing was changed; try again.",
        9: "The disk or the quota is full, or the file cannot be written.",
        10: "The file is damaged or was tampered with, is not a Wellkept file, or was written by a newer release.",
        UNEXPECTED: "An unexpected error: please report it.",
        INTERRUPTED: "Stopped with Ctrl-C.",
        PIPE_CLOSED: "The reader of the output closed the pipe, as `head` does.",
    }
)


def failure_of(error: WellkeptError | type[WellkeptError]) -> Failure:
    """The exit code and the HTTP status of an error.

    >>> failure_of(errors.InvalidLayer("no layer is named 'planet'")).http_status
    400
    """
    kind = error if isinstance(error, type) else type(error)
    return next(FAILURES[one] for one in kind.__mro__ if one in FAILURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An error as programs are told of it. It never contains the content of a memory or a key."""

    code: str
    message: str
    operation: str
    hint: str
    retryable: bool
    details: Mapping[str, Any]
    exit_code: int
    http_status: int


def report(error: Exception, operation: str = "") -> Report:
    """What to tell of an error; one that is not ours is told by its type alone.

    >>> told = report(errors.InvalidInput("limit must be at least 1", details={"field": "limit"}), "search")
    >>> told.code, told.exit_code, told.http_status, dict(told.details)
    ('INVALID_INPUT', 2, 400, {'field': 'limit'})
    >>> report(ZeroDivisionError("7")).message
    'an unexpected error: ZeroDivisionError'
    """
    known = error if isinstance(error, WellkeptError) else None
    failure = failure_of(known or WellkeptError)
    return Report(
        code=known.code if known else WellkeptError.code,
        message=known.message if known else f"an unexpected error: {type(error).__name__}",
        operation=operation or (known.operation if known else ""),
        hint=known.hint if known else "please report it",
        retryable=known.retryable if known else False,
        details={name: _plain(value) for name, value in known.details.items()} if known else {},
        exit_code=failure.exit_code,
        http_status=failure.http_status,
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else str(value)
