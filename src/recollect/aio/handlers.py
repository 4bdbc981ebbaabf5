"""Event handlers that are coroutines: started on their loop, and reported if they fail."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from recollect.events import Event, EventBus

E = TypeVar("E", bound=Event)


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
