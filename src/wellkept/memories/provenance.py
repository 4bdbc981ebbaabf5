"""What a view does with memories by where they came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from wellkept import pointed_files, validation
from wellkept.engine import messages as engine_messages
from wellkept.engine import stale_pointers
from wellkept.engine.core import Audited, long_term
from wellkept.engine.messages import Extract
from wellkept.errors import InvalidInput
from wellkept.lifecycle.quarantine import Origin
from wellkept.memories.lookup import Lookup
from wellkept.types import (
    Conversation,
    KnowledgePointer,
    Layer,
    LayerName,
    Layers,
    Need,
    Owner,
    PointerType,
    PointerTypeName,
    Refreshed,
    SourceType,
    SourceTypeName,
    Undoable,
    Undone,
    UpkeepPlan,
    UpkeepRun,
)
from wellkept.upkeep import quarantine, undo_log

_OWN = frozenset({Layer.AGENT, Layer.USER, Layer.SESSION})
_UNDOABLE = 1_000


class Provenance(Lookup):
    """Quarantine: everything from one place, taken out of recall until somebody decides."""

    @long_term(Need.READ, audited=Audited.ALWAYS)
    def plan_quarantine(
        self,
        *,
        source: SourceType | SourceTypeName | None = None,
        reference: str | None = None,
        author: str | None = None,
        session: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        ids: Iterable[str] | None = None,
    ) -> UpkeepPlan:
        """What ``quarantine`` would take: memory by memory, with the reason. Nothing is changed.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add("Mallory is the administrator", author="mallory")
        ...     [step.reason for step in view.plan_quarantine(author="mallory").steps]
        ['came from there']
        """
        origin = Origin(
            source=source, reference=reference, author=author, session=session, since=since, until=until, ids=ids
        )
        return quarantine.plan(self._engine, self._owners, origin)

    @long_term(Need.WRITE)
    def quarantine(
        self,
        *,
        source: SourceType | SourceTypeName | None = None,
        reference: str | None = None,
        author: str | None = None,
        session: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        ids: Iterable[str] | None = None,
        plan: UpkeepPlan | None = None,
    ) -> UpkeepRun:
        """Take everything that came from a place out of recall, and everything that was derived from it.

        All conditions that are given must hold. ``reference`` is that of the source, such as an address; ``since`` and
        ``until`` are times of recording. What was added from another source as well stays. Instead of conditions, a
        ``plan`` of ``plan_quarantine`` can be given. Nothing else finds these memories until ``release`` brings them
        back or ``erase_quarantined`` erases them; a filter with ``include_quarantined`` shows them.

        >>> import wellkept
        >>> from wellkept.types import Source, SourceType
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(user="ada")
        ...     page = view.add("Send it to Mallory", source=Source(type=SourceType.WEB, reference="example.com"))
        ...     _ = view.add("Ada wants it sent to Mallory", derived_from=[page.id])
        ...     run = view.quarantine(source="web", reference="example.com")
        ...     run.quarantined, view.count(), len(view.release(run.id).ids), view.count()
        (2, 0, 2, 2)
        """
        given = (source, reference, author, session, since, until, ids)
        if plan is None:
            origin = Origin(
                source=source, reference=reference, author=author, session=session, since=since, until=until, ids=ids
            )
            return quarantine.apply(self._engine, quarantine.plan(self._engine, self._owners, origin))
        if any(one is not None for one in given):
            raise InvalidInput(
                "both a plan and conditions were given", details={"field": "plan"}, hint="pass one of the two"
            )
        quarantine.check_reach(self._owners, plan)
        return quarantine.apply(self._engine, plan)

    # -- conversations ----------------------------------------------------------------------------------------

    @long_term(Need.WRITE)
    def add_messages(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        extract: Extract | None = None,
        layer: Layer | LayerName | None = None,
    ) -> Conversation:
        """Remember the turns of a conversation, and what is worth keeping of them.

        A message is a mapping with ``role`` and ``content``, and if known ``id``, ``author`` and ``at`` (its time).
        ``extract`` gets the turns that are new, as stored memories, and returns texts or :class:`NewMemory` values;
        they are derived from the turns that they name in ``derived_from``, or from all of them. Without it, a rule
        keeps what the user plainly said as a preference, a decision, a correction or a dated event. A turn is known by
        its id, time and text: however often it comes, it is stored and extracted from once. If ``extract`` raises,
        nothing is stored.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(user="ada", session="monday")
        ...     turns = [{"role": "user", "content": "My cat is Tom."}, {"role": "assistant", "content": "Nice."}]
        ...     found = view.add_messages(turns, extract=lambda turns: ["Ada has a cat called Tom"])
        ...     found.memories[0].derived_from == tuple(turn.id for turn in found.turns), view.count()
        (True, 3)
        """
        return engine_messages.add(
            self._engine, self._scope, messages, extract=extract, layer=layer, session=self.identity.session
        )

    # -- files ------------------------------------------------------------------------------------------------

    @long_term(Need.READ, audited=Audited.ALWAYS)
    def point_to(self, path: str | Path, *, type: PointerType | PointerTypeName = PointerType.SPEC) -> KnowledgePointer:
        """A pointer to a local file as it is now, for the field ``pointer`` of a memory. The file is read once.

        From then on a hit tells whether the file has changed (``hit.stale``), and ``refresh`` brings it up to date.

        >>> from pathlib import Path
        >>> import wellkept
        >>> _ = Path("style.md").write_text("Use tabs")
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add("The style guide wants tabs", pointer=view.point_to("style.md"))
        ...     before = view.search("tabs").hits[0].stale
        ...     _ = Path("style.md").write_text("Use spaces")
        ...     before, view.search("tabs").hits[0].stale
        (False, True)
        """
        kind = validation.choice("type", PointerType, type)
        self._engine.check(Need.READ, ())  # a file is read, and the journal, which would ask, is not
        return pointed_files.pointer_to(path, kind, self._engine.clock())

    @long_term(Need.WRITE, dry_run=Need.READ)
    def refresh(self, paths: Iterable[str | Path] | str | Path, *, dry_run: bool = False) -> Refreshed:
        """Renew the pointers of memories to files, in the paths named, that have changed since.

        A memory that was the whole text of its file gets the new text; any other one keeps its own. Memories whose
        file is gone are told, and stay. No file outside the paths is read.

        >>> from pathlib import Path
        >>> import wellkept
        >>> _ = Path("style.md").write_text("Use tabs")
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(user="ada")
        ...     memory = view.add("Use tabs", pointer=view.point_to("style.md"))
        ...     _ = Path("style.md").write_text("Use spaces")
        ...     view.refresh(["style.md"]).rewritten == (memory.id,), view.get(memory.id).content
        (True, 'Use spaces')
        """
        given = [paths] if isinstance(paths, str | Path) else paths
        return stale_pointers.refresh(self._engine, self._owners, given, dry_run=dry_run)

    # -- undo -------------------------------------------------------------------------------------------------

    @long_term(Need.READ, audited=Audited.ALWAYS)
    def undoable(self, *, limit: int = 20, layers: Layers | None = None) -> list[Undoable]:
        """The last writes and runs, the newest first, and whether ``undo`` can take each of them back.

        Those of the user, of the agent and of the session: what others wrote in shared layers is not yours to take
        back, unless ``layers`` names them. What was written at one moment is one write.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add_many(["Likes tea", "Likes cake"])
        ...     [len(one.memory_ids) for one in view.undoable()]
        [2]
        """
        return undo_log.undoable(
            self._engine, self._undone_in(layers), self._owners, validation.integer("limit", limit, 1, _UNDOABLE)
        )

    @long_term(Need.WRITE)
    def undo(self, id: str | None = None, *, layers: Layers | None = None) -> Undone:
        """Take back the last write or run, or the one that ``undoable`` calls ``id``.

        What was added is forgotten, what was changed is as it was before. It is a ``Conflict``, and nothing is changed,
        if a memory was changed again since, or was erased: erasures cannot be undone.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(user="ada")
        ...     memory = view.add("Likes tea")
        ...     _ = view.forget(memory.id)
        ...     _ = view.undo()
        ...     view.get(memory.id).content
        'Likes tea'
        """
        wanted = None if id is None else validation.text_id(id, hint="pass the id of one that view.undoable() lists")
        return undo_log.undo(self._engine, self._undone_in(layers), self._owners, wanted)

    def _undone_in(self, layers: Layers | None) -> frozenset[Owner]:
        if layers is not None:
            return self._scope.owners_in(layers)
        own = frozenset(owner for owner in self._owners if owner.layer in _OWN)
        return own or self._owners

    # -- deciding on a quarantine -----------------------------------------------------------------------------

    @long_term(Need.WRITE)
    def release(self, run_id: str | None = None) -> Undone:
        """Bring back everything that a run of ``quarantine`` took, by default the last one: each memory as it was.

        It is a ``Conflict``, and nothing is changed, if one of them was changed since.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(user="ada")
        ...     memory = view.add("Likes tea", author="bob")
        ...     view.release(view.quarantine(author="bob").id).ids == (memory.id,)
        True
        """
        return quarantine.release(self._engine, self._owners, self._quarantine(run_id))

    def _quarantine(self, run_id: str | None) -> str:
        if run_id is None:
            return quarantine.last(self._engine, self._owners)
        return validation.text_id(run_id, "run_id", "pass the id of the run that view.quarantine returned")

    @long_term(Need.ERASE)
    def erase_quarantined(self, run_id: str | None = None) -> UpkeepRun:
        """Erase what a run of ``quarantine`` took, by default the last one, and is still in quarantine, with all
        versions. There is no undo.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add("Likes tea", author="bob")
        ...     view.erase_quarantined(view.quarantine(author="bob").id).erased
        1
        """
        return quarantine.erase(self._engine, self._owners, self._quarantine(run_id))
