"""A chat with a memory. Run it with ``python examples/chat_loop.py [memory.db]``.

The model is scripted, so that nothing leaves this machine: it says what its script says, if the prompt holds what it
needs to know. Put a call to your own model in its place; everything else stays as it is.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import wellkept
from wellkept import AgentMemory, NewMemory

BUDGET_TOKENS = 300


@dataclass(frozen=True, slots=True)
class Line:
    """What the model answers to a question, and the words that the prompt must hold for it."""

    answer: str
    needs: str = ""


SCRIPT: Mapping[str, Line] = {
    "I cannot eat peanuts, please keep that in mind.": Line("Noted: no peanuts."),
    "We fly to Lisbon on the second of May.": Line("How nice! Aisle or window?"),
    "I always want a window seat.": Line("A window seat it is."),
    "Suggest a snack for my flight.": Line("Olives: nothing with peanuts in it.", needs="cannot eat peanuts"),
    "Which city was that flight to, again?": Line("To Lisbon, on the second of May.", needs="fly to Lisbon"),
    "Which seat shall I book?": Line("By the window, as always.", needs="window seat"),
    "And what is my passport number?": Line("It is on file.", needs="passport number is"),
}
MONDAY, FRIDAY = list(SCRIPT)[:3], list(SCRIPT)[3:]


def model(messages: Sequence[Mapping[str, str]]) -> str:
    """Stands for a language model: sees the messages and nothing else."""
    line = SCRIPT[messages[-1]["content"]]
    seen = "\n".join(message["content"] for message in messages[:-1])
    return line.answer if line.needs in seen else "I do not know that."


@dataclass(slots=True)
class Clock:
    """The time of the story."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


def take_turn(me: AgentMemory, said: str, number: int) -> None:
    """One round: recall, ask the model, and remember what both said."""
    me.context.add("user", said)
    prompt = me.context.compose(said, budget_tokens=BUDGET_TOKENS)
    answer = model(prompt.messages())
    me.context.add("assistant", answer)

    turns = (("Ada", "user", said), ("Bot", "assistant", answer))
    me.long_term.add_many(
        NewMemory(
            content=content,
            layer="user",  # so that later conversations of Ada find it; the layer "session" is for this one alone
            type="conversation",
            author=author,
            role=role,
            key=f"{me.long_term.identity.session}/{number}/{role}",  # a turn that is sent twice is stored once
        )
        for author, role, content in turns
    )
    receipt = prompt.receipt
    recalled = [placed.id for placed in receipt.included if placed.part == "recalled"]
    reasons = Counter(one.reason.value for one in receipt.left_out)
    left_out = ", ".join(f"{'one' if n == 1 else n} left out ({why})" for why, n in reasons.items()) or "none left out"
    print(f"  Ada: {said}\n  Bot: {answer}")
    print(f"       [{receipt.total_tokens} of {receipt.budget_tokens} tokens, {len(recalled)} recalled, {left_out}]")
    for memory in me.long_term.get_many(recalled).values():
        print(f"       [{memory.author} on {memory.occurred_at:%A}: {memory.content}]")


def converse(path: Path, clock: Clock, session: str, lines: Sequence[str]) -> None:
    """One conversation. The file is opened anew: nothing is carried over but what it holds."""
    print(f"\n{session.capitalize()}")
    with wellkept.open(path, clock=clock) as memories:
        me = memories.agent("bot", user="ada", session=session)
        me.context.add("system", "You are a travel assistant. Be brief.", pinned=True)
        for number, said in enumerate(lines):
            take_turn(me, said, number)
            clock.now += timedelta(minutes=1)


def chat(path: Path) -> None:
    """Two conversations, four days apart."""
    clock = Clock(datetime(2026, 4, 20, 9, 0, tzinfo=UTC))
    converse(path, clock, "monday", MONDAY)
    clock.now += timedelta(days=4)
    converse(path, clock, "friday", FRIDAY)
    print("\nOn Friday the file was opened anew. What the bot knew of Monday, it recalled.")


def main() -> None:
    """Tell it, in a new file that is kept if it was named."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "memory.db"
        if path.exists():
            raise SystemExit("there is such a file already: name a new one")
        chat(path)


if __name__ == "__main__":
    main()
