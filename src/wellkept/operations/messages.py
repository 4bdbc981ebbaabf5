"""The verb that remembers a conversation."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wellkept import codec, fields
from wellkept.errors import Conflict, ContentTooLong, EmbeddingFailed, InvalidInput, InvalidLayer, RateLimited
from wellkept.operations.verb import Caller, Example, Takes, Verb, argument, option
from wellkept.types import Conversation, Layer
from wellkept.types.bounds import Bounds

_MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """The turns of a conversation."""

    messages: tuple[str, ...] = argument(
        "The messages, each as JSON with role and content, and if known id, author and at (its time).",
        takes=Takes.WORDS,
        bounds=Bounds(max_length=_MOST, each=fields.CONTENT),
    )
    layer: Layer | None = option(
        "The layer that owns the turns; by default, the most specific one that the identity has.", short="l"
    )


def _messages(caller: Caller, given: Messages) -> Conversation:
    return caller.view.add_messages([_message(text) for text in given.messages], layer=given.layer)


def _message(text: str) -> dict[str, Any]:
    try:
        found = codec.decode_json(text)
    except (*codec.UNREADABLE, ValueError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(
            "a message is no JSON object",
            operation="messages",
            details={"field": "messages"},
            hint='write each as {"role": "user", "content": "..."}',
        )
    if isinstance(found.get("at"), str):
        found["at"] = _moment(found["at"])
    return found


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            "at of a message is not a time",
            operation="messages",
            details={"field": "messages"},
            hint="write it such as 2030-01-07T09:30:00Z",
        ) from None


MESSAGES = Verb(
    name="messages",
    input=Messages,
    output=Conversation,
    run=_messages,
    method="View.add_messages",
    errors=(InvalidLayer, ContentTooLong, Conflict, EmbeddingFailed, RateLimited),
    creates=True,
    description="What the user plainly said as a preference, a decision, a correction or a dated event becomes a memory"
    " of its own, derived from its turn. A turn that comes again is stored once.",
    examples=(
        Example(
            line="""wellkept messages '{"role": "user", "content": "I prefer tea.", "id": "1"}'""", says="one message"
        ),
        Example(line="wellkept messages - < chat.jsonl", says="a message in each line"),
    ),
)
