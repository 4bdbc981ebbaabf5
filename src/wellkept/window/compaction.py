"""Compaction of a window: drop or summarise items, with a receipt.

Pinned items are never removed. Removed items are returned, so that ``offload`` can store them first.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from wellkept import validation
from wellkept.errors import InvalidInput
from wellkept.text.recall_markers import own_words, strip_recalled
from wellkept.text.tokens import Meter, TokenCounter, by_characters
from wellkept.window import summary
from wellkept.window.items import TOKENS_MAX, ContextItem, Role, checked_items

SUMMARY_SHARE = 0.25
"""The least share of the tokens left by pinned items that is freed for a summary."""

LEAD = "Summary of earlier turns:"
_SUMMARY_ID = "summary-"

Summariser = Callable[[Sequence[ContextItem], int], str]
"""Summarises items in at most the given number of tokens."""

AsyncSummariser = Callable[[Sequence[ContextItem], int], Awaitable[str]]
"""A :data:`Summariser` that is awaited."""


class Strategy(StrEnum):
    """How to compact: drop the oldest or the least important items, or replace items by a summary.

    >>> [strategy.value for strategy in Strategy if strategy.advanced]
    ['extractive', 'summariser']
    """

    OLDEST = "oldest"
    LEAST_IMPORTANT = "least_important"
    EXTRACTIVE = "extractive"
    SUMMARISER = "summariser"

    @property
    def advanced(self) -> bool:
        """Whether it summarises. Plans may exclude these strategies."""
        return self in (Strategy.EXTRACTIVE, Strategy.SUMMARISER)


StrategyName = Literal["oldest", "least_important", "extractive", "summariser"]
"""The value of a :class:`Strategy`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReceipt:
    """The result of a compaction, by item ids: ``dropped`` items were removed, ``summarised`` ones are in the summary.

    ``shortened``: the summary exceeded its token limit and was cut to its highest-scoring sentences. A window of
    ``memories.agent(...)`` loses nothing: ``memory_ids`` maps each removed item to the memories that hold its original
    (for an earlier summary, those of everything it covered). ``not_kept`` says why some items have none.

    >>> CompactionReceipt(strategy=Strategy.OLDEST, target_tokens=10, tokens_before=8, tokens_after=8).dropped
    ()
    """

    strategy: Strategy
    target_tokens: int
    tokens_before: int
    tokens_after: int
    dropped: tuple[str, ...] = ()
    summarised: tuple[str, ...] = ()
    summary_id: str | None = None
    shortened: bool = False
    memory_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    not_kept: str | None = None


@dataclass(frozen=True, slots=True)
class Compaction:
    """The remaining items, the removed items, and the receipt.

    >>> oldest_first([], 10).removed
    ()
    """

    items: tuple[ContextItem, ...]
    removed: tuple[ContextItem, ...]
    receipt: CompactionReceipt


def oldest_first(items: Iterable[ContextItem], target_tokens: int) -> Compaction:
    """Drop the oldest items until the rest has at most ``target_tokens``.

    >>> from datetime import UTC
    >>> day = datetime(2026, 1, 7, tzinfo=UTC)
    >>> turns = [ContextItem(id=id, role=Role.USER, content="Hi", tokens=6, created_at=day) for id in ("a", "b")]
    >>> oldest_first(turns, 10).receipt.dropped
    ('a',)
    """
    return _drop(Strategy.OLDEST, items, target_tokens, _age)


def least_important_first(items: Iterable[ContextItem], target_tokens: int) -> Compaction:
    """Drop the items of the lowest priority, oldest first, until the rest has at most ``target_tokens``.

    >>> from datetime import UTC
    >>> day = datetime(2026, 1, 7, tzinfo=UTC)
    >>> turns = [
    ...     ContextItem(id=str(priority), role=Role.USER, content="Hi", tokens=6, created_at=day, priority=priority)
    ...     for priority in (0.9, 0.1)
    ... ]
    >>> least_important_first(turns, 10).receipt.dropped
    ('0.1',)
    """
    return _drop(Strategy.LEAST_IMPORTANT, items, target_tokens, lambda item: (item.priority, *_age(item)))


def extractive_summary(
    items: Iterable[ContextItem], target_tokens: int, *, counter: TokenCounter = by_characters
) -> Compaction:
    """Replace the oldest items by their highest-scoring sentences, without a model.

    If not even one sentence fits, the items are dropped, as by ``oldest_first``.

    >>> from datetime import UTC
    >>> day = datetime(2026, 1, 7, tzinfo=UTC)
    >>> texts = ["I like green tea. The bus was late.", "Green tea it is."]
    >>> turns = [ContextItem(id=text[0], role=Role.USER, content=text, tokens=20, created_at=day) for text in texts]
    >>> print(extractive_summary(turns, 34).items[0].content)
    Summary of earlier turns:
    - user: I like green tea.
    """
    plan = _SummaryPlan.of(Strategy.EXTRACTIVE, items, target_tokens, counter)
    return plan.result(plan.extract())


