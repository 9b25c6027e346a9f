"""Probes of all streams: the ends of source partitions, the evaluator's commits, and the intake of their matches.

A tick may fire when the evaluator has committed all events published before the tick, and the gateway has taken in the
matches of these commits. So a probe first reads the evaluator's commits and then the end of `cq.pending`. Once the
intake has reached this end, the gateway has all matches of these commits, and the commits move the progress.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from gateway.kafka import Topics
from gateway.metrics import LATE_TICKS
from gateway.model.records import PENDING_PARTITIONS
from gateway.state.timer_state import ProgressNote, TimerState
from gateway.state.working_copy import WorkingCopy
from gateway.timers.schedule import MissedTicks, Run
from gateway.timers.stream_progress import StreamProgress
from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.notes import CommittedNote

__all__ = ["ProgressProbes"]

log = logging.getLogger(__name__)

_EVERY_MS, _PLACE_MS, _LONGEST_MS = 100, 2, 2_000
"""The milliseconds between two probes: `_PLACE_MS` for each partition that a probe asks about, but at least `_EVERY_MS`
and at most `_LONGEST_MS`."""
_ABSENT_MS = 10_000
"""If two probes are further apart than this time, the gateway was suspended, or its clock was set. The ticks between
the probes are then missed ticks."""
_TURNED_MS = 2_000
"""If the clock is behind the last fired tick by more than this time, it was turned back. If the clock is behind by
less, the gateway waits until the clock has caught up."""


class ProgressProbes:
    """The progress of the live streams."""

    def __init__(self, settings: Settings, working: WorkingCopy, topics: Topics, state: TimerState) -> None:
        self._working = working
        self._topics = topics
        self._state = state
        self._log = settings.topics.pending
        self._wait_ms = round(settings.timers.wait_seconds * 1000)
        self.reset()

    def reset(self) -> None:
        """Forget all progress and probes, as after a crash."""
        self._progress: dict[StreamId, StreamProgress] = {}
        self._missed: dict[StreamId, MissedTicks] = {}
        self._due: dict[StreamId, int] = {}
        self._candidate: tuple[dict[StreamId, CommittedNote], dict[int, int]] | None = None
        self._floors: dict[StreamId, tuple[int, int]] = {}
        self._probed_ms = 0
        self._rest_ms = _EVERY_MS
        """The time from the last probe to the next one. The time grows with the number of source partitions, since a
        probe asks for the end of each of them."""
        self._partitions: dict[str, int] = {}
        """Stream → number of source partitions at the last probe."""
        self.turned_back = False
        """Whether the clock was turned back, and the progress is not on Kafka yet.

        The progress must be on Kafka before the next tick, so that a successor knows which ticks have fired.
        """
        self.completed = 0
        """The number of completed probes. A probe is complete once all matches of the commits that it read are taken
        in."""

    def progress(self, stream_id: StreamId) -> StreamProgress:
        """Return a stream's progress."""
        found = self._progress.get(stream_id)
        if found is None:
            note = self._state.progress(stream_id)
            start = self._working.inventory.streams[stream_id].start_offsets
            at_ms, covered = (note.at_ms, note.covered) if note is not None else (0, start)
            found = self._progress[stream_id] = StreamProgress(at_ms, covered, self._wait_ms)
            if note is not None:
                found.run_ms, found.past = at_ms if note.run_ms is None else note.run_ms, note.runs
        return found

    def missed(self, stream_id: StreamId) -> MissedTicks | None:
        """Return the time in which no gateway fired a stream's ticks; None if no missed tick is left to fire."""
        return self._missed.get(stream_id)

    def step(self, now_ms: int, reached: Mapping[int, int]) -> None:
        """Probe all streams if a probe is due. Complete the last probe if the intake has all matches of its commits.

        Args:
            now_ms: The present, epoch milliseconds.
            reached: Partition of `cq.pending` → offset up to which its records are taken in.
        """
        if not 0 <= now_ms - self._probed_ms < self._rest_ms:
            self._probe(now_ms)
        if self._candidate is not None:
            committed, ends = self._candidate
            if all(reached[partition] >= end for partition, end in ends.items()):
                for stream_id, batch in committed.items():
                    stream = self._working.inventory.streams.get(stream_id)
                    if stream is not None:
                        self.progress(stream_id).cover(stream.evaluated(batch.offsets))
                        if batch.table is not None:
                            self._floors[stream_id] = batch.table
                self._candidate = None
                self.completed += 1

    def _probe(self, now_ms: int) -> None:
        streams = list(self._working.inventory.streams.values())
        committed = self._working.evaluator.committed([stream.stream_id for stream in streams])
        own = [(self._log, number) for number in range(PENDING_PARTITIONS)]
        places = own + list({(stream.topic, int(number)) for stream in streams for number in stream.start_offsets})
        self._rest_ms = min(max(_EVERY_MS, _PLACE_MS * len(places)), _LONGEST_MS)
        ends = self._topics.offsets.known_ends(places)
        silent = self._topics.offsets.silent(places)
        if not silent.isdisjoint(own):
            # The end of `cq.pending` is unknown, so it is also unknown when the matches of these commits are taken in.
            # The call asks Kafka again which partitions have a leader, so that a later probe gets the ends.
            self._topics.forms([self._log])
        elif self._candidate is None:
            self._candidate = committed, {place[1]: ends[place] for place in own}
        for stream in streams:
            progress = self.progress(stream.stream_id)
            if not progress.fired_ms:
                progress.fired_ms = progress.run_ms = now_ms
            if now_ms < progress.fired_ms - _TURNED_MS:
                self._turn_back(stream.stream_id, progress, now_ms)
            self._look_at_partitions(stream, progress)
            self._note_absence(stream.stream_id, progress, now_ms)
            if now_ms > progress.fired_ms:
                # A partition of a deleted source has no known end. Ticks must not wait for its events, which are lost.
                known = {number: ends.get((stream.topic, int(number))) for number in stream.start_offsets}
                found = stream.positions({number: end for number, end in known.items() if end is not None})
                certain = not any((stream.topic, int(number)) in silent for number in known)
                progress.probe(now_ms, found, certain=certain)
        self._probed_ms = now_ms

    def _note_absence(self, stream_id: StreamId, progress: StreamProgress, now_ms: int) -> None:
        """If two probes are far apart, note that the ticks between them were missed."""
        since_ms = self._probed_ms or progress.fired_ms
        if now_ms > since_ms and (not self._probed_ms or now_ms > since_ms + _ABSENT_MS):
            before = self._missed.get(stream_id)
            missed = MissedTicks(since_ms if before is None else before.since_ms, now_ms)
            self._missed[stream_id] = missed
            progress.skip(missed)

    def _turn_back(self, stream_id: StreamId, progress: StreamProgress, now_ms: int) -> None:
        """Follow a clock that was turned back; ticks that have fired already do not fire again.

        If ticks were being fired, some of them may have fired already. So all of them are taken as fired.
        """
        under_way_ms = self._due.pop(stream_id, 0)
        if under_way_ms > progress.fired_ms:
            progress.settle(under_way_ms)
        log.warning(
            "the clock was turned back", extra={"stream": stream_id, "milliseconds": progress.fired_ms - now_ms}
        )
        self._state.look_after(stream_id, now_ms)
        progress.turn_back(now_ms)
        self.turned_back = True
        self._missed.pop(stream_id, None)
        self._state.note_progress({stream_id: self.note(stream_id)})

    def _look_at_partitions(self, stream: Stream, progress: StreamProgress) -> None:
        """Discard the earlier probes if the source has more partitions than at the last probe."""
        count = len(stream.start_offsets)
        if count > self._partitions.setdefault(stream.stream_id, count):
            progress.doubt()
        self._partitions[stream.stream_id] = count

    def runs(self, stream_id: StreamId) -> tuple[Run, ...]:
        """Return the runs that lie in the future because the clock was turned back; their ticks have fired already."""
        known = self._progress.get(stream_id)
        return () if known is None else known.runs

    def floor(self, stream_id: StreamId) -> tuple[int, int] | None:
        """Return the lowest epoch and version of a stream's constant tables that later matches can have.

        Versions never decrease from one micro-batch to the next. So the result is the version that was pinned for the
        last micro-batch whose matches are all taken in; None if there is no such micro-batch.
        """
        return self._floors.get(stream_id)

    def due(self, stream_id: StreamId, now_ms: int) -> int:
        """Return the instant up to which a stream's ticks may fire.

        The instant stays the same until all ticks up to it have fired.
        """
        progress = self.progress(stream_id)
        due_ms = self._due.get(stream_id, 0)
        if due_ms <= progress.fired_ms:
            due_ms = self._due[stream_id] = progress.due(now_ms)
            if due_ms > progress.evaluated_ms:
                LATE_TICKS.inc()
        return due_ms

    def settle(self, fired: Mapping[StreamId, int]) -> None:
        """Note that all ticks of some streams have fired, each up to an instant."""
        for stream_id, at_ms in fired.items():
            self.progress(stream_id).settle(at_ms)
            missed = self._missed.get(stream_id)
            if missed is not None and at_ms >= missed.until_ms:
                del self._missed[stream_id]
        self._state.note_progress({stream_id: self.note(stream_id) for stream_id in fired})

    def note(self, stream_id: StreamId) -> ProgressNote:
        """Return a stream's progress in the form that Kafka and Redis keep."""
        progress = self.progress(stream_id)
        return ProgressNote(progress.fired_ms, progress.covered, progress.run_ms, progress.past)
