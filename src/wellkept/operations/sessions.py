"""Verbs of sessions: list, create, show, configure, close, delete, restore, export, import."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from wellkept import fields
from wellkept.errors import Conflict, ContentTooLong, EmbeddingFailed, InvalidInput, NotFound
from wellkept.operations.conditions import MANY, MANY_IDS, TEXT
from wellkept.operations.verb import Caller, Example, Takes, Verb, argument, option, result
from wellkept.types import DecayPolicy, ImportReport, MemoryType, Removal, SessionConfig, SessionStats, UpkeepRun
from wellkept.types.bounds import Bounds

if TYPE_CHECKING:
    from wellkept.memories.session import Session

_ID = "The id of the session."
_PREFERRED = "The preferences of the user in the session."
SESSION_ID = Bounds(max_length=64)
_PREFERENCES = Bounds(max_length=1_000)
_NAMES = Bounds(max_length=1_000, each=fields.ID)
_EXPORT = Bounds(max_length=256 * 1024 * 1024)
_HOURS = Bounds(minimum=0, maximum=1e9)
_CLEARABLE = ("limit_bytes", "half_life_hours")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionList:
    """Sessions with their statistics."""

    sessions: tuple[SessionStats, ...] = result("The sessions with their statistics.", bounds=MANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """A session: its statistics, configuration, preferences and custom fields."""

    stats: SessionStats = result("The statistics of the session.")
    config: SessionConfig = result("The configuration of the session.")
    preferences: Mapping[str, Any] = result(_PREFERRED, {}, bounds=fields.METADATA)
    metadata: Mapping[str, Any] = result("The custom fields of the session.", {}, bounds=fields.METADATA)


def _details(session: "Session") -> Details:
    return Details(
        stats=session.stats(),
        config=session.config,
        preferences=session.preferences.all(),
        metadata=session.metadata,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which session."""

    id: str = argument(_ID, bounds=SESSION_ID)


# -- listing, making, showing -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSessions:
    """Which sessions to list."""

    include_deleted: bool = option("Include deleted sessions.", False, flag="deleted")


def _list(caller: Caller, given: ListSessions) -> SessionList:
    return SessionList(sessions=caller.view.sessions.list(include_deleted=given.include_deleted))


