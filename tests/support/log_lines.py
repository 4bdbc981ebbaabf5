"""What an application gets that logs everything as lines of JSON."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from wellkept import logs

LOG = logging.getLogger("wellkept")


@contextmanager
def json_lines() -> Iterator[io.StringIO]:
    """Everything that an application gets that attached a JsonFormatter and asked for DEBUG."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.JsonFormatter())
    before = LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.DEBUG)
    yield written
    LOG.removeHandler(handler)
    LOG.setLevel(before)


def parsed(lines: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]
