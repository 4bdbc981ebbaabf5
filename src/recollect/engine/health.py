"""Whether a database works now: its store, its index, its embedder and the handlers of its events."""

import time

from recollect.engine import embedding
from recollect.engine.core import Engine
from recollect.errors import RecollectError
from recollect.types import Component, Health, Status


def health(engine: Engine) -> Health:
    """Ask every part. An embedder that is known to be down, or to work, is not asked again."""
    started = time.perf_counter()
    stored = engine.store.health()
    failures = engine.bus.failures
    components = {
        **stored.components,
        "index": _index(engine),
        "embedder": _embedder(engine, stored.status),
        "handlers": Component(message=f"{failures} calls failed" if failures else "ok"),  # the application's, not ours
    }
    status = stored.status
    if status is Status.HEALTHY and any(one.status is not Status.HEALTHY for one in components.values()):
        status = Status.DEGRADED
    return Health(status=status, latency_ms=(time.perf_counter() - started) * 1000, components=components)


def _index(engine: Engine) -> Component:
    """An index is derived: one that fails is made anew, so it is never worse than degraded."""
    if engine.own_index is None:
        return Component(message="not used yet")
    try:
        engine.own_index.corpus(frozenset(), ())
    except RecollectError as error:
        return Component(status=Status.DEGRADED, message=error.code)
    return Component()


def _embedder(engine: Engine, store: Status) -> Component:
    if engine.embedder is None:
        return Component(message="none: search goes by words alone")
    if store is Status.UNHEALTHY:
        return Component(message="not asked")
    try:
        answers = embedding.answers(engine)
    except RecollectError as error:  # a wrong key or model: adding fails until it is corrected
        return Component(status=Status.UNHEALTHY, message=error.code)
    if not answers:
        message = "does not answer: memories are stored without vectors, and search goes by words alone"
        return Component(status=Status.DEGRADED, message=message)
    return Component(message="ok; some memories wait for their vectors" if engine.embeddings.behind else "ok")
