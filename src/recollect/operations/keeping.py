"""Verbs for whoever looks after a database: health, doctor, rebuild, reembed, config."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.errors import EmbeddingFailed, RateLimited
from recollect.operations.verb import Caller, Example, Needs, Verb, option
from recollect.types import Diagnosis, Health, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """An input without fields."""


def _health(caller: Caller, _: Nothing) -> Health:
    return caller.memories.health()


def _works(answer: Health) -> bool:
    return answer.status is not Status.UNHEALTHY


HEALTH = Verb(
    name="health",
    input=Nothing,
    output=Health,
    run=_health,
    needs=Needs.READ,
    agrees=_works,
    examples=(Example(line="recollect health", says="quick; doctor looks at everything"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """Whether to mend, and whether to take over what people edited."""

    repair: bool = option("mend what can be mended", False)
    accept: bool = option("take over lines that were edited by hand, as new versions", False)


def _doctor(caller: Caller, given: Doctor) -> Diagnosis:
    return caller.memories.doctor(repair=given.repair, accept=given.accept)


def _is_healthy(answer: Diagnosis) -> bool:
    return answer.healthy


DOCTOR = Verb(
    name="doctor",
    input=Doctor,
    output=Diagnosis,
    run=_doctor,
    needs=Needs.ADMIN,
    errors=(EmbeddingFailed,),
    agrees=_is_healthy,
    examples=(
        Example(line="recollect doctor", says="ends with 1 if something is wrong"),
        Example(line="recollect doctor --repair", says="mends what can be mended"),
        Example(line="recollect doctor --accept", says="what was edited in a folder of JSON Lines is what holds"),
    ),
)


def _rebuild(caller: Caller, _: Nothing) -> None:
    caller.memories.rebuild()


REBUILD: Verb[Nothing, None] = Verb(
    name="rebuild",
    input=Nothing,
    output=type(None),
    run=_rebuild,
    needs=Needs.ADMIN,
    interrupted="nothing was changed; run it again",
    description="Heads, tags, keys and the index come from the journal. Nothing that was written is lost.",
    examples=(Example(line="recollect rebuild", says="if doctor asks for it"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedded:
    """How many memories got a vector, and of which embedder."""

    embedded: int
    embedder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembed:
    """Which embedder to go over to."""

    embedder: str | None = option("go over to this embedder, such as static or bge; without it, fill what is missing")


def _reembed(caller: Caller, given: Reembed) -> Reembedded:
    done = caller.memories.reembed(given.embedder, progress=caller.progress)
    return Reembedded(embedded=done, embedder=caller.memories.settings().get("embedder", ""))


REEMBED = Verb(
    name="reembed",
    input=Reembed,
    output=Reembedded,
    run=_reembed,
    needs=Needs.ADMIN,
    errors=(EmbeddingFailed, RateLimited),
    interrupted="what was embedded stays; run it again to go on",
    description="The database can be read, searched and written meanwhile. It can be stopped and taken up again.",
    examples=(
        Example(line="recollect reembed", says="fill in what is missing"),
        Example(line="recollect reembed --embedder hashing-64", says="go over to another embedder"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the database keeps about itself."""

    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What to change."""

    durability: str | None = option("full or relaxed, for whoever opens it from now on", needs=Needs.ADMIN)


def _config(caller: Caller, given: Config) -> Settings:
    if given.durability is not None:
        caller.memories.configure(durability=given.durability)  # type: ignore[arg-type]  # checked there
    return Settings(settings=caller.memories.settings())


CONFIG = Verb(
    name="config",
    input=Config,
    output=Settings,
    run=_config,
    needs=Needs.READ,
    examples=(
        Example(line="recollect config", says="embedder, dimension, durability"),
        Example(line="recollect config --durability relaxed", says="faster; a power loss may take the last moments"),
    ),
)
