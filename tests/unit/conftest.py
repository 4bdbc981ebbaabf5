"""What unit tests of conversion share."""

import pytest

from wellkept.transfer import comparison


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "BATCH", 2)
