"""Many streams that share a Spark query, each with a CQ for all of its events."""

from __future__ import annotations

import time
from typing import Any

from gateway.local.run_folder import RunFolder
from tests.kafka_client import wait_until
from tests.stack.lab import Lab, Source
from tests.stack.server import Stack

__all__ = ["PATIENCE", "STREAMS", "Crowd", "matched"]

_COLUMNS = "symbol STRING, n INT, deadly STRING"
STREAMS = 12
"""More streams than an evaluator on two cores serves by a query for each stream."""
PATIENCE = 240.0
"""The longest time in seconds until a stream joins or leaves the lane."""


class Crowd:
    """Streams with one partition each, and for each stream a CQ that matches every event."""

    def __init__(self, stack: Stack, lab: Lab, count: int = STREAMS) -> None:
        self.stack, self.lab = stack, lab
        self.sources: list[Source] = []
        self.watched: list[Any] = []
        self.published: list[int] = []
        for _ in range(count):
            self.add()

    def add(self) -> None:
        """Create one more stream and its CQ."""
        source = self.lab.stream(_COLUMNS)
        number = len(self.sources)
        self.sources.append(source)
        self.watched.append(
            self.lab.create(f"q{number}", f"SELECT n FROM {source.name} WHERE n >= 0", clauses="DO PUBLISH SHARED")
        )
        self.published.append(0)

    def flow(self, count: int = 1, only: set[int] | None = None) -> None:
        """Publish events to each stream; the events of a stream are numbered from 0."""
        for number, source in enumerate(self.sources):
            if only is None or number in only:
                first = self.published[number]
                source.publish_values(*[b'{"symbol": "a", "n": %d}' % n for n in range(first, first + count)])
                self.published[number] += count

    def check(self, numbers: range | None = None) -> None:
        """Check that each stream has each of its events once and in order."""
        results = self.lab.results
        for number in numbers or range(len(self.sources)):
            destination = self.watched[number]["destination"]

            def there(number: int = number, destination: Any = destination) -> bool:
                return len(matched(results, destination)) >= self.published[number]

            results.until(there, f"events of stream {number}")
            assert list(range(self.published[number])) == matched(results, destination), number

    def report(self) -> dict[str, dict[str, Any]]:
        """Return the evaluator's reports on streams."""
        time.sleep(0.1)
        run = RunFolder(self.stack.data)
        return dict(run.read(run.status("evaluator")).get("streams", {}))

    def in_lane(self) -> set[int]:
        """Return the numbers of the streams in the lane."""
        report = self.report()
        return {n for n, source in enumerate(self.sources) if report.get(source.name, {}).get("lane")}

    def await_lane(self, numbers: set[int]) -> None:
        """Return when these streams are in the lane."""
        wait_until(lambda: numbers <= self.in_lane(), f"streams {numbers} in the lane", PATIENCE)


def matched(results: Any, destination: Any) -> list[int]:
    """Return the numbers of the matching events so far."""
    return [one.row["n"] for one in results.of(destination) if one.kind == "cq.match"]
