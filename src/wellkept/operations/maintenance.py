"""Verbs that keep a database in order: health, doctor, rebuild, scrub, reembed, config."""

from collections.abc import Mapping
from dataclasses import dataclass

from wellkept import fields
from wellkept.errors import EmbeddingFailed, RateLimited
from wellkept.operations.conditions import TEXT
from wellkept.operations.verb import Caller, Example, Verb, option, result
from wellkept.types import Diagnosis, Health, Scrubbed, Status
from wellkept.types.bounds import Bounds


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
    method="Memories.health",
    agrees=_works,
    examples=(Example(line="wellkept health", says="quick; doctor looks at everything"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """Whether to repair, and whether to accept what people edited."""

    repair: bool = option("Repair what can be repaired.", False)
    accept: bool = option("Accept lines that were edited by hand, as new versions.", False)


def _doctor(caller: Caller, given: Doctor) -> Diagnosis:
    return caller.memories.doctor(repair=given.repair, accept=given.accept)


def _is_healthy(answer: Diagnosis) -> bool:
    return answer.healthy


DOCTOR = Verb(
    name="doctor",
    input=Doctor,
    output=Diagnosis,
    run=_doctor,
    method="Memories.doctor",
    errors=(EmbeddingFailed,),
    agrees=_is_healthy,
    examples=(
        Example(line="wellkept doctor", says="ends with 1 if something is wrong"),
        Example(line="wellkept doctor --repair", says="repairs what can be repaired"),
        Example(line="wellkept doctor --accept", says="accepts what was edited in a folder of JSON Lines"),
    ),
)


def _rebuild(caller: Caller, _: Nothing) -> None:
    caller.memories.rebuild()


REBUILD: Verb[Nothing, None] = Verb(
    name="rebuild",
    input=Nothing,
    output=type(None),
    run=_rebuild,
    method="Memories.rebuild",
    interrupted="nothing was changed; run it again",
    description="Heads, tags, keys and the index come from the journal. Nothing that was written is lost.",
    examples=(Example(line="wellkept rebuild", says="if doctor asks for it"),),
)


def _scrub(caller: Caller, _: Nothing) -> Scrubbed:
    return caller.memories.scrub()


SCRUB = Verb(
    name="scrub",
    input=Nothing,
    output=Scrubbed,
    run=_scrub,
    method="Memories.scrub",
    interrupted="what was erased stays erased; run it again",
    description="A PostgreSQL server keeps the bytes in its tables until they are written anew. That is done here, and"
    " nobody can read or write meanwhile. Files and folders keep none.",
    examples=(Example(line="wellkept scrub", says="after erasures on a server; tells where bytes remain"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedded:
    """How many memories were embedded, and by which embedder."""

    embedded: int = result("How many memories were embedded.", bounds=fields.COUNT)
    embedder: str = result("The name of the embedder.", bounds=fields.LINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembed:
    """Which embedder to change to."""

    embedder: str | None = option(
        "Change to this embedder: bge, static, hashing-64 (or another number of dimensions), model2vec:FOLDER,"
        " or one that a package registers; without it, embed only what has no vector.",
        bounds=fields.ID,
    )


def _reembed(caller: Caller, given: Reembed) -> Reembedded:
    done = caller.memories.reembed(given.embedder, progress=caller.progress)
    return Reembedded(embedded=done, embedder=caller.memories.settings().get("embedder", ""))


REEMBED = Verb(
    name="reembed",
    input=Reembed,
    output=Reembedded,
    run=_reembed,
    method="Memories.reembed",
    errors=(EmbeddingFailed, RateLimited),
    interrupted="what was embedded stays; run it again to continue",
    description="The database can be read, searched and written meanwhile. It can be stopped and continued.",
    examples=(
        Example(line="wellkept reembed", says="embed what has no vector"),
        Example(line="wellkept reembed --embedder hashing-64", says="change to another embedder"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the database stores about itself."""

    settings: Mapping[str, str] = result(
        "The settings that the database stores, by name.", {}, bounds=Bounds(max_length=1_000, each=TEXT)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What to change."""

    durability: str | None = option(
        "How durable writes are from the next opening on: full or relaxed.",
        bounds=Bounds(words=("full", "relaxed")),
        method="Memories.configure",
    )


def _config(caller: Caller, given: Config) -> Settings:
    if given.durability is not None:
        caller.memories.configure(durability=given.durability)  # type: ignore[arg-type]  # checked there
    return Settings(settings=caller.memories.settings())


CONFIG = Verb(
    name="config",
    input=Config,
    output=Settings,
    run=_config,
    method="Memories.settings",
    examples=(
        Example(line="wellkept config", says="embedder, dimension, durability"),
        Example(line="wellkept config --durability relaxed", says="faster; a power loss may take the last moments"),
    ),
)
