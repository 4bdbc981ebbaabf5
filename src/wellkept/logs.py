"""Log records of the standard ``logging``, never with content, keys, queries or user ids.

The logger is ``wellkept``; nothing is printed unless the application adds a handler.
"""

import json
import logging
from datetime import UTC, datetime
from traceback import format_exception
from types import TracebackType

from wellkept.errors import (
    EmbeddingFailed,
    KeyUnavailable,
    QuotaExceeded,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    Tampered,
    WellkeptError,
)
from wellkept.types import Layer, OperationCompleted

LOG = logging.getLogger("wellkept")
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
    "bytes_used",
    "bytes_limit",
    "percent",
    "plan",
    "memory_id",
    "permanent",
    "scope_id",
    "file",
    "exclusive",
    "automatic",
    "run_id",
    "bytes_freed",
    "errors",
    "hold",
    "key_id",
)
"""The fields of a record that :class:`JsonFormatter` writes under ``metadata``, if present."""


class JsonFormatter(logging.Formatter):
    """Formats each record as one line of JSON.

    ``timestamp``, ``level``, ``component`` and ``message`` are always present, ``session_id`` and ``agent_id`` if
    known, the fields of ``METADATA`` under ``metadata``, and a ``stack`` if the caller's code raised.

    >>> record = logging.LogRecord("wellkept", logging.INFO, "", 0, "View.add took 1.5 ms", None, None)
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

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
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


_OPERATORS = (StoreError, EmbeddingFailed, QuotaExceeded, KeyUnavailable, Tampered)
"""What operators should know of."""


def operation_failed(component: str, operation: str, error: WellkeptError) -> None:
    """Log a failure that operators should know of; the caller gets the error. Mistakes of callers are not logged."""
    if isinstance(error, StoreBusy):
        level = logging.WARNING
    elif isinstance(error, KeyUnavailable) and "key_id" not in error.details:
        return  # nothing was encrypted with a key that is missing: the caller needs a keyring
    elif isinstance(error, StoreClosed) or not isinstance(error, _OPERATORS):
        return
    else:
        level = logging.ERROR
    fields = {"component": component, "operation": operation, "code": error.code}
    LOG.log(level, "%s.%s failed: %s", component, operation, error.code, extra=fields)


def folder_open(store: str, name: str) -> None:
    """Every user of the machine may write the folder of a store."""
    fields = {"component": "Store", "operation": "open"}
    LOG.warning("the folder of %s %s may be written by everybody: set its mode to 700", store, name, extra=fields)


def memory_damaged(memory: object) -> None:
    """A damaged memory was passed over by a listing or a search."""
    fields = {"component": "Store", "operation": "read"}
    LOG.warning("the damaged memory %.64r was passed over: run doctor", memory, extra=fields)


def memory_forgotten(memory_id: str, layer: Layer, agent_id: str | None, *, permanent: bool) -> None:
    """A memory was forgotten or erased."""
    if not LOG.isEnabledFor(logging.INFO):
        return
    fields = {
        "component": "View",
        "operation": "forget",
        "memory_id": memory_id,
        "layer": layer.value,
        "agent_id": agent_id,
        "permanent": permanent,
    }
    LOG.info("memory %s was forgotten, permanent=%s", memory_id, permanent, extra=fields)


def quota_near(plan: str, percent: int, bytes_used: int, bytes_limit: int) -> None:
    """Little is left of the limit of a plan."""
    fields = {
        "component": "View",
        "plan": plan,
        "percent": percent,
        "bytes_used": bytes_used,
        "bytes_limit": bytes_limit,
    }
    LOG.warning("storage quota at %d %% of the plan %s", percent, plan, extra=fields)


def agent_opened(agent_id: str, *, long_term: bool) -> None:
    """The handle of an agent was made: its working memory, and its long-term memory if the plan has that."""
    if long_term:
        LOG.info("long-term memory of agent %s is ready", agent_id, extra={"component": "View", "agent_id": agent_id})
    fields = {"component": "WorkingMemory", "agent_id": agent_id}
    LOG.info("working memory of agent %s is ready", agent_id, extra=fields)


def working_memory_cleared(agent_id: str, count: int) -> None:
    """Working memory was cleared, with so many entries."""
    fields = {"component": "WorkingMemory", "operation": "clear", "agent_id": agent_id, "count": count}
    LOG.info("working memory of agent %s was cleared: %d entries removed", agent_id, count, extra=fields)


def scope_disposed_before(agent_id: str, scope_id: str) -> None:
    """A scope that was disposed is disposed again, which has no effect."""
    fields = {"component": "WorkingScope", "operation": "dispose", "agent_id": agent_id, "scope_id": scope_id}
    LOG.warning("scope %s was disposed before; ignored", scope_id, extra=fields)


def value_not_json(type_name: str, code: str) -> None:
    """A value cannot be kept in working memory."""
    fields = {"component": "WorkingMemory", "operation": "set", "code": code}
    LOG.error("a value of type %s cannot be stored as JSON", type_name, extra=fields)


def session_changed(session_id: str, operation: str, what: str) -> None:
    """A session began or ended; ``what`` is said of it, such as "was closed"."""
    fields = {"component": "Session", "operation": operation, "session_id": session_id}
    LOG.info("session %s %s", session_id, what, extra=fields)


def session_nearly_full(session_id: str, bytes_used: int, bytes_limit: int) -> None:
    """A session approaches its limit; ``bytes_used`` is what it would hold with the next write."""
    fields = {
        "component": "Session",
        "session_id": session_id,
        "bytes_used": bytes_used,
        "bytes_limit": bytes_limit,
        "percent": 100 * bytes_used // bytes_limit,
    }
    LOG.warning(
        "session %s approaches its limit: %d of %d bytes with the next write",
        session_id,
        bytes_used,
        bytes_limit,
        extra=fields,
    )


def session_compacting(session_id: str, *, automatic: bool) -> None:
    """The compaction of a session begins."""
    fields = {"component": "Session", "operation": "compact", "session_id": session_id, "automatic": automatic}
    LOG.info("session %s is being compacted", session_id, extra=fields)


def session_compacted(
    session_id: str,
    *,
    archived: int,
    erased: int,
    bytes_before: int,
    bytes_after: int,
    duration_ms: float,
    automatic: bool,
) -> None:
    """The compaction of a session has ended."""
    fields = {
        "component": "Session",
        "operation": "compact",
        "session_id": session_id,
        "archived": archived,
        "erased": erased,
        "bytes_before": bytes_before,
        "bytes_after": bytes_after,
        "duration_ms": round(duration_ms, 3),
        "automatic": automatic,
    }
    LOG.info("session %s was compacted: %d memories archived, %d erased", session_id, archived, erased, extra=fields)


def upkeep_completed(job: str, run_id: str, entries: int, bytes_freed: int, errors: int) -> None:
    """A run of upkeep has ended."""
    fields = {
        "component": "Upkeep",
        "operation": job,
        "run_id": run_id,
        "count": entries,
        "bytes_freed": bytes_freed,
        "errors": errors,
    }
    LOG.info("%s cleanup completed: %d entries deleted, %d bytes freed", job, entries, bytes_freed, extra=fields)


def upkeep_failed(job: str, layer: Layer | None, agent_id: str | None, error: WellkeptError) -> None:
    """A run of upkeep failed for one owner, or as a whole if there is no layer."""
    fields = {"component": "Upkeep", "operation": job, "layer": layer, "agent_id": agent_id, "code": error.code}
    whose = f"agent {agent_id}" if agent_id is not None else "all owners" if layer is None else f"a {layer.value}"
    LOG.error("%s cleanup failed for %s: %s", job, whose, error.code, extra=fields)


def accesses_put_off(count: int, code: str) -> None:
    """The store does not take access counts now; they are written later."""
    fields = {"component": "Accesses", "count": count, "code": code}
    LOG.warning("the reads of %d memories are counted later: %s", count, code, extra=fields)


def accesses_lost(count: int, code: str) -> None:
    """Access counts could not be written for too long, or nobody knows whether they were."""
    fields = {"component": "Accesses", "count": count, "code": code}
    LOG.warning("the reads of %d memories are not counted: %s", count, code, extra=fields)


def erasure_unfinished(error: WellkeptError) -> None:
    """An erasure that was interrupted could not be finished when the database was opened: the hold or the key that
    stands against it is named.
    """
    against = {name: str(error.details[name]) for name in ("hold", "key_id") if name in error.details}
    fields = {"component": "Privacy", "operation": "erase", "code": error.code, **against}
    named = "".join(f" ({name} {id})" for name, id in against.items())
    LOG.error("an erasure could not be finished: %s%s", error.code, named, extra=fields)


def ledger_not_copied(error: str) -> None:
    """The file of the ledger of erasures could not be written."""
    fields = {"component": "Privacy", "operation": "erase", "code": error}
    LOG.warning("the ledger of erasures could not be copied into its file: %s", error, extra=fields)


def ledger_untrusted() -> None:
    """The file of the ledger of erasures can be written by others, and is not replayed by itself."""
    fields = {"component": "Privacy", "operation": "erase"}
    LOG.warning("the ledger of erasures can be written by others: check it, then replay it", extra=fields)


def audit_unwritten(file: str, code: str, lost: int = 0) -> None:
    """The audit log cannot be written, or so many entries could not be until the end."""
    fields = {"component": "Audit", "file": file, "code": code, "count": lost}
    LOG.error("the audit log cannot be written: %s%s", code, f"; {lost} entries are lost" if lost else "", extra=fields)


def lock_taken(file: str, waited_ms: float, *, exclusive: bool) -> None:
    """A lock was acquired, after a wait."""
    if LOG.isEnabledFor(logging.DEBUG):
        fields = {
            "component": "Lock",
            "operation": "acquire",
            "file": file,
            "exclusive": exclusive,
            "duration_ms": round(waited_ms, 3),
        }
        LOG.debug("lock %s was acquired after %.3f ms", file, waited_ms, extra=fields)


def lock_released(file: str, held_ms: float, *, exclusive: bool) -> None:
    """A lock was released, after a time."""
    if LOG.isEnabledFor(logging.DEBUG):
        fields = {
            "component": "Lock",
            "operation": "release",
            "file": file,
            "exclusive": exclusive,
            "duration_ms": round(held_ms, 3),
        }
        LOG.debug("lock %s was released after %.3f ms", file, held_ms, extra=fields)


def lock_timed_out(file: str, timeout_ms: float, code: str, *, exclusive: bool) -> None:
    """A lock was not acquired in time."""
    fields = {
        "component": "Lock",
        "operation": "acquire",
        "file": file,
        "exclusive": exclusive,
        "duration_ms": timeout_ms,
        "code": code,
    }
    LOG.warning("lock %s was not acquired within %g ms", file, timeout_ms, extra=fields)


def lines_damaged(count: int) -> None:
    """Lines of a file are damaged and are skipped."""
    fields = {"component": "Store", "operation": "read", "count": count, "code": StoreCorrupt.code}
    LOG.error("%d damaged lines are skipped; run doctor", count, extra=fields)


def writes_buffered(count: int, code: str) -> None:
    """The disk failed; acknowledged writes wait in memory until it works again."""
    fields = {"component": "Store", "operation": "write", "count": count, "code": code}
    LOG.error("the disk failed (%s): %d writes wait in memory", code, count, extra=fields)


def embedder_down(embedder: str, error: BaseException | None) -> None:
    """The embedder stopped answering."""
    name = type(error).__name__
    fields = {"component": "Embedder", "operation": "embed", "embedder": embedder, "error": name}
    if isinstance(error, WellkeptError):
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
    logging.getLogger("wellkept.events").error(
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
