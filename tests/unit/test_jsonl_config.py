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
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from wellkept.errors import ConfigurationError
from wellkept.lifecycle import decay
from wellkept.stores.jsonl.config import (
    ConcurrencyConfig,
    DecayConfig,
    HalfLives,
    IntegrityConfig,
    JsonlConfig,
    StorageConfig,
    dump,
    load,
)
from wellkept.stores.jsonl.locks import LockSettings
from wellkept.testing.cases import Cases
from wellkept.types import MemoryType, SessionConfig

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


WITHOUT_EFFECT: list[tuple[str, Any, str]] = [
    ("storage.root_directory", "/data", "the URL names the folder"),
    ("decay.update_interval_minutes", 5, "computed when it is asked for"),
    ("performance.cache_size", 1_000, "held in RAM"),
    ("performance.batch_write_interval_ms", 0, "on the disk"),
    ("performance.index_in_memory", False, "held in RAM"),
    ("integrity.enable_checksums", False, "every line has one"),
    ("integrity.enable_checksums", 1, "every line has one"),
]


@pytest.mark.req("J13")
def test_a_key_without_an_effect_is_refused_with_the_reason(file: Path) -> None:
    with Cases() as cases:
        for key, value, why in WITHOUT_EFFECT:
            with cases.case(f"{key} = {value!r}"):
                _refused_with_the_reason(file, key, value, why)


def _refused_with_the_reason(file: Path, key: str, value: Any, why: str) -> None:
    section, name = key.split(".")
    error = refused(file, json.dumps({section: {name: value}}))
    assert key in str(error)
    assert why in str(error) + str(error.hint)


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
    assert written["integrity"].pop("accept_edits") is False, "the one key of ours"
    assert written == DEFAULTS
    assert list(written) == list(DEFAULTS)


@pytest.mark.req("J13")
def test_types_fade_as_they_do_elsewhere() -> None:
    assert {one.name for one in fields(HalfLives)} == {type.value for type in MemoryType}
    for type, half_life in decay.HALF_LIVES.items():
        hours = getattr(HalfLives(), type.value)
        assert half_life == (None if hours is None else timedelta(hours=hours))


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high) | st.integers(math.ceil(low), math.floor(high))


