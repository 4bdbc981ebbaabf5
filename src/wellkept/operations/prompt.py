"""The verb that composes a prompt: context."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from wellkept import fields
from wellkept.errors import EmbeddingFailed, QueryTooLong, RateLimited
from wellkept.operations.conditions import LAYERS, MANY, MANY_IDS, QUERY, RESULTS, TEXT
from wellkept.operations.verb import Caller, Example, Takes, Verb, argument, option, result
from wellkept.types import Layer
from wellkept.types.bounds import Bounds

_ROLES = ("system", "user", "assistant", "tool")
_BUDGET = Bounds(minimum=1, maximum=fields.COUNT_MAX)
_TOKENS = fields.COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as the clients of language models take it."""

    role: str = result("The role of the message.", bounds=fields.ID)
    content: str = result("The text of the message.", bounds=TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """A memory that was left out of a prompt, and why."""

    id: str = result("The id of the memory.", bounds=fields.ID)
    reason: str = result("Why the memory was left out.", bounds=fields.LINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What goes into the next call of a language model, and how much of the budget it takes."""

    text: str = result("The prompt as one text.", bounds=TEXT)
    messages: tuple[Message, ...] = result("The prompt as messages for a chat model.", bounds=MANY)
    budget_tokens: int = result("The number of tokens that the prompt was allowed to take.", bounds=fields.COUNT)
    total_tokens: int = result("The number of tokens that the prompt takes.", bounds=fields.COUNT)
    tokens_by_part: Mapping[str, int] = result(
        "The number of tokens by part: pinned, recalled, recent.",
        {},
        bounds=Bounds(max_length=100, each=fields.COUNT),
    )
    included: tuple[str, ...] = result("Ids of the memories in the prompt.", (), bounds=MANY_IDS)
    left_out: tuple[Omitted, ...] = result("The memories that were left out, and why.", (), bounds=MANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the next call of a language model is about, and how large the prompt may be."""

    query: str = argument("What the next call is about.", takes=Takes.WORDS, bounds=QUERY)
    budget_tokens: int = option(
        "The largest number of tokens that the prompt may take.", 2_000, bounds=_BUDGET, flag="budget", short="b"
    )
    limit: int = option("The largest number of memories.", 20, bounds=RESULTS, short="n")
    min_trust: float = option("Only memories whose source is trusted at least so far.", 0.0, bounds=fields.UNIT)
    message_tokens: int = option("The tokens that a message takes in addition to its content.", 4, bounds=_TOKENS)
    recalled_role: str = option(
        "The role of the message that holds the memories.", "user", bounds=Bounds(words=_ROLES), flag="role"
    )
    precedence: tuple[Layer, ...] = option(
        "The order in which layers override each other, the strongest first.", (), bounds=LAYERS
    )
    encoding: str | None = option(
        "Count tokens by this vocabulary, such as o200k_base; needs wellkept[tokens].", bounds=fields.ID
    )


def _context(caller: Caller, given: Context) -> Prompt:
    from wellkept.text.tokens import bpe_counter, by_characters  # lazy: only this verb needs it
    from wellkept.window import ContextWindow, RecalledMemory  # lazy: as above

    view = caller.view
    window = ContextWindow(
        given.budget_tokens,
        counter=by_characters if given.encoding is None else bpe_counter(given.encoding),
        clock=lambda: datetime.now(UTC),
        recall=lambda query, trust: [
            RecalledMemory.of(hit)
            for hit in view.search(
                query, limit=given.limit, min_trust=trust or None, precedence=given.precedence or None
            )
        ],
    )
    composed = window.compose(
        given.query,
        budget_tokens=given.budget_tokens,
        min_trust=given.min_trust,
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
    method="View.search",
    errors=(QueryTooLong, EmbeddingFailed, RateLimited),
    examples=(
        Example(line="wellkept context what theme does she like --budget 500", says="at most 500 tokens"),
        Example(line="wellkept context theme --json", says="as messages, with a receipt"),
    ),
)
