"""The seam of operators: rows made of rows, and of a state that earlier rows left behind.

The caller holds the state between steps: keeps, measures, stores and restores the state. Any cutting of the input into
steps makes the same rows, so a replay makes the same rows too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

__all__ = ["Operator"]

State = TypeVar("State")
Given_contra = TypeVar("Given_contra", contravariant=True)
Made_co = TypeVar("Made_co", covariant=True)


class Operator(Protocol[State, Given_contra, Made_co]):
    """An operator of a task's pipeline."""

    def begin(self) -> State:
        """Return the state before any rows."""

    def step(self, state: State, rows: Given_contra, watermark: int | None = None) -> tuple[State, Iterator[Made_co]]:
        """Take in rows.

        Args:
            state: The state before. The step may change this object, so the caller goes on with the returned state.
            rows: The rows, in the order of their source partition.
            watermark: The position before which no further row comes; None where unknown.

        Returns:
            The state behind the rows, and the output rows, evaluated lazily.
        """

    def snapshot(self, state: State) -> bytes:
        """Return the state in a stored form."""

    def restore(self, snapshot: bytes) -> State:
        """Return the state of a snapshot."""

    def size(self, state: State) -> int:
        """Return the memory of the state in bytes, about."""
