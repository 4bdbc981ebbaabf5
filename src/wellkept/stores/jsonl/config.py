"""The schema of ``config.json``, the settings of a JSON Lines folder."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from wellkept.settings import Flag, Kind, Number, Section, Word, built, setting
from wellkept.settings.schema import HalfLifeSettings
from wellkept.settings.sources import examined_text, parsed_json, read_text
from wellkept.stores.jsonl.locks import LockSettings
from wellkept.types import DecayPolicy, MemoryType, SessionConfig

VERSION = "1.0"
_USUAL = HalfLifeSettings()
_HOURS = Number(0.001, 10_000_000)


@dataclass(frozen=True, slots=True)
class Fixed(Kind):
    """A setting that has one value here, which other software may have others for; any other is refused, with why."""

    usual: Any
    why: str

    @property
    def allowed(self) -> str:
        """The value and the reason."""
        return f"{json.dumps(self.usual)} or left out ({self.why})"

    def accepts(self, value: object) -> bool:
        """The value itself; true is no number."""
        return value == self.usual and isinstance(value, bool) == isinstance(self.usual, bool)


def _fixed(usual: Any, why: str) -> Any:
    return setting(usual, Fixed(usual, why))


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig(Section, at="storage"):
    """Where sessions are kept, how large one may become, and from which share of that on it is compacted."""

    root_directory: str = _fixed("./memory", "the URL names the folder")
    max_session_size_mb: float = setting(10, Number(0.001, 1_000_000))
    compaction_threshold: float = setting(0.9, Number(0.01, 1))
    auto_compact: bool = setting(True, Flag())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyConfig(Section, at="concurrency"):
    """How long to wait for a lock, and how often and after which pause to repeat a failed write."""

    lock_timeout_ms: float = setting(5_000, Number(0, 3_600_000))
    max_retries: int = setting(3, Number(0, 100, whole=True))
    retry_backoff_ms: float = setting(100, Number(1, 60_000))

    @property
    def locks(self) -> LockSettings:
        """The same for locks, which are polled ten times as often: a process that sleeps long misses its turn."""
        return LockSettings(timeout_ms=self.lock_timeout_ms, longest_pause_ms=self.retry_backoff_ms / 10)


@dataclass(frozen=True, slots=True)
class HalfLife(Kind):
    """The half-life of a type: hours in a program, an object of one key in the file."""

    usual: float | None

    @property
    def allowed(self) -> str:
        """Both objects."""
        return f'{{"half_life_hours": {_HOURS.allowed}}} or {{"decay_enabled": false}}'

    def accepts(self, value: object) -> bool:
        """An object with at least one of the two keys, or none: then the type fades as usual."""
        if not isinstance(value, Mapping) or not value.keys() <= {"half_life_hours", "decay_enabled"}:
            return False
        fades, hours = value.get("decay_enabled"), value.get("half_life_hours", self.usual)
        if fades not in (None, False) and (fades is not True or hours is None):
            return False  # a type that never fades unless it is told how fast
        return "half_life_hours" not in value or _HOURS.accepts(hours)

    def holds(self, value: object) -> bool:
        """Hours, or ``None`` for never."""
        return value is None or _HOURS.accepts(value)

    def value(self, given: Any) -> Any:
        """The hours."""
        return None if given.get("decay_enabled") is False else given.get("half_life_hours", self.usual)


def _half_life(type: MemoryType) -> Any:
    usual = getattr(_USUAL, type.value)
    return setting(usual, HalfLife(usual))


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfLives(Section, at="decay.type_specific"):
    """After how many hours a memory of each type counts half; ``None`` if it never fades."""

    conversation: float | None = _half_life(MemoryType.CONVERSATION)
    decision: float | None = _half_life(MemoryType.DECISION)
    finding: float | None = _half_life(MemoryType.FINDING)
    preference: float | None = _half_life(MemoryType.PREFERENCE)
    fact: float | None = _half_life(MemoryType.FACT)
    event: float | None = _half_life(MemoryType.EVENT)
    insight: float | None = _half_life(MemoryType.INSIGHT)
    correction: float | None = _half_life(MemoryType.CORRECTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayConfig(Section, at="decay"):
    """How memories fade."""

    enabled: bool = setting(True, Flag())
    update_interval_minutes: float = _fixed(60, "decay is computed when it is asked for")
    type_specific: HalfLives = field(default_factory=HalfLives)
    min_decay_factor: float = setting(0.1, Number(0, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformanceConfig(Section, at="performance"):
    """What is kept in memory, and how long writes are gathered."""

    cache_size: int = _fixed(100, "everything is held in RAM")
    batch_write_interval_ms: float = _fixed(1_000, "a write is on the disk when the call returns")
    index_in_memory: bool = _fixed(True, "everything is held in RAM")


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityConfig(Section, at="integrity"):
    """Whether entries carry a checksum, and which; and whether what people write is accepted at once."""

    enable_checksums: bool = _fixed(True, "every line has one, and it is checked")
    checksum_algorithm: str = setting("sha256", Word(("sha256",)))
    accept_edits: bool = setting(False, Flag())


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonlConfig:
    """All settings of a JSON Lines store.

    >>> JsonlConfig().sessions.limit_bytes
    10485760
    """

    version: str = setting(VERSION, Word((VERSION,)))
    storage: StorageConfig = field(default_factory=StorageConfig)
    concurrency: ConcurrencyConfig = field(default_factory=ConcurrencyConfig)
    decay: DecayConfig = field(default_factory=DecayConfig)
    performance: PerformanceConfig = field(default_factory=PerformanceConfig)
    integrity: IntegrityConfig = field(default_factory=IntegrityConfig)

    @property
    def sessions(self) -> SessionConfig:
        """How sessions are configured unless they say otherwise."""
        own = {type: getattr(self.decay.type_specific, type.value) for type in MemoryType}
        hours = {type: value for type, value in own.items() if value != getattr(_USUAL, type.value)}
        floor = self.decay.min_decay_factor
        return SessionConfig(
            decay=DecayPolicy(enabled=self.decay.enabled, min_decay_factor=floor, by_type_hours=hours),
            limit_bytes=int(self.storage.max_session_size_mb * 1024 * 1024),
            auto_compact=self.storage.auto_compact,
            compaction_threshold=self.storage.compaction_threshold,
        )


def load(path: Path) -> JsonlConfig:
    """The settings of a file; the defaults for what it leaves out, and if there is none.

    >>> load(Path("missing.json")) == JsonlConfig()
    True
    """
    text = read_text(path)
    found, problems = examined_text(JsonlConfig, "{}" if text is None else text, parsed_json)
    for problem in problems:
        raise problem.error(path.name, file=path.name)
    return built(JsonlConfig, found)


def dump(config: JsonlConfig) -> str:
    """The settings as a file for people, the same text for the same settings.

    >>> dump(JsonlConfig()).splitlines()[1]
    '  "version": "1.0",'
    """
    return json.dumps(_plain(config), indent=2, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, HalfLives):
        hours = {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
        return {
            type: {"decay_enabled": False} if one is None else {"half_life_hours": one} for type, one in hours.items()
        }
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return int(value) if isinstance(value, float) and value.is_integer() else value  # 10 and 10.0 are written the same
