"""Everything that can be configured.

A setting is one field of a section here. Its kind, default, help and environment variable are declared with it and
nowhere else: reading, checking, ``wellkept config check`` and the reference page are derived from the declaration.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wellkept import validation
from wellkept.errors import WellkeptError
from wellkept.settings.declarations import Section, setting
from wellkept.settings.kinds import Flag, Number, Text, Word, Words
from wellkept.settings.urls import shown
from wellkept.types import DecayPolicy, Layer, MemoryType, SessionConfig
from wellkept.types.memory import DEFAULT_TRUST
from wellkept.types.owners import DEFAULT_USER
from wellkept.types.sessions import SESSION_BYTES

DEFAULT_ORIGIN = "the default"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings(Section, at="database"):
    """Which database is opened, and how."""

    url: str | None = setting(
        None, Text(), "The database: a path, from where the file is, or the URL of a store.", "WELLKEPT_DB"
    )
    durability: str | None = setting(
        None,
        Word(("full", "relaxed")),
        "How durable the writes of a new database are; one that exists keeps its own.",
        "WELLKEPT_DURABILITY",
    )
    stores: tuple[Section, ...] = ()
    """The sections of stores that were given; which there are, the classes of the stores declare."""

    def __repr__(self) -> str:
        url = None if self.url is None else shown(self.url)
        return f"DatabaseSettings(url={url!r}, durability={self.durability!r}, stores={self.stores!r})"

    def of_store(self, section: type[Section] | None) -> dict[str, str]:
        """What was given of the section of a store."""
        return next((one.given() for one in self.stores if type(one) is section), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderSettings(Section, at="embedder"):
    """What gives memories their vectors."""

    name: str = setting(
        "default",
        Text(),
        "The embedder, such as `static` or `bge`; `none` uses words alone, `default` the one the database was filled"
        " with.",
        "WELLKEPT_EMBEDDER",
    )
    url: str | None = setting(
        None, Text(), "The address of an embedding server, up to `/embeddings`; it replaces `embedder.name`."
    )
    model: str | None = setting(None, Text(), "The model that the server is asked for; needed with `embedder.url`.")
    dimension: int | None = setting(
        None, Number(1, validation.DIMENSIONS, whole=True), "Asks the server for vectors of this length."
    )
    key_variable: str | None = setting(None, Text(), "The environment variable that holds the server's API key.")
    timeout_s: float = setting(10.0, Number(0.001, 3_600), "How long one request to the server may take, in seconds.")


def _id(name: str, *reserved: str) -> Any:
    text = f"The {name} that commands act as, unless `--{name}` is given."
    return setting(None, Text(validation.ID_CHARACTERS, reserved), text, f"WELLKEPT_{name.upper()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentitySettings(Section, at="identity"):
    """As whom the command line acts. Each id is settled by itself; without any user, the user is `default`."""

    agent: str | None = _id("agent")
    user: str | None = _id("user", DEFAULT_USER)
    session: str | None = _id("session")
    project: str | None = _id("project")
    team: str | None = _id("team")
    org: str | None = _id("org")
    company: str | None = _id("company")


_COUNT = Number(0, 1_000_000_000_000, whole=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings(Section, at="limits"):
    """How much one agent may keep in its working memory and in its context; `limits=` and `context_tokens=` of
    `memories.agent` override it for one agent."""

    entries: int = setting(10_000, _COUNT, "Entries of one agent, scopes included.")
    entry_bytes: int = setting(1024 * 1024, _COUNT, "Bytes of one entry: value and metadata as JSON.")
    scopes: int = setting(100, _COUNT, "Open scopes of one agent.")
    context_tokens: int = setting(8_000, Number(1, 2**53, whole=True), "Tokens in the context of one agent.")


HOURS = Number(0.001, 10_000_000, none="never")


def _half_life(type: MemoryType, hours: float | None) -> Any:
    return setting(hours, HOURS, f"Hours after which a memory of type `{type.value}` counts half.")


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfLifeSettings(Section, at="sessions.half_life_hours"):
    """How fast memories fade, by type."""

    conversation: float | None = _half_life(MemoryType.CONVERSATION, 168)
    decision: float | None = _half_life(MemoryType.DECISION, 720)
    finding: float | None = _half_life(MemoryType.FINDING, 336)
    preference: float | None = _half_life(MemoryType.PREFERENCE, None)
    fact: float | None = _half_life(MemoryType.FACT, 720)
    event: float | None = _half_life(MemoryType.EVENT, 336)
    insight: float | None = _half_life(MemoryType.INSIGHT, 720)
    correction: float | None = _half_life(MemoryType.CORRECTION, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings(Section, at="sessions"):
    """How sessions are configured unless they say otherwise. It overrides what a store's own file says."""

    limit_bytes: int | None = setting(
        SESSION_BYTES, Number(1, 10**15, whole=True, none="unlimited"), "Bytes that the memories of a session may take."
    )
    auto_compact: bool = setting(True, Flag(), "Whether a session that is nearly full is compacted before a write.")
    compaction_threshold: float = setting(0.9, Number(0, 1), "The share of the limit from which on it is compacted.")
    decay: bool = setting(True, Flag(), "Whether memories fade at all.")
    min_decay_factor: float = setting(0.1, Number(0, 1), "What remains of a memory's importance at least.")
    half_life_hours: HalfLifeSettings = field(default_factory=HalfLifeSettings)


