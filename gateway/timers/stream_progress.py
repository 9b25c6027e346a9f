"""The progress of a stream: the time up to which all published events have been evaluated.

From time to time the gateway looks up the ends of the source's partitions (a *probe*). Once the evaluator has committed
all events before these ends, all events published before the probe are evaluated, and all ticks up to the time of the
probe may fire. A partition without new events holds up no tick. A tick waits for the evaluator at most
`timers.wait_seconds`; an EXPIRE waits without a limit.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from gateway.timers.schedule import MissedTicks, Run
from grouping.digests.cursor import SourceOffsets, highest

__all__ = ["StreamProgress", "covers"]


_RUNS = 16
"""The largest number of past runs that are remembered. A run ends when the clock is set or the gateway is absent."""


class _Probe(NamedTuple):
    """The ends of a source's partitions at an instant."""

    at_ms: int
    ends: SourceOffsets
    certain: bool


def covers(reached: SourceOffsets, wanted: SourceOffsets) -> bool:
    """Tell whether each partition has reached its wanted offset."""
    return all(reached.get(partition, 0) >= end for partition, end in wanted.items())


class StreamProgress:
    """The progress of one stream, in epoch milliseconds of its caller's clock."""

    def __init__(self, fired_ms: int, covered: SourceOffsets, wait_ms: int) -> None:
        """Begin with the progress of an earlier gateway.

        Args:
            fired_ms: The instant up to which all ticks have fired.
            covered: Source partition → offset up to which the evaluator has committed events, as far as is known.
            wait_ms: How long a tick waits for the evaluator.
        """
        self.fired_ms = fired_ms
        """All ticks up to this instant have fired."""
        self.evaluated_ms = fired_ms
        """All events published up to this instant are certainly evaluated."""
        self.covered: dict[str, int] = dict(covered)
        """Source partition → offset up to which events are committed and their matches taken in."""
        self.probed: SourceOffsets = {}
        """Source partition → its end at the last instant that `due` has returned.

        The events before these ends may not be evaluated yet, since a tick waits only for a limited time.
        """
        self.run_ms = fired_ms
        """The instant since which ticks have fired without a gap."""
        self.past: tuple[Run, ...] = ()
        """The earlier runs, without the present run."""
        self._gap: MissedTicks | None = None
        """The interval in which no gateway fired ticks; None once its missed ticks have fired."""
        self._wait_ms = wait_ms
        self._probes: deque[_Probe] = deque()

    def probe(self, at_ms: int, ends: SourceOffsets, *, certain: bool = True) -> None:
        """Note the ends of the partitions at an instant later than the last probe.

        Args:
            at_ms: The instant.
            ends: Partition → offset of the next event.
            certain: Whether all ends are the ends at this instant. For a partition without a leader, only an earlier
                end is known.
        """
        self._probes.append(_Probe(at_ms, ends, certain))

    @property
    def runs(self) -> tuple[Run, ...]:
        """The earlier runs that end in the future, because the clock was turned back.

        The ids of digests for ticks in these runs may be in use already.
        """
        return tuple(run for run in self.past if run[1] > self.fired_ms) if self.past else ()

    def skip(self, gap: MissedTicks) -> None:
        """Note that no gateway fired ticks in an interval up to now."""
        self._gap = gap if self._gap is None else MissedTicks(self._gap.since_ms, gap.until_ms)

    def turn_back(self, now_ms: int) -> None:
        """Continue from an instant before the last fired tick, because the clock was turned back."""
        self._end_run(self.fired_ms, now_ms)
        self._gap = None
        self.fired_ms = now_ms
        self.evaluated_ms = min(self.evaluated_ms, now_ms)
        self._probes.clear()

    def doubt(self) -> None:
        """Forget `evaluated_ms` and the probes: the source has partitions that no probe covers."""
        self.evaluated_ms = 0
        self._probes.clear()

    def settle(self, at_ms: int) -> None:
        """Note that all ticks up to an instant have fired."""
        self.fired_ms = at_ms
        if self._gap is not None and at_ms > self._gap.since_ms:
            self._end_run(self._gap.since_ms, self._gap.until_ms)
            self._gap = None

    def _end_run(self, last_ms: int, next_ms: int) -> None:
        """Note the end of the present run, and the beginning of the next run."""
        if self.run_ms <= last_ms:
            self.past = (*self.past, (self.run_ms, last_ms))[-_RUNS:]
        self.run_ms = next_ms

    def cover(self, committed: SourceOffsets) -> None:
        """Note the offsets that the evaluator has committed; lower offsets than the known ones are ignored."""
        for partition, offset in committed.items():
            self.covered[partition] = max(offset, self.covered.get(partition, 0))

    def due(self, now_ms: int) -> int:
        """Return the instant up to which ticks may fire now.

        The instant is the time of the last probe that is covered, or that has waited long enough. Without such a probe,
        it is `fired_ms`.
        """
        due_ms = self.fired_ms
        while self._probes:
            probe = self._probes[0]
            if covers(self.covered, probe.ends):
                self.evaluated_ms = max(self.evaluated_ms, probe.at_ms if probe.certain else 0)
            elif now_ms < probe.at_ms + self._wait_ms:
                break
            due_ms, self.probed = max(due_ms, probe.at_ms), highest(probe.ends, self.probed)
            self._probes.popleft()
        return due_ms
