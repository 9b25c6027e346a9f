"""The limit on the CPU time of a work unit: an evaluation that takes more is stopped midway.

Code that evaluates expressions names the work units that it evaluates (`charged`): the *suspects*, if the evaluation is
stopped. The code checks again and again whether time is left (`check_cpu`): before each call of Polars, and within
loops over values. Each call of Polars gets a bounded number of rows and bytes. The clock is the CPU time of the
process, so other busy processes use up none of the budget. A process runs one task at a time, and Polars runs in one
thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

__all__ = ["CpuBudget", "CpuExceeded", "StoppedEvaluation", "charged", "check_cpu", "checked"]

T = TypeVar("T")

_VALUES = 64
"""The number of values that a function computes from one check to the next."""
_NARROWEST = 1 / 64
"""The smallest part of its budget that a suspect gets during the search for the slow one of several suspects."""

Suspects = Callable[[], Collection[str]]
"""Returns the ids of the groups, or of the SELECT lists, for which expressions are evaluated."""


class CpuExceeded(Exception):
    """An evaluation took more CPU time than its budget; `CpuBudget.stopped` names its work units.

    The exception has no attributes: Polars raises a callback's exception as a new exception of the same type.
    """


class StoppedEvaluation(NamedTuple):
    """An evaluation that was stopped."""

    suspects: frozenset[str]
    """Ids of the groups, or of the SELECT lists, that were evaluated."""
    alike: bool
    """Whether all suspects run the same evaluation, so that a single one of them would take as long."""


@dataclass(slots=True)
class _Charge:
    name: Hashable
    suspects: Suspects
    alike: bool
    began: float
    deadline: float
    part: float
    """The largest part of the time, by `CpuBudget.part_of`, that one of the suspects gets."""

    def stopped(self) -> StoppedEvaluation:
        suspects = frozenset(self.suspects())
        return StoppedEvaluation(suspects, self.alike or len(suspects) == 1)


def _whole(_: str) -> float:
    return 1.0


class CpuBudget:
    """The CPU time of one task. Evaluations are charged to accounts; an account has a fixed time in each batch."""

    def __init__(
        self,
        seconds: float,
        event_seconds: float = 0.0,
        clock: Callable[[], float] = time.process_time,
        part_of: Callable[[str], float] = _whole,
    ) -> None:
        """Begin without a batch.

        Args:
            seconds: The CPU time of an account in each batch.
            event_seconds: Further time of an account for each event of the batch.
            clock: Returns CPU time in seconds.
            part_of: Returns the part of the time, at most 1, that a group or SELECT list gets, given its id.
        """
        self._base = seconds
        self._event_seconds = event_seconds
        self._clock = clock
        self._part_of = part_of
        self._narrowed: dict[str, float] = {}
        """Id of a suspect → the part of its usual time that it gets while the slow one among several suspects is
        searched for."""
        self._seconds = 0.0
        self._spent: dict[Hashable, float] = {}
        self._open: list[_Charge] = []
        self.stopped = StoppedEvaluation(frozenset(), alike=True)
        """The evaluation that was stopped last."""

    @contextmanager
    def batch(self, events: int) -> Iterator[None]:
        """Begin a batch of some events; the process uses this budget until the block is left."""
        global _current  # noqa: PLW0603 - functions that Polars calls back cannot be given a budget
        self._seconds = self._base + self._event_seconds * events
        self._spent, self._open, self._narrowed = {}, [], {}
        _current = self
        try:
            yield
        finally:
            if _current is self:  # an abandoned generator may be closed after another budget's batch began
                _current = None

    def add(self, events: int) -> None:
        """Add the time for further events to the batch, when its records turn out to hold more events."""
        more = self._event_seconds * events
        self._seconds += more
        for account in self._open:
            account.deadline += more * account.part

    def again(self) -> None:
        """Begin the batch again: no account has used up any time."""
        self._spent = {}

    def narrow(self, suspects: Collection[str]) -> None:
        """Halve the time of suspects for the next try, after they were stopped together.

        A single suspect gets the whole time again.
        """
        for item_id in suspects:
            part = max(self._narrowed.get(item_id, 1.0) / 2, _NARROWEST)
            self._narrowed[item_id] = part if len(suspects) > 1 else 1.0

    @contextmanager
    def charge(self, name: Hashable, suspects: Suspects | None, *, alike: bool) -> Iterator[None]:
        """Charge the CPU time of the block to an account, without the time that inner blocks charge to accounts."""
        began = self._clock()
        if suspects is None:
            suspects = self._open[-1].suspects if self._open else tuple
        limit, part = self._limit(suspects)
        account = _Charge(name, suspects, alike, began, began + limit - self._spent.get(name, 0.0), part)
        self._open.append(account)
        try:
            self.check()
            yield
        finally:
            self._open.pop()
            ended = self._clock()
            self._spent[name] = self._spent.get(name, 0.0) + ended - account.began
            for outer in self._open[-1:]:
                outer.began += ended - began
                outer.deadline += ended - began

    def _limit(self, suspects: Suspects) -> tuple[float, float]:
        """Return the seconds of an account, and the largest part of the time that one of its suspects gets."""
        if not self._narrowed and self._part_of is _whole:
            return self._seconds, 1.0
        parts = {item_id: self._part_of(item_id) for item_id in suspects()}
        narrowed = (part * self._narrowed.get(item_id, 1.0) for item_id, part in parts.items())
        return self._seconds * max(narrowed, default=1.0), max(parts.values(), default=1.0)

    def check(self) -> None:
        """Check that the charged account has time left.

        Raises:
            CpuExceeded: The account has no time left.
        """
        if self._open and self._clock() >= self._open[-1].deadline:
            self.stopped = self._open[-1].stopped()
            raise CpuExceeded

    def overdue(self, seconds: float) -> StoppedEvaluation | None:
        """Return the evaluation that has exceeded its budget by some seconds; None if there is none.

        Another thread may call this method.

        Args:
            seconds: The CPU time beyond the budget. A suspect with only a part of the budget also gets only the same
                part of these seconds.
        """
        account = next(iter(self._open[-1:]), None)
        if account is None or self._clock() < account.deadline + seconds * account.part:
            return None
        return account.stopped()


_current: CpuBudget | None = None


@contextmanager
def charged(name: Hashable, suspects: Suspects | None = None, *, alike: bool = True) -> Iterator[None]:
    """Charge the block to an account of the process's budget, if there is a budget.

    Args:
        name: The account's name.
        suspects: Returns the groups or SELECT lists that the block evaluates; None for the suspects of the outer block.
        alike: Whether a single one of the suspects would take as long as all of them.

    Raises:
        CpuExceeded: The account has no time left.
    """
    if _current is None:
        yield
        return
    with _current.charge(name, suspects, alike=alike):
        yield


def check_cpu() -> None:
    """Check that the charged account has time left.

    Raises:
        CpuExceeded: The account has no time left.
    """
    if _current is not None:
        _current.check()


def checked(values: Iterable[T]) -> Iterator[T]:
    """Yield values, and check after every `_VALUES` values that there is time left.

    Raises:
        CpuExceeded: No time is left.
    """
    for number, value in enumerate(values):
        if not number % _VALUES:
            check_cpu()
        yield value
