"""The interface of operators: an operator makes rows from other rows, and from a state that depends on earlier rows.

The caller keeps the state between steps. A state can also be measured, stored and restored. The output must not depend
on how the input is divided into steps, so that a replay makes the same rows.
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
        """Return the state before the first rows."""

    def step(self, state: State, rows: Given_contra, watermark: int | None = None) -> tuple[State, Iterator[Made_co]]:
        """Take in rows.

        Args:
            state: The state before these rows. The step may change the object; only the returned state is valid.
            rows: The rows, in the order of their source partition.
            watermark: The position up to which the input is complete; None if the position is unknown.

        Returns:
            The state after the rows, and the output rows, evaluated lazily.
        """

    def snapshot(self, state: State) -> bytes:
        """Return the state as bytes that `restore` reads."""

    def restore(self, snapshot: bytes) -> State:
        """Return the state that a snapshot holds."""

    def size(self, state: State) -> int:
        """Return the memory of the state in bytes; an estimate."""
