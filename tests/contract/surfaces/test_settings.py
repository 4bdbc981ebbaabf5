"""Settings: what may be said, where it is read from, and how a mistake is named."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.embedding_server import running
from tests.support.terminal import Terminal
from wellkept import settings, working
from wellkept.errors import ConfigurationError, InvalidInput, LimitReached
from wellkept.settings import Settings, check, declared, load
from wellkept.types import MemoryType
from wellkept.working import ScopeSnapshot

DECLARED = declared(Settings)
LimitSettings = type(Settings().limits)
HalfLifeSettings = type(Settings().sessions.half_life_hours)
FILE_BYTES = 1024 * 1024  # a file of settings is not larger


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "wellkept.toml"


def refused(call: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        call()
    assert caught.value.hint
    return caught.value


# --- the schema -----------------------------------------------------------------------------------


def test_every_setting_is_declared_in_full() -> None:
    lacking = {
        name: one
        for name, one in DECLARED.items()
        if not one.help.endswith(".")
        or not one.variable.startswith("WELLKEPT_")
        or not one.kind.allowed
        or not (one.default is None or one.kind.holds(one.default))
        or Settings().get(name) != one.default
    }
    assert lacking == {}


def test_settings_are_values() -> None:
    found = load({"limits": {"entries": 5}}, environment={})
    assert pickle.loads(pickle.dumps(found)) == found == Settings(limits=LimitSettings(entries=5))
    assert hash(found) == hash(Settings(limits=LimitSettings(entries=5)))
    with pytest.raises(AttributeError):
        found.limits.entries = 3  # type: ignore[misc]


# --- where they are read from ---------------------------------------------------------------------

COUNTS = st.none() | st.integers(0, 10**6)
NAMES = ("limits.entries", "limits.entry_bytes", "limits.scopes")


@given(st.fixed_dictionaries({name: st.tuples(COUNTS, COUNTS, COUNTS) for name in NAMES}))
def test_arguments_win_over_the_environment_and_that_over_the_file(
    tmp_path_factory: pytest.TempPathFactory, given: dict[str, tuple[int | None, int | None, int | None]]
) -> None:
    file = tmp_path_factory.mktemp("settings") / "wellkept.toml"
    file.write_text("".join(f"{name} = {last}\n" for name, (_, _, last) in given.items() if last is not None))
    variables = {DECLARED[name].variable: str(value) for name, (_, value, _) in given.items() if value is not None}
    arguments = {name.split(".")[1]: first for name, (first, _, _) in given.items() if first is not None}
    found = load({"limits": arguments}, config=file, environment=variables)
    for name, values in given.items():
        origins = ("settings=", DECLARED[name].variable, str(file))
        said = [(value, origin) for value, origin in zip(values, origins, strict=True) if value is not None]
        assert (found.get(name), found.origin(name)) == (*said, (DECLARED[name].default, "the default"))[0]


def test_settings_given_as_a_value_count_as_far_as_they_differ_from_the_defaults() -> None:
    chosen = Settings(limits=LimitSettings(entries=7))
    found = load(chosen, environment={"WELLKEPT_LIMITS_ENTRIES": "1", "WELLKEPT_LIMITS_SCOPES": "2"})
    assert (found.limits.entries, found.limits.scopes) == (7, 2)
    again = load(found, environment={})
    assert again == found
    assert again.origins == found.origins


def test_the_environment_is_read_by_the_kind_of_the_setting() -> None:
    expected: list[tuple[str, str, object]] = [
        ("sessions.auto_compact", "false", False),
        ("sessions.auto_compact", "1", True),
        ("sessions.auto_compact", "TRUE", True),
        ("sessions.compaction_threshold", "0.5", 0.5),
        ("sessions.limit_bytes", "unlimited", None),
        ("sessions.half_life_hours.fact", "never", None),
        ("sessions.half_life_hours.preference", "24", 24),
        ("limits.entries", "12", 12),
        ("identity.user", "ada", "ada"),
        ("logging.level", "debug", "debug"),
    ]
    values = []
    for name, text, _ in expected:
        loaded = load(environment={DECLARED[name].variable: text})
        values.append((name, text, loaded.get(name)))
        assert loaded.origin(name) == DECLARED[name].variable
    assert values == expected


def test_a_wrong_variable_is_named() -> None:
    wrong = {}
    for name, text in (
        ("sessions.auto_compact", "maybe"),
        ("limits.entries", "many"),
        ("limits.entries", "1.5"),
        ("limits.entries", "-1"),
        ("sessions.compaction_threshold", "nan"),
        ("database.durability", "none"),
        ("identity.user", "a\nb"),
    ):
        variable = DECLARED[name].variable
        try:
            load(environment={variable: text})
            wrong[variable, text] = "taken"
        except ConfigurationError as error:
            named = error.message.startswith(f"{variable}: ") and error.details["variable"] == variable
            if not (named and DECLARED[name].kind.allowed in error.message and error.hint):
                wrong[variable, text] = repr(error)
    assert wrong == {}


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load(environment={one.variable: "" for one in DECLARED.values()}) == Settings()


def test_the_library_reads_no_file_unless_it_is_told_to(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("[limits]\nentries = 3\n")
    monkeypatch.chdir(file.parent)
    for config, entries in ((None, 10_000), ("wellkept.toml", 3), (file, 3)):
        with wellkept.open("ram:", embedder=None, config=config) as memories:
            assert memories.agent("a").working.limits.entries == entries


def test_a_path_in_a_file_is_meant_from_where_the_file_is(file: Path) -> None:
    for url, expected in (
        ("data/m.db", str(file.parent / "data/m.db")),
        ("sqlite:m.db", f"sqlite:{file.parent / 'm.db'}"),
        ("ram:", "ram:"),
        ("jsonl:notes", f"jsonl:{file.parent / 'notes'}"),
    ):
        file.write_text(f'[database]\nurl = "{url}"\n')
        assert load(config=file, environment={}).database.url == expected


# --- mistakes -------------------------------------------------------------------------------------


# The text of a file, the key and the line that are wrong, and what the message and the hint say.
MISTAKES: list[tuple[str, str, int | None, str, str]] = [
    ("[limts]\nentries = 1", "limts", 1, "limts is not known", "did you mean limits?"),
    ("[limits]\n\nentris = 1", "limits.entris", 3, "is not known", "did you mean limits.entries?"),
    ('durability = "full"', "durability", 1, "is not known", "did you mean database.durability?"),
    ("[sessions]\nentries = 1", "sessions.entries", 2, "is not known", "did you mean limits.entries?"),
    ("[limits]\nxyz = 1", "limits.xyz", 2, "is not known", "known are entries, entry_bytes, scopes"),
    ("xyz.abc = 1", "xyz", 1, "xyz is not known", "known are database, embedder, "),
    ('[limits]\n"a.b" = 1', 'limits."a.b"', 2, "is not known", "known are"),
    ('database = "my.db"', "database", 1, "must be a section, not text", "its settings are database.url, "),
    ("limits = [1]", "limits", 1, "must be a section, not a list", "limits.entries"),
    ("[limits.entries]\nx = 1", "limits.entries", 1, "must be a whole number", "correct"),
    ("[limits]\nentries = -1", "limits.entries", 2, "not a smaller one", "correct"),
    ("[limits]\nentries = 10_000_000_000_000", "limits.entries", 2, "not a larger one", "correct"),
    ("[limits]\nentries = 1.5", "limits.entries", 2, "not a fraction", "correct"),
    ("[limits]\nentries = true", "limits.entries", 2, "not true or false", "correct"),
    ('[limits]\nentries = "5"', "limits.entries", 2, "not other text", "correct"),
    ("[sessions]\n# decay = 1\nauto_compact = 1", "sessions.auto_compact", 3, "must be true or false", "correct"),
    ("[sessions]\nmin_decay_factor = nan", "sessions.min_decay_factor", 2, "not NaN", "correct"),
    ('[database]\ndurability = "secret"', "database.durability", 2, 'must be "full" or "relaxed"', "correct"),
    ('[identity]\nuser = ""', "identity.user", 2, "not empty text", "correct"),
    ('[identity]\nuser = "secret\\n"', "identity.user", 2, "one line of text, 1 to 256 characters", "correct"),
    ('[identity]\nuser = "default"', "identity.user", 2, "but not 'default', not other text", "correct"),
    ("[identity]\nuser = 2020-01-01", "identity.user", 2, "not date", "correct"),
    ("[sessions.half_life_hours]\nfact = 0", "sessions.half_life_hours.fact", 2, 'or "never"', "correct"),
    ('sessions.half_life_hours.fact = "soon"', "sessions.half_life_hours.fact", 1, 'or "never"', "correct"),
    ("[limits]\nentries = ", "", 2, "this is not TOML: invalid value", "correct the TOML there"),
    ("[limits]\n[limits]\n", "", 2, "cannot declare", "correct the TOML there"),
    ("a = 1\nb = [1,", "", 2, "this is not TOML", "correct the TOML there"),
    ("a = " + "9" * 5_000, "", None, "too large", "correct the TOML"),
    ("a = " + "[" * 100_000, "", None, "too large", "correct the TOML"),
]


def test_a_mistake_is_named_with_its_key_its_line_and_what_is_right(file: Path) -> None:
    wrong: dict[str, object] = {}
    for text, key, line, what, hint in MISTAKES:
        case = text[:40]
        problems = check(text)
        if [(one.key, one.line) for one in problems] != [(key, line)]:
            wrong[case] = problems
            continue
        problem = problems[0]
        if what not in problem.message or hint not in problem.hint:
            wrong[case] = problem
        file.write_text(text)
        error = refused(lambda: load(config=file))
        place = (error.details["file"], error.details.get("line"), error.details.get("key", ""))
        if place != (str(file), line, key) or problem.message not in str(error) or "secret" in problem.message:
            wrong[f"{case}, from a file"] = error
    assert wrong == {}


def test_all_mistakes_of_a_file_are_told_at_once() -> None:
    found = check('[identity]\nusr = "a"\nuser = 3\n[limits]\nentries = -1\n')
    assert [(one.key, one.line) for one in found] == [("identity.usr", 2), ("identity.user", 3), ("limits.entries", 5)]
    assert check("") == check("[limits]\nentries = 1\n") == []


@given(st.text(max_size=40))
def test_any_text_is_checked_without_a_crash(text: str) -> None:
    for problem in check(text):
        assert problem.message
        assert problem.hint
        assert problem.line is None or 1 <= problem.line <= text.count("\n") + 1


@given(key=st.text(min_size=1, max_size=80), value=st.integers() | st.text(max_size=5) | st.none())
def test_an_unknown_key_of_a_mapping_is_refused_whatever_it_is(key: str, value: object) -> None:
    if key in LimitSettings.__slots__:
        return
    error = refused(lambda: load({"limits": {key: value}}))
    assert error.details["key"].startswith("limits.")
    assert len(str(error)) < 500


def test_files_that_cannot_be_read_are_named(file: Path) -> None:
    error = refused(lambda: load(config=file))
    assert "there is no file" in error.message
    file.write_bytes(b"[limits]\nentries = 1 # \xff\n")
    assert refused(lambda: load(config=file)).details == {"file": str(file), "line": 2}
    file.write_bytes(b"\xef\xbb\xbf[limits]\nentries = 1\n")
    assert load(config=file).limits.entries == 1
    file.write_bytes(b"#" * (FILE_BYTES + 1))
    assert "more than" in refused(lambda: load(config=file)).message
    file.unlink()
    file.mkdir()
    assert "is not a file" in refused(lambda: load(config=file)).message
    for wrong in ("a\0b", file / "nested" / ("x" * 300)):
        assert refused(lambda wrong=wrong: load(config=wrong)).details["file"] == str(wrong)
    assert refused(lambda: wellkept.open("ram:", config=7)).details == {"field": "config"}  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [7, "limits", [], {"limits": 3}, {7: 1}, {"limits": {"entries": None}}])
def test_what_is_not_settings_is_refused_and_nothing_is_opened(given: Any, tmp_path: Path) -> None:
    error = refused(lambda: wellkept.open(tmp_path / "m.db", settings=given))
    assert error.operation == "open"
    assert error.details["field"] == "settings"
    assert not (tmp_path / "m.db").exists()


def test_sections_made_in_a_program_are_checked() -> None:
    sections: list[tuple[Any, dict[str, Any], str]] = [
        (LimitSettings, {"entries": -1}, "limits.entries"),
        (LimitSettings, {"entries": None}, "limits.entries"),
        (HalfLifeSettings, {"fact": "never"}, "sessions.half_life_hours.fact"),
        (HalfLifeSettings, {"fact": 0}, "sessions.half_life_hours.fact"),
        (type(Settings().embedder), {"url": ""}, "embedder.url"),
    ]
    details = [(values, refused(partial(section, **values)).details) for section, values, _ in sections]
    assert details == [(values, {"key": key}) for _, values, key in sections]


# --- every setting has an effect ------------------------------------------------------------------


def test_limits_hold_for_working_memory_and_an_agent_can_have_its_own() -> None:
    with wellkept.open("ram:", embedder=None, settings={"limits": {"entries": 1, "scopes": 0}}) as memories:
        one = memories.agent("a").working
        one.set("x", 1)
        with pytest.raises(LimitReached):
            one.set("y", 2)
        with pytest.raises(LimitReached):
            one.create_scope("s")
        own = memories.agent("b", limits=working.Limits(entries=2, entry_bytes=3)).working
        own.set("x", 1)
        own.set("y", 2)
        with pytest.raises(wellkept.errors.ContentTooLong):
            own.set("x", "long")
        with pytest.raises(InvalidInput):
            memories.agent("c", limits=7)  # type: ignore[arg-type]


@pytest.mark.req("W6")
def test_errors_advise_to_raise_limits_that_are_settings() -> None:
    small = {"entries": 1, "entry_bytes": 3, "scopes": 0, "context_tokens": 5}
    with wellkept.open("ram:", embedder=None, settings={"limits": small}) as memories:
        me = memories.agent("a")
        me.working.set("x", 1)
        saved = me.working.snapshot()
        full: list[Callable[[], object]] = [
            lambda: me.working.set("y", 1),
            lambda: me.working.set("x", "long"),
            lambda: me.working.create_scope("s"),
            lambda: me.context.add("user", "x" * 100),
            lambda: me.working.restore(replace(saved, scopes=(ScopeSnapshot(id="1", name="s"),))),
        ]
        for call in full:
            with pytest.raises(InvalidInput) as caught:
                call()
            advised = re.findall(r"limits\.\w+", caught.value.hint)
            assert advised
            assert set(advised) <= set(DECLARED)
        assert memories.agent("b", context_tokens=7).context.max_tokens == 7


def test_sessions_are_configured_by_settings_and_each_can_have_its_own() -> None:
    given = {
        "limit_bytes": 50_000,
        "auto_compact": False,
        "compaction_threshold": 0.5,
        "decay": False,
        "min_decay_factor": 0.2,
        "half_life_hours": {"fact": 24, "event": "never"},
    }
    with wellkept.open("ram:", embedder=None, settings={"sessions": given}) as memories:
        sessions = memories.view(user="ada").sessions
        config = sessions.create("monday").config
        assert (config.limit_bytes, config.auto_compact, config.compaction_threshold) == (50_000, False, 0.5)
        assert (config.decay.enabled, config.decay.min_decay_factor) == (False, 0.2)
        assert config.decay.by_type_hours == {MemoryType.FACT: 24, MemoryType.EVENT: None}
        assert sessions.create("own", config={"limit_bytes": 9_999}).config.limit_bytes == 9_999


def test_settings_go_before_the_file_of_a_folder_where_they_are_given(tmp_path: Path) -> None:
    url = f"jsonl:{tmp_path / 'memory'}"
    wellkept.open(url, embedder=None).close()
    (tmp_path / "memory" / "config.json").write_text('{"storage": {"max_session_size_mb": 1, "auto_compact": false}}')
    with wellkept.open(url, embedder=None, settings={"sessions": {"auto_compact": True}}) as memories:
        config = memories.view(user="ada").sessions.create("monday").config
    assert (config.limit_bytes, config.auto_compact) == (1024 * 1024, True)


def test_the_page_size_holds_where_no_limit_is_given() -> None:
    with wellkept.open("ram:", embedder=None, settings={"lists": {"page_size": 2}}) as memories:
        view = memories.view(user="ada")
        view.add_many([f"Note {number}" for number in range(5)])
        assert len(view.list().memories) == len(view.list(filter={"types": ["fact"]}).memories) == 2
        assert len(view.list(sort_by="important").memories) == 2
        assert len(view.list(limit=4).memories) == 4
        with pytest.raises(InvalidInput):
            view.list(limit=0)


def test_the_database_is_opened_as_settings_say(tmp_path: Path) -> None:
    place = {"url": str(tmp_path / "new.db"), "durability": "relaxed"}
    chosen = {"database": place, "embedder": {"name": "hashing-64"}, "plan": {"name": "teams"}}
    with wellkept.open(settings=chosen) as memories:
        memories.view(user="ada").add("Likes tea")
        assert memories.settings()["durability"] == "relaxed"
        assert memories.settings()["embedder"] == "hashing-64"
        assert memories.plan is wellkept.entitlements.Plan.TEAMS
    full = {**chosen, "database": {**place, "durability": "full"}}
    with wellkept.open(settings=full) as memories:
        assert memories.settings()["durability"] == "relaxed", "a database that exists keeps its own"
    with wellkept.open("ram:", embedder=None, settings=full, plan="enterprise") as memories:
        assert memories.settings() == {}
        assert memories.plan is wellkept.entitlements.Plan.ENTERPRISE


def test_an_embedding_server_is_configured_by_settings() -> None:
    with running() as server:
        section = type(Settings().embedder)(url=server.url, model="bge-m3", dimension=64)
        with wellkept.open("ram:", settings=Settings(embedder=section)) as memories:
            memories.view(user="ada").add("Likes tea")
            assert memories.settings()["embedder"] == "http:bge-m3@64"
        assert [path for path, _, _ in server.requests] == ["/v1/embeddings"]
    error = refused(lambda: wellkept.open("ram:", settings={"embedder": {"url": "http://127.0.0.1:9/v1"}}))
    assert error.details["key"] == "embedder.model"
    assert (
        "hosts"
        in refused(
            lambda: wellkept.open("ram:", settings={"embedder": {"url": "https://example.org", "model": "m"}})
        ).hint
    )


def test_the_command_line_logs_as_settings_say(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal("add", "Likes tea").err == ""
    monkeypatch.setenv("WELLKEPT_LOGGING_LEVEL", "debug")
    assert "DEBUG View.add_many took" in terminal("add", "Likes tea").err
    monkeypatch.setenv("WELLKEPT_LOGGING_FORMAT", "json")
    assert '"component":"View"' in terminal("add", "Likes tea").err
    monkeypatch.setenv("WELLKEPT_LOGGING_LEVEL", "off")
    assert terminal("add", "Likes tea").err == ""


# --- wellkept config check -----------------------------------------------------------------------


def test_config_check_names_what_is_wrong_and_ends_with_1(terminal: Terminal) -> None:
    file = terminal.folder / settings.FILE
    file.write_text('[identity]\nusr = "ada"\n[limits]\nentries = -1\n')
    done = terminal("config", "check")
    assert done.code == 1
    assert f"{file}:2: identity.usr is not known; did you mean identity.user?" in done.out
    assert f"{file}:4: limits.entries must be" in done.out
    answer = terminal("config", "check", str(file), "--json")
    assert (answer.code, [one["line"] for one in answer.answer["result"]["problems"]]) == (1, [2, 4])
    assert terminal("count").code == 6
    file.write_text("[limits\n")
    assert f"{file}:1: this is not TOML" in terminal("config", "check").out
    file.write_text("[limits]\nentries = 1\n")
    assert terminal("config", "check") == terminal("config", "check", str(file))
    assert terminal("config", "check").out == f"{file} is sound\n"
    file.unlink()
    missing = terminal("config", "check")
    assert (missing.code, "there is no file" in missing.err) == (6, True)
