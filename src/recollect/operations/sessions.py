"""Verbs of sessions: listing and making them, what they hold and prefer, and handing them over."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.operations.verb import Caller, Example, Needs, Takes, Verb, argument, option
from recollect.types import Removal, SessionConfig, SessionStats

if TYPE_CHECKING:
    from recollect.memories.session import Session

_ID = "the id of the session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Sessions with what they hold."""

    sessions: tuple[SessionStats, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """A session: what it holds, what it prefers, and how it is configured."""

    stats: SessionStats
    config: SessionConfig
    preferences: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def _details(session: "Session") -> Details:
    return Details(
        stats=session.stats(),
        config=session.config,
        preferences=session.preferences.all(),
        metadata=session.metadata,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class One:
    """Which session."""

    id: str = argument(_ID)


# -- listing, making, showing -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Which sessions to list."""

    include_deleted: bool = option("deleted ones as well", False, flag="deleted")


def _list(caller: Caller, given: Listed) -> Listing:
    return Listing(sessions=caller.view.sessions.list(include_deleted=given.include_deleted))


SESSIONS = Verb(
    name="sessions",
    input=Listed,
    output=Listing,
    run=_list,
    needs=Needs.READ,
    description="A session is a room of its own for one conversation or one piece of work. Without a command they are"
    " listed.",
    examples=(
        Example(line="recollect sessions", says="all of them, and what of their limits is used"),
        Example(line="recollect sessions --deleted", says="those that can be restored, too"),
    ),
)


class Clearable(StrEnum):
    """What of a configuration can be none."""

    LIMIT = "limit-bytes"
    HALF_LIFE = "half-life-hours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuring:
    """What to set of a configuration; what is left out stays."""

    limit_bytes: int | None = option("what its memories may take, forgotten ones too")
    half_life_hours: float | None = option("the time in which a memory fades by half, whatever its type")
    min_decay_factor: float | None = option("what remains of a faded memory at least, from 0 to 1")
    decay: bool | None = option("whether memories fade")
    by_type_hours: Mapping[str, Any] = option(
        "the half-life of a type in hours, such as event=24", {}, flag="half-life"
    )
    auto_compact: bool | None = option("whether a write makes room first when the session is nearly full")
    compaction_threshold: float | None = option("how full that is, from 0 to 1")
    clear: tuple[Clearable, ...] = option("no limit, or the half-lives of the types", ())

    def over(self, before: SessionConfig) -> SessionConfig:
        """A configuration with what is given here."""
        faded = {"half_life_hours": self.half_life_hours, "min_decay_factor": self.min_decay_factor}
        given = {**faded, "enabled": self.decay}
        changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if self.by_type_hours:
            changed["by_type_hours"] = {**before.decay.by_type_hours, **self.by_type_hours}
        limit = before.limit_bytes if self.limit_bytes is None else self.limit_bytes
        room = {"auto_compact": self.auto_compact, "compaction_threshold": self.compaction_threshold}
        more: dict[str, Any] = {name: value for name, value in room.items() if value is not None}
        for one in self.clear:
            if getattr(self, one.value.replace("-", "_")) is not None:
                raise InvalidInput(
                    f"{one.value} is both set and cleared", details={"field": "clear"}, hint="do one of the two"
                )
        if Clearable.HALF_LIFE in self.clear:
            changed["half_life_hours"] = None
        if Clearable.LIMIT in self.clear:
            limit = None
        return replace(before, decay=replace(before.decay, **changed), limit_bytes=limit, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(Configuring):
    """What to call a session, and how to configure it."""

    id: str | None = argument("its id: letters, digits, _ and -; without one it gets one", None)
    preferences: Mapping[str, Any] = option("what the user prefers in it", {}, flag="prefer", short="p")
    metadata: Mapping[str, Any] = option("a field of your own", {}, flag="meta", short="m")


def _create(caller: Caller, given: Create) -> Details:
    config = given.over(SessionConfig())
    return _details(
        caller.view.sessions.create(given.id, preferences=given.preferences, config=config, metadata=given.metadata)
    )


SESSIONS_CREATE = Verb(
    name="sessions.create",
    input=Create,
    output=Details,
    run=_create,
    needs=Needs.WRITE,
    errors=(Conflict,),
    examples=(
        Example(line="recollect sessions create tuesday --prefer language=en", says="with a preference"),
        Example(line="recollect sessions create --limit-bytes 1000000", says="it gets an id, and a limit"),
    ),
)


def _show(caller: Caller, given: One) -> Details:
    return _details(caller.view.sessions.load(given.id))


SESSIONS_SHOW = Verb(
    name="sessions.show",
    input=One,
    output=Details,
    run=_show,
    needs=Needs.READ,
    errors=(NotFound,),
    examples=(Example(line="recollect sessions show monday", says="what it holds, prefers and is allowed"),),
)


def _configure(caller: Caller, given: "Configure") -> Details:
    session = caller.view.sessions.load(given.id)
    session.configure(given.over(session.config))
    return _details(session)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure(Configuring):
    """Which session, and what to set."""

    id: str = argument(_ID)


SESSIONS_CONFIGURE = Verb(
    name="sessions.configure",
    input=Configure,
    output=Details,
    run=_configure,
    needs=Needs.WRITE,
    errors=(NotFound,),
    examples=(
        Example(line="recollect sessions configure monday --half-life-hours 336", says="it fades within two weeks"),
        Example(line="recollect sessions configure monday --clear limit-bytes", says="it may hold any amount"),
    ),
)


# -- preferences ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferred:
    """The preferences of a session, and the names that were asked for or unset but are not there."""

    id: str
    preferences: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefer:
    """Which preferences to show, set and unset."""

    id: str = argument(_ID)
    names: tuple[str, ...] = argument("show only these", (), takes=Takes.EACH)
    set: Mapping[str, Any] = option("set one; the others stay", {}, short="s", needs=Needs.WRITE)
    unset: tuple[str, ...] = option("unset one", (), short="u", needs=Needs.WRITE)


def _preferences(caller: Caller, given: Prefer) -> Preferred:
    preferences = caller.view.sessions.load(given.id).preferences
    if both := sorted(given.set.keys() & set(given.unset)):
        raise InvalidInput(
            f"the preference {both[0][:64]!r} is both set and unset",
            details={"field": "unset"},
            hint="do one of the two",
        )
    before = {name: preferences.get(name, ...) for name in (*given.names, *given.unset)}  # checks the names
    if given.set:
        preferences.merge(given.set)
    missing = [name for name in given.unset if before[name] is ... or not preferences.remove(name)]
    kept = preferences.all()
    missing += [name for name in given.names if name not in kept]
    shown = {name: kept[name] for name in given.names if name in kept} if given.names else kept
    return Preferred(id=given.id, preferences=shown, missing=tuple(missing))


def _nothing_missing(answer: Preferred) -> bool:
    return not answer.missing


SESSIONS_PREFERENCES = Verb(
    name="sessions.preferences",
    input=Prefer,
    output=Preferred,
    run=_preferences,
    needs=Needs.READ,
    errors=(NotFound,),
    agrees=_nothing_missing,
    examples=(
        Example(line="recollect sessions preferences monday", says="all of them"),
        Example(
            line="recollect sessions preferences monday --set language=de --unset theme", says="one set, one unset"
        ),
        Example(line="recollect sessions preferences monday language", says="one; ends with 1 if it is not set"),
    ),
)


# -- ending, removing, bringing back ----------------------------------------------------------------------------------


def _close(caller: Caller, given: One) -> Details:
    session = caller.view.sessions.load(given.id)
    session.close()
    return _details(session)


SESSIONS_CLOSE = Verb(
    name="sessions.close",
    input=One,
    output=Details,
    run=_close,
    needs=Needs.WRITE,
    errors=(NotFound,),
    description="Closing notes when it ended, and forbids nothing.",
    examples=(Example(line="recollect sessions close monday", says="reopen goes on with it"),),
)


def _reopen(caller: Caller, given: One) -> Details:
    session = caller.view.sessions.load(given.id)
    session.reopen()
    return _details(session)


SESSIONS_REOPEN = Verb(
    name="sessions.reopen",
    input=One,
    output=Details,
    run=_reopen,
    needs=Needs.WRITE,
    errors=(NotFound,),
    examples=(Example(line="recollect sessions reopen monday", says="as if it had not been closed"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Which session to delete, and whether for good."""

    id: str = argument(_ID)
    permanent: bool = option("erase it and its memories; nothing brings them back", False, needs=Needs.ERASE)
    reason: str | None = option("why, for the history")
    dry_run: bool = option("only say which memories would go", False, short="n")


def _delete(caller: Caller, given: Delete) -> Removal:
    return caller.view.sessions.delete(given.id, permanent=given.permanent, reason=given.reason, dry_run=given.dry_run)


def _taken_away(caller: Caller, given: Delete) -> str:
    if given.dry_run:
        return ""
    count = caller.view.sessions.delete(given.id, permanent=given.permanent, dry_run=True).count
    memories = f"{count} {'memory' if count == 1 else 'memories'}"
    if given.permanent:
        return f"erase the session {given.id} and {memories} for good"
    return f"delete the session {given.id} and forget {memories}"


SESSIONS_DELETE = Verb(
    name="sessions.delete",
    input=Delete,
    output=Removal,
    run=_delete,
    needs=Needs.WRITE,
    errors=(NotFound,),
    asks=_taken_away,
    interrupted="run it again to go on",
    description="Its memories are forgotten with it, and restore brings both back.",
    examples=(
        Example(line="recollect sessions delete monday --dry-run", says="which memories would go"),
        Example(line="recollect sessions delete monday --reason 'she asked' --yes", says="without being asked"),
        Example(line="recollect sessions delete monday --permanent --yes", says="erased, with its description"),
    ),
)


def _restore(caller: Caller, given: One) -> Details:
    return _details(caller.view.sessions.restore(given.id))


SESSIONS_RESTORE = Verb(
    name="sessions.restore",
    input=One,
    output=Details,
    run=_restore,
    needs=Needs.WRITE,
    errors=(NotFound,),
    examples=(Example(line="recollect sessions restore monday", says="with what was forgotten since it was deleted"),),
)


# -- handing over -----------------------------------------------------------------------------------------------------


class Form(StrEnum):
    """One JSON object, or one for each line: as the engine has it, which help does not load."""

    JSON = "json"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """All that is kept of a session, as text."""

    id: str
    form: Form
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Which session, and how it is written."""

    id: str = argument(_ID)
    form: Form = option("one object, or one for each line", Form.JSON, flag="format", short="f")
    history: bool = option("with every version of every memory", False)


def _export(caller: Caller, given: Export) -> Exported:
    session = caller.view.sessions.load(given.id)
    return Exported(id=given.id, form=given.form, text=session.export(given.form.value, history=given.history))


SESSIONS_EXPORT = Verb(
    name="sessions.export",
    input=Export,
    output=Exported,
    run=_export,
    needs=Needs.READ,
    errors=(NotFound,),
    description="Everything but the vectors: description, statistics, and the memories with the forgotten ones.",
    examples=(
        Example(line="recollect sessions export monday --output monday.json", says="a file that only you can read"),
        Example(line="recollect sessions export monday --format jsonl --history | wc -l", says="a line for each"),
    ),
)
