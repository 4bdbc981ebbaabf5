"""The settings of the JSON Lines store: a file for people, checked so that a mistake is found where it stands."""

import codecs
import difflib
import json
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from recollect.errors import ConfigurationError
from recollect.lifecycle import decay
from recollect.stores.jsonl import positions
from recollect.stores.jsonl.locks import LockSettings
from recollect.stores.jsonl.rules import Flag, Folder, Number, Rule, Word, described
from recollect.types import DecayPolicy, MemoryType, SessionConfig

VERSION = "1.0"
FILE_BYTES = 1024 * 1024
_HOURS = Number(0.001, 10_000_000)
_KEY_CHARACTERS = 60

Wrong = Callable[..., ConfigurationError]
"""Makes the error for a path: ``wrong(path, "must be ...", hint, key=whether the key is meant)``."""


def _setting(default: Any, rule: Rule) -> Any:
    return field(default=default, metadata={"rule": rule})


def _half_life(type: MemoryType) -> Any:
    half_life = decay.HALF_LIVES[type]
    return field(default=None if half_life is None else half_life / timedelta(hours=1))


class Section:
    """Settings that belong together. However they are made, they are checked."""

    __slots__ = ()
    at: ClassVar[str]

    def __post_init__(self) -> None:
        for name, rule in rules_of(type(self)).items():
            _check(getattr(self, name), rule, (self.at, name), _misfit)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig(Section):
    """Where sessions are kept, how large one may become, and from which part of that on it is compacted."""

    at = "storage"

    root_directory: str = _setting("./memory", Folder())
    max_session_size_mb: float = _setting(10, Number(0.001, 1_000_000))
    compaction_threshold: float = _setting(0.9, Number(0.01, 1))
    auto_compact: bool = _setting(True, Flag())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyConfig(Section):
    """How long to wait for others, and how often and after which pause to repeat what failed."""

    at = "concurrency"

    lock_timeout_ms: float = _setting(5_000, Number(0, 3_600_000))
    max_retries: int = _setting(3, Number(0, 100, whole=True))
    retry_backoff_ms: float = _setting(100, Number(1, 60_000))

    @property
    def locks(self) -> LockSettings:
        """The same for locks. A lock is looked at ten times as often: who sleeps for long misses its turn."""
        return LockSettings(timeout_ms=self.lock_timeout_ms, longest_pause_ms=self.retry_backoff_ms / 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfLives:
    """After how many hours a memory of each type counts half; ``None`` if it never fades.

    In the file, that is ``{"half_life_hours": 168}`` or ``{"decay_enabled": false}``.
    """

    conversation: float | None = _half_life(MemoryType.CONVERSATION)
    decision: float | None = _half_life(MemoryType.DECISION)
    finding: float | None = _half_life(MemoryType.FINDING)
    preference: float | None = _half_life(MemoryType.PREFERENCE)
    fact: float | None = _half_life(MemoryType.FACT)
    event: float | None = _half_life(MemoryType.EVENT)
    insight: float | None = _half_life(MemoryType.INSIGHT)
    correction: float | None = _half_life(MemoryType.CORRECTION)

    def __post_init__(self) -> None:
        for type in MemoryType:
            if self.of(type) is not None:
                _check(self.of(type), _HOURS, ("decay", "type_specific", type.value), _misfit)

    def of(self, type: MemoryType) -> float | None:
        """The hours of one type."""
        hours: float | None = getattr(self, type.value)
        return hours


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayConfig(Section):
    """How memories fade."""

    at = "decay"

    enabled: bool = _setting(True, Flag())
    update_interval_minutes: float = _setting(60, Number(0.001, 1_000_000))
    type_specific: HalfLives = field(default_factory=HalfLives)
    min_decay_factor: float = _setting(0.1, Number(0, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformanceConfig(Section):
    """What is kept in memory, and how long writes are gathered."""

    at = "performance"

    cache_size: int = _setting(100, Number(0, 10_000_000, whole=True))
    batch_write_interval_ms: float = _setting(1_000, Number(0, 3_600_000))
    index_in_memory: bool = _setting(True, Flag())


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityConfig(Section):
    """Whether entries carry a checksum, and which."""

    at = "integrity"

    enable_checksums: bool = _setting(True, Flag())
    checksum_algorithm: str = _setting("sha256", Word(("sha256",)))


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonlConfig:
    """All settings of a JSON Lines store.

    >>> config = JsonlConfig().merged({"compaction_config": {"auto_compact": False}})
    >>> config.storage.auto_compact, config.storage.max_session_size_mb
    (False, 10)
    """

    storage: StorageConfig = field(default_factory=StorageConfig)
    concurrency: ConcurrencyConfig = field(default_factory=ConcurrencyConfig)
    decay: DecayConfig = field(default_factory=DecayConfig)
    performance: PerformanceConfig = field(default_factory=PerformanceConfig)
    integrity: IntegrityConfig = field(default_factory=IntegrityConfig)

    @property
    def sessions(self) -> SessionConfig:
        """The same for the engine: how sessions are kept unless they say otherwise."""
        usual, own = HalfLives(), self.decay.type_specific
        hours = {type: own.of(type) for type in MemoryType if own.of(type) != usual.of(type)}
        floor = self.decay.min_decay_factor
        return SessionConfig(
            decay=DecayPolicy(enabled=self.decay.enabled, min_decay_factor=floor, by_type_hours=hours),
            limit_bytes=int(self.storage.max_session_size_mb * 1024 * 1024),
            auto_compact=self.storage.auto_compact,
            compaction_threshold=self.storage.compaction_threshold,
        )

    def merged(self, overrides: Mapping[str, Any]) -> "JsonlConfig":
        """These settings, but for what one session has of its own: ``decay_config`` and ``compaction_config``.

        A session's half-life holds for every type that fades at all.
        """
        found = _members(overrides, tuple(_OVERRIDES), (), _misfit)
        own = {name: _settings(found.get(name, {}), _OVERRIDES[name], (name,), _misfit) for name in _OVERRIDES}
        fading, compaction = own["decay_config"], own["compaction_config"]
        if "half_life_hours" in fading:
            hours, before = fading.pop("half_life_hours"), self.decay.type_specific
            kept = {type.value: before.of(type) and hours for type in MemoryType}
            fading["type_specific"] = HalfLives(**kept)
        if "threshold" in compaction:
            compaction["compaction_threshold"] = compaction.pop("threshold")
        return replace(self, decay=replace(self.decay, **fading), storage=replace(self.storage, **compaction))


def load(path: Path) -> JsonlConfig:
    """The settings of a file; the defaults for what it leaves out, and if it is not there.

    >>> load(Path("missing.json")) == JsonlConfig()
    True
    """
    text = _text(path)
    if text is None:
        return JsonlConfig()

    def wrong_at(offset: int, what: str, hint: str, **more: Any) -> ConfigurationError:
        line, column = positions.line_and_column(text, offset)
        details = {"file": path.name, "line": line, "column": column, **more}
        return ConfigurationError(f"{path.name}, line {line}, column {column}: {what}", details=details, hint=hint)

    try:
        value, places = positions.read(text)
    except positions.Misread as error:
        raise wrong_at(error.offset, error.message, "correct the JSON there, or just before it") from None

    def wrong(at: positions.Path, what: str, hint: str, *, key: bool = False) -> ConfigurationError:
        offset = (places.keys if key else places.values)[at]
        return wrong_at(offset, f"{shown(at) or 'the file'} {what}", hint, path=shown(at))

    return _config(value, wrong)


def dump(config: JsonlConfig) -> str:
    """The settings as a file for people, the same text for the same settings.

    >>> print(dump(JsonlConfig())[:74])
    {
      "version": "1.0",
      "storage": {
        "root_directory": "./memory",
    """
    sections = {section.name: _plain(getattr(config, section.name)) for section in fields(config)}
    return json.dumps({"version": VERSION, **sections}, indent=2, ensure_ascii=False) + "\n"


def shown(path: positions.Path) -> str:
    """A path as people write it: ``storage.auto_compact``."""
    keys = [key if str(key).isidentifier() else json.dumps(key) for key in map(str, path)]
    return ".".join(key if len(key) <= _KEY_CHARACTERS else f"{key[:_KEY_CHARACTERS]}..." for key in keys)


def rules_of(section: type[Any]) -> dict[str, Rule]:
    """The plain settings of a section, and what they may be."""
    return {one.name: one.metadata["rule"] for one in fields(section) if "rule" in one.metadata}


_SECTIONS: tuple[type[Any], ...] = (
    StorageConfig,
    ConcurrencyConfig,
    DecayConfig,
    PerformanceConfig,
    IntegrityConfig,
)
_TYPES = tuple(one.name for one in fields(HalfLives))
_TYPE_RULES: dict[str, Rule] = {"half_life_hours": _HOURS, "decay_enabled": Flag()}
_OVERRIDES: dict[str, dict[str, Rule]] = {
    "decay_config": {
        "enabled": rules_of(DecayConfig)["enabled"],
        "half_life_hours": _HOURS,
        "min_decay_factor": rules_of(DecayConfig)["min_decay_factor"],
    },
    "compaction_config": {
        "auto_compact": rules_of(StorageConfig)["auto_compact"],
        "threshold": rules_of(StorageConfig)["compaction_threshold"],
    },
}


# --- from a file ----------------------------------------------------------------------------------


def _text(path: Path) -> str | None:
    """What a file says; nothing if there is none."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise _unreadable(path, "is not a file", "remove what stands in its place")
        with path.open("rb") as file:
            content = file.read(FILE_BYTES + 1).removeprefix(codecs.BOM_UTF8)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, "cannot be read", "check its permissions", errno=error.errno) from error
    if len(content) > FILE_BYTES:
        raise _unreadable(path, f"has more than {FILE_BYTES} bytes", "this is no file of settings")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        line, column = positions.line_and_column(before, len(before))
        raise _unreadable(path, f"is not UTF-8 in line {line}", "save it as UTF-8", line=line, column=column) from None


def _unreadable(path: Path, what: str, hint: str, **details: Any) -> ConfigurationError:
    return ConfigurationError(f"{path.name} {what}", details={"file": path.name, **details}, hint=hint)


def _config(value: object, wrong: Wrong) -> JsonlConfig:
    found = _members(value, ("version", *(section.at for section in _SECTIONS)), (), wrong)
    if "version" in found:
        _check(found["version"], Word((VERSION,)), ("version",), wrong)
    return JsonlConfig(**{one.at: _section(one, found[one.at], wrong) for one in _SECTIONS if one.at in found})


def _section(section: type[Any], value: object, wrong: Wrong) -> Any:
    at = (section.at,)
    given = dict(_members(value, tuple(one.name for one in fields(section)), at, wrong))
    nested = {name: _half_lives(given.pop(name), wrong) for name in ("type_specific",) if name in given}
    return section(**_settings(given, rules_of(section), at, wrong), **nested)


def _half_lives(value: object, wrong: Wrong) -> HalfLives:
    at = ("decay", "type_specific")
    hours: dict[str, float | None] = {}
    for type, given in _members(value, _TYPES, at, wrong).items():
        found = _settings(given, _TYPE_RULES, (*at, type), wrong)
        fades = found.get("decay_enabled", True)
        left = found.get("half_life_hours", HalfLives().of(MemoryType(type)))
        if found.get("decay_enabled") and left is None:
            raise wrong((*at, type), "fades, but has no half_life_hours", "add them")
        hours[type] = left if fades else None
    return HalfLives(**hours)


def _settings(value: object, rules: Mapping[str, Rule], at: positions.Path, wrong: Wrong) -> dict[str, Any]:
    """The members of an object, each as its rule wants it."""
    found = dict(_members(value, tuple(rules), at, wrong))
    for name, given in found.items():
        _check(given, rules[name], (*at, name), wrong)
    return found


def _members(value: object, known: tuple[str, ...], at: positions.Path, wrong: Wrong) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong(at, f"must be an object, not {described(value, Flag())}", "write it in braces")
    for key in value:
        if key not in known:
            raise wrong((*at, key), "is not known", _suggestion(key, known), key=True)
    return value


def _check(value: object, rule: Rule, at: positions.Path, wrong: Wrong) -> None:
    if not rule.accepts(value):
        raise wrong(at, f"must be {rule.allowed}, not {described(value, rule)}", "correct the value")


def _suggestion(key: object, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(str(key)[:_KEY_CHARACTERS], known, n=1)
    elsewhere = [f"{section.at}.{key}" for section in _SECTIONS if key in rules_of(section)]
    if near or elsewhere:
        return f"did you mean {(near or elsewhere)[0]}?"
    return f"known are {', '.join(known)}"


def _misfit(at: positions.Path, what: str, hint: str, **_: bool) -> ConfigurationError:
    """The error for what does not come from a file."""
    return ConfigurationError(f"{shown(at) or 'the settings'} {what}", details={"path": shown(at)}, hint=hint)


# --- to a file ------------------------------------------------------------------------------------


def _plain(section: Any) -> dict[str, Any]:
    return {one.name: _written(getattr(section, one.name)) for one in fields(section)}


def _written(value: object) -> object:
    if isinstance(value, HalfLives):
        return {type: _written_hours(value.of(MemoryType(type))) for type in _TYPES}
    # 10 and 10.0 are the same setting, so they are written the same.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _written_hours(hours: float | None) -> dict[str, object]:
    return {"decay_enabled": False} if hours is None else {"half_life_hours": _written(hours)}
