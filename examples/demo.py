"""Wellkept at work on one embedded file: run it with ``make demo``.

Each chapter prints what it does and checks what it claims; a claim that does not hold ends the demo with an error.
The clock is a toy that the story moves on, so that "a minute ago" takes no minute.
"""

from __future__ import annotations

import math
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import wellkept
from wellkept import Filter, Hit, Memory, View
from wellkept.errors import Conflict
from wellkept.types import Position

STYLED = sys.stdout.isatty()
ERASED_TEXT = "The spare key lies under the marzipan jar"


@dataclass(slots=True)
class StoryClock:
    """A clock that stands still until the story moves it."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: int) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What the chapters share: the file, its clock, and the view of Ada's agent."""

    path: Path
    clock: StoryClock
    memories: wellkept.Memories
    ada: View


# --- printing and checking ------------------------------------------------------------------------


def styled(text: str, code: str) -> str:
    """The text with ANSI styling, if a person looks at a terminal."""
    return f"\x1b[{code}m{text}\x1b[0m" if STYLED else text


def chapter(title: str, code: str) -> None:
    """Print a heading and the call that the chapter is about."""
    print(f"\n{styled(title, '1;36')}\n{styled('-' * len(title), '36')}\n{styled('>>> ' + code, '2')}")


def say(text: str) -> None:
    """Print one line of the story."""
    print(f"    {text}")


def expect(claim: bool, what: str) -> None:
    """End the demo if a claim does not hold."""
    if not claim:
        raise SystemExit(f"the demo failed: {what}")


def show(memories: Iterable[Memory]) -> None:
    """Print memories, one a line."""
    for memory in memories:
        say(f"{memory.layer.value:<8} {memory.type.value:<11} {memory.content}")


def show_hits(hits: Iterable[Hit]) -> None:
    """Print what a search found, with scores and their parts."""
    for hit in hits:
        say(f"{hit.rank}. {hit.score:.2f}  {hit.memory.content}   ({hit.memory.layer.value})")
        parts = ", ".join(f"{name} {odds:+.1f}" for name, odds in hit.reasons.items())
        for line in textwrap.wrap(parts, 80):
            say(f"         {line}")


def contents(memories: Iterable[Memory]) -> list[str]:
    """The texts alone."""
    return [memory.content for memory in memories]


def found(view: View, query: str) -> list[str]:
    """The texts that a search finds."""
    return contents(hit.memory for hit in view.search(query, min_score=0.1))


def bytes_left(path: Path, text: str) -> int:
    """How often a text stands in the database file and in the logs beside it."""
    files = path.parent.glob(f"{path.name}*")
    return sum(file.read_bytes().count(text.encode()) for file in files)


# --- the chapters ---------------------------------------------------------------------------------


def remember(story: Story) -> None:
    """Memories under five layers."""
    chapter("Remember: five layers, one file", 'ada.add("...", layer="team", type="decision", tags=["style"])')
    add, yesterday = story.ada.add, story.clock() - timedelta(days=1)
    add("The flaky test is test_upload; run it twice", layer="agent", type="insight", tags=["tests"])
    add("Ada prefers short answers", layer="user", type="preference", importance=0.9, tags=["style.answers"])
    add("The API listens on port 8080", layer="project", tags=["api"])
    add("The upload test failed on main", layer="project", type="event", occurred_at=yesterday, tags=["tests"])
    add("We indent code with tabs", layer="team", type="decision", tags=["style.code"])
    add("Releases go out on Fridays", layer="company", key="release-day", tags=["releases"])
    add("Releases go out on Fridays", layer="company", key="release-day", tags=["releases"])  # said twice, kept once
    page = story.ada.list(sort_by="oldest")
    show(page)
    expect(page.total == 6, "six memories are kept, the repeated key only once")
    say("The release day was added twice under one key, and is kept once.")


def recall(story: Story) -> None:
    """Search by meaning, with scores and reasons."""
    chapter("Recall: scores from 0 to 1, with their reasons", 'ada.search("is the upload test flaky?", explain=True)')
    results = story.ada.search("is the upload test flaky?", limit=2, explain=True)
    show_hits(results)
    hits = results.hits
    expect({"agent", "project"} <= {hit.memory.layer.value for hit in hits}, "the hits come from several layers")
    expect(hits[0].memory.content.startswith("The flaky test"), "the best hit is the answer")
    expect({"similarity", "words"} <= set(hits[0].reasons), "both signals are explained")
    odds = sum(hits[0].reasons.values())
    expect(abs(1 / (1 + math.exp(-odds)) - hits[0].score) < 0.001, "the parts add up to the score")
    say(f"The parts are log-odds: they add up to {odds:.2f}, and 1 / (1 + exp(-{odds:.2f})) is {hits[0].score:.2f}.")

    chapter("Recall: by meaning, not only by words", 'ada.search("spaces or tabulators?", limit=1)')
    meant = story.ada.search("spaces or tabulators?", limit=1)
    show_hits(meant)
    expect(contents(hit.memory for hit in meant) == ["We indent code with tabs"], "no word is shared, and yet")
    expect(meant.semantic, "meaning took part")
    say("It shares no word with the question. The built-in embedder knows what words mean.")


