"""The settings of the JSON Lines store: what a file may say, and where a mistake stands."""

import json
import math
import os
import pickle
from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.errors import ConfigurationError
from recollect.lifecycle import decay
from recollect.stores.jsonl import positions
from recollect.stores.jsonl.config import (
    FILE_BYTES,
    ConcurrencyConfig,
    DecayConfig,
    HalfLives,
    IntegrityConfig,
    JsonlConfig,
    PerformanceConfig,
    StorageConfig,
    dump,
    load,
)
from recollect.stores.jsonl.locks import LockSettings
from recollect.types import MemoryType

DEFAULTS: dict[str, Any] = {
    "version": "1.0",
    "storage": {
        "root_directory": "./memory",
        "max_session_size_mb": 10,
        "compaction_threshold": 0.9,
        "auto_compact": True,
    },
    "concurrency": {"lock_timeout_ms": 5000, "max_retries": 3, "retry_backoff_ms": 100},
    "decay": {
        "enabled": True,
        "update_interval_minutes": 60,
        "type_specific": {
            "conversation": {"half_life_hours": 168},
            "decision": {"half_life_hours": 720},
            "finding": {"half_life_hours": 336},
            "preference": {"decay_enabled": False},
        },
        "min_decay_factor": 0.1,
    },
    "performance": {"cache_size": 100, "batch_write_interval_ms": 1000, "index_in_memory": True},
    "integrity": {"enable_checksums": True, "checksum_algorithm": "sha256"},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.json"


def refused(file: Path, text: str) -> ConfigurationError:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load(file)
    assert caught.value.hint
    assert caught.value.details["file"] == "config.json"
    return caught.value


# --- what is right --------------------------------------------------------------------------------


@pytest.mark.req("J13")
def test_the_keys_and_defaults_are_those_of_the_source(file: Path) -> None:
    assert load(file) == JsonlConfig()
    file.write_text(json.dumps(DEFAULTS))
    assert load(file) == JsonlConfig()
    file.write_text("{}")
    assert load(file) == JsonlConfig()
    written = json.loads(dump(JsonlConfig()))
    types = written["decay"]["type_specific"]
    assert types.keys() - DEFAULTS["decay"]["type_specific"].keys() == {"fact", "event", "insight", "correction"}
    written["decay"]["type_specific"] = {name: types[name] for name in DEFAULTS["decay"]["type_specific"]}
    assert written == DEFAULTS
    assert list(written) == list(DEFAULTS)


@pytest.mark.req("J13")
def test_types_fade_as_they_do_elsewhere() -> None:
    assert {one.name for one in fields(HalfLives)} == {type.value for type in MemoryType}
    for type, half_life in decay.HALF_LIVES.items():
        hours = HalfLives().of(type)
        assert half_life == (None if hours is None else timedelta(hours=hours))


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high) | st.integers(math.ceil(low), math.floor(high))


hours = st.none() | numbers(0.001, 10_000_000)
flags = st.booleans()
folders = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=30)
configs = st.builds(
    JsonlConfig,
    storage=st.builds(
        StorageConfig,
        root_directory=folders,
        max_session_size_mb=numbers(0.001, 1_000_000),
        compaction_threshold=numbers(0.01, 1),
        auto_compact=flags,
    ),
    concurrency=st.builds(
        ConcurrencyConfig,
        lock_timeout_ms=numbers(0, 3_600_000),
        max_retries=st.integers(0, 100),
        retry_backoff_ms=numbers(1, 60_000),
    ),
    decay=st.builds(
        DecayConfig,
        enabled=flags,
        update_interval_minutes=numbers(0.001, 1_000_000),
        type_specific=st.builds(HalfLives, **{type.value: hours for type in MemoryType}),
        min_decay_factor=numbers(0, 1),
    ),
    performance=st.builds(
        PerformanceConfig,
        cache_size=st.integers(0, 10_000_000),
        batch_write_interval_ms=numbers(0, 3_600_000),
        index_in_memory=flags,
    ),
    integrity=st.builds(IntegrityConfig, enable_checksums=flags),
)


