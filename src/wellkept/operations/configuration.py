"""The verb that checks a file of settings: config.check."""

from dataclasses import dataclass
from pathlib import Path

from wellkept import settings
from wellkept.errors import ConfigurationError
from wellkept.operations.conditions import MANY, TEXT
from wellkept.operations.verb import Caller, Example, Verb, argument, result
from wellkept.settings import Problem
from wellkept.settings.sources import read_text
from wellkept.types import Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The file, and what is wrong with it."""

    file: str = result("The path of the file.", bounds=TEXT)
    problems: tuple[Problem, ...] = result("What is wrong with it.", (), bounds=MANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Which file."""

    file: str | None = argument(
        "The file; without it, the nearest wellkept.toml from the working directory upwards.", None, bounds=TEXT
    )


def _check(_: Caller, given: Check) -> Checked:
    file = settings.nearest_file(Path.cwd()) if given.file is None else Path(given.file)
    text = None if file is None else read_text(file)
    if text is None:
        raise ConfigurationError(
            f"there is no file {file or settings.FILE}",
            details={"file": str(file or settings.FILE)},
            hint="name one, as in wellkept config check wellkept.toml",
        )
    return Checked(file=str(file), problems=tuple(settings.check(text)))


def _is_sound(answer: Checked) -> bool:
    return not answer.problems


CONFIG_CHECK = Verb(
    name="config.check",
    input=Check,
    output=Checked,
    run=_check,
    method=Need.ADMIN,
    standalone=True,
    agrees=_is_sound,
    description="Names every unknown or wrong key with its line and the nearest right key.",
    examples=(Example(line="wellkept config check wellkept.toml", says="ends with 1 if something is wrong"),),
)
