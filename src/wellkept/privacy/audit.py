"""Who did what to which memories: operations as entries of the audit log. Contents, keys and queries never enter it."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from wellkept import codec, logs
from wellkept.engine.core import Actor, Engine
from wellkept.errors import WellkeptError
from wellkept.privacy import audit_log
from wellkept.privacy.audit_log import Anchor, AuditLog
from wellkept.types import Conversation, Grant, Hit, Identity, Memory, Owner, Page, Results, Verification

R = TypeVar("R")

_ID_CHARACTERS = 256
IDS = 100
"""So many ids of one operation are entered; ``count`` says how many there were."""

_READS = frozenset(
    """get get_many history lineage list count stats changes search list_memories topics sessions_about all load
    export sizes facts find""".split()
)
_NEVER = frozenset(
    """view agent health settings position plan retention policies runs next_due holds receipts verify
    ledger owners snapshot resume entries""".split()
)
_NAMES = {"AuditTrail": "audit", "SessionPreferences": "preferences", "AgentMemory": "agent"}
_PERSONAL = "Privacy"  # to hand over everything about a person is more than a read
_SCHEDULED = "run_due"
_BY_ID = frozenset("forget restore update get history lineage load close delete compact undo release revoke".split())
"""Operations whose first argument is an id."""


class Audit:
    """Notes the operations of an open database in its audit log."""

    def __init__(self, engine: Engine, log: AuditLog, *, reads: bool) -> None:
        self._engine, self.log, self._reads = engine, log, reads
        self._running = threading.local()

    def over(self, actor: Actor, name: str, args: tuple[object, ...], run: Callable[[], R]) -> R:
        """Run an operation and enter it, whether it succeeds or not; but not the operations that it calls itself."""
        running = self._running
        is_read = name in _READS and type(actor).__name__ != _PERSONAL
        if name in _NEVER or (is_read and not self._reads) or getattr(running, "is_busy", False):
            return run()
        running.is_busy = True
        try:
            result = run()
        except WellkeptError as error:
            self._enter(actor, name, args, None, error.code)
            raise
        finally:
            running.is_busy = False
        if name != _SCHEDULED or result is not None:  # mostly nothing is due
            self._enter(actor, name, args, result, None)
        return result

    def _enter(self, actor: Actor, name: str, args: tuple[object, ...], result: object, code: str | None) -> None:
        kind = type(actor).__name__
        verb = name if kind == "View" else f"{_NAMES.get(kind, kind.lower())}.{name}"
        entry: dict[str, Any] = {"at": self._engine.clock().isoformat(), "verb": verb}
        identity: Identity | None = getattr(actor, "identity", None)
        if identity is None and (records := getattr(actor, "_records", None)) is not None:  # a user's sessions
            entry |= {"user": records.user}
        elif identity is not None:
            entry |= {
                name: id
                for name, id in (("user", identity.user), ("agent", identity.agent), ("session", identity.session))
                if id is not None
            }
        grant: Grant | None = getattr(actor._engine, "grant", None)  # only a granted engine has one
        if grant is not None and (holder := grant.key or grant.holder) is not None:
            entry["grant"] = holder
        ids, owner = _touched(result)
        if not ids and name in _BY_ID and args and isinstance(args[0], str):
            ids = [args[0][:_ID_CHARACTERS]]
        if ids:
            entry["ids"] = ids[:IDS]
            if len(ids) > 1:
                entry["count"] = len(ids)
        if owner is not None:
            entry["owner"] = codec.encode_owner(owner)
        if code is not None:
            entry["error"] = code
        try:
            if self.log.append(entry):
                self.anchor()
        except OSError as error:
            logs.audit_unwritten(type(error).__name__)

    def anchor(self) -> None:
        """Force the log to the disk, and let the database remember its last entry."""
        with suppress(WellkeptError):  # another process was faster, or the database can only be read
            audit_log.keep_anchor(self._engine, self.log.force())

    def prune(self, before: datetime) -> int:
        """Drop the entries from before a time; how many. The database remembers the last one dropped."""
        return self.log.prune(before, lambda base: audit_log.keep_base(self._engine, base))

    def check(self, anchor: Anchor | None) -> Verification:
        """Whether no entry was altered or removed, up to the database's anchor and the one given."""
        kept = audit_log.anchor(self._engine)
        checked = self.log.check(kept or audit_log.Kept(), anchor)
        if kept is not None:
            return checked
        why = "the anchor in the database is not sealed by its keyring"
        return replace(checked, valid=False, problems=(*checked.problems, why))

    def close(self) -> None:
        """Anchor the log, and release it."""
        self.anchor()
        self.log.close()


def _touched(result: object) -> tuple[list[str], Owner | None]:
    """The ids that an operation returned, and whose they are if it is one owner's."""
    if isinstance(result, Memory):
        return [result.id], result.owner
    if isinstance(result, Hit):
        return [result.memory.id], result.memory.owner
    if isinstance(result, Mapping):
        return _of_many(result.values())
    ids = getattr(result, "ids", None)
    if isinstance(ids, tuple):
        return list(ids), None
    id = getattr(result, "id", None)
    if isinstance(id, str):
        return [id], None
    if isinstance(result, Conversation):
        return _of_many([*result.turns, *result.memories])
    if isinstance(result, list | tuple | Page | Results):
        return _of_many(result)
    return [], None


def _of_many(results: Any) -> tuple[list[str], Owner | None]:
    found = [_touched(one) for one in results if isinstance(one, Memory | Hit)]
    owners = {owner for _, owner in found}
    return [id for ids, _ in found for id in ids], owners.pop() if len(owners) == 1 else None


def opened(engine: Engine) -> Audit | None:
    """The audit of a database, if its settings ask for one. What is older than they keep is dropped."""
    chosen = engine.settings.audit
    if chosen.file is None:
        return None
    log = AuditLog(Path(chosen.file), sync=chosen.sync)
    made = Audit(engine, log, reads=chosen.reads)
    if chosen.retention_days is not None:
        made.prune(engine.clock() - timedelta(days=chosen.retention_days))
    return made
