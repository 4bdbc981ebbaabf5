"""A support bot for many customers. Run it with ``python examples/support_bot.py [memory.db]``.

The team's knowledge is shared by all conversations. What a customer said is that customer's: nobody else sees it, and
it goes, byte by byte, when they ask for it.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import wellkept
from wellkept import Memories, View

ADDRESS = "Send it to 12 Marzipan Lane"
CUSTOMERS = {
    "ada": ("My order is number 1815, a brass lamp", "The lamp arrived broken"),
    "bob": ("My order is number 2077, a garden gnome", ADDRESS),
}


class Clock:
    """The time of the story."""

    now = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def desk(memories: Memories, customer: str) -> View:
    """What the bot sees while it serves one customer. Take the id from your login, never from what a model wrote."""
    return memories.view(user=customer, team="support")


def answer(view: View, question: str, *, as_of: datetime | None = None) -> str:
    """What the bot knows about a question; a model would make a sentence of it."""
    hits = view.search(question, limit=1, as_of=as_of).hits
    return hits[0].memory.content if hits else "(nothing)"


def learn(memories: Memories) -> str:
    """The team's policy, and what two customers said."""
    print("\nMonday: the team has a policy, customers have orders")
    team = memories.view(team="support")
    refunds = team.add("Refunds are paid within ten days", type="decision")
    print(f"  team: {refunds.content}")
    for customer, lines in CUSTOMERS.items():
        view = desk(memories, customer)
        for line in lines:
            view.add(line, layer="user", type="conversation", author=customer.capitalize(), role="user")
            print(f"  {customer}:  {line}")
    return refunds.id


def serve(memories: Memories) -> None:
    """One question, two customers, two answers; and one attempt to get at the other's."""
    print("\nEach customer is told what is theirs")
    for customer in CUSTOMERS:
        view = desk(memories, customer)
        for question in ("What is the number of my order?", "When are refunds paid?"):
            print(f"  {customer}: {question:<32} {answer(view, question)}")
    ada, bob = desk(memories, "ada"), desk(memories, "bob")
    [secret] = bob.list(filter={"content_contains": ADDRESS})
    print(f"  ada searches for the gnome:  {[hit.memory.content for hit in ada.search('garden gnome', min_score=0.5)]}")
    print(f"  ada presents the id of his:  {ada.get(secret.id)}; to erase it: {ada.forget(secret.id, permanent=True)}")


def change_policy(memories: Memories, clock: Clock, policy_id: str) -> None:
    """A policy changes; what was true when the customer asked can still be said."""
    print("\nThursday: the policy changes. What did we tell Ada on Monday?")
    monday, ada = clock.now, desk(memories, "ada")
    clock.now += timedelta(days=3)
    memories.view(team="support").update(policy_id, content="Refunds are paid within three days")
    question = "When are refunds paid?"
    print(f"  now:        {answer(ada, question)}")
    print(f"  on Monday:  {answer(ada, question, as_of=monday)}")


def forget_customer(memories: Memories, path: Path) -> None:
    """Bob asks to be forgotten: everything of his own goes, for good. The team's memories stay."""
    print("\nBob asks to be forgotten")
    bob, before = desk(memories, "bob"), copies(path)
    while page := bob.list(layers=["user"], filter={"include_forgotten": True}).memories:
        for memory in page:
            bob.forget(memory.id, permanent=True, reason="the customer asked for it")
    print(f"  copies of his address in the file: {before} before, {copies(path)} after")
    print(f"  what bob's desk still sees: {[memory.content for memory in bob.list()]}")
    print(f"  and ada's: {desk(memories, 'ada').count(layers=['user'])} memories of her own")


def copies(path: Path) -> int:
    """How often the address stands in the file and in the logs beside it."""
    return sum(file.read_bytes().count(ADDRESS.encode()) for file in path.parent.glob(f"{path.name}*"))


def run(path: Path) -> None:
    """A week at the support desk."""
    clock = Clock()
    with wellkept.open(path, clock=clock) as memories:
        policy_id = learn(memories)
        serve(memories)
        change_policy(memories, clock, policy_id)
        forget_customer(memories, path)


def main() -> None:
    """Tell it, in a new file that is kept if it was named."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "memory.db"
        if path.exists():
            raise SystemExit("there is such a file already: name a new one")
        run(path)


if __name__ == "__main__":
    main()