def _trust(value: float, what: str) -> Any:
    return setting(value, Number(0, 1), f"How far {what} is trusted.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustSettings(Section, at="trust"):
    """How far memories are trusted, by where they came from. Memories that are stored keep the trust they got."""

    user: float = _trust(1.0, "what the user said or entered by hand")
    application: float = _trust(DEFAULT_TRUST, "what the application or the assistant added")
    tool: float = _trust(0.5, "the result of a tool")
    document: float = _trust(0.5, "what was taken from a document or imported")
    web: float = _trust(0.2, "what was taken from the web")
    unknown: float = _trust(0.2, "what came from an unknown source")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings(Section, at="recall"):
    """How memories are recalled, by searches and into prompts."""

    precedence: tuple[str, ...] = setting(
        (),
        Words(tuple(layer.value for layer in Layer)),
        "The order in which layers override each other, the strongest first; those that are not named come last, as"
        " usual. `precedence=` of a search overrides it.",
    )

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The order as layers."""
        return tuple(map(Layer, self.precedence))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSettings(Section, at="lists"):
    """How listings are paged."""

    page_size: int = setting(50, Number(1, 100, whole=True), "Memories on a page where no `limit=` is given.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingSettings(Section, at="logging"):
    """What the command line logs on its standard error. A program configures the logger `wellkept` itself."""

    level: str = setting("off", Word(("off", "debug", "info", "warning", "error")), "The lowest level that is shown.")
    format: str = setting("text", Word(("text", "json")), "A line of text or of JSON for each record.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy(Section, at="retry"):
    """How calls of the store and the embedder are repeated that failed and are safe to repeat.

    >>> from wellkept.errors import RateLimited
    >>> policy, error = RetryPolicy(), RateLimited("slow down", details={"retry_after_ms": 1500})
    >>> [policy.pause_s(error, failures) for failures in (1, 2, 3)]
    [1.5, 2.0, None]
    """

    attempts: int = setting(3, Number(1, 100, whole=True), "How often a call is made at most; 1 repeats nothing.")
    initial_delay_s: float = setting(1.0, Number(0, 3_600), "The pause before the first repetition, in seconds.")
    max_delay_s: float = setting(
        30.0,
        Number(0, 3_600),
        "The longest pause. A call is not repeated if its server asks for a longer one (Retry-After).",
    )
    multiplier: float = setting(2.0, Number(1, 100), "What each pause is multiplied by for the next one.")
    codes: tuple[str, ...] = setting(
        ("EMBEDDING_FAILED", "PROVIDER_ERROR", "RATE_LIMITED"),
        Words(("EMBEDDING_FAILED", "PROVIDER_ERROR", "RATE_LIMITED", "STORE_BUSY", "CONCURRENCY", "STORE_FULL")),
        "The errors after which a call is repeated.",
    )

    def pause_s(self, error: WellkeptError, failures: int) -> float | None:
        """How long to wait after so many failures of a call; ``None`` if it is not to be repeated."""
        asked_s = retry_after_s(error)
        if failures >= self.attempts or error.code not in self.codes or asked_s > self.max_delay_s:
            return None
        return max(asked_s, min(self.max_delay_s, self.initial_delay_s * self.multiplier ** (failures - 1)))


def retry_after_s(error: WellkeptError) -> float:
    """The pause that an error asks for, in seconds."""
    asked_ms = error.details.get("retry_after_ms", 0)
    return max(0.0, asked_ms / 1000) if isinstance(asked_ms, int | float) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings(Section, at="plan"):
    """What is allowed, and how much."""

    name: str | None = setting(
        None, Text(), "The name of a plan, such as `teams`; without one, everything is allowed.", "WELLKEPT_PLAN"
    )


SENSITIVE_KINDS = ("secret", "card", "iban", "national_id", "email", "phone", "health")
"""What the built-in detectors recognise as sensitive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionSettings(Section, at="encryption"):
    """What is encrypted, and where the keys are. The master key itself is no setting: it comes from a file, or from the
    environment variable `WELLKEPT_MASTER_KEY`.
    """

    keyring: str | None = setting(
        None,
        Text(),
        "The keyring: a path, or the URL of a plug-in. By default the file beside the database with `.keys` behind its"
        " name, if it is there.",
        "WELLKEPT_KEYRING",
    )
    master_key_file: str | None = setting(
        None,
        Text(),
        "The file with the master key; by default `master.key` in the user's folder for data.",
        "WELLKEPT_MASTER_KEY_FILE",
    )
    encrypt: str = setting(
        "sensitive",
        Word(("sensitive", "all")),
        "Whether sensitive memories are encrypted or all. Both need a keyring.",
        "WELLKEPT_ENCRYPT",
    )
    sensitive: str = setting(
        "refuse",
        Word(("refuse", "plain")),
        "What becomes of a memory that is marked as sensitive while there is no keyring.",
    )
    recognize: tuple[str, ...] = setting(
        SENSITIVE_KINDS,
        Words(SENSITIVE_KINDS),
        "What counts as sensitive without being marked, once there is a keyring.",
    )
    detectors: str | None = setting(
        None, Text(), "The names of plug-ins that recognise more of it, separated by commas."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings(Section, at="privacy"):
    """Where the ledger of erasures is kept, so that a restored backup cannot bring back what was erased."""

    ledger: str | None = setting(
        None,
        Text(),
        "The file that the ledger is copied to; by default it stands beside a database that is a file or a folder.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings(Section, at="audit"):
    """The log of who did what to which memories. It holds ids, never contents."""

    file: str | None = setting(None, Text(), "The file of the audit log; without one, nothing is logged.")
    reads: bool = setting(False, Flag(), "Whether reads and searches are logged as well, not only changes.")
    sync: bool = setting(
        False, Flag(), "Whether each entry is forced to the disk; otherwise a power loss may take the last second's."
    )
    on_failure: str = setting(
        "refuse",
        Word(("refuse", "continue")),
        "What becomes of operations while the log cannot be written: they are refused before anything is changed, or"
        " they go on, and the log says later how many entries it lacks.",
    )
    retention_days: float | None = setting(
        None,
        Number(0.001, 100_000, none="never"),
        "Days after which entries may be dropped by `wellkept audit prune`.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, one attribute per section. ``origins`` says where those that were given come from.

    >>> from wellkept.settings import load
    >>> settings = load({"limits": {"entries": 500}}, environment={"WELLKEPT_EMBEDDER": "none"})
    >>> settings.limits.entries, settings.origin("embedder.name"), settings.origin("limits.scopes")
    (500, 'WELLKEPT_EMBEDDER', 'the default')
    """

    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    encryption: EncryptionSettings = field(default_factory=EncryptionSettings)
    identity: IdentitySettings = field(default_factory=IdentitySettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    sessions: SessionSettings = field(default_factory=SessionSettings)
    trust: TrustSettings = field(default_factory=TrustSettings)
    recall: RecallSettings = field(default_factory=RecallSettings)
    lists: ListSettings = field(default_factory=ListSettings)
    logging: LoggingSettings = field(default_factory=LoggingSettings)
    plan: PlanSettings = field(default_factory=PlanSettings)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    privacy: PrivacySettings = field(default_factory=PrivacySettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def get(self, name: str) -> Any:
        """The value of a dotted name.

        >>> Settings().get("sessions.half_life_hours.decision")
        720
        """
        value: Any = self
        *path, last = name.split(".")
        for part in path:
            stores = value.stores if isinstance(value, DatabaseSettings) else ()
            value = next((one for one in stores if one.at == f"database.{part}"), None) or getattr(value, part)
        return getattr(value, last)

    def origin(self, name: str) -> str:
        """Where a setting comes from: an argument, an environment variable, a file, or the default."""
        return self.origins.get(name, DEFAULT_ORIGIN)

    def session_config(self, base: SessionConfig) -> SessionConfig:
        """How sessions are configured: as ``base`` says, but for what was given here."""
        given = {name: self.get(name) for name in self.origins if name.startswith("sessions.")}
        if not given:
            return base
        direct = ("limit_bytes", "auto_compact", "compaction_threshold")
        hours = {type: given[key] for type in MemoryType if (key := f"sessions.half_life_hours.{type.value}") in given}
        decay = DecayPolicy(
            enabled=given.get("sessions.decay", base.decay.enabled),
            half_life_hours=base.decay.half_life_hours,
            min_decay_factor=given.get("sessions.min_decay_factor", base.decay.min_decay_factor),
            by_type_hours={**base.decay.by_type_hours, **hours},
        )
        own = {name: given[key] for name in direct if (key := f"sessions.{name}") in given}
        return replace(base, decay=decay, **own)
