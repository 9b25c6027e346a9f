"""A stream as the driver sees it: its progress, and the query that evaluates it, or why it is not evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql.streaming.query import StreamingQuery

from grouping.model.catalog import Stream
from grouping.store.ownership import Owner
from spark_jobs.runtime.streams.load import StreamLoad
from spark_jobs.runtime.streams.progress import Committed, Progress

__all__ = ["EvaluatedStream"]

_ALONE_SECONDS = 30.0
"""How long a stream must have a query of its own after its first failure in the lane."""
_MOST_PARTINGS = 5
"""The largest number of further failures that double `_ALONE_SECONDS`."""
_STANDING_SECONDS = 10.0
"""If events have waited for this time without a committed micro-batch, the stream's state is shown as waiting."""


@dataclass(slots=True)
class EvaluatedStream:
    """A stream, with its own query or its progress in the lane, and the time at which its query is started again."""

    stream: Stream
    progress: Progress | None = None
    query: StreamingQuery | None = None
    failures: int = 0
    batch_at_start: int = -1
    start_at: float = 0.0
    behind: int | None = None
    waiting_since: float | None = None
    """Since when events wait, in monotonic seconds; None if all events are evaluated."""
    partitions: int = 1
    """The number of the topic's partitions; 1 until the number is known."""
    steady_at: float = 0.0
    committed_at: float = 0.0
    """When the evaluation was started, or when a commit of a micro-batch with the stream's events was last noticed."""
    reason: str | None = None
    """Why the query does not run. After a restart, the reason is kept until a commit, or until `steady_at`."""
    events: int = 0
    """The number of offsets that were evaluated since this process began."""
    ends: int = 0
    """How often the stream's own query has ended by itself, or the stream has left the lane because of a failure."""
    owner: Owner | None = None
    """The other evaluator that has the stream; None if there is none."""
    has_headers: bool = False
    """Whether the stream's own query reads headers."""
    tasks: int = 0
    """The largest number of tasks in a micro-batch of the stream's own query."""
    in_lane: bool = False
    """Whether the lane evaluates the stream, or still has to release the stream."""
    alone_until: float = 0.0
    """The time before which the stream must have a query of its own, whatever its load."""
    partings: int = 0
    """How often the stream has left the lane because of a failure."""
    load: StreamLoad = field(default_factory=StreamLoad)

    @property
    def is_evaluated(self) -> bool:
        """Whether the stream's events are evaluated now."""
        return self.in_lane or self.query is not None

    @property
    def why_not(self) -> str | None:
        """Why the stream is not evaluated here."""
        return self.reason if self.owner is None else f"the {self.owner.title} has it"

    def is_quiet(self, now: float) -> bool:
        """Tell whether the stream may share the lane: its load is low, and no failure keeps it out."""
        return not self.failures and now >= self.alone_until and self.load.is_quiet(self.behind)

    def is_caught_up(self, now: float) -> bool:
        """Tell whether the stream may share the lane at any load: few events wait, and no failure keeps it out."""
        return not self.failures and now >= self.alone_until and self.load.is_near(self.behind)

    def compare(self, now: float, earliest: Mapping[int, int], ends: Mapping[int, int]) -> None:
        """Compare the stream's progress with the broker's offsets.

        Args:
            now: Monotonic seconds.
            earliest: By partition, the first offset that the broker still has.
            ends: By partition, the offset after the last record.

        Raises:
            OperationalError: A dead letter for deleted events could not be written.
        """
        if self.progress is not None:
            self.progress.report_deleted(earliest)
            self.behind = self.progress.behind(ends)
        self.partitions = len(ends)
        if not self.behind:
            self.waiting_since = None
        elif self.waiting_since is None:
            self.waiting_since = now

    def look(self, now: float) -> bool:
        """Update the progress of the stream's own query; return whether the query has committed a micro-batch.

        Args:
            now: Monotonic seconds.

        Raises:
            OperationalError: Redis does not answer.
        """
        progress, query = self.progress, self.query
        assert progress is not None and query is not None, "the query runs"
        batch, reached = progress.batch, progress.reached
        progress.look(query)
        self.events += max(progress.reached - reached, 0)
        self.load.add(now, self.events)
        if progress.batch > batch:
            self.committed_at = now
        committed = progress.batch > self.batch_at_start
        if committed:
            self.failures = 0
        if committed or now >= self.steady_at:
            self.reason = None
        return committed

    def enter(self, progress: Progress, now: float) -> None:
        """Note that the lane evaluates the stream from now on.

        Args:
            progress: The stream's progress in the lane.
            now: Monotonic seconds.
        """
        self.progress, self.in_lane, self.committed_at = progress, True, now
        self.failures, self.reason, self.load = 0, None, StreamLoad()

    def look_at_lane(self, seen: Committed | None, reason: str | None, seconds: float, now: float) -> None:
        """Update the stream's progress in the lane.

        A micro-batch without events of the stream is no progress of the stream. If the lane goes on but never evaluates
        the stream's waiting events, the stream must not seem to make progress.

        Args:
            seen: The lane's last committed micro-batch; None before the first.
            reason: Why the lane's query does not run.
            seconds: The CPU seconds for which the lane's tasks have evaluated the stream since the last call.
            now: Monotonic seconds.

        Raises:
            OperationalError: Redis does not answer.
        """
        progress = self.progress
        assert progress is not None, "the stream is in the lane"
        if seen is not None:
            reached = progress.reached
            progress.take(seen)
            progress.tell()
            if progress.reached > reached:
                self.events += progress.reached - reached
                self.committed_at = now
        self.reason = reason
        self.load.add(now, self.events, seconds)

    def part(self, now: float, reason: str) -> None:
        """Note that the stream leaves the lane because of a failure. With each failure, the stream stays out longer.

        Args:
            now: Monotonic seconds.
            reason: The failure, in a line.
        """
        self.alone_until = now + _ALONE_SECONDS * 2.0 ** min(self.partings, _MOST_PARTINGS)
        self.partings += 1
        self.ends += 1
        self.reason = reason

    def _standing_seconds(self, now: float) -> float:
        """Return for how long events have waited while no micro-batch was committed."""
        return 0.0 if self.waiting_since is None else now - max(self.waiting_since, self.committed_at)

    def status(self, now: float, *, lane_runs: bool) -> dict[str, object]:
        """Return the stream's progress, and why the stream is not evaluated, for ``cq status`` and the metrics.

        Args:
            now: Monotonic seconds.
            lane_runs: Whether the query of the lane runs.
        """
        progress, runs = self.progress, self.query is not None or (self.in_lane and lane_runs)
        reason = self.why_not
        if reason is None and (standing := self._standing_seconds(now)) > _STANDING_SECONDS:
            runs = False
            reason = f"events wait, and no micro-batch was committed for {standing:.0f} s"
        return {
            "stream_id": self.stream.stream_id,
            "state": "running" if runs else "waiting",
            "lane": self.in_lane,
            "behind": self.behind,
            "batch": progress.batch if progress else -1,
            "events_deleted": progress.events_deleted if progress else 0,
            "reason": reason,
            "events": self.events,
            "failures": self.ends,
            "batch_events": progress.batch_events if progress else 0,
            "phases": progress.phases if progress else {},
            "quiet_seconds": round(now - self.committed_at, 3) if runs else None,
        }
