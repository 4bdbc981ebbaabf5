"""What each error is at the edges: an exit code for a shell, a status for HTTP."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from recollect import errors
from recollect.errors import RecollectError

ANSWERED_NO = 1
USAGE = 2
UNEXPECTED = 70
INTERRUPTED = 130
PIPE_CLOSED = 141


class Failure(NamedTuple):
    """How an error leaves: to a shell, and over HTTP."""

    exit_code: int
    http_status: int


FAILURES: Mapping[type[RecollectError], Failure] = MappingProxyType(
    {
        RecollectError: Failure(UNEXPECTED, 500),
        errors.InvalidInput: Failure(USAGE, 400),
        errors.ContentTooLong: Failure(USAGE, 413),
        errors.NotFound: Failure(3, 404),
        errors.Conflict: Failure(4, 409),
        errors.NotACopy: Failure(4, 409),
        errors.Unauthorized: Failure(5, 403),
        errors.PlanRestriction: Failure(5, 402),
        errors.QuotaExceeded: Failure(9, 507),
        errors.ConfigurationError: Failure(6, 500),
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
"""A class that is not here leaves as the nearest one above it."""

EXIT_CODES: Mapping[int, str] = MappingProxyType(
    {
        0: "It worked.",
        ANSWERED_NO: "It ran, and the answer is no: `doctor` found something wrong, an id was not there to forget or"
        " restore.",
        USAGE: "The command line or a value in it is not right. Nothing was changed.",
        3: "There is no such memory, or it is somebody else's.",
        4: "Somebody else was first: the version moved on, the key is taken, or the target holds something else.",
        5: "The identity may not do this, or the plan does not include it.",
        6: "A setting does not fit: the database, the embedder, `recollect.toml`.",
        7: "The embedder failed or asked for a pause. Try again later.",
        8: "The store failed or is busy. Nothing of the command was kept; try again.",
        9: "The disk or the quota is full, or the file cannot be written.",
        10: "The file is damaged, is not Recollect's, or was written by a newer release.",
        UNEXPECTED: "Something that should not happen: please report it.",
        INTERRUPTED: "Stopped with Ctrl-C.",
        PIPE_CLOSED: "Whoever read the output stopped reading, as `head` does.",
    }
)


def failure_of(error: RecollectError | type[RecollectError]) -> Failure:
    """How an error leaves.

    >>> failure_of(errors.InvalidLayer("no layer is named 'planet'")).http_status
    400
    """
    kind = error if isinstance(error, type) else type(error)
    return next(FAILURES[one] for one in kind.__mro__ if one in FAILURES)
