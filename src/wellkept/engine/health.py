"""Whether a database works now: its store, its index, its embedder, its audit log and the handlers of its events."""

import time

from wellkept.engine import embedding
from wellkept.engine.core import Engine
from wellkept.engine.sealing import unseal
from wellkept.errors import StoreCorrupt, WellkeptError
from wellkept.ports import StoreSettings
from wellkept.text import plurals
from wellkept.types import Component, Finding, Health, Status


def health(engine: Engine) -> Health:
    """Ask every part. An embedder that is known to be down, or to work, is not asked again."""
    started = time.perf_counter()
    stored = engine.store.health()
    failures = engine.bus.failures
    components = {
        **stored.components,
        **_settings(engine, stored.status),
        "index": _index(engine),
        "embedder": _embedder(engine, stored.status),
        "handlers": Component(message=f"{failures} calls failed" if failures else "ok"),  # the application's, not ours
    }
    if engine.audit is not None:
        components["audit"] = engine.audit.health()
    status = stored.status
    if status is Status.HEALTHY and any(one.status is not Status.HEALTHY for one in components.values()):
        status = Status.DEGRADED
    return Health(status=status, latency_ms=(time.perf_counter() - started) * 1000, components=components)


def contents(engine: Engine) -> list[Finding]:
    """The finding of memories whose stored form is intact but no memory of ours, such as those of a hostile file."""
    wrong: list[str] = []
    for owner in engine.journal.owners():
        for one in engine.journal.scan({owner}):
            try:
                unseal(one)
            except StoreCorrupt:
                wrong.append(one.id)
    if not wrong:
        return []
    message = f"{plurals.memories(len(wrong))} cannot be decoded: {', '.join(wrong[:5])}"
    return [Finding(check="contents", message=message, repair="erase them by their ids")]


def _settings(engine: Engine, store: Status) -> dict[str, Component]:
    """Whether settings of the store are damaged; nothing if none is."""
    settings = {} if store is Status.UNHEALTHY else engine.journal.settings()
    damaged = settings.damaged if isinstance(settings, StoreSettings) else ()
    named = ", ".join(repr(name[:64]) for name in damaged[:5])
    message = f"damaged: {named}; run doctor"
    return {"settings": Component(status=Status.DEGRADED, message=message)} if damaged else {}


def _index(engine: Engine) -> Component:
    """An index is derived: one that fails is made anew, so it is never worse than degraded."""
    if engine.live.index is None and engine.live.chosen_index is None:
        return Component(message="not used yet")
    try:
        return engine.index.health()
    except WellkeptError as error:
        return Component(status=Status.DEGRADED, message=error.code)


def _embedder(engine: Engine, store: Status) -> Component:
    if engine.embedder is None:
        return Component(message="none: search goes by words alone")
    if store is Status.UNHEALTHY:
        return Component(message="not asked")
    try:
        answers = embedding.answers(engine)
    except WellkeptError as error:  # a wrong key or model: adding fails until it is corrected
        return Component(status=Status.UNHEALTHY, message=error.code)
    if not answers:
        message = "does not answer: memories are stored without vectors, and search goes by words alone"
        return Component(status=Status.DEGRADED, message=message)
    return Component(message="ok; some memories wait for their vectors" if engine.embeddings.behind else "ok")
