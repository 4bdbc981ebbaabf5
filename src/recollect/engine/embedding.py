"""From memories to vectors: passages, batches, what was embedded before, and what to do when the embedder is down."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect import instrument, logs, validation
from recollect.engine.core import BEHIND, GIVEN, Engine
from recollect.engine.sealing import unseal
from recollect.errors import EmbeddingFailed, InvalidInput, RecollectError
from recollect.ports import Embedder, check_vector
from recollect.text import chunking, words
from recollect.types import Embedded, Memory, NewMemory, Vector

if TYPE_CHECKING:
    from recollect.recall.calibration import Calibration  # brings in numpy

ATTEMPTS = 3
"""How often an embedder is asked when its answers are no good."""

CALIBRATION = "calibration"
"""The setting that keeps what was found out about the embedder's scale."""

_FIRST_PAUSE_S = 0.005
_AT_ONCE = 64
_SLOW_S = 1.0  # for one text


class EmbedderDown(Exception):
    """The embedder gave no answer at all. Never leaves the engine: memories are then stored without a vector."""


class Made(NamedTuple):
    """A vector, and the hash of what it was made from if making it is slow. ``given``: a caller brought it along."""

    vector: Vector | None
    digest: bytes | None = None
    given: bool = False


def embed(engine: Engine, memories: Sequence[Memory | NewMemory]) -> list[Made]:
    """A vector for each memory, in one batch; none without an embedder, or while it is down."""
    embedder = engine.embedder
    if embedder is None or not memories:
        return [Made(None)] * len(memories)
    try:
        found = _embedded(engine, embedder, memories)
        if engine.embeddings.behind:
            _catch_up(engine)
    except EmbedderDown:
        engine.embeddings.behind = True
        engine.journal.set_settings({BEHIND: "yes"})
        return [Made(None)] * len(memories)
    return found


def given(engine: Engine, values: Sequence[Vector | Iterable[float]]) -> list[Vector]:
    """Vectors that a caller brings along: such as those of the embedder can be compared with."""
    if not values:
        return []
    name = engine.vector_name()
    brought = [validation.vector(value, name) for value in values]
    if engine.embedder is not None:
        for vector in brought:
            check_vector(vector, engine.embedder.name, engine.embedder.dimension)
    return brought


def _catch_up(engine: Engine) -> None:
    """The embedder is back: embed some of what waits with every write, until nothing waits."""
    try:
        waited = catch_up(engine, _AT_ONCE)
    except EmbeddingFailed:
        # One of them cannot be embedded: no reason to refuse what is written now. Doctor and reembed tell of it, and
        # whoever opens the database next tries again.
        engine.embeddings.behind = False
        return
    if waited < _AT_ONCE:
        engine.embeddings.behind = False
        engine.journal.set_settings({BEHIND: ""})


def _embedded(engine: Engine, embedder: Embedder, memories: Sequence[Memory | NewMemory]) -> list[Made]:
    texts = [texts_of(memory) for memory in memories]
    slow = bool(getattr(embedder, "slow", False))
    digests = [_digest(embedder, some) if slow else None for _, some in texts]
    known = engine.journal.embedded({digest for digest in digests if digest is not None}) if slow else {}
    wanted = [some for (_, some), digest in zip(texts, digests, strict=True) if digest is None or digest not in known]
    made = iter(_rows(engine, embedder, [text for some in wanted for text in some]))
    found = []
    for (spans, some), digest in zip(texts, digests, strict=True):
        if digest is not None and digest in known:
            found.append(Made(known[digest], digest))
        else:
            found.append(Made(Vector.joined([next(made) for _ in some], spans), digest))
    return [_with_pieces(engine, memory, one) for memory, one in zip(memories, found, strict=True)]


def _with_pieces(engine: Engine, memory: Memory | NewMemory, made: Made) -> Made:
    """The vector together with what the lexicon knows the words by."""
    if engine.lexicon is None or made.vector is None:
        return made
    text = words.searchable(memory.content, memory.title, memory.author)
    return made._replace(vector=replace(made.vector, pieces=engine.lexicon.pieces(words.words(text))))


def texts_of(memory: Memory | NewMemory) -> tuple[tuple[tuple[int, int], ...], list[str]]:
    """Where the passages of a memory stand, and what is embedded of each: who said it belongs to what was said."""
    spans = chunking.split(memory.content)
    said = f"{memory.author}: " if memory.author else ""
    titled = f"{memory.title}\n" if memory.title else ""
    return spans, [f"{said}{titled}{memory.content[start:end]}" for start, end in spans]


def _digest(embedder: Embedder, texts: Iterable[str]) -> bytes:
    mixed = hashlib.blake2b(embedder.name.encode(), digest_size=16)
    for text in texts:
        mixed.update(b"\0" + text.encode())
    return mixed.digest()


def question(engine: Engine, text: str) -> Vector | None:
    """The vector of a question; none without an embedder, or while it is down: then words must do."""
    embedder = engine.embedder
    if embedder is None:
        return None
    ask = getattr(embedder, "embed_query", embedder.embed)
    try:
        return _checked(engine, embedder, ask, [text])[0]
    except EmbedderDown:
        return None


def passages(engine: Engine, texts: Sequence[str]) -> list[Vector] | None:
    """A vector for each text of something that is not a memory; none without an embedder, or while it is down."""
    embedder = engine.embedder
    if embedder is None:
        return None
    try:
        return list(_rows(engine, embedder, texts))
    except EmbedderDown:
        return None


