"""Privacy of an open database: erasure with a receipt, its ledger, and the export of a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wellkept import codec, layers, logs, validation
from wellkept.engine import ledger
from wellkept.engine.core import Audited, Engine, operation
from wellkept.errors import InvalidInput, WellkeptError
from wellkept.privacy import erasure, ledger_file, receipts, selection
from wellkept.privacy import owners as whose
from wellkept.privacy.erasure import Parts
from wellkept.types import (
    ErasurePlan,
    ErasureReceipt,
    Filter,
    Identity,
    Layer,
    LedgerEntry,
    Need,
    Owner,
    Replayed,
    SubjectExport,
    Verification,
)
from wellkept.upkeep import erased_steps

if TYPE_CHECKING:
    from wellkept.memories.agent import AgentMemory


class Privacy:
    """Erasure and export of an open database, as ``memories.privacy``: for those who run it.

    A ``user`` alone is a person: the user layer, and every agent and session of that user. The ids of another layer,
    such as ``project=``, or ``user=`` with ``session=``, are one owner. ``ids``, ``filter`` and ``source`` (the
    reference of a source) choose single memories, of that owner or of everybody.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     _ = memories.view(user="bob", session="monday").add("Likes tea")
    ...     _ = memories.view(user="bob", agent="debugger").add("Bob uses tabs")
    ...     memories.privacy.erase(user="bob").counts.memories
    2
    """

    def __init__(self, engine: Engine, agents: Callable[[], Iterable[AgentMemory]]) -> None:
        self._engine = engine
        self._agents = agents
        self._parts = Parts(forget=(erased_steps.forget,), clear=self._clear)

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def plan(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        project: str | None = None,
        team: str | None = None,
        org: str | None = None,
        company: str | None = None,
        ids: Iterable[str] | None = None,
        filter: Filter | Mapping[str, Any] | None = None,
        source: str | None = None,
    ) -> ErasurePlan:
        """What ``erase`` would take, counted. Nothing is changed. ``Held`` if a hold covers any of it.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     _ = memories.view(user="bob").add("Likes tea")
        ...     plan = memories.privacy.plan(user="bob")
        ...     [(one.owner.ids, one.memories) for one in plan.owners]
        [(('bob',), 1)]
        """
        identity = Identity(
            agent=agent, user=user, session=session, project=project, team=team, org=org, company=company
        )
        return erasure.plan(self._engine, selection.choose(self._engine, identity, ids, filter, source))

    @operation(Need.ADMIN)
    def erase(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        project: str | None = None,
        team: str | None = None,
        org: str | None = None,
        company: str | None = None,
        ids: Iterable[str] | None = None,
        filter: Filter | Mapping[str, Any] | None = None,
        source: str | None = None,
        scrub: bool = True,
    ) -> ErasureReceipt:
        """Erase for good: versions, history, embeddings, index entries, access counts and reasons, of active,
        archived, superseded and forgotten memories, and everything that was derived from them, in whosever layer.

        Of a person or an owner, records such as sessions go as well, and the data key is destroyed. ``Held``, and
        nothing is erased, if a hold covers any of it. The erasure is entered in the ledger, so that a restored backup
        cannot bring it back. If it is interrupted, the next opening of the database finishes it. ``scrub=False``
        leaves the bytes in the tables of a server until ``memories.scrub()``.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(team="core")
        ...     _ = view.add_many([wellkept.NewMemory(content="Old plan", tags=["plans"]), "Use tabs"])
        ...     receipt = memories.privacy.erase(team="core", filter={"tags": ["plans"]})
        ...     receipt.scope.value, receipt.counts.memories, view.count()
        ('matching', 1, 1)
        """
        validation.flag("scrub", scrub)
        identity = Identity(
            agent=agent, user=user, session=session, project=project, team=team, org=org, company=company
        )
        chosen = selection.choose(self._engine, identity, ids, filter, source)
        return erasure.erase(self._engine, chosen, self._parts, scrub=scrub)

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def receipts(self) -> tuple[ErasureReceipt, ...]:
        """The receipts of all erasures, the oldest first; of one that was interrupted and finished later as well.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     receipt = memories.privacy.erase(user="bob")
        ...     memories.privacy.receipts() == (receipt,)
        True
        """
        return tuple(receipts.every(self._engine))

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def verify(self, receipt: ErasureReceipt | str | bytes) -> Verification:
        """Whether a receipt, or its JSON, says what the ledger says, the ledger is whole, and the signature fits.

        >>> import wellkept
        >>> from dataclasses import replace
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     receipt = memories.privacy.erase(user="bob")
        ...     memories.privacy.verify(replace(receipt, ledger_hash="")).problems
        ('the ledger has another entry in its place',)
        """
        if isinstance(receipt, str | bytes):
            try:
                receipt = receipts.parse(receipt)
            except codec.UNREADABLE:
                receipt = None  # type: ignore[assignment]  # refused below
        if not isinstance(receipt, ErasureReceipt):
            raise InvalidInput(
                "receipt is no receipt of an erasure",
                details={"field": "receipt"},
                hint="pass what memories.privacy.erase() returned, or its JSON",
            )
        return receipts.verify(self._engine, receipt)

    # -- ledger -----------------------------------------------------------------------------------------------

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def ledger(self) -> tuple[LedgerEntry, ...]:
        """All erasures, the oldest first, without content: owners and memories are salted hashes.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.privacy.ledger()
        ()
        """
        return ledger.read(self._engine.records).entries

    @operation(Need.ADMIN)
    def export_ledger(self, path: str | Path) -> int:
        """Write the ledger into a new file that others cannot read; how many entries. ``replay`` takes it.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     _ = memories.privacy.erase(user="bob")
        ...     memories.privacy.export_ledger("ledger.jsonl")
        1
        """
        return ledger_file.write(Path(path), ledger.read(self._engine.records).entries)

    @operation(Need.ADMIN)
    def replay(self, path: str | Path) -> Replayed:
        """Erase again what a ledger says was erased, after an older backup was restored, and take its entries over.

        Opening a database does so with the ledger beside it. What was recorded after an erasure stays.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     _ = memories.view(user="bob").add("Likes tea")
        ...     with wellkept.open("ram:", embedder=None) as other:
        ...         _ = other.privacy.erase(user="bob")
        ...         _ = other.privacy.export_ledger("erased.jsonl")
        ...     memories.privacy.replay("erased.jsonl").counts.memories
        1
        """
        return erasure.replay(self._engine, ledger_file.read(Path(path)), self._parts)

    def resume(self) -> None:
        """Finish erasures that were interrupted, and replay the ledger beside the database if it knows more. Opening
        a database calls it; a failure goes to the log.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.privacy.resume()
        """
        try:
            path = ledger_file.path_of(self._engine)
            if path is not None and ledger_file.is_ahead(self._engine):
                erasure.replay(self._engine, ledger_file.read(path), self._parts)
            erasure.resume(self._engine, self._parts)
        except WellkeptError as error:
            logs.erasure_unfinished(error)

    # -- export -----------------------------------------------------------------------------------------------

    @operation(Need.ADMIN)
    def export(self, path: str | Path, *, user: str) -> SubjectExport:
        """Write everything about one person into one archive: memories of all layers with their history and where they
        came from, and records such as sessions. It is a zip of JSON Lines, with a page that explains it.

        The file must not exist, and others cannot read it.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     _ = memories.view(user="bob").add("Likes tea")
        ...     memories.privacy.export("bob.zip", user="bob").memories
        1
        """
        from wellkept.privacy import subject_export  # lazy: zipfile takes 10 ms, and few export

        validation.user("user", user)
        subject = Owner(Layer.USER, (user,))
        owners = whose.belonging(self._engine, subject)
        return subject_export.write(self._engine, Path(path), subject, owners)

    def _clear(self, owner: Owner) -> None:
        """Empty what agents of an owner hold in this process."""
        for agent in self._agents():
            if layers.belongs(Owner(Layer.AGENT, (agent.user_id, agent.agent_id)), owner):
                agent.clear()
