"""Verbs that write: add, update, forget, restore."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.errors import (
    Conflict,
    ContentTooLong,
    EmbeddingFailed,
    InvalidInput,
    InvalidLayer,
    NotFound,
    RateLimited,
)
from recollect.operations.verb import Caller, Example, Needs, Takes, Verb, argument, option
from recollect.types import KnowledgePointer, Layer, Memory, MemoryType, NewMemory, Operation, Source, SourceType
from recollect.types.memory import DEFAULT_IMPORTANCE

if TYPE_CHECKING:
    from recollect.memories import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The memories as they were stored, in the order given."""

    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """What to remember; the other fields hold for every content."""

    content: tuple[str, ...] = argument("what to remember, one memory each", takes=Takes.WORDS)
    layer: Layer | None = option("whose it is; without it, the most specific layer that the identity has", short="l")
    type: MemoryType = option("what kind of thing it is", MemoryType.FACT, short="t")
    importance: float = option("what it counts for, from 0 to 1", DEFAULT_IMPORTANCE, short="i")
    tags: tuple[str, ...] = option("a tag; dots make a hierarchy, as in security.tokens", (), flag="tag", short="T")
    metadata: Mapping[str, Any] = option("a field of your own", {}, flag="meta", short="m")
    key: str | None = option("makes it idempotent: the same key and content are stored once")
    title: str | None = option("a title")
    description: str | None = option("a description")
    author: str | None = option("who said it")
    role: str | None = option("as what the author said it, such as user or assistant")
    language: str | None = option("the language it is in, such as en")
    type_name: str | None = option("a type of your own, beside the eight")
    references: tuple[str, ...] = option("the id of a memory that it refers to", (), flag="reference", short="r")
    occurred_at: datetime | None = option("when it was said or happened, if not now", flag="occurred")
    expires_at: datetime | None = option("when it ends", flag="expires", ahead=True)
    confidence: float | None = option("how sure it is, from 0 to 1")
    relevance: float | None = option("how relevant it is, from 0 to 1")
    decay_factor: float | None = option("how much of it has faded, from 0 to 1")
    source_type: SourceType | None = option("where it came from")
    source_reference: str | None = option("the message, call or file it came in")
    pointer: KnowledgePointer | None = option("the document that it summarises")


_ELSEWHERE = ("content", "source_type", "source_reference")


def _add(caller: Caller, given: Add) -> Added:
    if given.key is not None and len(given.content) > 1:
        raise InvalidInput(
            f"one key was given for {len(given.content)} contents",
            operation="add",
            details={"field": "key"},
            hint="a key stands for one memory: add them one by one, or without a key",
        )
    kept = {one.name: getattr(given, one.name) for one in fields(Add) if one.name not in _ELSEWHERE}
    source = _source(given.source_type, given.source_reference)
    news = [NewMemory(content=content, source=source, **kept) for content in given.content]
    return Added(memories=tuple(caller.view.add_many(news)))


def _source(type: SourceType | None, reference: str | None) -> Source | None:
    if type is None:
        if reference is None:
            return None
        raise InvalidInput(
            "a source reference was given without a source type",
            details={"field": "source_type"},
            hint=f"say what it refers to: {', '.join(SourceType)}",
        )
    return Source(type=type, reference=reference)


