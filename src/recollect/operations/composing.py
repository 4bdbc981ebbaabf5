"""The verb that composes a prompt."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from recollect.errors import EmbeddingFailed, QueryTooLong, RateLimited
from recollect.operations.verb import Caller, Example, Needs, Takes, Verb, argument, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as the clients of language models take it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """A memory that stayed out of a prompt, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What goes into the next call of a language model, and what it takes of the budget."""

    text: str
    messages: tuple[Message, ...]
    budget_tokens: int
    total_tokens: int
    tokens_by_part: Mapping[str, int] = field(default_factory=dict)
    included: tuple[str, ...] = ()
    left_out: tuple[Omitted, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the next call of a language model is about, and how much room there is."""

    query: str = argument("what the next call is about", takes=Takes.WORDS)
    budget_tokens: int = option("what the prompt may take", 2_000, flag="budget", short="b")
    limit: int = option("at most so many memories", 20, short="n")
    message_tokens: int = option("what a message takes beside its content", 4)
    recalled_role: str = option("as whose word the memories are given", "user", flag="role")
    encoding: str | None = option("count as this vocabulary does, such as o200k_base; needs recollect[tokens]")


def _context(caller: Caller, given: Context) -> Prompt:
    from recollect.text.tokens import bpe_counter, by_characters  # lazy: only this verb needs it
    from recollect.window import ContextWindow, RecalledMemory  # lazy: as above

    view = caller.view
    window = ContextWindow(
        given.budget_tokens,
        counter=by_characters if given.encoding is None else bpe_counter(given.encoding),
        clock=lambda: datetime.now(UTC),
        recall=lambda query: [RecalledMemory.of(hit) for hit in view.search(query, limit=given.limit)],
    )
    composed = window.compose(
        given.query,
        budget_tokens=given.budget_tokens,
        message_tokens=given.message_tokens,
        recalled_role=given.recalled_role,  # type: ignore[arg-type]  # checked there
    )
    receipt = composed.receipt
    return Prompt(
        text=composed.text,
        messages=tuple(Message(role=role, content=content) for role, content in composed.pairs),
        budget_tokens=receipt.budget_tokens,
        total_tokens=receipt.total_tokens,
        tokens_by_part={part.value: tokens for part, tokens in receipt.tokens_by_part.items()},
        included=tuple(placed.id for placed in receipt.included),
        left_out=tuple(Omitted(id=left.id, reason=left.reason.value) for left in receipt.left_out),
    )


CONTEXT = Verb(
    name="context",
    input=Context,
    output=Prompt,
    run=_context,
    needs=Needs.READ,
    errors=(QueryTooLong, EmbeddingFailed, RateLimited),
    examples=(
        Example(line="recollect context what theme does she like --budget 500", says="at most 500 tokens"),
        Example(line="recollect context theme --json", says="as messages, with a receipt"),
    ),
)
