"""A coding agent that knows its project. Run it with ``python examples/coding_agent.py [memory.db]``.

Two agents work on one project, one after the other. What the project decided, what was found out and what was corrected
is in its memory; what one of them is busy with is in working memory and goes with its task.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import wellkept
from wellkept import AgentMemory, Filter, Layer, Memories
from wellkept.errors import Conflict
from wellkept.types import Source, SourceType
from wellkept.window import RecalledMemory

COMPANY = ("Indent code with tabs", "Log messages are in English")
PROJECT = (
    "Prices are stored as floats, in euros",
    "Indent code with four spaces",
    "Tests run with pytest, in under a minute",
)


def coder(memories: Memories, user: str) -> AgentMemory:
    """The coding agent of somebody who works on the shop."""
    return memories.agent("coder", user=user, project="shop", company="acme")


def decide(me: AgentMemory) -> None:
    """What holds for the project, and what holds for all."""
    print("\nWhat was decided")
    for layer, rules in ((Layer.COMPANY, COMPANY), (Layer.PROJECT, PROJECT)):
        for rule in rules:
            tags = ["style"] if "code" in rule else []
            me.long_term.add(rule, layer=layer, type="decision", tags=tags)
    for memory in me.long_term.list(filter=Filter(types=["decision"]), sort_by="oldest"):
        print(f"  {memory.layer.value:<8} {memory.content}")


def look_up(me: AgentMemory) -> None:
    """The project's rule stands before the company's, and says so."""
    print("\nBefore writing code: which rule holds?")
    [best, *_] = me.long_term.search("How do I indent code?", ranking="precedence")
    [overridden] = me.long_term.get_many(best.overrides).values()
    print(f"  {best.memory.content}   ({best.memory.layer.value})")
    print(f"  and not: {overridden.content}   ({overridden.layer.value})")


def fix_a_bug(me: AgentMemory) -> str:
    """A task has a scope of working memory; what it finds out lasts, the rest goes with it."""
    print("\nA task: the total of an order is wrong by a cent")
    me.working.set("goal", "the total of an order is right")
    with me.working.create_scope("reproduce") as scope:
        scope.set("goal", "a test that fails")
        scope.set("attempts", ["one item: passes", "three items at 0.10: 0.30000000000000004"])
        print(f"  in the scope:  {scope.get('goal')}, {len(scope.get('attempts'))} attempts")
        finding = me.long_term.add(
            "Totals are wrong because prices are floats: 0.1 + 0.2 is not 0.3",
            layer="project",
            type="finding",
            source=Source(type=SourceType.TOOL_RESULT, reference="pytest tests/test_total.py"),
        )
    print(f"  after it:      {me.working.get('goal')}; attempts: {me.working.get('attempts')}")
    print(f"  what remains:  {finding.content}")
    return finding.id


def correct(me: AgentMemory, finding_id: str) -> None:
    """A decision changes. Nobody overwrites what they have not read, and the reason is one reference away."""
    print("\nThe decision is corrected, and keeps its history")
    price = me.long_term.search("How are prices stored?", filter=Filter(types=["decision"])).hits[0].memory
    new, read = "Prices are stored as whole cents, never as floats", 1
    me.long_term.update(price.id, content=new, references=[finding_id], if_version=read)
    try:
        me.long_term.update(price.id, content="Prices are stored as text", if_version=read)
    except Conflict as conflict:
        print(f"  somebody who read version {read} is told: {conflict.code}, {conflict.hint}")
    for version in me.long_term.history(price.id):
        print(f"  version {version.version}: {version.memory.content if version.memory else '(erased)'}")
    [reason] = me.long_term.list(filter=Filter(references=[price.id]))
    print(f"  because: {reason.content}")


def hand_over(memories: Memories) -> None:
    """Somebody else's agent: the project's memory is the same, working memory is not."""
    print("\nThe next day, Grace's agent writes an invoice")
    me = coder(memories, "grace")
    me.context.add("user", "Write the invoice module.")
    rules = me.long_term.search("How are prices stored, and how do I indent code?", ranking="precedence")
    prompt = me.context.compose(recalled=[RecalledMemory.of(hit) for hit in rules], budget_tokens=400)
    print("\n".join(f"  | {line}" for line in prompt.text.splitlines() if line.startswith("> ")))
    print(f"  {prompt.receipt.total_tokens} tokens. Her working memory: {me.working.keys() or 'empty'}")


def work(path: Path) -> None:
    """The whole story, on one file."""
    with wellkept.open(path) as memories:
        me = coder(memories, "ada")
        decide(me)
        look_up(me)
        correct(me, fix_a_bug(me))
    with wellkept.open(path) as memories:
        hand_over(memories)


def main() -> None:
    """Tell it, in a new file that is kept if it was named."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "memory.db"
        if path.exists():
            raise SystemExit("there is such a file already: name a new one")
        work(path)


if __name__ == "__main__":
    main()
