"""From conversation to memory: turns are stored with what was extracted from them, in one append, each turn once."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellkept import codec, validation
from wellkept.engine import drafts, embedding, keys, provenance, quotas, revisions, sensitive, writing
from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.engine.revisions import Prepared
from wellkept.engine.scope import Scope
from wellkept.engine.sealing import unseal
from wellkept.errors import Conflict, InvalidInput
from wellkept.lifecycle import extraction
from wellkept.types import (
    Conversation,
    Layer,
    Memory,
    MemoryType,
    NewMemory,
    Operation,
    Owner,
    Owners,
    Source,
    SourceType,
)

Extract = Callable[[Sequence[Memory]], Iterable[str | NewMemory]]
"""A function that makes memories of turns."""

_MOST = 10_000
_FIELDS = ("role", "content", "id", "author", "at")


def add(
    engine: Engine,
    scope: Scope,
    messages: Iterable[Mapping[str, Any]],
    *,
    extract: Extract | None,
    layer: Layer | str | None,
    session: str | None,
) -> Conversation:
    """Store the turns that are not stored yet, and what ``extract`` makes of those.

    Both are in one append: whoever finds a turn stored knows that it was extracted from. Another process may store the
    same turns meanwhile; then its extraction counts.
    """
    wanted = _turns(messages, layer, session)
    owner = scope.owner_of(NewMemory(content="", layer=layer))  # type: ignore[arg-type]  # checked there
    for _ in range(ATTEMPTS):
        known = engine.journal.keyed(owner, list(wanted))
        news = {key: new for key, new in wanted.items() if key not in known}
        stored = _append(engine, scope, owner, news, extract=extract, session=session) if news else ([], [])
        if stored is not None:
            return _answer(engine, scope.owners, list(wanted), known, stored)
    raise Conflict("the messages were stored by others again and again", hint="try again when there are fewer writers")


def _append(
    engine: Engine,
    scope: Scope,
    owner: Owner,
    news: Mapping[str, NewMemory],
    *,
    extract: Extract | None,
    session: str | None,
) -> tuple[list[Memory], list[Memory]] | None:
    """Store turns with what was extracted from them; ``None`` if somebody else stored one of the turns."""
    now = engine.clock()
    trusts = engine.settings.trust
    ids = engine.new_ids(now, len(news))
    turns = [
        _judged(engine, drafts.draft(new, owner, now, id, session, trusts=trusts))
        for new, id in zip(news.values(), ids, strict=True)
    ]
    found = _extracted(turns, extract)
    owners = [scope.owner_of(new) for new in found]
    made_ids = engine.new_ids(now, len(found))
    made = [
        _limited(_judged(engine, drafts.draft(new, its, now, id, session, trusts=trusts)), turns)
        for new, its, id in zip(found, owners, made_ids, strict=True)
    ]
    offered = _offered(engine, [*turns, *made], now)
    fixed, free = offered[: len(turns)], offered[len(turns) :]
    try:
        if any(memory.key is not None or memory.supersedes for memory in made):
            written, memories = keys.append_once(
                engine, free, scope.owners, dangling=True, beside=[write for _, write in fixed]
            )
        else:
            quotas.append(engine, [write for _, write in offered])
            written = memories = [memory for memory, _ in free]
    except Conflict:
        if engine.journal.keyed(owner, list(news)):
            return None
        raise
    writing.announce_added(engine, [*turns, *written], 0.0)
    quotas.warn(engine, {memory.owner for memory in (*turns, *memories)})
    return [memory for memory, _ in fixed], memories


def _judged(engine: Engine, memory: Memory) -> Memory:
    """A draft as any other addition leaves it: within the trust of the grant, and encrypted if it must be."""
    return sensitive.judged(engine, provenance.capped(engine, memory))


def _offered(engine: Engine, memories: Sequence[Memory], now: datetime) -> list[Prepared]:
    vectors = embedding.embed(engine, list(memories), [memory.owner for memory in memories])
    micros = codec.to_micros(now)
    stamps = engine.stamps.stamps(micros, len(memories))
    told = [replace(one, embedded=made.vector is not None) for one, made in zip(memories, vectors, strict=True)]
    return [
        (memory, revisions.written(engine, memory, Operation.ADDED, None, stamp, micros=micros, made=made))
        for memory, made, stamp in zip(told, vectors, stamps, strict=True)
    ]


def _answer(
    engine: Engine,
    owners: Owners,
    wanted: Sequence[str],
    known: Mapping[str, str],
    stored: tuple[list[Memory], list[Memory]],
) -> Conversation:
    """All turns in the order given, and everything that was made from them, now or before."""
    turns, memories = stored
    if known:
        before = [unseal(one) for one in engine.journal.get(owners, list(known.values()))]
        sources = {one.id for one in before}
        made = [one for one in engine.journal.scan(owners) if sources.intersection(one.facets.get("derived_from", ()))]
        turns, memories = [*before, *turns], [*map(unseal, made), *memories]
    by_key = {turn.key: turn for turn in turns}
    return Conversation(
        turns=tuple(by_key[key] for key in wanted if key in by_key),
        memories=tuple({memory.id: memory for memory in memories}.values()),
        added=len(stored[0]),
    )


# -- turns --------------------------------------------------------------------------------------------------------


def _turns(
    messages: Iterable[Mapping[str, Any]], layer: Layer | str | None, session: str | None
) -> dict[str, NewMemory]:
    """The turns of some messages, by the key under which each is stored once."""
    given = list(validation.several("messages", messages))
    if len(given) > _MOST:
        raise InvalidInput(
            f"{len(given)} messages were given, at most {_MOST} are possible",
            details={"field": "messages"},
            hint="pass them in several calls",
        )
    seen: Counter[tuple[object, ...]] = Counter()
    turns: dict[str, NewMemory] = {}
    for message in given:
        new = _turn(message, layer)
        said = (session, new.role, new.content, new.source and new.source.reference, new.author, new.occurred_at)
        seen[said] += 1  # the same may be said twice
        digest = hashlib.sha256(codec.encode_json([*map(str, said), seen[said]])).hexdigest()
        turns[f"turn:{digest}"] = replace(new, key=f"turn:{digest}")
    return turns


def _wrong(message: object) -> str | None:
    """What is wrong with the names of the fields of a message."""
    if not isinstance(message, Mapping):
        return None
    missing = [name for name in ("role", "content") if name not in message]
    unknown = sorted(str(name) for name in message if name not in _FIELDS)
    if unknown:
        return f"a message has no {unknown[0][:64]!r}"
    return f"a message has no {missing[0]}" if missing else None


def _turn(message: object, layer: Layer | str | None) -> NewMemory:
    wrong = _wrong(message)
    if wrong is not None or not isinstance(message, Mapping):
        raise InvalidInput(
            wrong or "a message is a mapping with role and content",
            details={"field": "messages"},
            hint=f"it takes {', '.join(_FIELDS)}",
        )
    role = validation.line("messages.role", message["role"])
    reference = validation.optional_line("messages.id", message.get("id"))
    kind = SourceType.TOOL_RESULT if role == "tool" else SourceType.CONVERSATION
    return NewMemory(
        content=validation.content(message["content"], "messages.content"),
        layer=layer,  # type: ignore[arg-type]  # checked by the scope
        type=MemoryType.CONVERSATION,
        role=role,
        author=validation.optional_line("messages.author", message.get("author")),
        occurred_at=validation.optional_moment("messages.at", message.get("at")),
        source=Source(type=kind, reference=reference),
    )


# -- extraction ---------------------------------------------------------------------------------------------------


def _extracted(turns: Sequence[Memory], extract: Extract | None) -> list[NewMemory]:
    """What a function, or the built-in rule, makes of turns; each derived from the turns that it names, or from all."""
    if extract is None:
        return [
            NewMemory(
                content=found.content,
                layer=turn.owner.layer,
                type=found.type,
                session=turn.session,
                occurred_at=turn.occurred_at,
                source=Source(type=SourceType.EXTRACTED, reference=turn.id),
                derived_from=(turn.id,),
            )
            for turn in turns
            for found in extraction.statements(turn)
        ]
    if not callable(extract):
        raise InvalidInput("extract is no function", details={"field": "extract"}, hint="pass a function of turns")
    known = {turn.id for turn in turns}
    news = []
    for one in validation.several("extract", extract(turns)):
        new = NewMemory(content=one, layer=turns[0].owner.layer) if isinstance(one, str) else one
        if not isinstance(new, NewMemory):
            raise InvalidInput(
                f"extract returned a {type(one).__name__}",
                details={"field": "extract"},
                hint="return texts or NewMemory values",
            )
        named = validation.references(new.derived_from, field="derived_from") or tuple(known)
        if not known.issuperset(named):
            raise InvalidInput(
                "extract named a source that is none of its turns",
                details={"field": "derived_from"},
                hint="use the ids of the turns that it was given",
            )
        source = Source(type=SourceType.EXTRACTED) if new.source is None else new.source
        ordered = tuple(turn.id for turn in turns if turn.id in named)
        news.append(replace(new, derived_from=ordered, source=source))
    return news


def _limited(memory: Memory, turns: Sequence[Memory]) -> Memory:
    """A memory trusted no more than the turns that it was made from."""
    trusts = [turn.trust for turn in turns if turn.id in memory.derived_from]
    return replace(memory, trust=min(memory.trust, *trusts))
