"""Doctests are collected from files that have some: finding none in the other thousand modules takes seconds."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Leave out the doctests of a Python file without a prompt."""
    found = yield
    if file_path.suffix != ".py" or ">>>" in file_path.read_text("utf-8"):
        return found
    return [each for each in found if type(each) is pytest.Module]
