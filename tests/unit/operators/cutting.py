"""An operator, driven step by step as the pipeline does, with its state stored between steps."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeVar

from spark_jobs.engine.operators.operator import Operator

__all__ = ["driven", "pieces"]

State = TypeVar("State")
Given = TypeVar("Given")
Made = TypeVar("Made")
Item = TypeVar("Item")


def pieces(items: list[Item], cuts: Iterable[int]) -> list[list[Item]]:
    """Return a list in pieces, some of them empty."""
    bounds = [0, *sorted(min(cut, len(items)) for cut in cuts), len(items)]
    return [items[begin:end] for begin, end in pairwise(bounds)]


def driven(
    operator: Operator[State, Given, Made], steps: Iterable[tuple[Given, int | None]], *, stored: bool
) -> list[list[Made]]:
    """Return the rows that each step makes.

    Args:
        operator: The operator.
        steps: The rows of each step, with its watermark.
        stored: Whether the state is stored, and brought back, between any two steps.
    """
    state, made = operator.begin(), []
    for rows, watermark in steps:
        state, found = operator.step(state, rows, watermark)
        made.append([*found])
        assert operator.size(state) >= 0
        if stored:
            state = operator.restore(operator.snapshot(state))
    return made
