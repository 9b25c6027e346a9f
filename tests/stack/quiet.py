"""A stream without events for most of a run: afterwards its query must still evaluate the next event."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from tests.stack.lab import Lab, Source
from tests.stack.server import Stack

__all__ = ["LONG_SECONDS", "QuietStream"]

LONG_SECONDS = 65.0
"""A long time without events: some clients and servers give up connections and waits after a minute."""


class QuietStream:
    """A stream with a CQ that matches each event. The first event is already evaluated."""

    def __init__(self, stack: Stack, lab: Lab) -> None:
        self._stack = stack
        self._lab = lab
        self.source: Source = lab.stream("n INT")
        select = f"SELECT n FROM {self.source.name}"
        self._made: dict[str, Any] = lab.create(self.source.name, select, clauses="DO PUBLISH SHARED")
        self._number = 0
        self._touched_at = 0.0
        self.touch()

    def touch(self) -> None:
        """Publish an event, wait for its result, and check that no query of the stream has failed.

        Raises:
            AssertionError: A query of the stream has failed, or there is no result.
        """
        self._number += 1
        self.source.publish_values(b'{"n": %d}' % self._number)
        self._lab.results.until(self._has_come, f"result of an event of {self.source.name}")
        self._touched_at = time.monotonic()
        figures = self._stack.settled_streams()[self.source.name]
        assert (0, None) == (figures["failures"], figures["reason"]), figures

    def idle(self, seconds: float) -> None:
        """Return once the stream has had no event for `seconds`."""
        with suppress(ValueError):  # the time is over
            time.sleep(self._touched_at + seconds - time.monotonic())

    def _has_come(self) -> bool:
        results = self._lab.results.of(self._made["destination"])
        return any(one.kind == "cq.match" and one.row["n"] == self._number for one in results)
