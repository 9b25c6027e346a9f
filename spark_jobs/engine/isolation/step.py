"""The steps of a task, as the guard sees them: the guard knows the work units of a step, but nothing about the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.rows.faults import Records, Units

__all__ = ["AnyStep", "PlainStep", "Records", "SharedStep", "Step", "Units"]


class Step(Protocol):
    """A step in which each work unit has work of its own. The work of one unit may fail while the others succeed."""

    def units(self) -> list[str]:
        """List the units with work in this step."""

    def records(self, units: Units | None) -> Records:
        """Yield the records of some units; None for all units."""

    def letters(self, letters: NotEvaluatedLetters, unit: str, reason: str, *, safely: bool) -> Records:
        """Yield the dead letters of a unit that is left out; if `safely`, without evaluating the unit's expressions."""


@runtime_checkable
class SharedStep(Protocol):
    """A step that does the same work for all of its units, in pieces. After a fault, all its units are left out."""

    @property
    def kind(self) -> str:
        """The word for the work, for messages."""

    @property
    def account(self) -> str:
        """The account that is charged with the work."""

    @property
    def ended(self) -> bool:
        """Whether all pieces were made."""

    def shared_by(self) -> Units:
        """List the units."""

    def piece(self) -> Any:
        """Make the next piece, and return it."""

    def passed(self, piece: Any) -> Records:
        """Pass a piece to the next stages, and yield their records; the guard runs the steps of these stages."""

    def rest(self, letters: NotEvaluatedLetters, unit: str, reason: str) -> Records:
        """Yield the dead letters of a unit, for the events of the pieces that were not made."""


@dataclass(frozen=True, slots=True)
class PlainStep:
    """A step without work of any unit."""

    work: Callable[[], Records]


AnyStep = Step | SharedStep | PlainStep
