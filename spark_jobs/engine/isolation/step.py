"""The steps of a task, as the guard sees them: the guard knows the work units of a step, and nothing of the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.rows.faults import Records, Units

__all__ = ["AnyStep", "PlainStep", "Records", "SharedStep", "Step", "Units"]


class Step(Protocol):
    """A step that does each work unit's own work, which may fail for some of them."""

    def units(self) -> list[str]:
        """List the units that take part."""

    def records(self, units: Units | None) -> Records:
        """Yield the records of some units, None for all."""

    def letters(self, letters: NotEvaluatedLetters, unit: str, reason: str, *, safely: bool) -> Records:
        """Yield the dead letters of a unit that is left out; if `safely`, nothing of the unit may be evaluated."""


@runtime_checkable
class SharedStep(Protocol):
    """A step that does the same work for all of its units, in pieces: a fault leaves all of them out."""

    @property
    def kind(self) -> str:
        """The word for the work in messages."""

    @property
    def account(self) -> str:
        """The account that is charged with the work."""

    @property
    def ended(self) -> bool:
        """Whether all pieces are made."""

    def shared_by(self) -> Units:
        """List the units."""

    def piece(self) -> Any:
        """Do the work of the next piece."""

    def passed(self, piece: Any) -> Records:
        """Yield the records of a piece; further steps make these records, each under the guard."""

    def rest(self, letters: NotEvaluatedLetters, unit: str, reason: str) -> Records:
        """Yield the dead letters of a unit, for the events of the pieces that are not made."""


@dataclass(frozen=True, slots=True)
class PlainStep:
    """A step without work of any unit."""

    work: Callable[[], Records]


AnyStep = Step | SharedStep | PlainStep
