"""How the parts of a prompt are written down, and what that takes."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from recollect.text.tokens import Meter
from recollect.window import fence
from recollect.window.items import ContextItem, RecalledMemory, Role

# A line of a turn that looks like the heading of another one, after whatever may end a line.
_HEADING = re.compile(r"(^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])(?=\[(?:system|user|assistant|tool)\])", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """The form of a prompt: how each part is written, and how many tokens it takes.

    ``message_tokens`` is what a client's format adds around each message, ``role`` the one that recalled memories
    are given.
    """

    meter: Meter
    now: datetime
    role: Role
    message_tokens: int
    entries: dict[str, str] = field(default_factory=dict)

    def message(self, item: ContextItem) -> tuple[str, str]:
        """An item as a message.

        The answer of a tool is given as the user's: the role ``tool`` needs the id of a call, which only the client
        knows.
        """
        if item.role is Role.TOOL:
            return Role.USER.value, f"[tool]\n{item.content}"
        return item.role.value, item.content

    def paragraph(self, item: ContextItem) -> str:
        """An item as a part of a text: no line of it can pass for the heading of another."""
        return f"[{item.role.value}]\n{_HEADING.sub(lambda found: found[1] + ' ', item.content)}"

    def entry(self, memory: RecalledMemory) -> str:
        """A recalled memory, written once."""
        if memory.id not in self.entries:
            self.entries[memory.id] = fence.entry(memory)
        return self.entries[memory.id]

    def block(self, memories: list[RecalledMemory]) -> str:
        """Recalled memories as one message."""
        return fence.fenced(map(self.entry, memories), self.now)

    def item_tokens(self, item: ContextItem) -> int:
        """What the message of an item takes."""
        return self.meter(self.message(item)[1]) + self.message_tokens

    def block_tokens(self, memories: list[RecalledMemory]) -> int:
        """What the message of recalled memories takes; without any there is none."""
        return self.meter(self.block(memories)) + self.message_tokens if memories else 0

    def entry_tokens(self, memory: RecalledMemory) -> int:
        """What one memory adds to the message, about: that of the whole is counted when it stands."""
        return self.meter("\n" + self.entry(memory))

    @cached_property
    def frame_tokens(self) -> int:
        """What the message of recalled memories takes before the first of them."""
        return self.meter(fence.fenced((), self.now)) + self.message_tokens


@dataclass
class Draft:
    """A prompt on its way: the items that must stay, the memories, the best first, and the turns, the oldest first."""

    layout: Layout
    pinned: list[ContextItem]
    memories: list[RecalledMemory]
    turns: list[ContextItem]

    def messages(self) -> list[tuple[str, str]]:
        """All of it as messages, in the order of the parts."""
        recalled = [(self.layout.role.value, self.layout.block(self.memories))] if self.memories else []
        return [*map(self.layout.message, self.pinned), *recalled, *map(self.layout.message, self.turns)]

    def text(self) -> str:
        """All of it as one text."""
        recalled = [self.layout.block(self.memories)] if self.memories else []
        paragraph = self.layout.paragraph
        return "\n\n".join([*map(paragraph, self.pinned), *recalled, *map(paragraph, self.turns)])

    def total(self) -> int:
        """What it takes in the form that takes more. Both are counted as they are: parts need not add up."""
        tokens = self.layout.item_tokens
        messages = (
            sum(map(tokens, self.pinned)) + self.layout.block_tokens(self.memories) + sum(map(tokens, self.turns))
        )
        return max(messages, self.layout.meter(self.text()))

    @property
    def optional(self) -> int:
        """How many parts may still go."""
        return len(self.memories) + len(self.turns)

    def without(self, count: int) -> "Draft":
        """The draft without so many parts, those that matter least: the worst memories, then the oldest turns."""
        turns_gone = max(0, count - len(self.memories))
        return Draft(self.layout, self.pinned, self.memories[: -count or None], self.turns[turns_gone:])