def summarised_by(
    summariser: Summariser,
    items: Iterable[ContextItem],
    target_tokens: int,
    *,
    counter: TokenCounter = by_characters,
) -> Compaction:
    """Replace the oldest items by a summary from a callable, which gets the items and a token limit.

    A summary above the limit is cut to its highest-scoring sentences.

    >>> from datetime import UTC
    >>> day = datetime(2026, 1, 7, tzinfo=UTC)
    >>> turns = [ContextItem(id=id, role=Role.USER, content="Hi", tokens=20, created_at=day) for id in ("a", "b")]
    >>> summarised_by(lambda items, tokens: "Greetings.", turns, 30).items[0].content
    'Summary of earlier turns:\\nGreetings.'
    """
    plan = _SummaryPlan.of(Strategy.SUMMARISER, items, target_tokens, counter)
    _check_callable(summariser)
    return plan.with_summary(summariser(plan.replaced, plan.summary_room)) if plan.replaced else plan.result(None)


async def asummarised_by(
    summariser: AsyncSummariser,
    items: Iterable[ContextItem],
    target_tokens: int,
    *,
    counter: TokenCounter = by_characters,
) -> Compaction:
    """``summarised_by`` with an async callable.

    >>> import asyncio
    >>> async def nothing(items: Sequence[ContextItem], tokens: int) -> str:
    ...     return "never asked: there is room"
    >>> asyncio.run(asummarised_by(nothing, [], 10)).items
    ()
    """
    plan = _SummaryPlan.of(Strategy.SUMMARISER, items, target_tokens, counter)
    _check_callable(summariser)
    return plan.with_summary(await summariser(plan.replaced, plan.summary_room)) if plan.replaced else plan.result(None)


def compact(
    items: Iterable[ContextItem],
    target_tokens: int,
    *,
    strategy: Strategy | StrategyName = Strategy.OLDEST,
    summariser: Summariser | None = None,
    counter: TokenCounter = by_characters,
) -> Compaction:
    """Compact by the named strategy.

    >>> compact([], 10, strategy="extractive").receipt.strategy is Strategy.EXTRACTIVE
    True
    """
    chosen = validation.choice("strategy", Strategy, strategy)
    if (chosen is Strategy.SUMMARISER) != (summariser is not None):
        raise InvalidInput(
            "summariser and strategy='summariser' need each other",
            details={"field": "summariser"},
            hint="pass both, or neither",
        )
    if summariser is not None:
        return summarised_by(summariser, items, target_tokens, counter=counter)
    if chosen is Strategy.EXTRACTIVE:
        return extractive_summary(items, target_tokens, counter=counter)
    return (oldest_first if chosen is Strategy.OLDEST else least_important_first)(items, target_tokens)


def _check_callable(summariser: object) -> None:
    if not callable(summariser):
        raise InvalidInput(
            f"summariser must be a callable, not {type(summariser).__name__}",
            details={"field": "summariser"},
            hint="pass a function from items and a number of tokens to a text",
        )


def _age(item: ContextItem) -> tuple[datetime]:
    return (item.created_at,)


def _drop(
    strategy: Strategy,
    items: Iterable[ContextItem],
    target_tokens: int,
    key: Callable[[ContextItem], tuple[object, ...]],
) -> Compaction:
    given, target = _checked(items, target_tokens)
    removed_ids = _to_remove(given, target, key)
    return _compaction(strategy, given, removed_ids, target)


def _checked(items: Iterable[ContextItem], target_tokens: int) -> tuple[list[ContextItem], int]:
    target = validation.integer("target_tokens", target_tokens, 0, TOKENS_MAX)
    given = checked_items("items", items)
    if len({item.id for item in given}) != len(given):
        raise InvalidInput("items has a duplicate id", details={"field": "items.id"}, hint="give each item its own id")
    needed = _tokens(item for item in given if item.pinned)
    if needed > target:
        raise InvalidInput(
            f"target_tokens is {target}, the pinned items need {needed}",
            details={"field": "target_tokens", "target_tokens": target, "needed_tokens": needed},
            hint="raise it, or unpin items",
        )
    return given, target


def _tokens(items: Iterable[ContextItem]) -> int:
    return sum(item.tokens for item in items)


