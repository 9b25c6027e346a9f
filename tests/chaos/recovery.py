"""The time until a gateway answers, and an evaluator matches, after a fault."""

from __future__ import annotations

import time

from tests.chaos.workload import Commands, Events
from tests.oracle import Position
from tests.stack.lab import Lab, Source

__all__ = ["Recovery"]


class Recovery:
    """Measures the time from a fault to the first reply and the first result of later commands and events."""

    def __init__(self, source: Source, events: Events, commands: Commands, lab: Lab) -> None:
        self._source = source
        self._events = events
        self._commands = commands
        self._lab = lab
        self._begun_at = 0.0
        self._first_event = 0
        self._seen = 0
        self._matched_at: float | None = None

    def begin(self, fault: str) -> None:
        """Note that something breaks now."""
        self._matched_at = None
        self._begun_at, self._first_event = time.monotonic(), self._events.begun

    def note(self) -> None:
        """Look whether an event is matched that was published since; called whenever results were read."""
        watched = self._source.watched
        if watched is None or self._matched_at is not None:
            return
        results = self._lab.results.of(watched)
        fresh, self._seen = results[self._seen :], len(results)
        new = {position for position, _ in self._source.events[self._first_event :]}
        if any(one.kind == "cq.match" and Position(*one.source[1:]) in new for one in fresh):
            self._matched_at = time.monotonic()

    def seconds(self) -> dict[str, float]:
        """Return the times by role of the first answers."""
        found = {}
        replied = [at for sent_at, at in self._commands.answered if sent_at > self._begun_at]
        if replied:
            found["gateway"] = min(replied) - self._begun_at
        if self._matched_at is not None:
            found["evaluator"] = self._matched_at - self._begun_at
        return found

    @property
    def done(self) -> bool:
        """Whether both work again."""
        return len(self.seconds()) == 2