hours = st.none() | numbers(0.001, 10_000_000)
flags = st.booleans()
configs = st.builds(
    JsonlConfig,
    storage=st.builds(
        StorageConfig,
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
        type_specific=st.builds(HalfLives, **{type.value: hours for type in MemoryType}),
        min_decay_factor=numbers(0, 1),
    ),
    integrity=st.builds(IntegrityConfig, accept_edits=flags),
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
    file.write_bytes(b'\xef\xbb\xbf{\r\n\t"storage": {"max_session_size_mb": 7}\r\n}\r\n')
    assert load(file).storage.max_session_size_mb == 7


@pytest.mark.req("J3", "J13")
def test_locks_take_their_settings_from_the_file() -> None:
    config = ConcurrencyConfig(lock_timeout_ms=200, retry_backoff_ms=50)
    assert config.locks == LockSettings(timeout_ms=200, longest_pause_ms=5)
    assert ConcurrencyConfig().locks == LockSettings()


@pytest.mark.req("J13")
def test_a_type_can_be_kept_from_fading_and_made_to_fade(file: Path) -> None:
    file.write_text(
        '{"decay": {"type_specific": {"fact": {"decay_enabled": false, "half_life_hours": 3}, "event": {},'
        ' "decision": {"decay_enabled": true}, "preference": {"decay_enabled": true, "half_life_hours": 3}}}}'
    )
    lives = load(file).decay.type_specific
    assert (lives.fact, lives.event, lives.decision, lives.preference) == (None, 336, 720, 3)


# --- what is wrong --------------------------------------------------------------------------------


NO_JSON: list[tuple[str, int | None, str]] = [
    ("", 1, "expecting value"),
    ('{\n  "storage" {}\n}', 2, "expecting ':' delimiter"),
    ('{\n  "storage": {}\n  "decay": {}\n}', 3, "expecting ',' delimiter"),
    ('{"storage": {}', 1, "expecting ',' delimiter"),
    ('{\n  "version": "1.0\n}', 2, "invalid control character"),
    ('{\n  "version": "1.0', 2, "unterminated string"),
    ("{}\n}", 2, "extra data"),
    ('{"storage": {},\n "storage": {}}', None, "the key 'storage' is given twice"),
    ('{"version": NaN}', None, "NaN is no number that can be used"),
    ('{"version": -Infinity}', None, "-Infinity is no number that can be used"),
    ('{"version": ' + "9" * 5_000 + "}", None, "too large"),
    ("[" * 100_000, None, "too large"),
    ('{"a":' * 100_000, None, "too large"),
]


@pytest.mark.req("J13")
def test_what_is_not_json_is_refused_with_its_line(file: Path) -> None:
    with Cases() as cases:
        for text, line, what in NO_JSON:
            with cases.case(text):
                _refused_with_its_line(file, text, line, what)


def _refused_with_its_line(file: Path, text: str, line: int | None, what: str) -> None:
    error = refused(file, text)
    assert error.details.get("line") == line
    assert what in error.message
    assert error.message.startswith("config.json")


def test_a_trailing_comma_is_refused_with_its_line_or_the_next(file: Path) -> None:
    error = refused(file, '{\n  "storage": {\n    "auto_compact": true,\n  }\n}')
    assert error.details["line"] in (3, 4)  # which one depends on the release of Python


UNKNOWN = [
    ('{"storage": {\n  "": 1}}', 'storage.""', "known are root_directory, max_session_size_mb, "),
    (
        '{"storage": {\n  "max_sesion_size_mb": 1}}',
        "storage.max_sesion_size_mb",
        "did you mean storage.max_session_size_mb?",
    ),
    ('{"storage": {\n  "max_retries": 1}}', "storage.max_retries", "did you mean concurrency.max_retries?"),
    ('{"version": "1.0",\n  "strage": 1}', "strage", "did you mean storage?"),
    (
        '{"decay": {"type_specific": {\n  "decisions": {}}}}',
        "decay.type_specific.decisions",
        "did you mean decay.type_specific.decision?",
    ),
]


@pytest.mark.req("J13")
def test_an_unknown_key_is_named_and_the_nearest_one_suggested(file: Path) -> None:
    with Cases() as cases:
        for text, key, hint in UNKNOWN:
            with cases.case(key):
                _names_and_suggests(file, text, key, hint)


def _names_and_suggests(file: Path, text: str, key: str, hint: str) -> None:
    error = refused(file, text)
    assert error.details == {"file": "config.json", "line": 2, "key": key}
    assert hint in error.hint
    assert f"{key} is not known" in error.message


def test_a_long_key_is_cut(file: Path) -> None:
    error = refused(file, json.dumps({"k" * 10_000: 1}))
    assert len(str(error)) < 300


WRONG: list[tuple[str, Any, str]] = [
    ("version", "2.0", 'must be "1.0", not other text'),
    ("version", 1.0, 'must be "1.0", not a number'),
    ("storage", [], "must be a section, not a list"),
    ("storage.root_directory", "", 'must be "./memory" or left out (the URL names the folder)'),
    ("storage.root_directory", None, "not null"),
    ("storage.max_session_size_mb", 0, "must be a number from 0.001 to 1,000,000, not a smaller one"),
    ("storage.max_session_size_mb", "10", "not other text"),
    ("storage.max_session_size_mb", 10**400, "not a larger one"),
    ("storage.compaction_threshold", 1.5, "must be a number from 0.01 to 1, not a larger one"),
    ("storage.auto_compact", 1, "must be true or false, not a number"),
    ("concurrency.lock_timeout_ms", -1, "not a smaller one"),
    ("concurrency.max_retries", 1.5, "must be a whole number from 0 to 100, not a fraction"),
    ("concurrency.max_retries", True, "not true or false"),
    ("concurrency.retry_backoff_ms", 0, "not a smaller one"),
    ("decay.enabled", "secret", "must be true or false, not text"),
    ("decay.update_interval_minutes", {}, "not a section"),
    ("decay.min_decay_factor", -0.1, "not a smaller one"),
    ("decay.type_specific", 7, "must be a section, not a number"),
    ("decay.type_specific.fact", 7, 'must be {"half_life_hours": a number from 0.001 to 10,000,000} or {"decay_'),
    ("decay.type_specific.fact", {"half_life": 7}, "not a section"),
    ("decay.type_specific.fact", {"half_life_hours": 0}, "half_life_hours"),
    ("decay.type_specific.fact", {"half_life_hours": None}, "half_life_hours"),
    ("decay.type_specific.fact", {"decay_enabled": "no"}, "decay_enabled"),
    ("decay.type_specific.fact", {"decay_enabled": False, "half_life_hours": "x"}, "half_life_hours"),
    ("decay.type_specific.preference", {"decay_enabled": True}, "half_life_hours"),
    ("concurrency.max_retries", 0.5, "not a fraction"),
    ("performance.batch_write_interval_ms", [], "not a list"),
    ("performance.index_in_memory", None, "not null"),
    ("integrity.enable_checksums", 0, "not a number"),
    ("integrity.checksum_algorithm", "secret", 'must be "sha256", not other text'),
]


@pytest.mark.req("J13")
def test_a_wrong_value_is_named_with_what_is_allowed(file: Path) -> None:
    with Cases() as cases:
        for key, value, what in WRONG:
            with cases.case(f"{key} = {value!r}"):
                _names_what_is_allowed(file, key, value, what)


def _names_what_is_allowed(file: Path, key: str, value: Any, what: str) -> None:
    *sections, last = key.split(".")
    before = "".join(f'"{section}": {{' for section in sections)
    text = f'{{\n{before}\n "{last}":  {json.dumps(value)}' + "}" * len(sections) + "}"
    error = refused(file, text)
    assert error.details == {"file": "config.json", "line": 3, "key": key}
    assert what in error.message
    assert key in error.message
    assert "secret" not in str(error)


def test_what_is_not_an_object_is_refused(file: Path) -> None:
    error = refused(file, " 7")
    assert error.details == {"file": "config.json"}
    assert "the whole must be a section, not a number" in error.message


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: StorageConfig(max_session_size_mb=-1), "storage.max_session_size_mb"),
        (lambda: StorageConfig(max_session_size_mb=math.nan), "storage.max_session_size_mb"),
        (lambda: HalfLives(fact=0), "decay.type_specific.fact"),
    ],
)
def test_settings_made_in_a_program_are_checked_too(make: Callable[[], object], key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert caught.value.details == {"key": key}


def test_files_that_cannot_be_read_are_told(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbf{\n "version": "\xc3\xa9\xff"}')
    with pytest.raises(ConfigurationError, match="not UTF-8") as caught:
        load(file)
    assert caught.value.details == {"file": str(file), "line": 2}
    file.unlink()
    for make in (os.mkfifo, Path.mkdir):
        make(file)
        with pytest.raises(ConfigurationError, match="is not a file"):
            load(file)
        file.rmdir() if file.is_dir() else file.unlink()


@pytest.mark.req("J13")
def test_a_new_folder_gets_its_settings_in_a_readable_file(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    with wellkept.open(f"jsonl:{root}", embedder=None) as memories:
        assert memories.view(user="ada").sessions.create("monday").config == SessionConfig()
    assert (root / "config.json").read_text() == dump(JsonlConfig())
    assert (root / "config.json").stat().st_mode & 0o777 == 0o600
    (root / "config.json").write_text("{}")
    wellkept.open(f"jsonl:{root}", embedder=None).close()
    assert (root / "config.json").read_text() == "{}", "what a person wrote stays"