@pytest.mark.req("J13")
@given(config=configs)
def test_what_is_dumped_is_loaded_and_dumped_the_same(
    config: JsonlConfig, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("dump") / "config.json"
    file.write_text(dump(config), encoding="utf-8")
    assert load(file) == config
    assert dump(load(file)) == dump(config)
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(config) == hash(load(file))


def test_a_file_of_another_editor_is_read(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbf{\r\n\t"storage": {"root_directory": "m\xc3\xa9moire"}\r\n}\r\n')
    assert load(file).storage.root_directory == "mémoire"


@pytest.mark.req("J3", "J13")
def test_locks_take_their_settings_from_the_file() -> None:
    config = ConcurrencyConfig(lock_timeout_ms=200, retry_backoff_ms=50)
    assert config.locks == LockSettings(timeout_ms=200, longest_pause_ms=5)
    assert ConcurrencyConfig().locks == LockSettings()


@pytest.mark.req("J2", "J13")
def test_a_session_may_have_settings_of_its_own() -> None:
    config = JsonlConfig().merged(
        {
            "decay_config": {"enabled": False, "half_life_hours": 100, "min_decay_factor": 0.2},
            "compaction_config": {"auto_compact": False, "threshold": 0.95},
        }
    )
    assert (config.decay.enabled, config.decay.min_decay_factor) == (False, 0.2)
    assert (config.storage.auto_compact, config.storage.compaction_threshold) == (False, 0.95)
    lives = config.decay.type_specific
    assert {type for type in MemoryType if lives.of(type) is None} == {MemoryType.PREFERENCE, MemoryType.CORRECTION}
    assert {lives.of(type) for type in MemoryType} == {100, None}
    assert config.storage.max_session_size_mb == 10
    assert JsonlConfig().merged({}) == JsonlConfig()


@pytest.mark.req("J13")
def test_a_type_can_be_kept_from_fading_and_made_to_fade(file: Path) -> None:
    file.write_text(
        '{"decay": {"type_specific": {"fact": {"decay_enabled": false, "half_life_hours": 3}, "event": {},'
        ' "decision": {"decay_enabled": true}, "preference": {"decay_enabled": true, "half_life_hours": 3}}}}'
    )
    lives = load(file).decay.type_specific
    assert (lives.fact, lives.event, lives.decision, lives.preference) == (None, 336, 720, 3)


# --- what is wrong --------------------------------------------------------------------------------


@pytest.mark.req("J13")
@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        ("", 1, 1, "a value is missing"),
        ('{\n  "storage": {\n    "auto_compact": true,\n  }\n}', 4, 3, "a key in double quotes is missing"),
        ('{\n  "storage" {}\n}', 2, 13, "a colon is missing"),
        ('{\n  "storage": {}\n  "decay": {}\n}', 3, 3, "a comma or '}' is missing"),
        ('{"storage": {}', 1, 15, "a comma or '}' is missing"),
        ("[1\n 2]", 2, 2, "a comma or ']' is missing"),
        ('{\n  "version": "1.0\n}', 2, 18, "invalid control character"),
        ('{\n  "version": "1.0', 2, 14, "this text has no end"),
        ('{"version": "1\\q"}', 1, 15, "invalid \\escape"),
        ("{}\n}", 2, 1, "there is more after the end"),
        ('{"storage": {},\n "storage": {}}', 2, 2, "this key was given before"),
        ('{"version": NaN}', 1, 13, "no number that can be used"),
        ('{"version": -Infinity}', 1, 13, "no number that can be used"),
        ('{"version": ' + "9" * 5_000 + "}", 1, 13, "no number that can be used"),
        ('{"version": tru}', 1, 13, "a value is missing"),
        ("[" * 100_000, 1, 34, "nested deeper than 32"),
        ('{"a":' * 100_000, 1, 166, "nested deeper than 32"),
    ],
)
def test_a_mistake_of_writing_is_found_where_it_stands(
    file: Path, text: str, line: int, column: int, what: str
) -> None:
    error = refused(file, text)
    assert (error.details["line"], error.details["column"]) == (line, column)
    assert str(error).startswith(f"config.json, line {line}, column {column}: ")
    assert what in error.message