def _to_remove(given: list[ContextItem], target: int, key: Callable[[ContextItem], tuple[object, ...]]) -> set[str]:
    """The ids of the items to remove, in the order of the key."""
    excess = _tokens(given) - target
    removed_ids: set[str] = set()
    for item in sorted((item for item in given if not item.pinned), key=key):
        if excess <= 0:
            break
        if item.tokens:  # removing an empty item frees nothing
            removed_ids.add(item.id)
            excess -= item.tokens
    return removed_ids


def _compaction(
    strategy: Strategy,
    given: list[ContextItem],
    removed_ids: set[str],
    target: int,
    *,
    summary_item: ContextItem | None = None,
    shortened: bool = False,
) -> Compaction:
    """The result; the summary takes the place of the first item that it covers."""
    kept: list[ContextItem] = []
    removed = [item for item in given if item.id in removed_ids]
    for item in given:
        if item.id not in removed_ids:
            kept.append(item)
        elif summary_item is not None and item.id == removed[0].id:
            kept.append(summary_item)
    ids = tuple(item.id for item in removed)
    receipt = CompactionReceipt(
        strategy=strategy,
        target_tokens=target,
        tokens_before=_tokens(given),
        tokens_after=_tokens(kept),
        dropped=() if summary_item else ids,
        summarised=ids if summary_item else (),
        summary_id=summary_item.id if summary_item else None,
        shortened=shortened,
    )
    return Compaction(tuple(kept), tuple(removed), receipt)


@dataclass(frozen=True)
class _SummaryPlan:
    """A summarising compaction in progress: the items to replace, and the token limit of their summary."""

    strategy: Strategy
    given: list[ContextItem]
    replaced: tuple[ContextItem, ...]
    target: int
    room: int
    meter: Meter

    @classmethod
    def of(
        cls, strategy: Strategy, items: Iterable[ContextItem], target_tokens: int, counter: TokenCounter
    ) -> "_SummaryPlan":
        """Select the oldest items until the rest leaves room for a summary; none if everything fits already."""
        meter = Meter(counter)
        given, target = _checked(items, target_tokens)
        if _tokens(given) <= target:
            return cls(strategy, given, (), target, 0, meter)
        pinned = _tokens(item for item in given if item.pinned)
        ids = _to_remove(given, target - int((target - pinned) * SUMMARY_SHARE), _age)
        replaced = tuple(item for item in given if item.id in ids)
        return cls(strategy, given, replaced, target, target - _tokens(given) + _tokens(replaced), meter)

    @property
    def summary_room(self) -> int:
        """The token limit for a summariser: the room without the lead line."""
        return max(0, self.room - self.meter(LEAD + "\n"))

    def extract(self) -> str | None:
        """The highest-scoring sentences of the replaced items, or ``None`` if none fits."""
        said: list[summary.Sentence] = []
        for item in self.replaced:
            # Recalled memories are not part of the conversation, and a summary would make them look like it.
            content = strip_recalled(item.content)
            # The id is checked as well: any user can write a text that looks like a summary and misquotes others.
            earlier = item.id.startswith(_SUMMARY_ID) and content.startswith(LEAD)
            said += summary.reread(content) if earlier else summary.sentences(item.role.value, content)
        return summary.extract(said, LEAD, self.room, self.meter)

    def with_summary(self, text: object) -> Compaction:
        """The result with a given summary, shortened if it exceeds its token limit."""
        written = validation.content(own_words(text, "summariser"), "summariser")
        content = f"{LEAD}\n{written}"
        if self.meter(content) <= self.room:
            return self.result(content)
        return self.result(summary.extract(summary.sentences("", written), LEAD, self.room, self.meter), shortened=True)

    def result(self, content: str | None, *, shortened: bool = False) -> Compaction:
        """The result with a summary in place of the removed items, or without one."""
        return _compaction(
            self.strategy,
            self.given,
            {item.id for item in self.replaced},
            self.target,
            summary_item=None if content is None else self._item(content),
            shortened=shortened and content is not None,
        )

    def _item(self, content: str) -> ContextItem:
        """The summary as an item, with the highest priority and the latest time of the items it covers; sensitive if
        one of them is marked so.

        Its role is ``user``: as ``system`` it would give every quoted sentence the authority of the system prompt.
        """
        taken = {item.id for item in self.given}
        ids = (f"{_SUMMARY_ID}{number}" for number in range(1, len(taken) + 2))
        return ContextItem(
            id=next(id for id in ids if id not in taken),
            role=Role.USER,
            content=content,
            tokens=self.meter(content),
            created_at=max(item.created_at for item in self.replaced),
            priority=max(item.priority for item in self.replaced),
            sensitive=True if any(item.sensitive for item in self.replaced) else None,
        )