def converse(story: Story) -> None:
    """A conversation: who said what, when, and in answer to what."""
    chapter("Conversations: turns know their neighbours", "chat.add(turn, author=..., role=..., occurred_at=...)")
    chat = story.memories.view(user="ada", session="monday")
    monday = story.clock() - timedelta(days=2)
    for author, role, turn in (
        ("Bob", "assistant", "Which theme shall the editor have?"),
        ("Ada", "user", "The dark one, please."),
        ("Bob", "assistant", "And how shall I call you?"),
        ("Ada", "user", "Just Ada."),
    ):
        chat.add(turn, layer="session", type="conversation", author=author, role=role, occurred_at=monday)
    answer = chat.search("What theme did Ada want two days ago?", limit=1, explain=True)
    show_hits(answer)
    reasons = answer.hits[0].reasons
    expect(answer.hits[0].memory.content == "The dark one, please.", "the answer is found by the question before it")
    expect(reasons["author"] > 0 and reasons["date"] > 0, "who said it and when count as well")
    unknown = chat.search("Who won the chess championship?")
    say(f"and what nobody ever spoke of: {contents(hit.memory for hit in unknown)}")
    expect(not unknown.hits, "an unknown question comes back empty")


def narrow(story: Story) -> None:
    """A listing by tag and by time."""
    chapter("Narrow down: tags are a hierarchy", 'ada.list(filter=Filter(tags=["style"]))')
    by_tag = story.ada.list(filter=Filter(tags=["style"]))
    show(by_tag)
    expect(len(by_tag) == 2, "'style' finds style.code and style.answers")
    story.clock.advance(600)
    story.ada.add("The upload test needs a bigger disk", layer="project", type="finding", tags=["tests"])
    chapter("Narrow down: by when it was recorded, or when it happened", 'ada.list(filter=Filter(within="5m"))')
    recent = story.ada.list(filter=Filter(within="5m"))
    show(recent)
    expect(contents(recent) == ["The upload test needs a bigger disk"], "one memory is younger than five minutes")
    past = story.ada.list(filter=Filter(occurred_before=story.clock() - timedelta(hours=12)))
    say("and what happened more than twelve hours ago:")
    show(past)
    expect(contents(past) == ["The upload test failed on main"], "one memory tells of yesterday")


def change(story: Story) -> None:
    """An update, and one that comes too late."""
    chapter("Change: nobody overwrites what they have not read", "ada.update(id, content=..., if_version=1)")
    release = story.ada.list(filter=Filter(tags=["releases"])).memories[0]
    changed = story.ada.update(release.id, content="Releases go out on Tuesdays", if_version=1)
    say(f"version {release.version}: {release.content}")
    say(f"version {changed.version}: {changed.content}")
    expect(found(story.ada, "releases") == ["Releases go out on Tuesdays"], "search finds the new text only")
    try:
        story.ada.update(release.id, content="Releases go out on Mondays", if_version=1)
    except Conflict as conflict:
        say(f"a second writer who read version 1 gets {conflict.code}: {conflict.hint}")
        expect(conflict.details["version"] == changed.version, "the conflict names the version that is stored")
    else:
        raise SystemExit("the demo failed: a stale update went through")


def forget(story: Story) -> None:
    """Forget, and bring back."""
    chapter("Forget and restore", 'ada.forget(id, reason="moved"); ada.restore(id)')
    port = story.ada.list(filter=Filter(tags=["api"])).memories[0]
    expect(story.ada.forget(port.id, reason="moved"), "there was something to forget")
    say(f"forgotten: get gives {story.ada.get(port.id)}, search finds {found(story.ada, 'port')}")
    expect(not found(story.ada, "port") and story.ada.get(port.id) is None, "a forgotten memory is out of sight")
    story.clock.advance(10)
    expect(story.ada.restore(port.id), "it can be brought back")
    say(f"restored:  search finds {found(story.ada, 'which port?')}")
    expect(found(story.ada, "port") == [port.content], "a restored memory is found again")


def erase(story: Story) -> None:
    """Erase, and look for the bytes."""
    chapter("Erase: the bytes are gone", "ada.forget(id, permanent=True)")
    secret = story.ada.add(ERASED_TEXT, layer="user")
    before = bytes_left(story.path, ERASED_TEXT)
    expect(before > 0, "the secret is in the file before it is erased")
    story.clock.advance(10)
    story.ada.forget(secret.id, permanent=True, reason="asked to")
    after = bytes_left(story.path, ERASED_TEXT)
    say(f"copies of the text in memory.db and its write-ahead log: {before} before, {after} after")
    expect(after == 0, "no byte of the secret is left")
    expect(bytes_left(story.path, "marzipan") == 0, "no single word of it is left in the file either")
    [mark] = story.ada.history(secret.id)
    say(f"what remains: version {mark.version} {mark.operation.value}, reason {mark.reason!r}, memory {mark.memory}")
    expect(mark.memory is None, "the mark holds no content")


