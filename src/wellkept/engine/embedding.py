"""From memories to vectors: passages, batches, what was embedded before, and what to do when the embedder is down."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wellkept import instrument, logs, validation
from wellkept.engine.core import BEHIND, GIVEN, Engine
from wellkept.engine.journal import BOOKKEEPING, EngineJournal
from wellkept.engine.sealing import unseal
from wellkept.errors import EmbeddingFailed, InvalidInput, WellkeptError
from wellkept.filters import Where
from wellkept.ports import Embedder, Query, check_vector
from wellkept.settings.schema import retry_after_s
from wellkept.text import chunking, words
from wellkept.types import Embedded, Memory, Owner, Owners, Vector

if TYPE_CHECKING:
    from wellkept.recall.calibration import Calibration  # brings in numpy
    from wellkept.working import Meaning

CALIBRATION = "calibration"
"""The setting that keeps what was found out about the embedder's scale."""

_AT_ONCE = 64
_SLOW_S = 1.0  # for one text
_LATELY_S = 60.0  # an answer stands for the health of the embedder so long


class EmbedderDown(Exception):
    """The embedder gave no answer at all. Never leaves the engine: memories are then stored without a vector."""


class Made(NamedTuple):
    """A vector, and the hash of what it was made from if making it is slow. ``given``: a caller brought it along."""

    vector: Vector | None
    digest: bytes | None = None
    given: bool = False


def _bookkeeping(engine: Engine) -> EngineJournal:
    """The journal, for what is the database's: vectors that wait, the name of the embedder and its scale."""
    return EngineJournal(engine.shared, BOOKKEEPING)


def embed(engine: Engine, memories: Sequence[Memory], owners: Sequence[Owner]) -> list[Made]:
    """A vector for each memory, in one batch; none without an embedder, or while it is down.

    ``owners`` are those of the memories, in their order: embeddings are counted by owner.
    """
    embedder = engine.embedder
    if embedder is None or not memories:
        return [Made(None)] * len(memories)
    try:
        found = _embedded(engine, embedder, memories, owners)
        if engine.embeddings.behind:
            _catch_up(engine)
    except EmbedderDown:
        engine.embeddings.behind = True
        _bookkeeping(engine).set_settings({BEHIND: "yes"})
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
        _bookkeeping(engine).set_settings({BEHIND: ""})


def _make_lost(engine: Engine, embedder: Embedder) -> None:
    """Before the first search: make the vectors that the store lost."""
    engine.embeddings.lost = False
    with contextlib.suppress(WellkeptError):  # a full disk, a key that is away: doctor tells what has none
        for _ in range(0, _bookkeeping(engine).count_unembedded(embedder.name), _AT_ONCE):
            catch_up(engine, _AT_ONCE)


def is_slow(embedder: Embedder) -> bool:
    """Whether an embedder says of itself that a text takes it long, or costs something."""
    return bool(getattr(embedder, "slow", False))


def _embedded(engine: Engine, embedder: Embedder, memories: Sequence[Memory], owners: Sequence[Owner]) -> list[Made]:
    texts = [texts_of(memory) for memory in memories]
    slow = is_slow(embedder)
    digests = [_digest(embedder, some) if slow else None for _, some in texts]
    known = _bookkeeping(engine).embedded({digest for digest in digests if digest is not None}) if slow else {}
    wanted = [
        (owner, some)
        for (_, some), digest, owner in zip(texts, digests, owners, strict=True)
        if digest is None or digest not in known
    ]
    started = time.perf_counter()
    made = _rows(engine, embedder, [text for _, some in wanted for text in some])
    _count(engine, wanted, time.perf_counter() - started)
    found = []
    for (spans, some), digest in zip(texts, digests, strict=True):
        if digest is not None and digest in known:
            found.append(Made(known[digest], digest))
        else:
            found.append(Made(Vector.joined([next(made) for _ in some], spans), digest))
    return [_with_pieces(engine, memory, one) for memory, one in zip(memories, found, strict=True)]


