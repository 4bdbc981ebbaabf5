"""How API keys are shown."""

from typing import Any

from wellkept.cli import widgets
from wellkept.cli.screen import Screen, one_line
from wellkept.operations.api_keys import CreatedKey, Key, Keys


def keys(screen: Screen, answer: Keys, _: Any) -> None:
    """One line each."""
    if screen.terminal and not answer.keys:
        screen.line("No API keys.", "yellow")
        screen.line("wellkept keys create NAME --for project:api creates one that reads a project.", "dim")
    for one in answer.keys:
        screen.line(_line(one), "dim" if one.revoked_at else "")


def created(screen: Screen, answer: CreatedKey, _: Any) -> None:
    """The token on a line of its own, to be copied."""
    screen.line(f"{screen.styled('created', 'green')}  {_line(answer.key)}")
    screen.line(answer.token)
    if screen.terminal:
        screen.line("Keep the token now: it is not stored, and cannot be shown again.", "yellow")


def revoked(screen: Screen, answer: Key, _: Any) -> None:
    """One line."""
    screen.line(f"{screen.styled('revoked', 'yellow')}  {_line(answer)}")


def _line(one: Key) -> str:
    reaches = "every owner" if one.owners is None else ", ".join(one.owners)
    told = [one.id, one_line(one.name), one.need.value, one_line(reaches)]
    for what, when in (("revoked", one.revoked_at), ("expires", one.expires_at), ("used", one.last_used_at)):
        if when is not None:
            told.append(f"{what} {widgets.shown(when)}")
    return "  ".join(told)
