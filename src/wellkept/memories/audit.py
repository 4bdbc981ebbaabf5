"""The audit log of an open database: read, verified and pruned."""

from __future__ import annotations

from datetime import datetime

from wellkept import codec, validation
from wellkept.engine.core import Audited, Engine, operation
from wellkept.errors import ConfigurationError, InvalidInput
from wellkept.privacy import audit as auditing
from wellkept.privacy import audit_log
from wellkept.types import AuditEntry, Need, Verification

_ENTRIES = 10_000
_read = codec.reader(AuditEntry)


class AuditTrail:
    """Who did what to which memories, as ``memories.audit``. The setting ``audit.file`` turns it on.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None, settings={"audit": {"file": "audit.jsonl"}}) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea")
    ...     [entry] = memories.audit.list()
    ...     entry.verb, entry.user, entry.ids == (memory.id,)
    ('add', 'ada', True)
    """

    _audited_as = "audit"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _audit(self) -> auditing.Audit:
        audit = self._engine.audit
        if not isinstance(audit, auditing.Audit):
            raise ConfigurationError(
                "there is no audit log",
                details={"field": "audit.file"},
                hint="name its file in the settings: audit.file = 'audit.jsonl'",
            )
        return audit

    @operation(Need.ADMIN, audited=Audited.AS_READ, announced=False)
    def list(
        self,
        *,
        limit: int = 100,
        verb: str | None = None,
        user: str | None = None,
        id: str | None = None,
        since: datetime | None = None,
    ) -> tuple[AuditEntry, ...]:
        """The last entries, the newest first; only those of a verb, a user, an id, or since a time.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None, settings={"audit": {"file": "audit.jsonl"}}) as memories:
        ...     len(memories.audit.list(verb="erase"))
        0
        """
        validation.integer("limit", limit, 1, _ENTRIES)
        validation.optional_moment("since", since)
        wanted = {name: value for name, value in (("verb", verb), ("user", user)) if value is not None}
        found: dict[int, AuditEntry] = {}
        for entry in self._audit().log.entries():
            found.pop(entry.get("announced", 0), None)  # how it ended says all that its announcement says
            if wanted.items() <= entry.items() and (id is None or id in entry.get("ids", ())):
                read = _read(codec.encode_json(entry))
                if since is None or read.at >= since:
                    found[read.seq] = read
                if len(found) > limit:
                    del found[next(iter(found))]
        return tuple(reversed(found.values()))

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def verify(self, *, anchor: str | None = None) -> Verification:
        """Whether no entry was altered or removed, also at the end. ``anchor`` is one that an earlier call told: kept
        elsewhere, it proves the log up to there even against somebody who can write the database.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None, settings={"audit": {"file": "audit.jsonl"}}) as memories:
        ...     _ = memories.view(user="ada").add("Likes tea")
        ...     told = memories.audit.verify()
        ...     told.valid, memories.audit.verify(anchor=told.anchor).valid
        (True, True)
        """
        given = None if anchor is None else audit_log.parse_anchor(validation.line("anchor", anchor))
        if anchor is not None and given is None:
            raise InvalidInput(
                "anchor is not an anchor", details={"field": "anchor"}, hint="pass the anchor of an earlier verify"
            )
        return self._audit().check(given)

    @operation(Need.ADMIN, announced=False)
    def prune(self, before: datetime) -> int:
        """Drop the entries from before a time; how many. The setting ``audit.retention_days`` does so at each opening.

        >>> import wellkept
        >>> from datetime import UTC, datetime
        >>> with wellkept.open("ram:", embedder=None, settings={"audit": {"file": "audit.jsonl"}}) as memories:
        ...     memories.audit.prune(datetime(2020, 1, 7, tzinfo=UTC))
        0
        """
        return self._audit().prune(validation.moment("before", before))
