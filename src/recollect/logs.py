"""Log records of the standard ``logging``, never with content, keys, queries or user ids.

The logger is ``recollect``; nothing is printed unless the application adds a handler.
"""

import json
import logging
from datetime import UTC, datetime
from traceback import format_exception
from types import TracebackType

from recollect.errors import RecollectError, StoreClosed, StoreError
from recollect.types import OperationCompleted

LOG = logging.getLogger("recollect")
LOG.addHandler(logging.NullHandler())

METADATA = (
    "operation",
    "duration_ms",
    "code",
    "error",
    "layer",
    "count",
    "event",
    "embedder",
    "batch",
    "archived",
    "erased",
    "bytes_before",
    "bytes_after",
)
"""The fields of a record that :class:`JsonFormatter` writes under ``metadata``, if present."""


class JsonFormatter(logging.Formatter):
    """Formats each record as one line of JSON.

    ``timestamp``, ``level``, ``component`` and ``message`` are always present, ``session_id`` and ``agent_id`` if
    known, the fields of ``METADATA`` under ``metadata``, and a ``stack`` if the caller's code raised.

    >>> record = logging.LogRecord("recollect", logging.INFO, "", 0, "View.add took 1.5 ms", None, None)
    >>> record.created, record.component, record.duration_ms = 0.0, "View", 1.5
    >>> print(JsonFormatter().format(record))
    {"timestamp":"1970-01-01T00:00:00.000Z","level":"INFO","component":"View","message":"View.add took 1.5 ms",\
"metadata":{"duration_ms":1.5}}
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        at = datetime.fromtimestamp(record.created, UTC)
        known = record.__dict__
        line = {
            "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": "WARN" if record.levelno == logging.WARNING else record.levelname,
            "component": known.get("component", record.name),
        }
        line |= {name: known[name] for name in ("session_id", "agent_id") if known.get(name) is not None}
        line["message"] = record.getMessage()
        metadata = {name: known[name] for name in METADATA if known.get(name) is not None}
        if metadata:
            line["metadata"] = metadata
        if record.exc_info and record.exc_info[0] is not None:
            line["stack"] = "".join(format_exception(*record.exc_info))
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)


def wanted() -> bool:
    """Whether the application logs operations: level DEBUG."""
    return LOG.isEnabledFor(logging.DEBUG)


def operation(done: OperationCompleted) -> None:
    """A watcher that logs each operation at DEBUG. Registered automatically if that level is enabled at ``open``.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     stop = memories.watch(operation)
    """
    if not LOG.isEnabledFor(logging.DEBUG):
        return
    name = f"{done.component}.{done.operation}"
    if done.code is None:
        LOG.debug("%s took %.3f ms", name, done.duration_ms, extra=_fields(done))
    else:
        LOG.debug("%s failed after %.3f ms: %s", name, done.duration_ms, done.code, extra=_fields(done))


def _fields(done: OperationCompleted) -> dict[str, object]:
    return {
        "component": done.component,
        "operation": done.operation,
        "duration_ms": round(done.duration_ms, 3),
        "code": done.code,
        "layer": done.layer and done.layer.value,
        "count": done.count,
        "agent_id": done.agent_id,
        "session_id": done.session_id,
    }


def store_failed(component: str, operation: str, error: StoreError) -> None:
    """Log a failure of the store, for operators; the caller gets the error."""
    if isinstance(error, StoreClosed):
        return  # a mistake of the caller, not a failure of the store
    level = logging.WARNING if error.retryable else logging.ERROR
    fields = {"component": component, "operation": operation, "code": error.code}
    LOG.log(level, "%s.%s failed: %s", component, operation, error.code, extra=fields)


def session_compacted(session_id: str, archived: int, erased: int, bytes_before: int, bytes_after: int) -> None:
    """A session was compacted."""
    fields = {
        "component": "Session",
        "operation": "compact",
        "session_id": session_id,
        "archived": archived,
        "erased": erased,
        "bytes_before": bytes_before,
        "bytes_after": bytes_after,
    }
    LOG.info("session %s was compacted: %d memories archived, %d erased", session_id, archived, erased, extra=fields)


def embedder_down(embedder: str, error: BaseException | None) -> None:
    """The embedder stopped answering."""
    name = type(error).__name__
    fields = {"component": "Embedder", "operation": "embed", "embedder": embedder, "error": name}
    if isinstance(error, RecollectError):
        fields["code"] = error.code
    LOG.warning("embedder %s does not answer (%s): memories are kept without vectors", embedder, name, extra=fields)


def embedder_back(embedder: str) -> None:
    """The embedder answers again."""
    LOG.info("embedder %s answers again", embedder, extra={"component": "Embedder", "embedder": embedder})


def embedder_slow(embedder: str, batch: int, duration_ms: float) -> None:
    """The embedder exceeded the warning threshold for one batch."""
    fields = {
        "component": "Embedder",
        "operation": "embed",
        "embedder": embedder,
        "batch": batch,
        "duration_ms": round(duration_ms, 3),
    }
    LOG.warning("embedder %s took %.0f ms for %d texts", embedder, duration_ms, batch, extra=fields)


def handler_failed(event: str, error: BaseException) -> None:
    """An event handler raised."""
    logging.getLogger("recollect.events").error(
        "handler failed for %s",
        event,
        extra={"component": "EventBus", "event": event, "error": type(error).__name__},
        exc_info=_redacted(error),
    )


def _redacted(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """The traceback without the message, which may quote the event, for instance a query."""
    kind = type(error)
    mute = type(kind.__name__, (Exception,), {"__module__": kind.__module__})
    return kind, mute(), error.__traceback__
