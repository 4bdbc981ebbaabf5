"""What tests of search share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stand_ins import Opener


@pytest.fixture
def ram_opener(tmp_path: Path) -> Iterator[Opener]:
    """For what no store has a part in; that all of them find the same shows test_search_agreement.py."""
    opener = Opener("ram", tmp_path)
    yield opener
    opener.close()
