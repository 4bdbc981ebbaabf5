"""Threads that do the same thing for the first time, at the same moment."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.req("L15", "N1", "W7")
def test_a_class_is_first_decoded_by_two_threads_at_once() -> None:
    """The library that decodes keeps what it learned of a class, and crashes where it is only half learned."""
    command = [sys.executable, "-m", "tests.unit.first_decoding"]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True, timeout=120)
