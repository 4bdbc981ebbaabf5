"""The caller's coroutines: embedders, rerankers and event handlers, and how the synchronous engine calls them."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar, cast

from wellkept.aio.workers import Workers
from wellkept.events import Event, EventBus
from wellkept.ports import Embedder, Lexicon, Reranker

E = TypeVar("E", bound=Event)


class AsyncEmbedder(Protocol):
    """An :class:`~wellkept.ports.Embedder` whose ``embed`` is ``async``; its ``embed_query`` may be, too.

    >>> import asyncio, wellkept.aio
    >>> from wellkept.embedders.hashing import HashingEmbedder
    >>> class Remote(HashingEmbedder):
    ...     async def embed(self, texts):
    ...         await asyncio.sleep(0)
    ...         return super().embed(texts)
    >>> async def main():
    ...     async with wellkept.aio.open("ram:", embedder=Remote(64)) as memories:
    ...         await memories.view(user="ada").add("Likes tea")
    ...         return await memories.settings()
    >>> asyncio.run(main())["embedder"]
    'hashing-64'
    """

    @property
    def name(self) -> str:
        """Names the model and whatever else changes its vectors."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""

    async def embed(self, texts: Sequence[str]) -> Iterable[Any]:
        """One row of float32 per text, in order."""


class AsyncReranker(Protocol):
    """A :class:`~wellkept.ports.Reranker` whose ``score`` is ``async``."""

    @property
    def name(self) -> str:
        """Names the model."""

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers, as log-odds."""


class _Awaited:
    """A part as the engine sees it: coroutine functions are waited for, everything else is as it is."""

    def __init__(self, part: object, workers: Workers) -> None:
        self._part = part
        self._workers = workers

    @property
    def name(self) -> str:
        return cast("str", self._asked("name"))

    def _asked(self, attribute: str) -> Any:
        found = getattr(self._part, attribute)
        return self._workers.synchronous(found) if callable(found) else found

    def __getattr__(self, attribute: str) -> Any:
        """What a part may have besides, such as ``batch`` or ``embed_query``; what it has not is missing here too."""
        return self._asked(attribute)


class _AwaitedEmbedder(_Awaited):
    @property
    def dimension(self) -> int:
        return cast("int", self._asked("dimension"))

    def embed(self, texts: Sequence[str]) -> Iterable[Any]:
        return cast("Iterable[Any]", self._asked("embed")(texts))

    @property
    def lexicon(self) -> Any:
        return self._part if isinstance(self._part, Lexicon) else self._asked("lexicon")


class _AwaitedReranker(_Awaited):
    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return cast("Sequence[float]", self._asked("score")(query, texts))


def embedder(given: Embedder | AsyncEmbedder | str | None, workers: Workers) -> Embedder | str | None:
    """An embedder of either kind as the engine can use it; what is none stays as it is, for the engine to refuse."""
    if _is_async(given, "embed", "embed_query") and isinstance(given, Embedder):
        return _AwaitedEmbedder(given, workers)
    return given  # type: ignore[return-value]  # not async, so it is the synchronous kind


def reranker(given: Reranker | AsyncReranker | None, workers: Workers) -> Reranker | None:
    """The same for a reranker."""
    if _is_async(given, "score") and isinstance(given, Reranker):
        return _AwaitedReranker(given, workers)
    return given  # type: ignore[return-value]  # not async, so it is the synchronous kind


def _is_async(part: object, *methods: str) -> bool:
    return any(inspect.iscoroutinefunction(getattr(part, name, None)) for name in methods)


class Handlers:
    """The coroutines of handlers that are running. The write that they are told of does not wait for them."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._running: set[asyncio.Task[None]] = set()

    def started(
        self, handler: Callable[[E], Coroutine[Any, Any, None]], loop: asyncio.AbstractEventLoop
    ) -> Callable[[E], None]:
        """The handler as a bus can call it, from any thread."""

        def start(event: E) -> None:
            task = loop.create_task(self._call(handler, event))
            self._running.add(task)  # a loop itself does not keep its tasks
            task.add_done_callback(self._running.discard)

        def tell(event: E) -> None:
            loop.call_soon_threadsafe(start, event)

        return tell

    async def _call(self, handler: Callable[[E], Coroutine[Any, Any, None]], event: E) -> None:
        try:
            await handler(event)
        except Exception as error:  # noqa: BLE001  # reason: as the bus does, a listener fails nothing but itself
            self._bus.failed(event, error)

    async def finished(self) -> None:
        """Wait for the handlers that run on this loop, save one that waits for this itself."""
        loop, own = asyncio.get_running_loop(), asyncio.current_task()
        running = [task for task in tuple(self._running) if task.get_loop() is loop and task is not own]
        if running:
            await asyncio.wait(running)
