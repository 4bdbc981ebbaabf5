"""Which database and as whom, of flags, the environment and a file; and where a user's own folder is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept import Identity
from wellkept.cli.constants import DATABASE_VARIABLE, IDS, variable_of
from wellkept.cli.discovery import settle
from wellkept.errors import InvalidInput
from wellkept.settings import FILE, load
from wellkept.settings.folders import user_folder

NAMES = st.none() | st.sampled_from(["ada", "bob", "a/b", "ünï"])


@given(st.fixed_dictionaries({name: st.tuples(NAMES, NAMES, NAMES) for name in ("database", *IDS)}))
def test_flags_win_over_the_environment_and_that_over_the_file(
    tmp_path_factory: pytest.TempPathFactory, given: dict[str, tuple[str | None, str | None, str | None]]
) -> None:
    flags = {name: flag for name, (flag, _, _) in given.items()}
    variables = {"database": DATABASE_VARIABLE, **{name: variable_of(name) for name in IDS}}
    environment = {variables[name]: value for name, (_, value, _) in given.items() if value}
    file = tmp_path_factory.mktemp("file") / FILE
    keys = {"database": "database.url", **{name: f"identity.{name}" for name in IDS}}
    said = {
        keys[name]: f"ram:{value}" if name == "database" else value for name, (_, _, value) in given.items() if value
    }
    file.write_text("".join(f'{key} = "{value}"\n' for key, value in said.items()), encoding="utf-8")
    found = settle(flags, load(config=file, environment=environment), Path("share"))
    for name, (flag, variable, _) in given.items():
        first = flag or variable or said.get(keys[name])
        if name == "database":
            assert found.database == (first or str(Path("share/memory.db")))
        else:
            assert getattr(found.identity, name) == (first or ("default" if name == "user" else None))


def test_without_a_user_it_is_the_default_one_whatever_else_is_given() -> None:
    found = settle({}, load(environment={}), Path("share"))
    assert found.identity == Identity(user="default")
    assert found.origins == {"user": "the default", "database": "the default"}
    for name in IDS:
        if name != "user":
            identity = settle({name: "x"}, load(environment={}), Path("share")).identity
            assert (identity.user, getattr(identity, name)) == ("default", "x")


def test_an_empty_flag_is_refused() -> None:
    for name in (*IDS, "database"):
        with pytest.raises(InvalidInput, match=f"--{'db' if name == 'database' else name} is empty"):
            settle({name: ""}, load(environment={}), Path("share"))


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {}, "home/.local/share/wellkept"),
        ("linux", {"XDG_DATA_HOME": "/x"}, "/x/wellkept"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "home/.local/share/wellkept"),
        ("darwin", {"XDG_DATA_HOME": "/x"}, "home/Library/Application Support/wellkept"),
        ("win32", {}, "home/AppData/Local/wellkept"),
        ("win32", {"LOCALAPPDATA": "L"}, "L/wellkept"),
    ],
)
def test_every_system_has_its_own_folder(platform: str, environment: dict[str, str], folder: str) -> None:
    assert user_folder(environment, Path("home"), platform) == Path(folder)
