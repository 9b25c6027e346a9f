"""AT MOST in a test: decides which results are left out, as the gateway does when it copies results."""

from __future__ import annotations

from collections import defaultdict

from gateway.evaluation.task import Place, TaskOutput
from gateway.throttling.by_values import by_values
from gateway.throttling.intervals import ThrottleState, time_of
from grouping.model.trigger import Throttle

__all__ = ["ThrottledResults"]


class ThrottledResults:
    """The results of a query with AT MOST, over all tasks of a test."""

    def __init__(self, throttle: Throttle | None) -> None:
        """Begin without results; without a throttle, no result is left out."""
        self._throttle = throttle
        self._state = ThrottleState()
        self.suppressed: dict[Place, list[int | None]] = defaultdict(list)
        """Place of an event → for each of its results, the number of results that were left out before it; None for a
        result that is left out itself. Empty without a throttle."""

    def take(self, output: TaskOutput) -> None:
        """Take the results of a task, in their order."""
        if self._throttle is None:
            return
        for place, found in output.values.items():
            for value, time in zip(found, output.times[place], strict=True):
                at_ms, values = time_of(time), by_values(value, self._throttle.columns)
                self.suppressed[place].append(self._state.take(values, at_ms, at_ms, self._throttle))
