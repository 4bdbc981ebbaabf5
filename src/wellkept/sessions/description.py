"""What a session's record says, as values: read, checked and written without a store."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from wellkept import codec, validation
from wellkept.errors import InvalidInput, StoreCorrupt
from wellkept.types import DecayPolicy, MemoryType, SessionConfig
from wellkept.types.sessions import SESSION_BYTES

ID_CHARACTERS = 64
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_NAMED = ("language", "verbosity")
_CUSTOM = "custom"
_PREFERENCES = "preferences"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """What the user prefers in a session: two that everybody has, and any others."""

    language: str | None = None
    verbosity: str | None = None
    custom: dict[str, Any] = field(default_factory=dict)

    def flat(self) -> dict[str, Any]:
        """All that are set, by name."""
        named = {name: getattr(self, name) for name in _NAMED}
        return {**{name: value for name, value in named.items() if value is not None}, **self.custom}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a session may take."""

    limit_bytes: int | None = SESSION_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Whether a session is compacted by itself, and from which part of its limit on."""

    auto_compact: bool = True
    threshold: float = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A session as its record describes it; the names of the fields are those of the JSON.

    Where a part of the configuration is ``None``, the session goes by the defaults of its store.
    """

    session_id: str
    user_id: str
    created_at: datetime
    last_accessed: datetime
    decay_config: DecayPolicy | None = None
    compaction_config: Compaction | None = None
    config: Limits | None = None
    preferences: Preferences = field(default_factory=Preferences)
    metadata: dict[str, Any] = field(default_factory=dict)
    closed_at: datetime | None = None
    deleted_at: datetime | None = None
    deleted_reason: str | None = None

    def settings(self, defaults: SessionConfig) -> SessionConfig:
        """The configuration as callers see it."""
        compaction, limits = self.compaction_config, self.config
        return SessionConfig(
            decay=defaults.decay if self.decay_config is None else self.decay_config,
            limit_bytes=defaults.limit_bytes if limits is None else limits.limit_bytes,
            auto_compact=defaults.auto_compact if compaction is None else compaction.auto_compact,
            compaction_threshold=defaults.compaction_threshold if compaction is None else compaction.threshold,
        )

    def configured(self, value: object, defaults: SessionConfig) -> "Description":
        """The same session with another configuration; parts that a mapping leaves out are left to the store."""
        given = config(_filled(value, defaults))
        named = {one.name for one in fields(SessionConfig)} if isinstance(value, SessionConfig) else set(_keys(value))
        compaction = Compaction(auto_compact=given.auto_compact, threshold=given.compaction_threshold)
        return replace(
            self,
            decay_config=given.decay if "decay" in named else None,
            compaction_config=compaction if named & {"auto_compact", "compaction_threshold"} else None,
            config=Limits(limit_bytes=given.limit_bytes) if "limit_bytes" in named else None,
        )


def encode(description: Description, before: bytes = b"{}") -> bytes:
    """A description as JSON, with whatever else stood in the one before."""
    return codec.encode_json({**codec.decode_json(before), **codec.decode_json(codec.encode_json(description))})


def decode(body: bytes, id: str = "") -> Description:
    """The description that the record of a session holds."""
    try:
        found = codec.decode_as(body, Description)
        config(found.settings(SessionConfig()))
        preferences(found.preferences.flat())
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreCorrupt(
            f"the description of session {id[:64]!r} cannot be read",
            details={"kind": "session", "session_id": id[:64]},
            hint="correct what was edited by hand, or delete the session with permanent=True",
        ) from error
    return found


def session_id(value: object) -> str:
    """The id of a session: letters, digits, underscores and hyphens, so that every store can take it as a name."""
    if not isinstance(value, str) or len(value) > ID_CHARACTERS or not _ID.fullmatch(value):
        raise InvalidInput(
            f"the id of a session must be 1 to {ID_CHARACTERS} letters, digits, underscores or hyphens",
            details={"field": "session"},
            hint="leave it out to get one, or use an id such as 'sess_20260110_1'",
        )
    return value