def _rows(engine: Engine, embedder: Embedder, texts: Sequence[str]) -> Iterator[Vector]:
    ask = getattr(embedder, "embed_soon", embedder.embed)
    size = getattr(embedder, "batch", None) or max(1, len(texts))
    found: list[Vector] = []
    for start in range(0, len(texts), size):
        found += _checked(engine, embedder, ask, texts[start : start + size])
    return iter(found)


def _checked(
    engine: Engine, embedder: Embedder, ask: Callable[[Sequence[str]], Iterable[Any]], texts: Sequence[str]
) -> list[Vector]:
    """What the embedder answers, if it is any good; asked again a few times if it is not."""
    for attempt in range(1, ATTEMPTS + 1):
        started = time.perf_counter()
        try:
            found = _watched(engine, embedder, ask, texts)
        except EmbeddingFailed:
            if attempt == ATTEMPTS:
                raise
            engine.sleep(_FIRST_PAUSE_S * 2**attempt)
            continue
        seconds = time.perf_counter() - started
        engine.embeddings.add(len(found), seconds)
        if seconds > _SLOW_S * len(texts):
            logs.embedder_slow(embedder.name, len(texts), seconds * 1000)
        return found
    raise AssertionError("unreachable")


def _watched(
    engine: Engine, embedder: Embedder, ask: Callable[[Sequence[str]], Iterable[Any]], texts: Sequence[str]
) -> list[Vector]:
    """One call, for watchers; the log hears when the embedder stops answering, and when it answers again."""
    try:
        if not engine.bus.watchers:
            found = _call(embedder, ask, texts)
        else:
            with instrument.timing(engine.bus, "Embedder", "embed") as noted:
                noted.count = len(texts)
                found = _call(embedder, ask, texts)
    except EmbedderDown as error:
        if not engine.embeddings.down:
            engine.embeddings.down = True
            logs.embedder_down(embedder.name, error.__cause__)
        raise
    if engine.embeddings.down:
        engine.embeddings.down = False
        logs.embedder_back(embedder.name)
    return found


def _call(embedder: Embedder, ask: Callable[[Sequence[str]], Iterable[Any]], texts: Sequence[str]) -> list[Vector]:
    try:
        answer = list(ask(texts))
    except RecollectError as error:
        if not error.retryable:  # a wrong key or model: waiting does not help, and nobody would notice
            raise
        raise EmbedderDown from error
    except TypeError as error:
        raise _failed(embedder, "returned something that is no list of vectors") from error
    except Exception as error:  # reason: an embedder is foreign code and may raise anything
        raise EmbedderDown from error
    try:
        made = [validation.vector(row, embedder.name) for row in answer]
    except InvalidInput as error:
        raise _failed(embedder, f"returned a bad vector: {error.message}") from error
    if len(made) != len(texts):
        raise _failed(embedder, f"returned {len(made)} vectors for {len(texts)} texts")
    if any(vector.dimension != embedder.dimension for vector in made):
        raise _failed(embedder, f"returned vectors that have not {embedder.dimension} dimensions")
    return made


def _failed(embedder: Embedder | None, what: str) -> EmbeddingFailed:
    name = embedder.name if embedder else GIVEN
    return EmbeddingFailed(
        f"the embedder {name!r} {what}",
        details={"embedder": name},
        hint="nothing was stored; check the embedder and try again",
    )


def scale(engine: Engine) -> Calibration:
    """What the embedder's cosines mean: as it says itself, as was found out before, or as is found out now."""
    from recollect.recall import calibration  # lazy: only searching asks
    from recollect.recall.calibration import Calibration  # lazy: as above

    embedder = engine.embedder
    declared = getattr(embedder, "calibration", None)
    if embedder is None or isinstance(declared, Calibration):
        return declared or calibration.PLAIN
    if engine.embeddings.scale is None:
        engine.embeddings.unscaled += 1
        if engine.embeddings.unscaled & (engine.embeddings.unscaled - 1):
            return calibration.PLAIN  # it takes 40 texts: after a failure it is tried ever more rarely
        kept = engine.journal.settings().get(CALIBRATION, "").split(" ", 2)
        if len(kept) < 3 or kept[2] != embedder.name:  # none, or that of an embedder used before
            try:
                found = calibration.measure(
                    lambda texts: [one.values for one in _call(embedder, embedder.embed, texts)]
                )
            except (EmbedderDown, EmbeddingFailed):
                return calibration.PLAIN
            kept = [f"{found.low:.6f}", f"{found.high:.6f}", embedder.name]
            engine.journal.set_settings({CALIBRATION: " ".join(kept)})
        engine.embeddings.scale = Calibration(low=float(kept[0]), high=float(kept[1]))
    return engine.embeddings.scale


def catch_up(engine: Engine, limit: int) -> int:
    """Embed memories that were stored without a vector, at most so many; how many it were."""
    embedder = engine.embedder
    if embedder is None:
        return 0
    missing = engine.journal.unembedded(embedder.name, limit)
    made = _embedded(engine, embedder, [unseal(stored) for stored in missing])
    engine.journal.embed(
        [
            Embedded(stored.owner, stored.id, stored.version, one.vector, one.digest)
            for stored, one in zip(missing, made, strict=True)
            if one.vector is not None
        ]
    )
    return len(missing)
