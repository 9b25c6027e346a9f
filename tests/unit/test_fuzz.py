"""A few hundred cases for each place where input comes in, always the same; `make fuzz` draws a hundred thousand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings

from tests.fuzz.surfaces import SURFACES
from tests.strategies import cases


@pytest.mark.parametrize("surface", SURFACES)
def test_whatever_comes_in_is_refused_with_a_reason(surface: str) -> None:
    """Nothing is raised but the surface's own refusal, and no message shows a stack trace, a path or a secret."""

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(cases())
    def check(rng: random.Random) -> None:
        SURFACES[surface](rng)

    check()
