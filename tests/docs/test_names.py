"""Every name that a document writes, such as ``wellkept.working.Limits``, is there after ``import wellkept``."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator

from tests.docs.test_documents import FENCE, ROOT, blocks
from tools import site
from wellkept import plugins

INLINE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"\bwellkept(?:\.[A-Za-z_]\w*)+(?![\w*])")  # a pattern such as `wellkept.search_*` is none
# The file of the settings, and an entry-point group that is no module.
OTHERS = {"wellkept.toml", plugins.DETECTORS}

# Each name is looked up in a package that was imported anew, in one process for all of them.
LOOK_UP = """
import json, sys

missing = {}
for name in json.load(sys.stdin):
    for module in [module for module in sys.modules if module.split(".")[0] == "wellkept"]:
        del sys.modules[module]
    import wellkept
    value = wellkept
    try:
        for part in name.split(".")[1:]:
            value = getattr(value, part)
    except Exception as error:
        missing[name] = str(error)
print(json.dumps(missing))
"""


def names(text: str) -> set[str]:
    """The dotted names in blocks of Python and in backticks."""
    pythons = [block.code for block in blocks(text) if block.words[:1] in (("python",), ("pycon",))]
    inline = INLINE.findall(FENCE.sub("", text))
    return {name for code in [*pythons, *inline] for name in NAME.findall(code)} - OTHERS


def texts() -> Iterator[tuple[str, str]]:
    """The documents for users, and the docstrings that the reference shows."""
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")]:
        yield document.relative_to(ROOT).as_posix(), document.read_text(encoding="utf-8")
    for entry in " ".join(site.SHOWN.values()).split():
        for path, value in site.named(entry):
            yield path, inspect.getdoc(value) or ""
            for name, member in inspect.getmembers_static(value) if isinstance(value, type) else ():
                yield f"{path}.{name}", inspect.getdoc(member) or ""


def test_importing_the_package_is_enough_for_every_name_that_is_written() -> None:
    written = defaultdict(list)
    for place, text in texts():
        for name in names(text):
            written[name].append(place)
    assert {"wellkept.open", "wellkept.text.tokens.bpe_counter", "wellkept.working.Limits"} <= set(written)
    done = subprocess.run(
        [sys.executable, "-c", LOOK_UP], input=json.dumps(list(written)), capture_output=True, text=True, check=True
    )
    assert [(name, why, written[name]) for name, why in json.loads(done.stdout).items()] == []


def test_names_are_found_in_python_and_in_backticks() -> None:
    text = "`wellkept.a.B(1)` wellkept.b `wellkept.toml` `wellkept.c_*`\n```python\nfrom wellkept.d import E\n```\n"
    assert names(text + "```sh\nwellkept.f\n```\n") == {"wellkept.a.B", "wellkept.d"}
