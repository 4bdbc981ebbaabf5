"""One agent's handle, awaited where it is more than the memory of this process."""

from types import TracebackType
from typing import Self

from wellkept.aio.facade import Facade, Opened, at_once, hop
from wellkept.aio.views import View
from wellkept.memories import agent as sync
from wellkept.types import Identity
from wellkept.window import (
    AsyncSummariser,
    Compaction,
    ContextItem,
    Strategy,
    StrategyName,
    Summariser,
)
from wellkept.window import context as window
from wellkept.working import WorkingMemory


class ContextWindow(Facade[window.ContextWindow]):
    """What goes into the next call of a language model. Composing and compacting are awaited: they search, and ask
    summarisers. Everything else is done at once.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:", embedder=None) as memories:
    ...         context = memories.agent("debugger", user="ada").context
    ...         context.add("user", "Make the theme as I like it")
    ...         return (await context.compose(budget_tokens=500)).text
    >>> "as I like it" in asyncio.run(main())
    True
    """

    add = at_once(window.ContextWindow.add)
    pin = at_once(window.ContextWindow.pin)
    unpin = at_once(window.ContextWindow.unpin)
    remove = at_once(window.ContextWindow.remove)
    clear = at_once(window.ContextWindow.clear)
    snapshot = at_once(window.ContextWindow.snapshot)
    restore = at_once(window.ContextWindow.restore)
    acompact = at_once(window.ContextWindow.acompact)
    compose = hop(window.ContextWindow.compose)

    async def compact(
        self,
        target_tokens: int | None = None,
        *,
        strategy: Strategy | StrategyName = Strategy.OLDEST,
        summariser: Summariser | AsyncSummariser | None = None,
    ) -> Compaction:
        """Make room, down to a number of tokens; without one, down to half of the maximum.

        A summariser that is ``async`` is awaited, any other one runs in a thread. What is added while it works is kept.
        If anything else happens meanwhile, nothing is changed.
        """
        called: Summariser | None = None if summariser is None else self._opened.workers.synchronous(summariser)
        return await self._opened.workers.run(self._sync.compact, target_tokens, strategy=strategy, summariser=called)

    @property
    def max_tokens(self) -> int:
        """What the items may have together."""
        return self._sync.max_tokens

    @property
    def tokens_used(self) -> int:
        """What the items have together."""
        return self._sync.tokens_used

    @property
    def tokens_free(self) -> int:
        """What is left."""
        return self._sync.tokens_free

    @property
    def items(self) -> tuple[ContextItem, ...]:
        """The items in the order in which they were added."""
        return self._sync.items

    def __len__(self) -> int:
        return len(self._sync)


class AgentMemory(Facade[sync.AgentMemory]):
    """All that an agent needs during a run; ``Memories.agent`` makes it.

    ``working`` is the very object of the synchronous handle: it lives in this process, and nothing is awaited.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:") as memories:
    ...         me = memories.agent("debugger", user="ada")
    ...         await me.long_term.add("The user prefers dark mode")
    ...         me.working.set("step", 3)
    ...         prompt = await me.context.compose("What theme does the user prefer?", budget_tokens=500)
    ...         return "dark mode" in prompt.text, me.working.get("step")
    >>> asyncio.run(main())
    (True, 3)
    """

    stats = hop(sync.AgentMemory.stats)
    clear = hop(sync.AgentMemory.clear)
    snapshot = hop(sync.AgentMemory.snapshot)
    restore = hop(sync.AgentMemory.restore)
    close = hop(sync.AgentMemory.close)

    def __init__(self, agent: sync.AgentMemory, opened: Opened) -> None:
        super().__init__(agent, opened)
        self.agent_id: str = agent.agent_id
        self.user_id: str = agent.user_id
        self.identity: Identity = agent.identity
        self.long_term = View(agent.long_term, opened)
        self.context = ContextWindow(agent.context, opened)

    @property
    def working(self) -> WorkingMemory:
        """State that ends with the process. All handles of this agent and user share it."""
        return self._sync.working

    async def __aenter__(self) -> Self:
        self._sync.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
