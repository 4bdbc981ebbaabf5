"""How the parts of a prompt are rendered, and how many tokens they take."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from wellkept.text.tokens import Meter
from wellkept.window import memory_block
from wellkept.window.items import ContextItem, RecalledMemory, Role

# A line of a turn that looks like the heading of another turn, after any kind of line break.
_HEADING = re.compile(r"(^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])(?=\[(?:system|user|assistant|tool)\])", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """Renders the parts of a prompt and counts their tokens.

    ``message_tokens`` is what the client's format adds per message, ``role`` the role of the recalled memories.
    """

    meter: Meter
    now: datetime
    role: Role
    message_tokens: int
    entries: dict[str, str] = field(default_factory=dict)

    def message(self, item: ContextItem) -> tuple[str, str]:
        """An item as a message (role, content).

        A tool result gets the role ``user``: the role ``tool`` needs a call id, which only the client knows.
        """
        if item.role is Role.TOOL:
            return Role.USER.value, f"[tool]\n{item.content}"
        return item.role.value, item.content

    def paragraph(self, item: ContextItem) -> str:
        """An item as a paragraph of the text form, with forged headings indented."""
        return f"[{item.role.value}]\n{_HEADING.sub(lambda found: found[1] + ' ', item.content)}"

    def entry(self, memory: RecalledMemory) -> str:
        """A recalled memory, rendered once and cached."""
        if memory.id not in self.entries:
            self.entries[memory.id] = memory_block.entry(memory)
        return self.entries[memory.id]

    def block(self, memories: list[RecalledMemory]) -> str:
        """Recalled memories as one message."""
        return memory_block.block(map(self.entry, memories), self.now)

    def item_tokens(self, item: ContextItem) -> int:
        """The tokens of an item's message."""
        return self.meter(self.message(item)[1]) + self.message_tokens

    def block_tokens(self, memories: list[RecalledMemory]) -> int:
        """The tokens of the message of recalled memories; 0 without any."""
        return self.meter(self.block(memories)) + self.message_tokens if memories else 0

    def entry_tokens(self, memory: RecalledMemory) -> int:
        """An estimate of the tokens that one memory adds; the total is counted on the finished message."""
        return self.meter("\n" + self.entry(memory))

    @cached_property
    def frame_tokens(self) -> int:
        """The tokens of the message of recalled memories without any memory."""
        return self.meter(memory_block.block((), self.now)) + self.message_tokens


@dataclass
class Draft:
    """A prompt under construction: pinned items, memories (best first) and turns (oldest first)."""

    layout: Layout
    pinned: list[ContextItem]
    memories: list[RecalledMemory]
    turns: list[ContextItem]

    def messages(self) -> list[tuple[str, str]]:
        """The prompt as messages, in the order of the parts."""
        recalled = [(self.layout.role.value, self.layout.block(self.memories))] if self.memories else []
        return [*map(self.layout.message, self.pinned), *recalled, *map(self.layout.message, self.turns)]

    def text(self) -> str:
        """The prompt as one text."""
        recalled = [self.layout.block(self.memories)] if self.memories else []
        paragraph = self.layout.paragraph
        return "\n\n".join([*map(paragraph, self.pinned), *recalled, *map(paragraph, self.turns)])

    def total(self) -> int:
        """The tokens of the larger form. The text is counted as a whole: token counts of parts need not add up."""
        tokens = self.layout.item_tokens
        messages = (
            sum(map(tokens, self.pinned)) + self.layout.block_tokens(self.memories) + sum(map(tokens, self.turns))
        )
        return max(messages, self.layout.meter(self.text()))

    @property
    def optional(self) -> int:
        """The number of parts that can be removed."""
        return len(self.memories) + len(self.turns)

    def without(self, count: int) -> "Draft":
        """The draft without ``count`` optional parts: the lowest-ranked memories first, then the oldest turns."""
        dropped_turns = max(0, count - len(self.memories))
        return Draft(self.layout, self.pinned, self.memories[: -count or None], self.turns[dropped_turns:])
