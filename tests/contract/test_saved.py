"""What users rely on, as it was saved: names and signatures, inputs of verbs, answers, and calls of the store.

A difference is a change of the contract. If it is meant, `pytest tests/contract/test_saved.py --save` writes the files
anew, and the change log says what a user must do about it.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.contract.parity.test_scenario import STEPS, Say, through_the_table, told
from tests.support.stand_ins import HandClock
from tests.support.terminal import environment
from tests.support.watched import watch
from wellkept import operations
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.stores.ram import RamStore

SAVED = Path(__file__).parent / "saved"
# Of these modules all names in `__all__`, or all that they define; of those further down, single names.
MODULES = (
    *("wellkept", "wellkept.aio", "wellkept.entitlements", "wellkept.errors", "wellkept.events", "wellkept.logs"),
    *("wellkept.memories", "wellkept.operations", "wellkept.ports", "wellkept.settings", "wellkept.telemetry"),
    *("wellkept.testing", "wellkept.types", "wellkept.window", "wellkept.working"),
)
NAMES = {
    "wellkept.embedders.bge": "BgeEmbedder",
    "wellkept.embedders.callable": "CallableEmbedder",
    "wellkept.embedders.hashing": "HashingEmbedder",
    "wellkept.embedders.http": "HttpEmbedder",
    "wellkept.embedders.model2vec": "Model2VecEmbedder",
    "wellkept.embedders.word_table": "WordTableEmbedder",
    "wellkept.indexes.ram": "RamIndex",
    "wellkept.recall.calibration": "Calibration",
    "wellkept.rerankers.cross_encoder": "CrossEncoder",
    "wellkept.stores.jsonl": "JsonlStore",
    "wellkept.stores.postgres": "PostgresStore",
    "wellkept.stores.ram": "RamStore",
    "wellkept.stores.sqlite": "SqliteStore",
    "wellkept.testing.builders": "Writer make_facets owner vector",
    "wellkept.testing.subject": "Subject",
    "wellkept.text.tokens": "TokenCounter bpe_counter by_characters",
    "wellkept.transfer.migration": "migrate",
}
SURFACE = ("wellkept.aio", "wellkept.memories")  # whose objects other objects hand out
Saved = Callable[[str, dict[str, Any]], None]


@pytest.fixture
def saved(request: pytest.FixtureRequest) -> Saved:
    """Compares values by name with those of a file, and says which differ, and how."""

    def compare(file: str, values: dict[str, Any]) -> None:
        path = SAVED / file
        if request.config.getoption("--save"):
            path.write_text(_lines(values), encoding="utf-8")
        before = json.loads(path.read_text(encoding="utf-8"))
        now = json.loads(_lines(values))
        changed = {
            name: (before.get(name), now.get(name)) for name in before | now if before.get(name) != now.get(name)
        }
        assert changed == {}, "changed, by name, as saved and now"

    return compare


def _lines(values: dict[str, Any]) -> str:
    """JSON with one line for each value, so that a difference can be read."""
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


# --- names and signatures ---------------------------------------------------------------------------------


def public_names() -> Iterator[tuple[str, Any]]:
    """Each public name with what it stands for."""
    for home in (*MODULES, *NAMES):
        module = importlib.import_module(home)
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == home]
        names = NAMES[home].split() if home in NAMES else getattr(module, "__all__", own)
        yield from ((f"{home}.{name}", getattr(module, name)) for name in sorted(names) if not name.startswith("_"))


def described(value: Any) -> Any:
    """What of a public name a program depends on: members, parameters, defaults. Types are for a type checker."""
    if isinstance(value, type):
        return dict(_members(value))
    return _signature(value) if inspect.isroutine(value) else type(value).__name__


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    if issubclass(kind, Enum):
        yield from ((name, str(member.value)) for name, member in kind.__members__.items())
        return
    if issubclass(kind, dict):  # a typed dictionary
        yield "keys", sorted(kind.__annotations__)
        return
    if issubclass(kind, BaseException):
        yield "caught as", [base.__name__ for base in kind.__mro__[1:-1]]
    elif is_dataclass(kind) or not kind.__module__.startswith(SURFACE):
        yield "made by", _signature(kind)
    if abstract := sorted(getattr(kind, "__abstractmethods__", ())):
        yield "abstract", abstract
    for name, member in sorted(inspect.getmembers(kind)):
        home = inspect.unwrap(getattr(member, "fget", None) or member)
        if not name.startswith("_") and str(getattr(home, "__module__", "")).startswith("wellkept"):
            yield name, _signature(member) if inspect.isroutine(member) else "value"


def _signature(call: Any) -> str:
    """The parameters with their kinds and defaults."""
    signature = inspect.signature(call)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    text = re.sub(r" at 0x\w+", "", text)
    text = re.sub(r"\w+Path\('[^']*'\)", "a path", text)
    return re.sub(r"frozenset\(\{(.*?)\}\)", lambda members: f"{{{', '.join(sorted(members[1].split(', ')))}}}", text)


def test_names_and_signatures(saved: Saved) -> None:
    saved("names.json", {name: described(value) for name, value in public_names()})


def test_inputs_of_verbs(saved: Saved) -> None:
    schemas = {name: operations.schema(name)["input"]["properties"] for name in operations.VERBS}
    saved("inputs.json", {name: _without_words(properties) for name, properties in schemas.items()})


def _without_words(schema: Any) -> Any:
    if isinstance(schema, list | tuple):
        return [_without_words(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    words = {"description", "title", "examples"}
    return {
        name: _without_words(part)
        for name, part in schema.items()
        if not (name in words and isinstance(part, str | list))
    }


# --- answers, and what they cost --------------------------------------------------------------------------


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
    """Plays the scenario on a database in RAM: the answers, and the calls of the store, by step and verb."""
    monkeypatch.chdir(tmp_path)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("WELLKEPT_DB")

    def play() -> tuple[dict[str, Any], dict[str, Any]]:
        calls: Counter[str] = Counter()
        counts: list[dict[str, int]] = []
        milliseconds = itertools.count()
        start = HandClock()()

        def clock() -> datetime:
            return start + timedelta(milliseconds=next(milliseconds))

        def counted(say: Say) -> Say:
            def answer(verb: str, payload: dict[str, Any]) -> Any:
                calls.clear()
                try:
                    return say(verb, payload)
                finally:
                    counts.append(dict(sorted(calls.items())))

            return answer

        store = watch(RamStore(clock=clock), lambda call, _: calls.update([call]))
        with wellkept.open(store=store, embedder=HashingEmbedder(32), clock=clock) as memories:
            answers = told(counted(through_the_table(memories)))
        steps = [f"{number:03} {verb}" for number, (verb, _) in enumerate(STEPS)]
        return (
            {step: [payload, answer] for step, (_, payload), (_, answer) in zip(steps, STEPS, answers, strict=True)},
            dict(zip(steps, counts, strict=True)),
        )

    return play


def test_answers_of_the_scenario(scenario: Callable[[], tuple[dict[str, Any], Any]], saved: Saved) -> None:
    saved("answers.json", scenario()[0])


def test_calls_of_the_store(scenario: Callable[[], tuple[Any, dict[str, Any]]], saved: Saved) -> None:
    """A verb that asks the store more often than before is slower on every server."""
    saved("store_calls.json", scenario()[1])
