"""Memories, hits and versions on the screen: tables on a wide terminal, cards on a narrow one, lines for a pipe."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from wellkept.cli import charts, widgets
from wellkept.cli.converters import local_now
from wellkept.cli.screen import NARROW, Screen, one_line, safe
from wellkept.cli.short_ids import short
from wellkept.text import plurals
from wellkept.types import Operation
from wellkept.types.memory import DEFAULT_TRUST

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from wellkept.operations.facts import Found
    from wellkept.operations.graph import Graph
    from wellkept.operations.history import Versions
    from wellkept.types import Conversation, Hit, Lineage, Memory, Page, Results, Version

_EXCERPT = 280
_ID_FITS = 60
_STYLES = {
    Operation.ADDED: "green",
    Operation.UPDATED: "cyan",
    Operation.FORGOTTEN: "yellow",
    Operation.ARCHIVED: "yellow",
    Operation.RESTORED: "green",
    Operation.QUARANTINED: "red",
    Operation.MOVED: "cyan",
    Operation.ERASED: "red",
}


def results(screen: Screen, answer: Results, given: Any) -> None:
    """The hits with bars for their scores, the words of the query marked, and the reasons if they were asked for."""
    if not screen.terminal:
        screen.rows(_cells(hit, explained=given.explain) for hit in answer)
        return
    if not answer.hits:
        screen.line("Nothing here seems to be about that.", "yellow")
        screen.line("--min-score 0 gives whatever comes nearest.", "dim")
        return
    now, losers = local_now(), {id: hit.memory.id for hit in answer for id in hit.overrides}
    for hit in answer:
        _hit(screen, hit, given, now, losers.get(hit.memory.id))
    if answer.total > len(answer) >= given.limit:
        screen.line(f"{len(answer)} of {answer.total}; --limit shows more", "dim")
    if not answer.semantic:
        screen.line("found by words alone: there is no embedder, or it did not answer", "yellow")


def _cells(hit: Hit, *, explained: bool) -> tuple[str, ...]:
    """A hit for a pipe: score, id, type, content, and the reasons if they were asked for."""
    cells = (f"{hit.score:.3f}", hit.memory.id, hit.memory.type.value, hit.memory.content)
    reasons = " ".join(f"{name}={value:+.3f}" for name, value in hit.reasons.items())
    return (*cells, reasons) if explained else cells


def _hit(screen: Screen, hit: Hit, given: Any, now: datetime, winner: str | None) -> None:
    score = charts.bar(hit.score, 10, plain=screen.plain)
    fits = screen.width >= _ID_FITS
    id = f"  {screen.styled(short(hit.memory.id), 'dim')}" if fits else ""
    screen.line(f"{hit.rank:>2} {screen.styled(score, 'cyan')} {hit.score:.2f}{id}")
    if not fits:
        screen.line(f"   {short(hit.memory.id)}", "dim")
    _wrapped(screen, _marked(excerpt(hit.memory.content, hit.passage), given.query))
    screen.show(_indented(_facts(hit.memory, now), "dim"))
    _standing(screen, hit, winner, hides=not given.overridden)
    names = max(map(len, hit.reasons), default=0)
    room = max(5, min(24, screen.width - names - 12))
    for name, drawn, value in charts.signed_bars(hit.reasons, room, plain=screen.plain):
        style = "green" if value >= 0 else "red"
        screen.line(f"   {name.replace('_', ' ').ljust(names)} {screen.styled(drawn, style)} {value:+.2f}")
    screen.line()


def _standing(screen: Screen, hit: Hit, winner: str | None, *, hides: bool) -> None:
    """What a hit stands for or against: its file, what it overrides, what overrides it, what says the same."""
    if hit.stale:
        screen.line("   stale: the file has changed or is gone; wellkept refresh brings it up to date", "yellow")
    if hit.overrides:
        count = len(hit.overrides)
        told = plurals.counted(count, "memory of another layer", "memories of other layers")
        more = f"; --overridden shows {'it' if count == 1 else 'them'}" if hides else ""
        screen.line(f"   overrides {told}{more}", "magenta")
    if winner is not None:
        screen.line(f"   overridden by {short(winner)}", "magenta")
    if hit.duplicates:
        screen.line(f"   {len(hit.duplicates)} more say the same", "magenta")


def excerpt(content: str, passage: tuple[int, int] | None) -> str:
    """The part of a content to show: the passage that was found, or the beginning.

    >>> excerpt("a" * 300, None)[-3:], len(excerpt("short", None))
    ('aa…', 5)
    """
    start, end = passage or (0, len(content))
    end = min(end, start + _EXCERPT)
    return ("…" if start else "") + content[start:end] + ("…" if end < len(content) else "")


def _marked(text: str, query: str) -> Text:
    """The text with the words of the query marked, in any inflection."""
    import re  # lazy: with rich, which needs it anyway

    from rich.text import Text  # lazy: as in the screen

    from wellkept.text import query_text, words  # lazy: a search has loaded it by now

    shown = Text(one_line(text))
    wanted = set(query_text.parse(query).terms)
    for word in re.finditer(r"\w+", shown.plain):
        if wanted.intersection(words.terms(word[0])):
            shown.stylize("bold yellow", *word.span())
    return shown


def _wrapped(screen: Screen, text: Text) -> None:
    from rich.padding import Padding  # lazy: as above

    screen.show(Padding(text, (0, 0, 0, 3), expand=False))


def _indented(text: str, style: str) -> Any:
    from rich.padding import Padding  # lazy: as above
    from rich.text import Text  # lazy: as above

    return Padding(Text(text, style=style), (0, 0, 0, 3), expand=False)


def _facts(memory: Memory, now: datetime) -> str:
    doubtful = f"trust {memory.trust:g}" if memory.trust < DEFAULT_TRUST else ""
    told = (memory.type.value, _owner(memory), memory.author or "", charts.ago(memory.occurred_at, now), doubtful)
    parts = (*told, *memory.tags)
    return one_line(" · ".join(filter(None, parts)))


def page(screen: Screen, answer: Page, _: Any) -> None:
    """A table, or cards on a narrow terminal."""
    if not screen.terminal:
        screen.rows((one.id, one.type.value, one.created_at.isoformat(), one.content) for one in answer)
        return
    if not answer.memories:
        screen.line("No memories.", "yellow")
        return
    now = local_now()
    if screen.width < NARROW:
        for one in answer:
            _card(screen, one, now)
    else:
        screen.show(_table(answer, now))
    screen.line(f"{len(answer)} of {answer.total}", "dim")
    if answer.next_cursor:
        screen.line(f"more: --all, or --cursor {answer.next_cursor}", "dim")


def _card(screen: Screen, memory: Memory, now: datetime) -> None:
    from rich.text import Text  # lazy: as above

    screen.show(Text(one_line(excerpt(memory.content, None))))
    screen.show(_indented(_facts(memory, now), "dim"))
    screen.line(f"   {short(memory.id)}", "dim")


def _table(memories: Iterable[Memory], now: datetime) -> Table:
    from rich.table import Table  # lazy: as above
    from rich.text import Text  # lazy: as above

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("when", no_wrap=True, style="dim")
    table.add_column("type", no_wrap=True, style="cyan")
    table.add_column("content", ratio=1)
    table.add_column("tags", style="magenta", max_width=20)
    table.add_column("owner", style="dim", max_width=24)
    table.add_column("id", no_wrap=True, style="dim")
    for one in memories:
        content = Text(one_line(excerpt(one.content, None)), style="" if one.state.value == "active" else "strike dim")
        tags = one_line(", ".join(one.tags))
        table.add_row(
            charts.ago(one.created_at, now), one.type.value, content, Text(tags), Text(_owner(one)), short(one.id)
        )
    return table


def _owner(memory: Memory) -> str:
    return one_line(f"{memory.layer.value} {'/'.join(memory.owner.ids)}")


def memory(screen: Screen, answer: Memory, _: Any) -> None:
    """All fields of a memory."""
    pairs = [
        ("id", answer.id),
        ("owner", f"{answer.layer.value} {'/'.join(answer.owner.ids)}"),
        ("type", answer.type.value + (f" ({answer.type_name})" if answer.type_name else "")),
        ("importance", f"{answer.importance:g}"),
        ("tags", ", ".join(answer.tags)),
        ("title", answer.title),
        ("description", answer.description),
        ("author", f"{answer.author or ''} {f'({answer.role})' if answer.role else ''}".strip()),
        ("session", answer.session),
        ("language", answer.language),
        ("confidence", answer.confidence),
        ("relevance", answer.relevance),
        ("decay", answer.decay_factor),
        ("source", f"{answer.source.type.value} {answer.source.reference or ''}" if answer.source else None),
        ("pointer", f"{answer.pointer.source_type.value} {answer.pointer.source_id}" if answer.pointer else None),
        ("trust", f"{answer.trust:g}"),
        ("derived from", ", ".join(answer.derived_from)),
        ("refers to", ", ".join(answer.references)),
        ("key", answer.key if answer.fact is None else None),
        *(() if answer.fact is None else (("kind", answer.fact.kind), ("holds", _held(answer)))),
        ("superseded by", answer.superseded_by),
        ("state", answer.state.value),
        ("version", answer.version),
        ("happened", _moment(answer.occurred_at)),
        ("recorded", _moment(answer.created_at)),
        ("changed", _moment(answer.updated_at)),
        ("expires", _moment(answer.expires_at)),
        ("read", f"{answer.access_count} times"),
        *((f"meta.{name}", value) for name, value in answer.metadata.items()),
        ("vector", f"{answer.vector.embedder}, {answer.vector.dimension} numbers" if answer.vector else None),
    ]
    screen.line(safe(answer.content) if screen.terminal else answer.content)
    screen.line()
    widgets.pairs(screen, [(name, str(value)) for name, value in pairs if value not in (None, "")])


def conversation(screen: Screen, answer: Conversation, _: Any) -> None:
    """How many turns are new, and what was made of them."""
    if not screen.terminal:
        screen.rows((one.id, one.type.value, one.content) for one in answer.memories)
        return
    screen.line(f"{answer.added} of {len(answer.turns)} turns are new", "green")
    for one in answer.memories:
        screen.line(f"{one.type.value:<11} {one_line(one.content)}")


def _moment(moment: datetime | None) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}" if moment else ""


def history(screen: Screen, answer: Versions, _: Any) -> None:
    """Every version, with its content where it changed."""
    changes(screen, answer, _)


def changes(screen: Screen, answer: Versions, _: Any) -> None:
    """A line for each change, and the content where it is new or changed."""
    before: dict[str, str] = {}
    for version in answer.versions:
        _version(screen, version)
        content = version.memory.content if version.memory else ""
        if screen.terminal and content and content != before.get(version.memory_id):
            _wrapped(screen, _marked(excerpt(content, None), ""))
        before[version.memory_id] = content


def _version(screen: Screen, version: Version) -> None:
    if screen.terminal:
        style = _STYLES[version.operation]
        id = f"{short(version.memory_id)} v{version.version}"
        room = screen.width >= _ID_FITS + 20
        screen.line(
            f"{version.recorded_at.astimezone():%m-%d %H:%M:%S} "
            f"{screen.styled(version.operation.value.ljust(9), style)}{f' {id}' if room else ''}"
        )
        if not room:
            screen.line(id, "dim")
        if version.reason:
            screen.line(f"       {one_line(version.reason)}", "dim")
        return
    content = version.memory.content if version.memory else ""
    screen.rows(
        [
            (
                version.position or "",
                version.recorded_at.isoformat(),
                version.operation.value,
                version.memory_id,
                str(version.version),
                version.reason or "",
                content,
            )
        ]
    )


def facts(screen: Screen, answer: Found, _: Any) -> None:
    """A row for each fact: what it says, how certain it is, when it holds, and its id."""
    rows = [
        (
            fact.subject,
            fact.predicate,
            fact.object,
            "" if memory.confidence is None else f"{memory.confidence:.2f}",
            _held(memory),
            short(memory.id) if screen.terminal else memory.id,
        )
        for memory in answer.memories
        if (fact := memory.fact) is not None
    ]
    if screen.terminal and not rows:
        screen.line("No such fact.", "yellow")
    widgets.table(screen, ("subject", "predicate", "object", "confidence", "holds", "id"), rows)


def _held(memory: Memory) -> str:
    """From when until when a fact holds."""
    if memory.fact is None:
        return ""
    times = (memory.fact.valid_from or memory.occurred_at, memory.fact.valid_until)
    return " to ".join("" if time is None else f"{time:%Y-%m-%d}" for time in times)


def lineage(screen: Screen, answer: Lineage, _: Any) -> None:
    """The memories before and after, one line each."""
    if screen.terminal and not (answer.replaced or answer.replaced_by):
        screen.line("It replaced nothing, and nothing replaced it.", "yellow")
    for word, memories in (("replaced", answer.replaced), ("replaced by", answer.replaced_by)):
        screen.rows((word, memory.id, one_line(memory.content[:_EXCERPT])) for memory in memories)


def graph(screen: Screen, answer: Graph, _: Any) -> None:
    """The references as a tree."""
    if not screen.terminal:
        screen.rows((edge.source, edge.target) for edge in answer.edges)
        return
    if not answer.edges:
        screen.line("No references.", "yellow")
    from wellkept.cli import graph_views  # lazy: one command needs it

    for branch in graph_views.tree(answer, plain=screen.plain):
        again = " (see above)" if branch.repeated else ""
        id = f"  {short(branch.node.id)}" if screen.width >= NARROW else ""
        room = max(10, screen.width - len(branch.prefix) - len(again) - len(id))
        label = charts.cut(one_line(branch.node.label), room)
        screen.line(f"{branch.prefix}{label}{screen.styled(again + id, 'dim')}")
    if not answer.complete:
        screen.line("There are more; --limit shows them.", "yellow")


def live_table(screen: Screen, versions: list[Version], total: int, last: int) -> Table:
    """The latest changes, and their total number."""
    from rich.table import Table  # lazy: as above
    from rich.text import Text  # lazy: as above

    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.caption = Text(f"{total} changes, the last is {last}; Ctrl-C ends", style="dim")
    table.add_column("at", no_wrap=True, style="dim")
    table.add_column("what", no_wrap=True)
    table.add_column("content", ratio=1, no_wrap=True, overflow="ellipsis")
    if screen.width >= NARROW:
        table.add_column("id", no_wrap=True, style="dim")
    for version in versions:
        content = one_line(version.memory.content[:_EXCERPT]) if version.memory else ""
        cells = [
            Text(f"{version.recorded_at.astimezone():%H:%M:%S}"),
            Text(version.operation.value, style=_STYLES[version.operation]),
            Text(content or one_line(version.reason or "")),
            Text(short(version.memory_id)),
        ]
        table.add_row(*cells[: len(table.columns)])
    return table
