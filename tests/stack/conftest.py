"""Fixtures of the tests on real servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stack.lab import Lab
from tests.stack.server import Stack


@pytest.fixture
def lab(stack: Stack) -> Iterator[Lab]:
    """A corner of the stack that is cleaned up after the test."""
    lab = Lab(stack.bootstrap)
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def shared_lab(stack: Stack) -> Iterator[Lab]:
    """A corner that all tests of a file share, for what none of them changes."""
    lab = Lab(stack.bootstrap)
    yield lab
    lab.close()