@pytest.mark.req("J13")
@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        ('{"storage": {\n  "": 1}}', 'storage.""', "known are root_directory, max_session_size_mb, "),
        (
            '{"storage": {\n  "max_sesion_size_mb": 1}}',
            "storage.max_sesion_size_mb",
            "did you mean max_session_size_mb?",
        ),
        ('{"storage": {\n  "max_retries": 1}}', "storage.max_retries", "did you mean concurrency.max_retries?"),
        ('{"storage": {\n  "a\\nb": 1}}', 'storage."a\\nb"', "known are"),
        ('{"version": "1.0",\n  "strage": 1}', "strage", "did you mean storage?"),
        (
            '{"decay": {"type_specific": {\n  "decisions": {}}}}',
            "decay.type_specific.decisions",
            "did you mean decision?",
        ),
        (
            '{"decay": {"type_specific": {"fact": {\n  "half_life": 1}}}}',
            "decay.type_specific.fact.half_life",
            "did you mean half_life_hours?",
        ),
    ],
)
def test_an_unknown_key_is_named_and_the_nearest_one_suggested(file: Path, text: str, path: str, hint: str) -> None:
    error = refused(file, text)
    assert error.details == {"file": "config.json", "line": 2, "column": 3, "path": path}
    assert hint in error.hint
    assert f"{path} is not known" in error.message


def test_a_long_key_is_cut(file: Path) -> None:
    error = refused(file, json.dumps({"k" * 10_000: 1}))
    assert len(str(error)) < 300


WRONG: list[tuple[str, Any, str]] = [
    ("version", "2.0", 'must be "1.0", not other text'),
    ("version", 1.0, 'must be "1.0", not a number'),
    ("storage", [], "must be an object, not a list"),
    ("storage.root_directory", "", "must be the path of a folder, as text of 1 to 4096 characters, not other text"),
    ("storage.root_directory", "a\x00", "not other text"),
    ("storage.root_directory", "\ud800", "not other text"),
    ("storage.root_directory", None, "not null"),
    ("storage.max_session_size_mb", 0, "must be a number from 0.001 to 1,000,000, not a smaller one"),
    ("storage.max_session_size_mb", "10", "not text"),
    ("storage.max_session_size_mb", 10**400, "not a larger one"),
    ("storage.compaction_threshold", 1.5, "must be a number from 0.01 to 1, not a larger one"),
    ("storage.auto_compact", 1, "must be true or false, not a number"),
    ("concurrency.lock_timeout_ms", -1, "not a smaller one"),
    ("concurrency.max_retries", 1.5, "must be a whole number from 0 to 100, not a fraction"),
    ("concurrency.max_retries", True, "not true or false"),
    ("concurrency.retry_backoff_ms", 0, "not a smaller one"),
    ("decay.enabled", "secret", "must be true or false, not text"),
    ("decay.update_interval_minutes", {}, "not an object"),
    ("decay.min_decay_factor", -0.1, "not a smaller one"),
    ("decay.type_specific", 7, "must be an object, not a number"),
    ("decay.type_specific.fact", 7, "must be an object, not a number"),
    ("decay.type_specific.fact.half_life_hours", 0, "not a smaller one"),
    ("decay.type_specific.fact.decay_enabled", "no", "must be true or false, not text"),
    ("decay.type_specific.preference", {"decay_enabled": True}, "fades, but has no half_life_hours"),
    ("performance.cache_size", 0.5, "not a fraction"),
    ("performance.batch_write_interval_ms", [], "not a list"),
    ("performance.index_in_memory", None, "not null"),
    ("integrity.enable_checksums", 0, "not a number"),
    ("integrity.checksum_algorithm", "secret", 'must be "sha256", not other text'),
]


@pytest.mark.req("J13")
@pytest.mark.parametrize(("path", "value", "what"), WRONG)
def test_a_wrong_value_is_named_with_what_is_allowed(file: Path, path: str, value: Any, what: str) -> None:
    *sections, key = path.split(".")
    before = "".join(f'"{section}": {{' for section in sections)
    text = f'{{\n{before}\n "{key}":  {json.dumps(value)}' + "}" * len(sections) + "}"
    error = refused(file, text)
    expected = {"file": "config.json", "line": 3, "column": len(key) + 7, "path": path}
    assert error.details == expected
    assert what in error.message
    assert path in error.message
    assert "secret" not in str(error)


