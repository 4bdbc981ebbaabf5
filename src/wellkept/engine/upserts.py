"""Keys that stand for what holds now: the memory of a key gets a new version, or there is a new memory."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import cast

from wellkept import filters, validation
from wellkept.engine import drafts, embedding, provenance, references, writing
from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.engine.scope import Scope
from wellkept.errors import Conflict, NotFound
from wellkept.types import ChangedFields, Memory, NewMemory


def put(
    engine: Engine,
    scope: Scope,
    new: NewMemory,
    given: Collection[str],
    session: str | None = None,
    *,
    dangling: bool = False,
) -> Memory:
    """Make the key of a new memory stand for it. ``given`` are the names of the fields that the caller set.

    Another writer may take or free the key between our look and our write; then the look is repeated.
    """
    validation.flag("dangling", dangling)
    key = validation.line("key", new.key)
    owner = scope.owner_of(new)
    trusts = engine.settings.trust
    # Refuses what is wrong before anything is written.
    draft = drafts.draft(new, owner, engine.clock(), "", session, trusts=trusts)
    if not dangling:
        references.check(engine, scope.owners, draft.references)
    vector = None if new.vector is None else embedding.given(engine, [new.vector])[0]
    # What can be read once was read.
    new = replace(new, tags=draft.tags, references=draft.references, derived_from=draft.derived_from, vector=vector)
    unchanged = {"vector"} if new.occurred_at is not None else {"vector", "occurred_at"}
    changes = {name: getattr(draft, name) for name in given if name not in unchanged}
    if draft.data is not None:
        changes["content"] = draft.data

    def revised(memory: Memory, now: datetime) -> Memory:
        if memory.key != key:
            raise Conflict("the key was freed", details={"field": "key"}, hint="try again")
        if not filters.visible(memory, now):
            renewed = drafts.draft(new, owner, now, memory.id, session, trusts=trusts)
            [renewed] = provenance.limited(engine, scope.owners, [renewed], dangling=dangling)
            return replace(renewed, version=memory.version + 1, created_at=memory.created_at)
        told = changes if draft.content == memory.content else {"occurred_at": now, **changes}
        after = drafts.updated(memory, cast("ChangedFields", told), now, trusts)
        return provenance.revised(engine, scope.owners, memory, after, dangling=dangling)

    for _ in range(ATTEMPTS):
        holder = engine.journal.keyed(owner, [key]).get(key)
        try:
            if holder is None:
                return writing.add_all(engine, scope, [new], session, dangling=True)[0]
            return writing.revise(engine, {owner}, holder, revised, vector=vector)
        except NotFound:
            continue
        except Conflict:
            if holder is not None and engine.journal.keyed(owner, [key]).get(key) == holder:
                raise  # the key stays where it is: the memory was tried as often as any other
    raise Conflict("the key was taken again and again by other writers", details={"field": "key"}, hint="try again")
