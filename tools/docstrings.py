"""Turns docstrings into Markdown for the site that `make docs` builds; mkdocstrings loads it as an extension of griffe.

Examples become blocks of code, roles such as `:meth:` links, and the methods of the async classes get a text. The code
is read, not imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from griffe import Attribute, Docstring, Extension, NameResolutionError, Object

ROLE = re.compile(r":(?:class|func|meth|mod|data):`~?([\w.]+)`")
# How a line of an async class makes a method of a synchronous one, as in `add = hop(sync_view.View.add)`.
ASYNC_METHOD = re.compile(r"(?P<how>hop|hop_facing|at_once|facing)\((?P<method>[\w.]+)")
AWAITED = ("hop", "hop_facing")


class Docstrings(Extension):
    """Rewrites every docstring of the package."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for each class, function and attribute once all are read."""
        if isinstance(obj, Attribute) and (made := ASYNC_METHOD.match(str(obj.value))):
            how = "Awaited" if made["how"] in AWAITED else "Not awaited"
            obj.docstring = Docstring(f"{how}: as :meth:`{made['method']}`.", parent=obj)
            obj.value = None
        if obj.docstring:
            text = "\n\n".join(_blocks(obj.docstring.value))
            obj.docstring.value = ROLE.sub(lambda role: _link(obj, role[1]), text)


def _blocks(text: str) -> Iterator[str]:
    """The paragraphs of a docstring. An example begins with `>>>` and ends at an empty line."""
    for paragraph in text.split("\n\n"):
        prose, prompt, example = paragraph.partition(">>> ")
        if prose.strip():
            yield prose.rstrip()
        if prompt:
            yield f"```pycon\n{prompt}{example}\n```"


def _link(obj: Object, dotted: str) -> str:
    """A link to a name if the site has it, else the name alone."""
    first, _, rest = dotted.partition(".")
    try:
        target = obj.resolve(first)
    except NameResolutionError:  # a dotted name that begins with the package
        target = first
    shown = re.sub(r"^(?:[a-z_]+\.)+", "", dotted)
    return f'<autoref identifier="{".".join(filter(None, (target, rest)))}" optional><code>{shown}</code></autoref>'