def _count(engine: Engine, embedded: Sequence[tuple[Owner, Sequence[str]]], seconds: float) -> None:
    """Count the texts of a batch by owner; each took an equal share of the time."""
    by_owner: dict[Owner, int] = {}
    for owner, texts in embedded:
        by_owner[owner] = by_owner.get(owner, 0) + len(texts)
    each = seconds / max(1, sum(by_owner.values()))
    for owner, count in by_owner.items():
        engine.embeddings.add(owner, count, count * each)


def _with_pieces(engine: Engine, memory: Memory, made: Made) -> Made:
    """The vector together with what the lexicon knows the words by."""
    if engine.lexicon is None or made.vector is None:
        return made
    text = words.searchable(memory.content, memory.title, memory.author)
    return made._replace(vector=replace(made.vector, pieces=engine.lexicon.pieces(words.tokens(text))))


def texts_of(memory: Memory) -> tuple[tuple[tuple[int, int], ...], list[str]]:
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


def question(engine: Engine, text: str, *, required: bool = False) -> Vector | None:
    """The vector of a question; none without an embedder, or while it is down: then words must do.

    Where a vector is ``required``, an embedder that is down is an error.
    """
    embedder = engine.embedder
    if embedder is None:
        return None
    ask = getattr(embedder, "embed_query", embedder.embed)
    try:
        if engine.embeddings.lost:
            _make_lost(engine, embedder)
        return _checked(engine, embedder, ask, [text])[0]
    except EmbedderDown as error:
        if not required:
            return None
        raise EmbeddingFailed(
            f"the embedder {embedder.name!r} does not answer, and without it nothing can be ranked by similarity",
            details={
                "embedder": embedder.name,
                "retry_after_ms": round(1000 * engine.embeddings.breaker.remaining_s(engine.clock())),
            },
            hint="try again later, or use another ranking: it then goes by words",
        ) from error.__cause__


def answers(engine: Engine) -> bool:
    """Whether the embedder works: as was seen lately, or as it is found out now with a short text."""
    embedder, known, now = engine.embedder, engine.embeddings, engine.clock()
    if embedder is None or not known.breaker.admits(now):
        return False
    lately = known.answered_at is not None and abs((now - known.answered_at).total_seconds()) < _LATELY_S
    if lately and not known.breaker.suspect:
        return True
    try:
        _watched(engine, embedder, embedder.embed, ["health"])
    except (EmbedderDown, EmbeddingFailed) as error:
        _give_up(engine, embedder, error)
        return False
    except WellkeptError:  # as above
        known.breaker.worked()
        raise
    _answered(engine, embedder)
    return True


def passages(engine: Engine, texts: Sequence[str]) -> list[Vector] | None:
    """A vector for each text of something that is not a memory; none without an embedder, or while it is down."""
    embedder = engine.embedder
    if embedder is None:
        return None
    try:
        return list(_rows(engine, embedder, texts))
    except EmbedderDown:
        return None


def meaning(engine: Engine, owners: Owners) -> Meaning:
    """What working memory needs of the embedder, which may be replaced while the database is open. Handles of an agent
    share their working memory, and the grant of each may end at another time.
    """
    from wellkept.working import Meaning  # lazy: working memory takes 25 ms

    engine = engine.acting(BOOKKEEPING)
    return Meaning(
        question=partial(question, engine),
        passages=partial(passages, engine),
        scale=lambda: scale(engine, owners).of,
    )


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
    """What the embedder answers, if it is any good; asked again as the retry policy says, if it is not.

    One that does not answer is left alone for a while, so that a dead one does not cost its timeout at every call.
    """
    breaker = engine.embeddings.breaker
    if not breaker.admits(engine.clock()):
        raise EmbedderDown
    failures = 0
    while True:
        started = time.perf_counter()
        try:
            found = _watched(engine, embedder, ask, texts)
        except (EmbedderDown, EmbeddingFailed) as error:
            failures += 1
            pause_s = None if breaker.suspect else engine.settings.retry.pause_s(_reason(error), failures)
            if pause_s is None:
                _give_up(engine, embedder, error)
                raise
            engine.shared.sleep(pause_s)
            continue
        except WellkeptError:  # a refusal, such as of the key: it answers, and the next caller shall be told as well
            breaker.worked()
            raise
        seconds = time.perf_counter() - started
        _answered(engine, embedder)
        if seconds > _SLOW_S * len(texts):
            logs.embedder_slow(embedder.name, len(texts), seconds * 1000)
        return found