ADD = Verb(
    name="add",
    input=Add,
    output=Added,
    run=_add,
    needs=Needs.WRITE,
    errors=(InvalidLayer, ContentTooLong, Conflict, EmbeddingFailed, RateLimited),
    creates=True,
    description="Several contents are stored together: all of them, or none.",
    examples=(
        Example(line="recollect add Prefers dark mode --type preference --tag ui", says="the words are one memory"),
        Example(line="cat notes.txt | recollect add -", says="one memory for each line"),
        Example(line="recollect add - --whole --title Minutes < notes.txt", says="the whole text as one memory"),
        Example(line="recollect add 'Use tabs' --project api --layer project", says="for everybody in the project"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What to change; what is left out stays as it is."""

    id: str = argument("the id of the memory")
    content: str | None = option("new content; it is embedded anew")
    type: MemoryType | None = option("what kind of thing it is", short="t")
    importance: float | None = option("what it counts for, from 0 to 1", short="i")
    tags: tuple[str, ...] | None = option("a tag; those given take the place of all others", flag="tag", short="T")
    add_tags: tuple[str, ...] = option("one more tag", (), flag="add-tag")
    remove_tags: tuple[str, ...] = option("a tag that goes", (), flag="remove-tag")
    metadata: Mapping[str, Any] = option("a field of your own, set beside the others", {}, flag="meta", short="m")
    remove_metadata: tuple[str, ...] = option("a field of your own that goes", (), flag="remove-meta")
    title: str | None = option("a title")
    description: str | None = option("a description")
    author: str | None = option("who said it")
    role: str | None = option("as what the author said it")
    language: str | None = option("the language it is in")
    type_name: str | None = option("a type of your own, beside the eight")
    references: tuple[str, ...] | None = option("an id that it refers to, in place of all others", flag="reference")
    occurred_at: datetime | None = option("when it was said or happened", flag="occurred")
    expires_at: datetime | None = option("when it ends", flag="expires", ahead=True)
    confidence: float | None = option("how sure it is, from 0 to 1")
    relevance: float | None = option("how relevant it is, from 0 to 1")
    decay_factor: float | None = option("how much of it has faded, from 0 to 1")
    source_type: SourceType | None = option("where it came from")
    source_reference: str | None = option("the message, call or file it came in")
    pointer: KnowledgePointer | None = option("the document that it summarises")
    clear: tuple[str, ...] = option("a field to empty, such as title or expires_at", ())
    if_version: int | None = option("only if the memory is still at this version")


_CLEARABLE = frozenset(
    "title description author role language type_name confidence relevance decay_factor source pointer"
    " expires_at session".split()
)


def _update(caller: Caller, given: Update) -> Memory:
    plain = {one.name for one in fields(Update)} - {"id", "if_version", "clear", "source_type", "source_reference"}
    changes = {name: value for name in plain if (value := getattr(given, name)) not in (None, (), {})}
    for name in ("tags", "references"):
        if getattr(given, name) == ():  # given and empty: none shall be left
            changes[name] = ()
    if source := _source(given.source_type, given.source_reference):
        changes["source"] = source
    changes.update(dict.fromkeys(_cleared(given, set(changes))))
    if not changes:
        raise InvalidInput(
            "nothing to change was given",
            operation="update",
            details={"field": "id", "memory_id": given.id},
            hint="pass what to change, such as content or importance",
        )
    return caller.view.update(given.id, if_version=given.if_version, **changes)


def _cleared(given: Update, changed: set[str]) -> tuple[str, ...]:
    names = tuple(name.replace("-", "_") for name in given.clear)
    for name in names:
        if name not in _CLEARABLE:
            raise InvalidInput(
                f"the field {name[:40]!r} cannot be empty",
                operation="update",
                details={"field": "clear"},
                hint=f"clear one of {', '.join(sorted(_CLEARABLE))}",
            )
        if name in changed:
            raise InvalidInput(
                f"the field {name!r} is both set and cleared",
                operation="update",
                details={"field": "clear"},
                hint="do one of the two",
            )
    return names


UPDATE = Verb(
    name="update",
    input=Update,
    output=Memory,
    run=_update,
    needs=Needs.WRITE,
    errors=(NotFound, Conflict, ContentTooLong, EmbeddingFailed, RateLimited),
    examples=(
        Example(line="recollect update $ID --content 'Lives in Rome'", says="the new content is embedded anew"),
        Example(line="recollect update $ID --add-tag home --importance 0.9", says="a tag more, and more important"),
        Example(line="recollect update $ID --clear title --if-version 3", says="only if nobody changed it since"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The ids that were forgotten (or would be: ``dry_run``), and those where there was nothing to forget."""

    ids: tuple[str, ...]
    missing: tuple[str, ...]
    permanent: bool
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """What to forget, and whether for good."""

    ids: tuple[str, ...] = argument("the ids of the memories", takes=Takes.EACH)
    permanent: bool = option("erase them with all their versions; nothing brings them back", False, needs=Needs.ERASE)
    reason: str | None = option("why, for the history")
    dry_run: bool = option("only say what would be forgotten", False, short="n")


def _forget(caller: Caller, given: Forget) -> Forgotten:
    view = caller.view
    gone: list[str] = []
    missing: list[str] = []
    for id in dict.fromkeys(given.ids):
        if given.dry_run:
            done = _forgettable(view, id, permanent=given.permanent)
        else:
            done = view.forget(id, permanent=given.permanent, reason=given.reason)
        (gone if done else missing).append(id)
    return Forgotten(ids=tuple(gone), missing=tuple(missing), permanent=given.permanent, dry_run=given.dry_run)


def _forgettable(view: "View", id: str, *, permanent: bool) -> bool:
    """Whether there is something to forget. The history tells, and unlike reading counts as no access."""
    versions = view.history(id)
    gone = {Operation.ERASED} if permanent else {Operation.ERASED, Operation.FORGOTTEN}
    return bool(versions) and versions[-1].operation not in gone


def _none_missing(answer: "Forgotten | Restored") -> bool:
    return not answer.missing


FORGET = Verb(
    name="forget",
    input=Forget,
    output=Forgotten,
    run=_forget,
    needs=Needs.WRITE,
    agrees=_none_missing,
    description="A forgotten memory is left out of everything and can be restored. A permanent one is erased.",
    examples=(
        Example(line="recollect forget $ID --reason outdated", says="restore brings it back"),
        Example(line="recollect forget $ID --permanent --dry-run", says="what would be erased"),
        Example(line="recollect forget $ID --permanent --yes", says="erased, without being asked"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The ids that are back, and those where nothing was forgotten."""

    ids: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """What to bring back."""

    ids: tuple[str, ...] = argument("the ids of the memories", takes=Takes.EACH)


def _restore(caller: Caller, given: Restore) -> Restored:
    view = caller.view
    found = {id: view.restore(id) for id in given.ids}
    return Restored(
        ids=tuple(id for id, back in found.items() if back),
        missing=tuple(id for id, back in found.items() if not back),
    )


RESTORE = Verb(
    name="restore",
    input=Restore,
    output=Restored,
    run=_restore,
    needs=Needs.WRITE,
    agrees=_none_missing,
    examples=(Example(line="recollect restore $ID", says="as if it had not been forgotten"),),
)
