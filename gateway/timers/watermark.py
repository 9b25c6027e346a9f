"""How far time is settled for one stream: up to which instant everything published has been evaluated.

From time to time the ends of the source's partitions are looked up (a *probe*). Once the evaluator has committed those
ends, whatever was published before the probe is evaluated: every tick up to it may fire. An idle partition holds
nothing up. A tick waits only so long; the end of a CQ (EXPIRE) waits for as long as it takes.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from gateway.timers.schedule import Run
from grouping.digests.cursor import Offsets

__all__ = ["Watermark", "covers"]


class _Probe(NamedTuple):
    at_ms: int
    ends: Offsets
    certain: bool


def covers(reached: Offsets, wanted: Offsets) -> bool:
    """Tell whether every partition has reached what is wanted of it."""
    return all(reached.get(partition, 0) >= end for partition, end in wanted.items())


class Watermark:
    """The watermark of one stream. Moved by its caller's clock, epoch milliseconds."""

    def __init__(self, fired_ms: int, covered: Offsets, wait_ms: int) -> None:
        """Begin where an earlier life ended.

        Args:
            fired_ms: All ticks up to here have fired.
            covered: What the evaluator is known to have committed.
            wait_ms: How long a tick waits for it.
        """
        self.fired_ms = fired_ms
        """All ticks up to here have fired."""
        self.evaluated_ms = fired_ms
        """What was published up to here is certainly evaluated."""
        self.covered: dict[str, int] = dict(covered)
        """What the evaluator has committed, and whose matches are all known here."""
        self.run_ms = fired_ms
        """Since when ticks have fired one after the other."""
        self.runs: tuple[Run, ...] = ()
        """Those that the clock was turned back behind, and that are not over by it."""
        self._wait_ms = wait_ms
        self._probes: deque[_Probe] = deque()

    def probe(self, at_ms: int, ends: Offsets, *, certain: bool = True) -> None:
        """Note the ends of the partitions at an instant, which is later than that of the probe before.

        Args:
            at_ms: The instant.
            ends: By partition.
            certain: Whether they are those of the instant: a partition without a leader has the end that it had last.
        """
        self._probes.append(_Probe(at_ms, ends, certain))

    def turn_back(self, now_ms: int) -> None:
        """Go on from an instant that lies before the watermark, since the clock was turned back."""
        self.runs = (*self.runs, (min(self.run_ms, self.fired_ms), self.fired_ms))
        self.run_ms = self.fired_ms = now_ms
        self.evaluated_ms = min(self.evaluated_ms, now_ms)
        self._probes.clear()

    def doubt(self) -> None:
        """Forget what was evaluated up to when: there are partitions that no probe so far has looked at."""
        self.evaluated_ms = 0
        self._probes.clear()

    def settle(self, at_ms: int) -> None:
        """Note that all ticks up to an instant have fired."""
        self.fired_ms = at_ms
        self.runs = tuple(run for run in self.runs if run[1] > at_ms)

    def cover(self, committed: Offsets) -> None:
        """Note what the evaluator has committed; never less than before."""
        for partition, offset in committed.items():
            self.covered[partition] = max(offset, self.covered.get(partition, 0))

    def due(self, now_ms: int) -> int:
        """Return up to where ticks may fire now: `fired_ms` when nothing has changed."""
        due_ms = self.fired_ms
        while self._probes:
            probe = self._probes[0]
            if covers(self.covered, probe.ends):
                self.evaluated_ms = max(self.evaluated_ms, probe.at_ms if probe.certain else 0)
            elif now_ms < probe.at_ms + self._wait_ms:
                break
            due_ms = max(due_ms, probe.at_ms)
            self._probes.popleft()
        return due_ms
