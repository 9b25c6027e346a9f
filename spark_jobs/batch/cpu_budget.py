"""The CPU time that the evaluation of one share of the queries may take: who takes more is stopped midway.

What evaluates says whose expressions it is at (`charged`), and asks between its steps whether there is time left
(`check_cpu`): before each call of Polars, which gets a bounded number of rows and bytes, and between the values that a
function computes one by one. It is the CPU time of the process, which runs one task at a time and Polars' one thread,
so a busy neighbour takes nothing of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

__all__ = ["CpuBudget", "CpuExceeded", "charged", "check_cpu", "checked"]

T = TypeVar("T")

_VALUES = 64
"""Values that a function computes one by one from one check to the next."""

Suspects = Callable[[], Collection[str]]
"""Names ids of groups, or of SELECT lists, whose expressions are evaluated."""


class CpuExceeded(Exception):
    """An evaluation that took more CPU time than it may; `CpuBudget.stopped` tells whose it was.

    Polars raises what a function that it calls back raised anew: the type, and no attributes.
    """


class StoppedEvaluation(NamedTuple):
    """An evaluation that was stopped."""

    suspects: frozenset[str]
    """Ids of the groups, or of the SELECT lists, that were evaluated."""
    alike: bool
    """Whether all of them evaluate the same, so that each of them takes as long."""


@dataclass(slots=True)
class _Account:
    name: Hashable
    suspects: Suspects
    alike: bool
    began: float
    deadline: float


class CpuBudget:
    """The CPU time of one task: so much for each account, and each batch of events."""

    def __init__(
        self, seconds: float, event_seconds: float = 0.0, clock: Callable[[], float] = time.process_time
    ) -> None:
        """Begin without a batch.

        Args:
            seconds: What an account has in each batch.
            event_seconds: What it has besides for each event.
            clock: Tells CPU time in seconds.
        """
        self._base = seconds
        self._event_seconds = event_seconds
        self._clock = clock
        self._seconds = 0.0
        self._spent: dict[Hashable, float] = {}
        self._open: list[_Account] = []
        self.stopped = StoppedEvaluation(frozenset(), alike=True)
        """The evaluation that was stopped last."""

    @contextmanager
    def batch(self, events: int, guilty: int) -> Iterator[None]:
        """Begin a batch; the budget is the process's until the block is left.

        Args:
            events: How many there are.
            guilty: Shares that are left out already: the more, the less time has the next one, so that many of them
                do not take much more than a few.
        """
        global _current  # noqa: PLW0603 - functions that Polars calls back cannot be given a budget
        self._seconds = self._base / (1 + guilty) + self._event_seconds * events
        self._spent, self._open = {}, []
        _current = self
        try:
            yield
        finally:
            if _current is self:  # a generator that nobody went on with may be closed late
                _current = None

    def again(self) -> None:
        """Begin the batch anew; an account that is spent stays so, for whoever is charged to it is alike."""
        self._spent = {name: spent for name, spent in self._spent.items() if spent >= self._seconds}

    @contextmanager
    def charge(self, name: Hashable, suspects: Suspects | None, *, alike: bool) -> Iterator[None]:
        """Charge an account with what is evaluated within; what an account within that takes is its own."""
        began = self._clock()
        if suspects is None:
            suspects = self._open[-1].suspects if self._open else tuple
        account = _Account(name, suspects, alike, began, began + self._seconds - self._spent.get(name, 0.0))
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

    def check(self) -> None:
        """Check that the account that is charged has time left.

        Raises:
            CpuExceeded: It has none.
        """
        if self._open and self._clock() >= self._open[-1].deadline:
            account = self._open[-1]
            suspects = frozenset(account.suspects())
            self.stopped = StoppedEvaluation(suspects, account.alike or len(suspects) == 1)
            raise CpuExceeded


_current: CpuBudget | None = None


@contextmanager
def charged(name: Hashable, suspects: Suspects | None = None, *, alike: bool = True) -> Iterator[None]:
    """Charge an account of the process's budget, if it has one, with what is evaluated within.

    Args:
        name: Of the account.
        suspects: Names the shares it is evaluated for; None for those of the account around it.
        alike: Whether one of them would take as long as all of them.

    Raises:
        CpuExceeded: The account has no time left.
    """
    if _current is None:
        yield
        return
    with _current.charge(name, suspects, alike=alike):
        yield


def check_cpu() -> None:
    """Check that the account that is charged has time left.

    Raises:
        CpuExceeded: It has none.
    """
    if _current is not None:
        _current.check()


def checked(values: Iterable[T]) -> Iterator[T]:
    """Yield values, and check now and then that there is time left.

    Raises:
        CpuExceeded: There is none.
    """
    for number, value in enumerate(values):
        if not number % _VALUES:
            check_cpu()
        yield value