def look_back(story: Story) -> None:
    """History of one memory, and all of them as they were."""
    release = story.ada.list(filter=Filter(tags=["releases"])).memories[0]
    chapter("History: every version of one memory", "ada.history(id)")
    versions = story.ada.history(release.id)
    for version in versions:
        text = version.memory.content if version.memory else ""
        say(f"{version.recorded_at:%H:%M:%S}  version {version.version} {version.operation.value:<9} {text}")
    expect([version.version for version in versions] == [1, 2], "both versions are kept")

    minute_ago = story.clock() - timedelta(minutes=1)
    chapter("Time travel: all memories as they were a minute ago", 'ada.search("releases", as_of=minute_ago)')
    then = contents(hit.memory for hit in story.ada.search("releases", as_of=minute_ago, min_score=0.1))
    say(f"{story.clock():%H:%M:%S}  {found(story.ada, 'releases')}")
    say(f"{minute_ago:%H:%M:%S}  {then}")
    expect(then == ["Releases go out on Fridays"], "a minute ago it was Fridays")
    expect(ERASED_TEXT not in contents(story.ada.list(as_of=minute_ago)), "what is erased is erased in the past, too")


def isolate(story: Story) -> None:
    """Another user."""
    chapter("Isolation: another user sees nothing of it", 'memories.view(user="bob")')
    bob = story.memories.view(user="bob")
    [preference] = story.ada.list(layers=["user"])
    attempts: dict[str, Callable[[], object]] = {
        'bob.search("short answers")': lambda: found(bob, "short answers"),
        "bob.get(the id of Ada's memory)": lambda: bob.get(preference.id),
        "bob.forget(the same id)": lambda: bob.forget(preference.id, permanent=True),
        "bob.history(the same id)": lambda: bob.history(preference.id),
        "bob.count()": bob.count,
    }
    for what, attempt in attempts.items():
        answer = attempt()
        say(f"{what:<32} {answer!r}")
        expect(not answer, f"{what} shows or changes nothing")
    colleague = story.memories.view(user="bob", team="core")
    say(f"with team='core' he sees the team's: {contents(colleague.list())}")
    expect(contents(colleague.list()) == ["We indent code with tabs"], "the team's memory is shared with its members")


def follow(story: Story, bookmark: Position) -> None:
    """The change feed, resumed at a position."""
    chapter("Change feed: resume where you stopped", "ada.changes(after=position)")
    news = story.ada.changes(after=bookmark)
    for version in news:
        text = version.memory.content if version.memory else "(erased)"
        say(f"{version.recorded_at:%H:%M:%S}  {version.operation.value:<9}  {text}")
    say("Versions of the secret are gone from the feed: only its tombstone is left.")
    expect(news[-1].operation.value == "erased", "the feed ends with the erasure")
    expect(ERASED_TEXT not in [version.memory.content for version in news if version.memory], "the feed has no secret")
    expect(not story.ada.changes(after=news.next), "nothing is delivered twice")


def close_and_check(path: Path, clock: StoryClock) -> None:
    """The file opened again, counted and checked."""
    chapter("Open it again, count and check", 'wellkept.open("memory.db"); ada.stats(); memories.doctor()')
    with wellkept.open(path, clock=clock) as memories:
        stats = view_of_ada(memories).stats()
        say(f"{stats.active} active, {stats.forgotten} forgotten, {stats.bytes_used} bytes of memories and vectors")
        say(", ".join(f"{count} {kind}" for kind, count in stats.by_type.items()))
        expect(stats.active == 7, "all seven memories survived closing")
        diagnosis = memories.doctor()
        say(f"doctor checked {', '.join(diagnosis.checks[:8])} and {len(diagnosis.checks) - 8} more")
        say(f"verdict: {'healthy' if diagnosis.healthy else diagnosis.findings}")
        facts = diagnosis.facts
        say(f"schema {facts['schema']}, SQLite {facts['sqlite']}, durability {facts['durability']}")
        expect(diagnosis.healthy, "doctor finds nothing wrong")


def view_of_ada(memories: wellkept.Memories) -> View:
    """What Ada's debugging agent sees."""
    return memories.view(agent="debugger", user="ada", project="api", team="core", company="acme")


def main() -> None:
    """Tell the story."""
    clock = StoryClock(datetime(2026, 1, 7, 9, 0, tzinfo=UTC))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with wellkept.open(path, clock=clock) as memories:
            story = Story(path=path, clock=clock, memories=memories, ada=view_of_ada(memories))
            remember(story)
            bookmark = story.ada.changes().next
            recall(story)
            converse(story)
            narrow(story)
            clock.advance(60)
            change(story)
            clock.advance(10)
            forget(story)
            erase(story)
            look_back(story)
            isolate(story)
            follow(story, bookmark)
        close_and_check(path, clock)
    print(f"\n{styled('Everything held.', '1;32')} Next: docs/guides/quickstart.md.")


if __name__ == "__main__":
    main()
