"""LoCoMo and LongMemEval as they come, as the same few values: haystacks of turns, and questions about them."""

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

LOCOMO = "LoCoMo"
LONGMEMEVAL = "LongMemEval"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = CATEGORIES[5]

_FILES = {LOCOMO: "locomo*.json*", LONGMEMEVAL: "longmemeval_s*.json*"}
# The annotators wrote most ids as D8:6, some as D:8:6 or D8:06, and some put several into one text.
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One utterance: what becomes one memory. ``key`` names it in the benchmark."""

    key: str
    text: str
    author: str
    role: str | None
    at: datetime
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and the turns and sessions that hold the answer."""

    name: str
    text: str
    category: str
    turns: frozenset[str]
    sessions: frozenset[str] = frozenset()
    asked_at: datetime | None = None

    @property
    def adversarial(self) -> bool:
        """Whether it asks for something that was never said."""
        return self.category == ADVERSARIAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Haystack:
    """The turns that one database holds, in order of time, and the questions that are put to it."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def load(folder: Path, benchmark: str) -> list[Haystack]:
    """The haystacks of a benchmark; none if its file is not in the folder."""
    files = sorted(folder.glob(_FILES[benchmark]))
    if len(files) > 1:
        raise SystemExit(f"{folder} has more than one file of {benchmark}: {', '.join(file.name for file in files)}")
    if not files:
        return []
    content = files[0].read_bytes()
    items = json.loads(gzip.decompress(content) if files[0].suffix == ".gz" else content)
    haystacks = _locomo(items) if benchmark == LOCOMO else _longmemeval(items)
    return list(haystacks)


def _locomo(items: list[dict[str, Any]]) -> Iterator[Haystack]:
    for item in items:
        turns = tuple(_conversation(item["conversation"]))
        known = frozenset(turn.key for turn in turns)
        questions = tuple(
            _locomo_question(f"{item['sample_id']}/{number}", qa, known) for number, qa in enumerate(item["qa"])
        )
        yield Haystack(name=item["sample_id"], turns=turns, questions=questions)


def _conversation(conversation: dict[str, Any]) -> Iterator[Turn]:
    numbers = sorted(int(match[1]) for name in conversation if (match := re.fullmatch(r"session_(\d+)", name)))
    for number in numbers:
        date = conversation[f"session_{number}_date_time"]
        start = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for position, turn in enumerate(conversation[f"session_{number}"]):
            caption = turn.get("blip_caption")
            yield Turn(
                key=_turn_key(turn["dia_id"]),
                text=f"{turn['text']} [picture: {caption}]" if caption else turn["text"],
                author=turn["speaker"],
                role=None,
                at=start + timedelta(seconds=position),
                session=str(number),
            )


def _turn_key(text: str) -> str:
    match = _EVIDENCE.fullmatch(text)
    return f"D{int(match[1])}:{int(match[2])}" if match else text


def _locomo_question(name: str, qa: dict[str, Any], known: frozenset[str]) -> Question:
    """Evidence that names no turn of the conversation cannot be found by anybody, and is left out."""
    named = {f"D{int(session)}:{int(turn)}" for text in qa["evidence"] for session, turn in _EVIDENCE.findall(text)}
    return Question(name=name, text=qa["question"], category=CATEGORIES[qa["category"]], turns=frozenset(named & known))


def _longmemeval(items: list[dict[str, Any]]) -> Iterator[Haystack]:
    """One haystack per question; questions that have no answer (their ids end in _abs) are left out, as is usual."""
    for item in items:
        if item["question_id"].endswith("_abs"):
            continue
        marked = frozenset(
            f"{session}:{position}"
            for session, turns in zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True)
            for position, turn in enumerate(turns)
            if turn.get("has_answer")
        )
        question = Question(
            name=item["question_id"],
            text=item["question"],
            category=item["question_type"],
            turns=marked,
            sessions=frozenset(item["answer_session_ids"]),
            asked_at=_moment(item["question_date"]),
        )
        yield Haystack(name=item["question_id"], turns=tuple(_sessions(item)), questions=(question,))


def _sessions(item: dict[str, Any]) -> Iterator[Turn]:
    """The turns as an agent would have stored them: one session after the other, the oldest first."""
    dated = zip(item["haystack_dates"], item["haystack_session_ids"], item["haystack_sessions"], strict=True)
    for date, session, turns in sorted(dated, key=lambda one: _moment(one[0])):
        for position, turn in enumerate(turns):
            yield Turn(
                key=f"{session}:{position}",
                text=turn["content"],
                author=turn["role"],
                role=turn["role"],
                at=_moment(date) + timedelta(seconds=position),
                session=session,
            )


def _moment(text: str) -> datetime:
    """As in ``2023/12/21 (Thu) 21:31``."""
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
