"""The context window: the items of the next LLM call, under a token limit."""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellkept import validation
from wellkept.errors import Conflict, InvalidInput, LimitReached, NotFound
from wellkept.instrument import anamed, named
from wellkept.snapshot_cipher import NO_CIPHER, SnapshotCipher
from wellkept.text.recall_markers import own_words
from wellkept.text.tokens import Meter, TokenCounter, by_characters
from wellkept.window import compaction, offload, prompt_assembly, snapshot
from wellkept.window.compaction import AsyncSummariser, Compaction, Strategy, StrategyName, Summariser
from wellkept.window.composition import Composition
from wellkept.window.items import (
    DEFAULT_PRIORITY,
    TOKENS_MAX,
    ContextItem,
    RecalledMemory,
    Role,
    RoleName,
    checked_item,
)
from wellkept.window.offload import Keep, Kept
from wellkept.window.snapshot import WindowSnapshot


class ContextWindow:
    """A thread-safe list of items under a token limit.

    Nothing is removed automatically: an item that does not fit raises ``LimitReached``, and ``compact`` frees tokens.
    The counter and the summariser run outside the lock. With a ``clock``, times are optional; with ``recall`` (a
    function from a query and the least trust to memories), ``compose`` takes a query. ``compact`` passes removed items
    to ``keep`` first, which stores them; if it raises, nothing is removed. ``permit`` raises for strategies that are
    not allowed; ``tell`` is called after each composition and compaction.

    >>> from datetime import UTC
    >>> window = ContextWindow(20)
    >>> item = window.add("user", "Tea or coffee?", created_at=datetime(2026, 1, 7, tzinfo=UTC))
    >>> item.tokens, window.tokens_used, window.tokens_free, [item.content for item in window.items]
    (4, 4, 16, ['Tea or coffee?'])
    """

    def __init__(
        self,
        max_tokens: int,
        *,
        counter: TokenCounter = by_characters,
        clock: Callable[[], datetime] | None = None,
        recall: Callable[[str, float], Iterable[RecalledMemory]] | None = None,
        keep: Keep | None = None,
        tell: Callable[[Composition | Compaction], None] | None = None,
        permit: Callable[[Strategy], None] | None = None,
        cipher: SnapshotCipher = NO_CIPHER,
    ) -> None:
        self._max_tokens = validation.integer("max_tokens", max_tokens, 1, TOKENS_MAX)
        Meter(counter)  # raises if it is not callable
        self._counter = counter
        self._clock = clock
        self._recall = recall
        self._keep = keep
        self._tell = tell
        self._permit = permit
        self._cipher = cipher
        self._lock = threading.Lock()
        self._items: dict[str, ContextItem] = {}
        self._used = 0
        self._numbered = 0

    @property
    def max_tokens(self) -> int:
        """The token limit."""
        return self._max_tokens

    @property
    def tokens_used(self) -> int:
        """The tokens of all items."""
        return self._used

    @property
    def tokens_free(self) -> int:
        """The tokens left."""
        return self._max_tokens - self._used

    @property
    def items(self) -> tuple[ContextItem, ...]:
        """The items, in insertion order."""
        with self._lock:
            return tuple(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    @named
    def add(
        self,
        role: Role | RoleName,
        content: str,
        *,
        created_at: datetime | None = None,
        id: str | None = None,
        priority: float = DEFAULT_PRIORITY,
        pinned: bool = False,
        source: str | None = None,
        sensitive: bool | None = None,
    ) -> ContextItem:
        """Append an item. Without an ``id`` it gets the next number. What is ``sensitive`` is encrypted in snapshots,
        and as a memory once it leaves the window; without a key it is refused.

        Recalled memories within the content are stripped: ``compose`` adds them when needed. Raises ``LimitReached``
        if the item does not fit, ``Conflict`` if the id exists.
        """
        draft = ContextItem(
            id="item" if id is None else id,
            role=role,  # type: ignore[arg-type]  # checked in the next line
            content=own_words(content, "item.content"),
            tokens=0,
            created_at=self._time("created_at", created_at),
            priority=priority,
            pinned=pinned,
            source=source,
            sensitive=sensitive,
        )
        item = checked_item(draft)
        if item.sensitive:
            self._cipher.check()
        item = replace(item, tokens=Meter(self._counter)(item.content))
        with self._lock:
            if id is None:
                item = replace(item, id=self._next_id())
            elif id in self._items:
                raise Conflict(f"the window has an item {id!r} already", details={"id": id}, hint="choose another id")
            self._check_room(item.tokens)
            self._items[item.id] = item
            self._used += item.tokens
            return item

    @named
    def pin(self, id: str) -> ContextItem:
        """Protect an item from compaction."""
        return self._set_pinned(id, True)

    @named
    def unpin(self, id: str) -> ContextItem:
        """Allow compaction to remove an item."""
        return self._set_pinned(id, False)

    @named
    def remove(self, id: str) -> ContextItem:
        """Remove an item, pinned or not; ``NotFound`` if it does not exist."""
        with self._lock:
            item = self._found(id)
            del self._items[item.id]
            self._used -= item.tokens
            return item

    @named
    def clear(self, *, keep_pinned: bool = False) -> int:
        """Remove all items, or all but the pinned ones; returns how many were removed."""
        keep = validation.flag("keep_pinned", keep_pinned)
        with self._lock:
            before = len(self._items)
            self._set_items(item for item in self._items.values() if keep and item.pinned)
            return before - len(self._items)

    @named
    def compact(
        self,
        target_tokens: int | None = None,
        *,
        strategy: Strategy | StrategyName = Strategy.OLDEST,
        summariser: Summariser | None = None,
    ) -> Compaction:
        """Reduce the window to ``target_tokens``, by default half of the limit.

        Items added while a summariser runs are kept; any other concurrent change raises ``Conflict`` and nothing is
        changed. If the window has a long-term memory, removed items are stored there first; the receipt has the ids.
        """
        chosen = self._permitted(strategy)
        before = self.items
        target = self._max_tokens // 2 if target_tokens is None else target_tokens
        done = compaction.compact(before, target, strategy=chosen, summariser=summariser, counter=self._counter)
        self._check_same(before, done)
        return self._exchange(before, offload.settled(done, self._kept(done)))

    @anamed
    async def acompact(self, target_tokens: int | None = None, *, summariser: AsyncSummariser) -> Compaction:
        """``compact`` by an async summariser. Removed items are stored in a thread: the event loop is not blocked."""
        from asyncio import to_thread  # lazy: a caller that awaits has it loaded, others do not need it

        self._permitted(Strategy.SUMMARISER)
        before = self.items
        target = self._max_tokens // 2 if target_tokens is None else target_tokens
        done = await compaction.asummarised_by(summariser, before, target, counter=self._counter)
        self._check_same(before, done)
        kept = self._kept(done) if self._keep is None else await to_thread(self._kept, done)
        return self._exchange(before, offload.settled(done, kept))

    def _kept(self, done: Compaction) -> Kept:
        if self._keep is None or not done.removed:
            return offload.unkept(done.removed, "this window has no long-term memory")
        return self._keep(done.removed)

    def _permitted(self, strategy: Strategy | StrategyName) -> Strategy:
        chosen = validation.choice("strategy", Strategy, strategy)
        if self._permit is not None:
            self._permit(chosen)
        return chosen

    def _time(self, field: str, given: datetime | None) -> datetime:
        if given is not None:
            return given
        if self._clock is None:
            raise InvalidInput(
                f"{field} is missing", details={"field": field}, hint="pass a time, or create the window with a clock"
            )
        return self._clock()

    @named
    def compose(
        self,
        query: str | None = None,
        *,
        now: datetime | None = None,
        recalled: Iterable[RecalledMemory] = (),
        budget_tokens: int | None = None,
        recalled_share: float = prompt_assembly.RECALLED_SHARE,
        min_priority: float = 0.0,
        min_trust: float = 0.0,
        message_tokens: int = prompt_assembly.MESSAGE_TOKENS,
        recalled_role: Role | RoleName = Role.USER,
    ) -> Composition:
        """Compose a prompt of the items and of recalled memories, including those found for ``query``; see
        :func:`wellkept.window.compose`.
        """
        moment = self._time("now", now)
        items = self.items
        composed = prompt_assembly.compose(
            budget_tokens=self._max_tokens if budget_tokens is None else budget_tokens,
            now=moment,
            recent=items,
            recalled=[*recalled, *self._recalled(query, min_trust)],
            counter=Meter(self._counter, known={item.content: item.tokens for item in items}),
            recalled_share=recalled_share,
            min_priority=min_priority,
            min_trust=min_trust,
            message_tokens=message_tokens,
            recalled_role=recalled_role,
        )
        if self._tell is not None:
            self._tell(composed)
        return composed

    def _recalled(self, query: str | None, min_trust: float) -> Iterable[RecalledMemory]:
        if query is None:
            return ()
        if self._recall is None:
            raise InvalidInput(
                "this window has no memories to search",
                details={"field": "query"},
                hint="pass recalled=, or use the context of memories.agent(...)",
            )
        return self._recall(query, validation.unit("min_trust", min_trust))

    def snapshot(self) -> WindowSnapshot:
        """The current items, as a value. What is sensitive is encrypted in it."""
        with self._lock:
            taken = WindowSnapshot(
                max_tokens=self._max_tokens, items=tuple(self._items.values()), numbered=self._numbered
            )
        return snapshot.encrypted(taken, self._cipher)

    @named
    def restore(self, state: WindowSnapshot | Mapping[str, Any]) -> None:
        """Replace all items by those of a snapshot.

        The window keeps its own limit and recounts the tokens, since its counter may differ. If the snapshot is
        invalid, does not fit or cannot be decrypted, an error is raised and nothing is changed.
        """
        self._hold(self._recounted(state))

    def _recounted(self, state: WindowSnapshot | Mapping[str, Any]) -> WindowSnapshot:
        """The snapshot, validated and recounted by this window's counter and limit; changes nothing."""
        found = WindowSnapshot.of_plain(state) if isinstance(state, Mapping) else snapshot.checked(state)
        wanted = snapshot.checked(snapshot.opened(found, self._cipher))
        meter = Meter(self._counter)
        items = tuple(replace(item, tokens=meter(item.content)) for item in wanted.items)
        needed = sum(item.tokens for item in items)
        if needed > self._max_tokens:
            raise self._full("snapshot", needed, 0)
        return replace(wanted, max_tokens=self._max_tokens, items=items)

    def _hold(self, recounted: WindowSnapshot) -> None:
        """Apply the result of ``_recounted``: the part of a restore that cannot fail."""
        with self._lock:
            self._set_items(recounted.items)
            self._numbered = recounted.numbered

    def _set_pinned(self, id: str, pinned: bool) -> ContextItem:
        with self._lock:
            item = replace(self._found(id), pinned=pinned)
            self._items[item.id] = item
            return item

    def _found(self, id: str) -> ContextItem:
        item = self._items.get(validation.text_id(id, hint="pass item.id; see window.items"))
        if item is None:
            raise NotFound(f"the window has no item {id[:40]!r}", details={"id": id[:40]}, hint="see window.items")
        return item

    def _next_id(self) -> str:
        self._numbered += 1
        while str(self._numbered) in self._items:
            self._numbered += 1
        return str(self._numbered)

    def _check_room(self, tokens: int) -> None:
        if self._used + tokens > self._max_tokens:
            raise self._full("content", tokens, self._used)

    def _full(self, field: str, tokens: int, used: int) -> LimitReached:
        return LimitReached(
            f"{field} has {tokens} tokens, {self._max_tokens - used} of {self._max_tokens} are free",
            details={"field": field, "tokens": tokens, "used_tokens": used, "max_tokens": self._max_tokens},
            hint="compact the window, or raise its limit: limits.context_tokens of an agent, max_tokens of a window",
        )

    def _set_items(self, items: Iterable[ContextItem]) -> None:
        self._items = {item.id: item for item in items}
        self._used = sum(item.tokens for item in self._items.values())

    def _exchange(self, before: tuple[ContextItem, ...], done: Compaction) -> Compaction:
        """Replace the compacted items by the result; items added since stay at the end."""
        with self._lock:
            added = self._added(before, done)
            self._set_items([*done.items, *added])
        if self._tell is not None:
            self._tell(done)
        return done

    def _check_same(self, before: tuple[ContextItem, ...], done: Compaction) -> None:
        """Raise ``Conflict`` before anything is stored, if the window changed."""
        with self._lock:
            self._added(before, done)

    def _added(self, before: tuple[ContextItem, ...], done: Compaction) -> tuple[ContextItem, ...]:
        """The items added since; ``Conflict`` after any other change. Called with the lock held."""
        current = tuple(self._items.values())
        if current[: len(before)] != before:
            raise Conflict("the window changed while it was compacted", hint="compact it again")
        added = current[len(before) :]
        kept = {item.id for item in done.items}
        if any(item.id in kept for item in added):
            raise Conflict("an item with the id of the summary was added", hint="compact it again")
        return added
