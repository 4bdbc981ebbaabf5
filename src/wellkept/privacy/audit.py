"""Who did what to which memories: operations as entries of the audit log. Contents, keys and queries never enter it.

Where nothing may be done without an entry, an operation is announced by one before it runs, and refused if that cannot
be written: so a full disk never leaves anything done of which the log knows nothing.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from wellkept import codec, events, logs
from wellkept.engine.core import Actor, Audited, Declared, Engine
from wellkept.errors import StoreError, WellkeptError
from wellkept.privacy import audit_log
from wellkept.privacy.audit_log import Anchor, AuditLog
from wellkept.types import (
    Component,
    Conversation,
    Hit,
    Identity,
    Memory,
    Owner,
    Page,
    Results,
    Status,
    Verification,
)

R = TypeVar("R")

_ID_CHARACTERS = 256
IDS = 100
"""So many ids of one operation are entered; ``count`` says how many there were."""


class Audit:
    """Notes the operations of an open database in its audit log."""

    def __init__(self, engine: Engine, log: AuditLog, *, reads: bool, refuses: bool) -> None:
        self._engine, self.log, self._reads, self._refuses = engine, log, reads, refuses
        self._running = threading.local()
        self._told = False  # the log was told that nothing can be written

    def over(self, actor: Actor, declared: Declared, args: tuple[object, ...], run: Callable[[], R]) -> R:
        """Run an operation and enter it, whether it succeeds or not; but not the operations that it calls itself."""
        running, audited = self._running, declared.audited
        left_out = audited is Audited.NEVER or (audited is Audited.AS_READ and not self._reads)
        if left_out or getattr(running, "is_busy", False):
            return run()
        entry = self._entry(actor, declared.name)
        announced = self._announce(entry, declared, args) if self._announces(declared) else {}
        running.is_busy = True
        try:
            try:
                result = run()
            finally:
                running.is_busy = False
        except BaseException as error:  # reason: whatever ended it, it was tried
            code = error.code if isinstance(error, WellkeptError) else type(error).__name__
            self._enter(entry | announced | _ids(None, declared, args) | {"error": code})
            raise
        if audited is not Audited.IF_DONE or announced or result is not None:
            self._enter(entry | announced | _ids(result, declared, args))
        return result

    def _announces(self, declared: Declared) -> bool:
        """Whether an operation is entered before it runs. Of one that mostly finds nothing to do, there would be too
        many entries: that is refused as long as the log is known not to work.
        """
        if not (self._refuses and declared.announced):
            return False
        return declared.audited is not Audited.IF_DONE or self.log.failure is not None

    def _announce(self, entry: dict[str, Any], declared: Declared, args: tuple[object, ...]) -> dict[str, Any]:
        try:
            number = self.log.append(entry | _ids(None, declared, args) | {"unfinished": True}, announces=True)
        except (OSError, WellkeptError) as error:
            self.tell(entry["verb"], error, refused=True)
            refusal = error if isinstance(error, WellkeptError) else audit_log.unwritable(self.log.path, error)
            refusal.operation = declared.name
            raise refusal from error
        self._told = False
        return {"announced": number}

    def _entry(self, actor: Actor, name: str) -> dict[str, Any]:
        """Who does what, and when."""
        part = getattr(actor, "_audited_as", type(actor).__name__.lower())
        verb = f"{part}.{name}" if part else name
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
        grant = actor._engine.grant
        if (holder := grant.key or grant.holder) is not None:
            entry["grant"] = holder
        return entry

    def _enter(self, entry: dict[str, Any]) -> None:
        entry["at"] = self._engine.clock().isoformat()
        try:
            self.log.append(entry)
        except (OSError, WellkeptError) as error:  # it is done: to fail now would say that it is not
            self.tell(entry["verb"], error)
            return
        self._told = False
        if self.log.unanchored >= audit_log.ANCHORED:
            self.anchor()

    def tell(self, verb: str, error: BaseException, *, refused: bool = False) -> None:
        """Say that an entry could not be written: to the log once, to handlers each time."""
        why, file, running = audit_log.reason(error), self.log.path.name, self._running
        if not self._told:
            self._told = True
            logs.audit_unwritten(file, why)
        if getattr(running, "is_telling", False) or not self._engine.bus.wants(events.AuditFailed):
            return
        running.is_telling = True  # what a handler does may fail in the same way
        try:
            at = self._engine.clock()
            self._engine.bus.emit(events.AuditFailed(at=at, verb=verb, file=file, error=why, refused=refused))
        finally:
            running.is_telling = False

    def health(self) -> Component:
        """Whether the log could be written the last time, and how many entries it lacks since it could not."""
        if self.log.failure is None:
            return Component()
        told = "operations are refused" if self._refuses else f"{self.log.missing.entries} entries are missing"
        message = f"{self.log.path.name!r} cannot be written ({self.log.failure}): {told}"
        return Component(status=Status.DEGRADED, message=message)

    def anchor(self) -> None:
        """Force the log to the disk, and let the database remember its last entry."""
        try:
            last = self.log.force()
        except (OSError, WellkeptError) as error:
            self.tell("audit.anchor", error)
            return
        with suppress(WellkeptError):  # another process was faster, or the database can only be read
            audit_log.keep_anchor(self._engine, last)

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
        """Enter what is missing, anchor the log, and release it."""
        try:
            self.log.settle(self._engine.clock().isoformat())
        except (OSError, WellkeptError) as error:
            logs.audit_unwritten(self.log.path.name, audit_log.reason(error), self.log.missing.entries)
        self.anchor()
        self.log.close()


def _ids(result: object, declared: Declared, args: tuple[object, ...]) -> dict[str, Any]:
    """To what it was done: the ids that the operation returned, or the one that it was given."""
    ids, owner = _touched(result)
    if not ids and declared.takes_id and args and isinstance(args[0], str):
        ids = [args[0][:_ID_CHARACTERS]]
    found: dict[str, Any] = {}
    if ids:
        found["ids"] = ids[:IDS]
        if len(ids) > 1:
            found["count"] = len(ids)
    if owner is not None:
        found["owner"] = codec.encode_owner(owner)
    return found


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
    made = Audit(engine, log, reads=chosen.reads, refuses=chosen.on_failure == "refuse")
    if chosen.retention_days is not None:
        try:
            made.prune(engine.clock() - timedelta(days=chosen.retention_days))
        except StoreError as error:  # where there is no room for the shorter log, the longer one stays
            made.tell("audit.prune", error)
    return made
