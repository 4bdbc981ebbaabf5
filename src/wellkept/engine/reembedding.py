"""Giving memories the vectors they lack: of an embedder that was down, or of another one that is to take over."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace

from wellkept import plugins
from wellkept.engine import embedding
from wellkept.engine.circuit_breaker import CircuitBreaker
from wellkept.engine.core import BEHIND, Embeddings, Engine
from wellkept.engine.embedding import EmbedderDown
from wellkept.errors import ConfigurationError, EmbeddingFailed
from wellkept.ports import Embedder
from wellkept.text import plurals
from wellkept.types import Finding

BATCH = 256
_PATIENCE = 10  # rounds in which there was nothing to embed, and yet something was missing

REEMBED = "run memories.reembed()"

Progress = Callable[[int, int], None]
"""Told how many memories are done, of how many."""


def reembed(engine: Engine, embedder: Embedder | None, progress: Progress | None) -> int:
    """Embed what has no vector of the embedder, and go over to it; how many it were."""
    chosen = embedder or engine.embedder
    if chosen is None:
        raise ConfigurationError(
            "there is no embedder to embed with",
            details={"field": "embedder"},
            hint="pass one, such as memories.reembed('static')",
        )
    renewed = engine if chosen is engine.embedder else _with(engine, chosen)
    renewed.embeddings.breaker = CircuitBreaker()  # who asks for it wants the embedder asked now
    missing = engine.journal.count_unembedded(chosen.name)
    done = idle = 0
    while True:
        filled = _fill(renewed, chosen, done, missing, progress)
        done += filled
        if named := plugins.lexicon_to_keep(renewed.lexicon, chosen, engine.journal.settings()):
            engine.journal.set_settings(named)
        # Writers go on meanwhile: what came since lacks a vector, and gets it in the next round.
        if engine.journal.adopt(chosen.name, chosen.dimension):
            break
        idle = 0 if filled else idle + 1
        if idle == _PATIENCE:
            raise EmbeddingFailed(
                f"some memories cannot get a vector of {chosen.name!r}",
                details={"embedder": chosen.name},
                hint="run doctor with repair=True, then this again",
            )
    engine.journal.set_settings({BEHIND: ""})
    renewed.embeddings.behind = False
    live = renewed.live
    engine.live.embedder, engine.live.lexicon, engine.live.embeddings = live.embedder, live.lexicon, live.embeddings
    return done


def _with(engine: Engine, embedder: Embedder) -> Engine:
    renewed = copy(engine)
    renewed.live = replace(
        engine.live, embedder=embedder, embeddings=Embeddings(), lexicon=plugins.lexicon_of(embedder)
    )
    return renewed


def _fill(engine: Engine, embedder: Embedder, done: int, missing: int, progress: Progress | None) -> int:
    filled = 0
    while batch := _batch(engine, embedder):
        filled += batch
        if progress is not None:
            progress(done + filled, max(missing, done + filled))
    return filled


def _batch(engine: Engine, embedder: Embedder) -> int:
    try:
        return embedding.catch_up(engine, BATCH)
    except EmbedderDown as error:
        raise EmbeddingFailed(
            f"the embedder {embedder.name!r} does not answer",
            details={"embedder": embedder.name},
            hint="what was embedded stays; run it again when the embedder is back",
        ) from error.__cause__


def findings(engine: Engine, *, repair: bool) -> list[Finding]:
    """What is wrong with the vectors of a database: some are missing, or another process chose another embedder."""
    embedder = engine.embedder
    if embedder is None:
        return []
    stored = engine.journal.settings().get("embedder")
    if stored not in (None, embedder.name):
        message = f"the store holds vectors of {stored!r}, not of {embedder.name!r}"
        return [Finding(check="embedder", message=message, repair=f"open it with the embedder {stored!r}")]
    missing = engine.journal.count_unembedded(embedder.name)
    if not missing or (engine.embeddings.lost and not repair):  # the next search makes what was lost
        return []
    repaired = repair and bool(reembed(engine, None, None))
    message = plurals.counted(missing, "memory has no vector and is", "memories have no vector and are")
    message += " found by words alone"
    return [Finding(check="embedder", message=message, repair=REEMBED, repaired=repaired)]
