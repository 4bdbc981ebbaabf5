"""The output streams: width, colours, and whether a person reads them."""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_COLUMNS = 80
NARROW = 100
"""Below this width, a table would leave too little space for contents."""

# Terminals act on escape sequences, and bidirectional controls can hide text. Stored text may contain either.
_CONTROL = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "magenta": "35"}


def safe(text: str) -> str:
    """The text with control characters made visible, so that a terminal does not act on them.

    >>> safe("a\\x1b[2Jb")
    'a␛[2Jb'
    """
    if text.isprintable():  # most text is; compiling the pattern takes a millisecond
        return text
    return re.sub(_CONTROL, lambda found: _visible(found[0]), text)


def _visible(letter: str) -> str:
    return chr(0x2400 + ord(letter)) if letter < " " else "�"


def escaped(json: str) -> str:
    """JSON with control characters as escapes: programs read the same text, and a terminal does not act on them.

    >>> escaped('"\\u009b2J"') == '"\\\\u009b2J"'
    True
    """
    if json.isprintable():
        return json
    return re.sub(_CONTROL, lambda found: f"\\u{ord(found[0]):04x}", json)


def one_line(text: str) -> str:
    """The text in one line, safe to show."""
    return safe(" ".join(text.split()))


class Screen:
    """An output stream for answers."""

    def __init__(self, *, out: TextIO, terminal: bool, colour: bool, width: int, plain: bool = False) -> None:
        self.out = out
        self.terminal = terminal
        self.colour = colour
        self.width = width
        self.plain = plain

    def line(self, text: str = "", style: str = "") -> None:
        """Write one line."""
        self.out.write(self.styled(text, style) + "\n")

    def paragraph(self, text: str, start: str, style: str) -> None:
        """Write a text whose start has a style: in one line, or on a terminal in lines that break between words."""
        lines = [text]
        if self.terminal and len(text) >= self.width:
            import textwrap  # lazy: only for long texts

            # Paths and ids stay whole, so that they can be copied.
            lines = textwrap.wrap(text, self.width - 1, break_long_words=False, break_on_hyphens=False)
        self.line(self.styled(start, style) + lines[0].removeprefix(start))
        for line in lines[1:]:
            self.line(line)

    def styled(self, text: str, style: str) -> str:
        """The text in a style such as ``bold`` or ``red``, if the stream has colours."""
        codes = [_CODES[word] for word in style.split()] if self.colour and text else []
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text

    def rows(self, rows: Iterable[Sequence[str]]) -> None:
        """Write rows for a pipe: cells separated by tabs, one line each, nothing cut."""
        for row in rows:
            self.out.write("\t".join(one_line(cell) for cell in row) + "\n")

    def show(self, thing: "RenderableType") -> None:
        """Show a table, a panel or a text of rich."""
        self.console.print(thing)

    @cached_property
    def console(self) -> "Console":
        """The console of rich."""
        from rich.console import Console  # lazy: slow to import, and most commands do not need it

        return Console(
            file=self.out,
            width=self.width,
            force_terminal=self.colour,
            no_color=not self.colour,
            color_system="standard" if self.colour else None,
            highlight=False,
            markup=False,
            emoji=False,
            safe_box=self.plain,
        )


def screen_of(out: TextIO, environment: Mapping[str, str] = os.environ) -> Screen:
    """The screen of a stream. ``NO_COLOR`` turns colours off, ``FORCE_COLOR`` turns them on for a pipe."""
    terminal = out.isatty()
    wanted = bool(environment.get("FORCE_COLOR")) or (terminal and environment.get("TERM") != "dumb")
    encoding = (getattr(out, "encoding", None) or "utf-8").lower().replace("-", "")
    return Screen(
        out=out,
        terminal=terminal,
        colour=wanted and not environment.get("NO_COLOR"),
        width=max(20, _columns(out, environment)),
        plain=not encoding.startswith("utf"),
    )


def _columns(out: TextIO, environment: Mapping[str, str]) -> int:
    """The width of a stream: from ``COLUMNS``, from its terminal, or 80."""
    told = environment.get("COLUMNS", "")
    if told.isascii() and told.isdigit() and int(told):
        return int(told)
    try:  # shutil.get_terminal_size would import the archive modules
        return os.get_terminal_size(out.fileno()).columns or _COLUMNS
    except (OSError, ValueError, AttributeError):
        return _COLUMNS


def standard_screens() -> tuple[Screen, Screen]:
    """The screens of the standard output and the standard error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # characters that the encoding lacks are replaced
    return screen_of(sys.stdout), screen_of(sys.stderr)
