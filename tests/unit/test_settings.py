"""The declarations of settings agree with each other, and with what they configure."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from wellkept.cli.constants import DATABASE_VARIABLE, IDS, variable_of
from wellkept.lifecycle import decay
from wellkept.settings import Settings, declared, trust
from wellkept.settings.declarations import members
from wellkept.settings.schema import HalfLifeSettings, LimitSettings
from wellkept.types import Identity, MemoryType, SessionConfig
from wellkept.working import Limits

DECLARED = declared(Settings)


def test_variables_belong_to_one_setting_each() -> None:
    variables = [one.variable for one in DECLARED.values()]
    assert len(set(variables)) == len(variables)
    assert {variable_of(name) for name in IDS} | {DATABASE_VARIABLE} <= set(variables)


def test_sections_know_their_names() -> None:
    def named(schema: type[Any], at: tuple[str, ...]) -> None:
        for name, one in members(schema).items():
            if isinstance(one, type):
                assert one.at == ".".join((*at, name))
                named(one, (*at, name))

    named(Settings, ())


def test_defaults_are_those_of_the_values_that_they_configure() -> None:
    assert [one.name for one in fields(Identity)] == [
        name.removeprefix("identity.") for name in DECLARED if "identity" in name
    ]
    for type, half_life in decay.HALF_LIVES.items():
        hours = getattr(HalfLifeSettings(), type.value)
        assert half_life == (None if hours is None else timedelta(hours=hours))
    assert len(fields(HalfLifeSettings)) == len(MemoryType)
    assert Settings().session_config(SessionConfig()) == SessionConfig()
    configured = asdict(LimitSettings())
    assert configured.pop("context_tokens") == 8_000
    assert Limits(**configured) == Limits()


def test_every_system_has_its_own_folder() -> None:
    home = Path("home")
    assert trust.config_folder({"XDG_CONFIG_HOME": "/x"}, home, "linux") == Path("/x/wellkept")
    assert trust.config_folder({"XDG_CONFIG_HOME": "x"}, home, "linux") == home / ".config/wellkept"
    assert trust.config_folder({}, home, "darwin") == home / "Library/Application Support/wellkept"
    assert trust.config_folder({"APPDATA": "A"}, home, "win32") == Path("A/wellkept")
    assert trust.config_folder({}, home, "win32") == home / "AppData/Roaming/wellkept"