SESSIONS = Verb(
    name="sessions",
    input=ListSessions,
    output=SessionList,
    run=_list,
    method="Sessions.list",
    description="A session holds the memories of one conversation or one piece of work. Without a command, sessions"
    " are listed.",
    examples=(
        Example(line="wellkept sessions", says="all of them, and how much of their limits is used"),
        Example(line="wellkept sessions --deleted", says="includes those that can be restored"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuring:
    """What to set of a configuration; fields that are left out keep their values."""

    limit_bytes: int | None = option(
        "How many bytes the memories of the session may take, forgotten ones included.",
        bounds=Bounds(minimum=1, maximum=fields.COUNT_MAX),
    )
    half_life_hours: float | None = option("The hours in which any memory fades by half.", bounds=_HOURS)
    daily_rate: float | None = option(
        "The share of any memory that fades each day: another way to say a half-life.",
        bounds=Bounds(minimum=1e-6, maximum=1 - 1e-6),
    )
    min_decay_factor: float | None = option(
        "How much of a faded memory remains at least, from 0 to 1.", bounds=fields.UNIT
    )
    decay: bool | None = option("Whether memories fade.")
    by_type_hours: Mapping[MemoryType, float | None] = option(
        "The half-life of memories of a type in hours, such as event=24; null means that the type never fades.",
        {},
        bounds=Bounds(max_length=len(MemoryType), each=_HOURS),
        flag="half-life",
    )
    auto_compact: bool | None = option("Whether a write to a nearly full session compacts it first.")
    compaction_threshold: float | None = option("How full a session must be for that, from 0 to 1.", bounds=fields.UNIT)
    clear: tuple[str, ...] = option(
        "Settings to remove: limit_bytes (no limit), half_life_hours (each type has its own).",
        (),
        bounds=Bounds(max_length=len(_CLEARABLE), each=Bounds(words=_CLEARABLE)),
    )

    def over(self, before: SessionConfig) -> SessionConfig:
        """A configuration with what is given here."""
        faded = {"half_life_hours": self.half_life_hours, "min_decay_factor": self.min_decay_factor}
        given = {**faded, "enabled": self.decay}
        changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if self.daily_rate is not None:
            if self.half_life_hours is not None:
                raise InvalidInput(
                    "a daily rate and a half-life were given",
                    details={"field": "daily_rate"},
                    hint="give one of them",
                )
            changed["half_life_hours"] = DecayPolicy.from_daily_rate(self.daily_rate).half_life_hours
        if self.by_type_hours:
            changed["by_type_hours"] = {**before.decay.by_type_hours, **self.by_type_hours}
        limit = before.limit_bytes if self.limit_bytes is None else self.limit_bytes
        room = {"auto_compact": self.auto_compact, "compaction_threshold": self.compaction_threshold}
        more: dict[str, Any] = {name: value for name, value in room.items() if value is not None}
        for name in self.clear:
            if getattr(self, name) is not None:
                raise InvalidInput(
                    f"{name} is both set and cleared", details={"field": "clear"}, hint="do one of the two"
                )
        if "half_life_hours" in self.clear:
            changed["half_life_hours"] = None
        if "limit_bytes" in self.clear:
            limit = None
        return replace(before, decay=replace(before.decay, **changed), limit_bytes=limit, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(Configuring):
    """What to call a session, and how to configure it."""

    id: str | None = argument(
        "The id of the session: letters, digits, _ and -; without it, one is made.", None, bounds=SESSION_ID
    )
    preferences: Mapping[str, Any] = option(
        "Preferences of the user in this session.", {}, bounds=_PREFERENCES, flag="prefer", short="p"
    )
    metadata: Mapping[str, Any] = option(
        "Custom fields: names and any JSON values.", {}, bounds=fields.METADATA, flag="meta", short="m"
    )


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
    method="Sessions.create",
    errors=(Conflict,),
    examples=(
        Example(line="wellkept sessions create tuesday --prefer language=en", says="with a preference"),
        Example(line="wellkept sessions create --limit-bytes 1000000", says="with an id that is made, and a limit"),
    ),
)


def _show(caller: Caller, given: Chosen) -> Details:
    return _details(caller.view.sessions.load(given.id))


SESSIONS_SHOW = Verb(
    name="sessions.show",
    input=Chosen,
    output=Details,
    run=_show,
    method="Sessions.load",
    errors=(NotFound,),
    examples=(Example(line="wellkept sessions show monday", says="statistics, preferences and configuration"),),
)


def _configure(caller: Caller, given: "Configure") -> Details:
    session = caller.view.sessions.load(given.id)
    session.configure(given.over(session.config))
    return _details(session)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure(Configuring):
    """Which session, and what to set."""

    id: str = argument(_ID, bounds=SESSION_ID)


SESSIONS_CONFIGURE = Verb(
    name="sessions.configure",
    input=Configure,
    output=Details,
    run=_configure,
    method="Session.configure",
    errors=(NotFound,),
    examples=(
        Example(line="wellkept sessions configure monday --half-life-hours 336", says="it fades within two weeks"),
        Example(line="wellkept sessions configure monday --clear limit-bytes", says="without a limit"),
    ),
)


# -- preferences ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferred:
    """The preferences of a session, and the names that were asked for or removed but are not set."""

    id: str = result(_ID, bounds=SESSION_ID)
    preferences: Mapping[str, Any] = result(_PREFERRED, {}, bounds=fields.METADATA)
    missing: tuple[str, ...] = result("Names that were asked for or removed but are not set.", (), bounds=MANY_IDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefer:
    """Which preferences to show, set and unset."""

    id: str = argument(_ID, bounds=SESSION_ID)
    names: tuple[str, ...] = argument("Show only these preferences.", (), takes=Takes.EACH, bounds=_NAMES)
    set: Mapping[str, Any] = option(
        "Preferences to set; the others stay.", {}, bounds=_PREFERENCES, short="s", method="SessionPreferences.merge"
    )
    unset: tuple[str, ...] = option(
        "Names of preferences to remove.", (), bounds=_NAMES, short="u", method="SessionPreferences.remove"
    )


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
    method="SessionPreferences.all",
    errors=(NotFound,),
    agrees=_nothing_missing,
    examples=(
        Example(line="wellkept sessions preferences monday", says="all of them"),
        Example(line="wellkept sessions preferences monday --set language=de --unset theme", says="one set, one unset"),
        Example(line="wellkept sessions preferences monday language", says="one; ends with 1 if it is not set"),
    ),
)


# -- ending, removing, bringing back ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Details):
    """A session that has ended, and what its policy did."""

    run: UpkeepRun | None = result("What the policy for the end of sessions did; null if it did nothing.", None)


def _close(caller: Caller, given: Chosen) -> Closed:
    session = caller.view.sessions.load(given.id)
    run, now = session.close(), _details(session)
    return Closed(stats=now.stats, config=now.config, preferences=now.preferences, metadata=now.metadata, run=run)


SESSIONS_CLOSE = Verb(
    name="sessions.close",
    input=Chosen,
    output=Closed,
    run=_close,
    method="Session.close",
    errors=(NotFound,),
    description="Closing records when the session ended; it can still be read and written. What a policy says for the"
    " end of sessions is done: see endings.",
    examples=(Example(line="wellkept sessions close monday", says="reopen goes on with it"),),
)


def _reopen(caller: Caller, given: Chosen) -> Details:
    session = caller.view.sessions.load(given.id)
    session.reopen()
    return _details(session)


SESSIONS_REOPEN = Verb(
    name="sessions.reopen",
    input=Chosen,
    output=Details,
    run=_reopen,
    method="Session.reopen",
    errors=(NotFound,),
    examples=(Example(line="wellkept sessions reopen monday", says="as if it had not been closed"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Which session to delete, and whether for good."""

    id: str = argument(_ID, bounds=SESSION_ID)
    permanent: bool = option("Erase the session and its memories; this cannot be undone.", False)
    reason: str | None = option("The reason, kept in the history.", bounds=fields.LINE)
    dry_run: bool = option("Only report which memories would go; change nothing.", False, short="n")


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
    method="Sessions.delete",
    errors=(NotFound,),
    asks=_taken_away,
    interrupted="run it again to continue",
    description="The memories of the session are forgotten with it; restore brings both back.",
    examples=(
        Example(line="wellkept sessions delete monday --dry-run", says="which memories would go"),
        Example(line="wellkept sessions delete monday --reason 'she asked' --yes", says="without being asked"),
        Example(line="wellkept sessions delete monday --permanent --yes", says="erased, with its description"),
    ),
)


def _restore(caller: Caller, given: Chosen) -> Details:
    return _details(caller.view.sessions.restore(given.id))


SESSIONS_RESTORE = Verb(
    name="sessions.restore",
    input=Chosen,
    output=Details,
    run=_restore,
    method="Sessions.restore",
    errors=(NotFound,),
    examples=(Example(line="wellkept sessions restore monday", says="with what was forgotten since it was deleted"),),
)


# -- export -----------------------------------------------------------------------------------------------------


class Form(StrEnum):
    """The formats of an export: one JSON object, one for each line, or plain entries. The engine has the same ones."""

    JSON = "json"
    JSONL = "jsonl"
    ENTRIES = "entries"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Everything that is stored of a session, as text."""

    id: str = result(_ID, bounds=SESSION_ID)
    form: Form = result("The format of the text.")
    text: str = result("Everything that is stored of the session.", bounds=TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Which session, and in which format."""

    id: str = argument(_ID, bounds=SESSION_ID)
    form: Form = option(
        "One JSON object, one for each line, or active memories as plain entries.", Form.JSON, flag="format", short="f"
    )
    history: bool = option("Include every version of every memory.", False)


def _export(caller: Caller, given: Export) -> Exported:
    session = caller.view.sessions.load(given.id)
    return Exported(id=given.id, form=given.form, text=session.export(given.form.value, history=given.history))


SESSIONS_EXPORT = Verb(
    name="sessions.export",
    input=Export,
    output=Exported,
    run=_export,
    method="Session.export",
    errors=(NotFound,),
    description="Everything but the vectors: description, statistics, and all memories, forgotten ones included.",
    examples=(
        Example(line="wellkept sessions export monday --output monday.json", says="a file that only you can read"),
        Example(line="wellkept sessions export monday --format jsonl --history | wc -l", says="a line for each"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What to import, and into which session."""

    text: str = argument("The text of an export, in any of its formats.", bounds=_EXPORT, takes=Takes.FILE)
    id: str | None = option("The session to import into; by default, the one that was exported.", bounds=SESSION_ID)
    dry_run: bool = option("Only check everything and count; change nothing.", False, short="n")


def _import(caller: Caller, given: Import) -> ImportReport:
    return caller.view.sessions.import_session(given.text, given.id, dry_run=given.dry_run)


SESSIONS_IMPORT = Verb(
    name="sessions.import",
    input=Import,
    output=ImportReport,
    run=_import,
    method="Sessions.import_session",
    errors=(Conflict, ContentTooLong, EmbeddingFailed),
    creates=True,
    description="All memories are stored or none; those that are here already are left as they are, so an import can"
    " be repeated.",
    examples=(
        Example(line="wellkept sessions import tuesday.jsonl", says="an export of any format; - reads a pipe"),
        Example(line="wellkept sessions import tuesday.jsonl --id copy --dry-run", says="what would be imported"),
    ),
)
