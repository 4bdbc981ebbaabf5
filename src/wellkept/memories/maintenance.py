"""What concerns the whole database: whose memories there are, health, settings, and keeping it in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from wellkept import plugins, types, validation
from wellkept.engine import health as engine_health
from wellkept.engine import reembedding, stale_pointers
from wellkept.engine.core import Audited, Engine, operation
from wellkept.engine.ledger import ERASING
from wellkept.engine.memory_cipher import KEYRING
from wellkept.errors import ConfigurationError
from wellkept.filters import Where
from wellkept.memories import parts
from wellkept.ports import Embedder, StoreSettings
from wellkept.privacy import owners as whose
from wellkept.sessions import records as session_records
from wellkept.text import plurals
from wellkept.types import DurabilityName, Identity, Layer, Need, Owner
from wellkept.upkeep.policies import AUTOMATIC

_INTERNAL = frozenset({"origin", "epoch", AUTOMATIC, ERASING, KEYRING})
_OWNERS = 1_000


class Maintenance:
    """The part of ``Memories`` that is for those who run the database."""

    _engine: Engine

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def owners(
        self,
        *,
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        project: str | None = None,
        team: str | None = None,
        org: str | None = None,
        company: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> types.OwnersPage:
        """Whose memories there are, with counts: the owners that have all the given ids, or everybody, page by page.

        ``user="bob"`` finds the user layer, every agent and every session of bob. For those who run the database.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     _ = memories.view(user="bob", agent="debugger").add("Likes tea")
        ...     _ = memories.view(user="bob", session="monday").add("Likes coffee", layer="session")
        ...     [(one.owner.layer.value, one.memories) for one in memories.owners(user="bob")]
        [('agent', 1), ('session', 1)]
        """
        wanted = Identity(agent=agent, user=user, session=session, project=project, team=team, org=org, company=company)
        validation.identity(wanted)
        if cursor is not None:
            validation.line("cursor", cursor)
        return whose.page(self._engine, whose.given(wanted), cursor, validation.integer("limit", limit, 1, _OWNERS))

    @operation(Need.ADMIN, audited=Audited.AS_READ)
    def sizes(self) -> dict[Layer, types.LayerSize]:
        """How much each layer holds, whoever's it is: for those who run the database.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     _ = memories.view(user="ada").add("Likes tea")
        ...     memories.sizes()["user"].active
        1
        """
        by_layer: dict[Layer, set[Owner]] = {}
        for owner in self._engine.journal.owners():
            by_layer.setdefault(owner.layer, set()).add(owner)
        return {layer: self._size(owners) for layer, owners in by_layer.items()}

    def _size(self, owners: set[Owner]) -> types.LayerSize:
        usage = self._engine.journal.usage(owners)
        active = self._engine.journal.count(owners, Where(now=self._engine.clock()))
        return types.LayerSize(
            active=active,
            total=sum(one.memories for one in usage.values()),
            bytes_used=sum(one.bytes_used for one in usage.values()),
        )

    @operation(Need.READ, audited=Audited.NEVER)
    def health(self) -> types.Health:
        """Whether the database can work now: its store, its index and its embedder.

        An embedder that has not been asked yet, or whose pause after a failure is over, is asked for one short text.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     memories.health().latency_ms < 1000
        True
        """
        return engine_health.health(self._engine)

    @operation(Need.READ, audited=Audited.NEVER)
    def settings(self) -> dict[str, str]:
        """What the database keeps about itself: embedder, dimension, durability.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     memories.settings()
        {}
        """
        settings = self._engine.journal.settings()
        sound = settings.sound if isinstance(settings, StoreSettings) else settings
        return {name: value for name, value in sound.items() if value and name not in _INTERNAL}

    @operation(Need.ADMIN)
    def configure(self, *, durability: DurabilityName) -> None:
        """Change how durable the file's writes are: ``full`` or ``relaxed``, for whoever opens it from now on.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     memories.configure(durability="relaxed")
        ...     memories.settings()["durability"]
        'relaxed'
        """
        if durability not in ("full", "relaxed"):
            raise ConfigurationError(
                f"no durability is named {str(durability)[:40]!r}",
                details={"field": "durability"},
                hint="use 'full' or 'relaxed'",
            )
        self._engine.journal.set_settings({"durability": durability})

    @operation(Need.ADMIN)
    def doctor(self, *, repair: bool = False, accept: bool = False) -> types.Diagnosis:
        """Check that what is stored is what was written; with ``repair=True``, mend what can be mended.

        ``accept=True`` first takes over what people edited in the files of the store: as new versions, with the reason
        "edited by hand". The fact ``stale`` counts the memories that point to files that changed; that is no damage.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     memories.doctor().healthy
        True
        """
        validation.flag("accept", accept)
        accepted = self._accepted() if accept else []
        diagnosis = self._engine.store.check(repair=repair)
        findings = reembedding.findings(self._engine, repair=repair or bool(accepted))
        changed = stale_pointers.stale(self._engine)
        facts = diagnosis.facts if changed is None else {**diagnosis.facts, "stale": changed}
        return replace(
            diagnosis,
            facts=facts,
            checks=(*diagnosis.checks, "contents", "sessions", "embedder"),
            findings=(
                *accepted,
                *diagnosis.findings,
                *engine_health.contents(self._engine),
                *session_records.findings(self._engine),
                *findings,
            ),
        )

    def _accepted(self) -> list[types.Finding]:
        """Take over what was edited by hand, and tell of it."""
        ids = self._engine.store.accept(self._engine.clock())
        message = plurals.counted(len(ids), "memory was edited by hand", "memories were edited by hand")
        return [types.Finding(check="edits", message=message, repair="taken over", repaired=True)] if ids else []

    @operation(Need.ADMIN)
    def reembed(
        self, embedder: Embedder | str | None = None, *, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Give every memory a vector of the embedder: another one, or the one in use where vectors are missing.

        The database can be read, searched and written meanwhile, here and in other processes; search goes over to the
        new vectors when the last one is there. What was done stays done if it is interrupted: call it again. Returns
        how many memories were embedded; ``progress`` is told how many of how many, after each batch.

        >>> import wellkept
        >>> from wellkept.embedders.hashing import HashingEmbedder
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     _ = memories.view(user="ada").add("Likes tea")
        ...     memories.reembed(HashingEmbedder(64)), memories.settings()["embedder"]
        (1, 'hashing-64')
        """
        named = plugins.open_embedder(embedder) if isinstance(embedder, str) else embedder
        parts.check_parts(embedder=named)
        return reembedding.reembed(self._engine, named, progress)

    @operation(Need.ADMIN)
    def rebuild(self) -> None:
        """Derive everything but the journal again: heads, tags, keys, counters, indexes.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     memories.rebuild()
        """
        self._engine.store.rebuild()
        if (index := self._engine.live.index or self._engine.live.chosen_index) is not None:
            index.drop()

    @operation(Need.ADMIN)
    def scrub(self) -> types.Scrubbed:
        """Remove the bytes of erased memories from the files, and tell where some may remain.

        Files and folders need no scrubbing: an erasure removes the bytes itself. A PostgreSQL server keeps them until
        its tables are written anew; that is done here, and nobody can read or write meanwhile.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     memories.scrub().remains
        ()
        """
        return self._engine.store.scrub()