def new_id(now: datetime, random: bytes) -> str:
    """An id that nobody has: the day, and what tells the sessions of a day apart.

    >>> from datetime import UTC
    >>> new_id(datetime(2026, 1, 10, tzinfo=UTC), bytes(4))
    'sess_20260110_00000000'
    """
    return f"sess_{now:%Y%m%d}_{random.hex()}"


def config(value: object) -> SessionConfig:
    """A configuration, given as itself or as a mapping."""
    given = _made(SessionConfig, "config", value)
    decay: DecayPolicy = _made(DecayPolicy, "config.decay", _by_half_life(given.decay))
    validation.flag("config.decay.enabled", decay.enabled)
    if decay.half_life_hours is not None:
        _hours(decay.half_life_hours)
    validation.unit("config.decay.min_decay_factor", decay.min_decay_factor)
    by_type = _by_type(decay.by_type_hours)
    if given.limit_bytes is not None:
        validation.integer("config.limit_bytes", given.limit_bytes, 1, 2**62)
    validation.flag("config.auto_compact", given.auto_compact)
    validation.unit("config.compaction_threshold", given.compaction_threshold)
    made: SessionConfig = replace(given, decay=replace(decay, by_type_hours=by_type))
    return made


def _by_half_life(value: object) -> object:
    """A decay whose daily rate, if it has one, is said as a half-life."""
    if not isinstance(value, Mapping) or "daily_rate" not in value:
        return value
    name = "config.decay.daily_rate"
    if "half_life_hours" in value:
        raise InvalidInput(
            "a daily rate and a half-life were given", details={"field": name}, hint="pass one of the two"
        )
    rate = validation.unit(name, value["daily_rate"])
    if not 0 < rate < 1:
        raise InvalidInput(
            f"{name} must be between 0 and 1", details={"field": name}, hint="to let nothing fade, use enabled=False"
        )
    rest = {name: one for name, one in value.items() if name != "daily_rate"}
    return {**rest, "half_life_hours": DecayPolicy.from_daily_rate(rate).half_life_hours}


def _filled(value: object, defaults: SessionConfig) -> object:
    """A mapping with what it leaves out, except for the decay: that is one value, not several."""
    if not isinstance(value, Mapping):
        return value
    left_out = ("limit_bytes", "auto_compact", "compaction_threshold")
    return {**{name: getattr(defaults, name) for name in left_out}, **value}


def _keys(value: object) -> list[str]:
    return list(value) if isinstance(value, Mapping) else []


def _by_type(value: object) -> dict[MemoryType, float | None]:
    name = "config.decay.by_type_hours"
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} must be a mapping", details={"field": name}, hint="pass hours by type")
    for hours in value.values():
        if hours is not None:
            _hours(hours, name)
    return {validation.choice(name, MemoryType, kind): hours for kind, hours in value.items()}


def _hours(value: object, name: str = "config.decay.half_life_hours") -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        raise InvalidInput(
            f"{name} must be a number above 0",
            details={"field": name},
            hint="to let nothing fade, use enabled=False",
        )


def _made(kind: Any, name: str, value: object) -> Any:
    if isinstance(value, kind):
        return value
    known = [one.name for one in fields(kind)]
    if isinstance(value, Mapping) and set(value) <= set(known):
        return kind(**value)
    raise InvalidInput(
        f"{name} must be a {kind.__name__}, or a mapping with some of its fields",
        details={"field": name},
        hint=f"its fields are {', '.join(known)}",
    )


def preferences(value: object) -> Preferences:
    """Preferences by name: ``language`` and ``verbosity`` are lines of text, all others any JSON."""
    flat = flattened(value)
    named = {name: validation.optional_line(f"preferences.{name}", flat.pop(name, None)) for name in _NAMED}
    return Preferences(**named, custom=flat)


def flattened(value: object) -> dict[str, Any]:
    """A copy of preferences by name; those under ``custom`` as if they stood beside it."""
    given = validation.metadata(value, _PREFERENCES)
    nested = given.pop(_CUSTOM, {})
    if not isinstance(nested, dict):
        raise InvalidInput(
            "preferences.custom must be a mapping", details={"field": "preferences.custom"}, hint="pass a dict"
        )
    flat = {**given, **nested}
    for name in flat:
        validation.line(_PREFERENCES, name, validation.ID_CHARACTERS)
    return flat