def _answered(engine: Engine, embedder: Embedder) -> None:
    engine.embeddings.answered_at = engine.clock()
    if engine.embeddings.breaker.worked():
        logs.embedder_back(embedder.name)


def _reason(error: EmbedderDown | EmbeddingFailed) -> WellkeptError:
    """What the retry policy goes by: a foreign exception counts as a failed embedding."""
    known = error.__cause__ if isinstance(error, EmbedderDown) else error
    return known if isinstance(known, WellkeptError) else EmbeddingFailed("the embedder does not answer")


def _give_up(engine: Engine, embedder: Embedder, error: EmbedderDown | EmbeddingFailed) -> None:
    """Leave an embedder alone that does not answer; one that answers badly may be asked again."""
    if not isinstance(error, EmbedderDown):
        engine.embeddings.breaker.worked()
    elif engine.embeddings.breaker.failed(engine.clock(), retry_after_s(_reason(error))):
        logs.embedder_down(embedder.name, error.__cause__)


def _watched(
    engine: Engine, embedder: Embedder, ask: Callable[[Sequence[str]], Iterable[Any]], texts: Sequence[str]
) -> list[Vector]:
    """One call, for watchers."""
    if not engine.bus.watchers:
        return _call(embedder, ask, texts)
    with instrument.timing(engine.bus, "Embedder", "embed") as noted:
        noted.count = len(texts)
        return _call(embedder, ask, texts)


def _call(embedder: Embedder, ask: Callable[[Sequence[str]], Iterable[Any]], texts: Sequence[str]) -> list[Vector]:
    try:
        answer = list(ask(texts))
    except WellkeptError as error:
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


def scale(engine: Engine, owners: Owners) -> Calibration:
    """What the embedder's cosines mean: as it says itself, as was found out before, or as stored vectors tell now.

    No text is embedded for it: a search must not wait for that.
    """
    from wellkept.recall import calibration  # lazy: only searching asks
    from wellkept.recall.calibration import Calibration  # lazy: as above

    embedder = engine.embedder
    declared = getattr(embedder, "calibration", None)
    if embedder is None or isinstance(declared, Calibration):
        return declared or calibration.PLAIN
    if engine.embeddings.scale is None:
        engine.embeddings.unscaled += 1
        if engine.embeddings.unscaled & (engine.embeddings.unscaled - 1):
            return calibration.PLAIN  # while too little is stored, it is looked for ever more rarely
        kept = engine.journal.settings().get(CALIBRATION, "").split(" ", 2)
        if len(kept) < 3 or kept[2] != embedder.name:  # none, or that of an embedder used before
            found = calibration.estimate(_sample(engine, embedder, owners, calibration.SAMPLE))
            if found is None:
                return calibration.PLAIN
            kept = [f"{found.low:.6f}", f"{found.high:.6f}", embedder.name]
            _bookkeeping(engine).set_settings({CALIBRATION: " ".join(kept)})
        engine.embeddings.scale = Calibration(low=float(kept[0]), high=float(kept[1]))
    return engine.embeddings.scale


def _sample(engine: Engine, embedder: Embedder, owners: Owners, count: int) -> list[Sequence[float]]:
    """The vectors of the newest memories of some owners; of a long one, that of its first passage."""
    newest = engine.journal.select(Query(owners=owners, where=Where(now=engine.clock()), limit=count))
    stored = engine.journal.get(owners, [one.id for one in newest], payload=False, vectors=True)
    return [one.vector.values for one in stored if one.vector is not None and one.vector.embedder == embedder.name]


def catch_up(engine: Engine, limit: int) -> int:
    """Embed memories that were stored without a vector, at most so many; how many it were."""
    embedder = engine.embedder
    if embedder is None:
        return 0
    missing = _bookkeeping(engine).unembedded(embedder.name, limit)
    made = _embedded(engine, embedder, [unseal(stored) for stored in missing], [stored.owner for stored in missing])
    _bookkeeping(engine).embed(
        [
            Embedded(stored.owner, stored.id, stored.version, one.vector, one.digest)
            for stored, one in zip(missing, made, strict=True)
            if one.vector is not None
        ]
    )
    return len(missing)
