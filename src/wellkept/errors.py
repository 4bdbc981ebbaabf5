"""The exception hierarchy.

::

    WellkeptError
    ├── InvalidInput (ValueError)              INVALID_INPUT
    │   ├── InvalidLayer                       INVALID_LAYER
    │   ├── MissingIdentifier                  MISSING_IDENTIFIER
    │   ├── ContentTooLong                     CONTENT_TOO_LONG
    │   ├── QueryTooLong                       QUERY_TOO_LONG
    │   └── LimitReached                       LIMIT_REACHED
    ├── NotFound (LookupError)                 MEMORY_NOT_FOUND
    ├── Conflict                               CONFLICT
    ├── Held (PermissionError)                 HELD
    ├── UpkeepRefused                          UPKEEP_REFUSED
    ├── NotACopy                               NOT_A_COPY
    ├── Unauthorized (PermissionError)         UNAUTHORIZED
    ├── PlanRestriction (PermissionError)      PLAN_RESTRICTION
    ├── QuotaExceeded                          QUOTA_EXCEEDED
    ├── ConfigurationError (ValueError)        CONFIGURATION_ERROR
    │   └── EmbedderMismatch                   EMBEDDER_MISMATCH
    ├── EmbeddingFailed (RuntimeError)         EMBEDDING_FAILED   retryable
    ├── RateLimited                            RATE_LIMITED       retryable
    ├── ScopeDisposed (RuntimeError)           SCOPE_DISPOSED
    ├── PositionLost                           POSITION_LOST
    ├── KeyUnavailable                         KEY_UNAVAILABLE
    ├── Tampered                               TAMPERED
    ├── Unsupported (NotImplementedError)      UNSUPPORTED
    └── StoreError (OSError)                   PROVIDER_ERROR     retryable
        ├── StoreBusy (TimeoutError)           STORE_BUSY         retryable
        │   └── LockTimeout                    CONCURRENCY        retryable
        ├── StoreFull                          STORE_FULL         retryable
        ├── StoreReadOnly                      STORE_READ_ONLY
        ├── StoreCorrupt                       STORE_CORRUPT
        ├── StoreClosed                        STORE_CLOSED
        ├── NotAStore                          NOT_A_STORE
        └── SchemaTooNew                       SCHEMA_TOO_NEW

A message names the field or the id and never contains a memory's content or a key. ``hint`` says what to do next.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class WellkeptError(Exception):
    """The base of all Wellkept errors. ``code`` is stable, ``retryable`` says whether a retry can help.

    >>> try:
    ...     raise InvalidInput("importance must be between 0 and 1", details={"field": "importance"})
    ... except WellkeptError as error:
    ...     print(error.code, error.retryable, error.details["field"])
    INVALID_INPUT False importance
    """

    code: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        operation: str = "",
        details: Mapping[str, Any] | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation
        self.details: Mapping[str, Any] = dict(details or {})
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # The default pickling of exceptions loses keyword-only arguments; process pools need them.
        return (_rebuild, (type(self), self.message, self.operation, self.details, self.hint))


def _rebuild(
    kind: type[WellkeptError], message: str, operation: str, details: Mapping[str, Any], hint: str
) -> WellkeptError:
    return kind(message, operation=operation, details=details, hint=hint)


class InvalidInput(WellkeptError, ValueError):
    """An invalid value; ``details["field"]`` names it. Nothing was changed.

    >>> InvalidInput("limit must be at least 1", details={"field": "limit"}).details["field"]
    'limit'
    """

    code = "INVALID_INPUT"


class InvalidLayer(InvalidInput):
    """A layer that does not exist."""

    code = "INVALID_LAYER"


class MissingIdentifier(InvalidInput):
    """A layer was requested without the ids that it needs."""

    code = "MISSING_IDENTIFIER"


class ContentTooLong(InvalidInput):
    """Content beyond the limit: 10 MB for a memory, 1 MB for an entry of working memory."""

    code = "CONTENT_TOO_LONG"


class QueryTooLong(InvalidInput):
    """A search query beyond the limit."""

    code = "QUERY_TOO_LONG"


class LimitReached(InvalidInput):
    """A limit on a count or on tokens is reached; ``details`` has the ``limit`` and the current number."""

    code = "LIMIT_REACHED"


class NotFound(WellkeptError, LookupError):
    """No memory with this id is visible. Missing, forgotten and foreign ids are deliberately not distinguished."""

    code = "MEMORY_NOT_FOUND"


class Conflict(WellkeptError):
    """A concurrent write won: the expected version is outdated, or the key is taken. Read again, then decide."""

    code = "CONFLICT"


class Held(WellkeptError, PermissionError):
    """A memory that is held was to be erased; ``details`` has the ``hold``. Nothing was erased.

    >>> Held("memory 'x' is held by h1", details={"hold": "h1"}).details["hold"]
    'h1'
    """

    code = "HELD"


class UpkeepRefused(WellkeptError):
    """A run of upkeep would take too much at once, or its clock is doubtful; nothing was taken."""

    code = "UPKEEP_REFUSED"


class NotACopy(WellkeptError):
    """The target of a conversion is not a copy of the source; ``details`` has the first memory that differs."""

    code = "NOT_A_COPY"


class Unauthorized(WellkeptError, PermissionError):
    """The identity lacks the permission."""

    code = "UNAUTHORIZED"


class PlanRestriction(WellkeptError, PermissionError):
    """The plan of the database does not include a feature; ``details`` has the ``plan`` and the ``feature``."""

    code = "PLAN_RESTRICTION"


class QuotaExceeded(WellkeptError):
    """The write exceeds the storage limit of the plan; nothing was written.

    ``details`` has ``usage`` before the write, ``needed`` and ``limit``, in bytes, the ``plan``, and the ``owner`` if
    the limit is one owner's alone.
    """

    code = "QUOTA_EXCEEDED"


class ConfigurationError(WellkeptError, ValueError):
    """An invalid setting, URL or plug-in, or a missing extra."""

    code = "CONFIGURATION_ERROR"


class EmbedderMismatch(ConfigurationError):
    """The stored vectors were made by another embedder than the one given."""

    code = "EMBEDDER_MISMATCH"


class EmbeddingFailed(WellkeptError, RuntimeError):
    """The embedder raised, or did not return one finite vector per text.

    >>> EmbeddingFailed("the embedder returned 1 vector for 2 texts").retryable
    True
    """

    code = "EMBEDDING_FAILED"
    retryable = True


class RateLimited(WellkeptError):
    """A remote service rate-limited the request; ``details["retry_after_ms"]`` is the requested pause, if given.

    >>> RateLimited("slow down", details={"retry_after_ms": 500}).retryable
    True
    """

    code = "RATE_LIMITED"
    retryable = True


class ScopeDisposed(WellkeptError, RuntimeError):
    """A scope of working memory was used after it, or an enclosing scope, was disposed; or an agent's handle after it
    was closed.
    """

    code = "SCOPE_DISPOSED"


class PositionLost(WellkeptError):
    """The journal does not contain this position: the store was restored from an older copy, failed over, or is a
    different one. The consumer must read the feed again from the start.
    """

    code = "POSITION_LOST"


class KeyUnavailable(WellkeptError):
    """The key that something is encrypted with is not there: no keyring was given, it is another one, its master key is
    wrong or missing, or the key was destroyed. ``details`` has the ``key_id``, where it is known.
    """

    code = "KEY_UNAVAILABLE"


class Tampered(WellkeptError):
    """Something encrypted does not fit its key and its place: it was altered, damaged or moved from elsewhere."""

    code = "TAMPERED"


class Unsupported(WellkeptError, NotImplementedError):
    """The store lacks a capability, named in ``details["capability"]``."""

    code = "UNSUPPORTED"


class StoreError(WellkeptError, OSError):
    """The store failed; the operation had no effect."""

    code = "PROVIDER_ERROR"
    retryable = True

    def __str__(self) -> str:
        # Overrides OSError.__str__, which formats errno pairs.
        return WellkeptError.__str__(self)


class StoreBusy(StoreError, TimeoutError):
    """Other writers held the store's lock for the whole timeout.

    >>> StoreBusy("the store stayed locked for 30000 ms").retryable
    True
    """

    code = "STORE_BUSY"


class LockTimeout(StoreBusy):
    """Other processes held a lock of the JSON Lines store for the whole timeout. If one of them is a writer,
    ``details`` has its ``pid``, ``operation`` and ``since``.
    """

    code = "CONCURRENCY"


class StoreFull(StoreError):
    """The disk is full. Reads work; writes resume when there is space."""

    code = "STORE_FULL"


class StoreReadOnly(StoreError):
    """The file or its folder cannot be written.

    >>> StoreReadOnly("the folder cannot be written").retryable
    False
    """

    code = "STORE_READ_ONLY"
    retryable = False


class StoreCorrupt(StoreError):
    """Stored data is damaged. ``doctor`` locates the damage and offers a repair."""

    code = "STORE_CORRUPT"
    retryable = False


class StoreClosed(StoreError):
    """The store was closed."""

    code = "STORE_CLOSED"
    retryable = False


class NotAStore(StoreError):
    """The file exists but is not a Wellkept store; it is left unchanged."""

    code = "NOT_A_STORE"
    retryable = False


class SchemaTooNew(StoreError):
    """The file was written by a newer release than this one."""

    code = "SCHEMA_TOO_NEW"
    retryable = False