def test_what_is_not_an_object_is_refused(file: Path) -> None:
    error = refused(file, " 7")
    assert error.details == {"file": "config.json", "line": 1, "column": 2, "path": ""}
    assert "the file must be an object, not a number" in error.message


@pytest.mark.req("J13")
@pytest.mark.parametrize(
    ("overrides", "path", "hint"),
    [
        ({"decay_confg": {}}, "decay_confg", "did you mean decay_config?"),
        ({"decay_config": {"half_life": 1}}, "decay_config.half_life", "did you mean half_life_hours?"),
        ({"decay_config": {"half_life_hours": -1}}, "decay_config.half_life_hours", "correct the value"),
        ({"decay_config": None}, "decay_config", "write it in braces"),
        ({"compaction_config": {"threshold": 2}}, "compaction_config.threshold", "correct the value"),
        ([], "", "write it in braces"),
        ({7: 1}, '"7"', "known are decay_config, compaction_config"),
    ],
)
def test_a_wrong_setting_of_a_session_is_named(overrides: Any, path: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        JsonlConfig().merged(overrides)
    assert caught.value.details == {"path": path}
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: StorageConfig(max_session_size_mb=-1), "storage.max_session_size_mb"),
        (lambda: StorageConfig(max_session_size_mb=math.nan), "storage.max_session_size_mb"),
        (lambda: HalfLives(fact=0), "decay.type_specific.fact"),
    ],
)
def test_settings_made_in_a_program_are_checked_too(make: Callable[[], object], path: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert caught.value.details == {"path": path}


def test_files_that_cannot_be_read_are_told(file: Path) -> None:
    error = refused(file, " " * (FILE_BYTES + 1))
    assert "more than 1048576 bytes" in error.message
    file.write_bytes(b'\xef\xbb\xbf{\n "version": "\xc3\xa9\xff"}')
    with pytest.raises(ConfigurationError, match="not UTF-8") as caught:
        load(file)
    assert caught.value.details == {"file": "config.json", "line": 2, "column": 15}
    file.unlink()
    for make in (os.mkfifo, Path.mkdir):
        make(file)
        with pytest.raises(ConfigurationError, match="is not a file"):
            load(file)
        file.rmdir() if file.is_dir() else file.unlink()


# --- the reader -----------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def at(value: Any, path: positions.Path) -> Any:
    for key in path:
        value = value[key]
    return value


@given(value=values, indent=st.sampled_from([None, 0, 2, "\t", "\r\n "]), ascii_only=st.booleans())
def test_the_reader_reads_what_json_reads_and_knows_where_it_stood(
    value: Any, indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    found, places = positions.read(text)
    assert found == json.loads(text) == value
    decoder = json.JSONDecoder()
    for path, offset in places.values.items():
        assert decoder.raw_decode(text, offset)[0] == at(value, path)
    for path, offset in places.keys.items():
        assert decoder.raw_decode(text, offset)[0] == path[-1]


def loads(text: str) -> Any:
    """``json.loads`` without what the reader refuses on purpose."""

    def refuse(word: str) -> Any:
        raise ValueError(word)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=once)


@given(text=st.text(st.sampled_from('{}[]",:\\ \n019.-+eEtrufalsn'), max_size=30) | st.text(max_size=10))
@example("\ufeff{}")
@example("-")
@example("01")
@example("1.")
@example('"\\ud800"')
@example('{"a":1,"a":2}')
def test_the_reader_refuses_what_json_refuses(text: str) -> None:
    try:
        expected: Any = (loads(text),)
    except ValueError:
        expected = None
    try:
        found: Any = (positions.read(text)[0],)
    except positions.Misread as error:
        found, offset = None, error.offset
    else:
        offset = 0
    assert found == expected
    assert 0 <= offset <= len(text)
    line, column = positions.line_and_column(text, offset)
    before = f"{text} ".split("\n")[: line - 1]
    assert sum(len(one) + 1 for one in before) + column - 1 == offset
