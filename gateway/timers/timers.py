"""The gateway's timers: they take in pending matches, fire ticks that are due, and delete records that nobody needs.

A step does a bounded amount of this work, so that commands do not wait for long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from gateway.kafka import LogReader, Topics
from gateway.model.end_notice import EndNotice
from gateway.model.records import Destination
from gateway.state.commit import Commits
from gateway.state.timer_state import ProgressNote, TimerState
from gateway.state.working_copy import WorkingCopy
from gateway.timers.aggregate_guard import AggregateGuard
from gateway.timers.big_ticks import BigTicks
from gateway.timers.checkpoints import TimerCheckpoints
from gateway.timers.cuts import Cut
from gateway.timers.deliver import Delivery
from gateway.timers.digest_orders import OrderDesk
from gateway.timers.firing import LastDigest, TickRun
from gateway.timers.gathering import DigestGathering
from gateway.timers.intake import Intake
from gateway.timers.open_cuts import OpenCuts
from gateway.timers.order_log import OrderLog
from gateway.timers.probes import ProgressProbes
from gateway.timers.retention import Retention
from gateway.timers.rolling import Rolling
from gateway.timers.schedule import tick_behind
from grouping.digests.cursor import Cursor
from grouping.model.ids import DestinationId, StreamId
from grouping.plan.table_changes import is_changes
from grouping.settings.settings import Settings
from grouping.store.record_keys import TickKey

__all__ = ["Timers"]

_NOTE_MS = 60_000
_TRIM_MS = 30_000


class Timers:
    """The gateway's timers; for use by its main thread only."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        topics: Topics,
        commits: Commits,
        clock: Callable[[], int],
    ) -> None:
        """Begin without state; call `recover` first.

        Args:
            settings: The gateway's settings.
            working: The gateway's working copy.
            topics: Asks Kafka for the ends of topics, and deletes records.
            commits: Writes the gateway's units of work and records.
            clock: Returns the present, epoch milliseconds.
        """
        self._settings = settings
        self._working = working
        self._clock = clock
        self._state = TimerState(working)
        self._delivery = Delivery(settings, working, commits)
        self._probes = ProgressProbes(settings, working, topics, self._state)
        checkpoints = TimerCheckpoints(settings, commits)
        self._intake = Intake(settings, working, topics, self._state, checkpoints, self._probes.progress)
        self.retention = Retention(settings, topics, self._state, self._intake)
        self._cuts = OpenCuts()
        gathering = DigestGathering(working, self._intake, AggregateGuard(settings, clock))
        self._firing = TickRun(
            gathering, self._state, self._intake, self._probes, self._delivery, self.retention, self._cuts, clock
        )
        self._rolling = Rolling(settings, working, commits, self._state, self._intake, self._probes, self._cuts)
        ordering = OrderDesk(
            settings, working, self._state, self._intake, self._probes, self.retention, self._firing, clock
        )
        orders = OrderLog(settings, topics, commits)
        self._big = BigTicks(
            settings, orders, ordering, self._delivery, self._state, self._intake.log, self._cuts, clock
        )
        self._noted_ms = self._trimmed_ms = 0
        self.busy = False
        """Whether more work waits for the next step."""

    def recover(self) -> None:
        """Read the timers' state from Kafka. Cursors and open cuts are read now, pending matches by the next steps."""
        self._big.recover(self._read_ticks())
        self._intake.recover()
        self.retention.reset()
        self._probes.reset()
        self._rolling.reset()
        self._firing.shortened.clear()
        self.busy = True

    def _read_ticks(self) -> int:
        """Restore cursors and progress from `cq.ticks`, and find the cuts with unwritten digests.

        Returns:
            The offset of `cq.orders` before which all orders are carried out.
        """
        topic, reader = self._settings.topics.ticks, LogReader(self._settings)
        since = self._state.read_position()
        cursors: dict[str, Cursor | None] = {}
        settled: dict[StreamId, ProgressNote | None] = {}
        cuts: dict[str, Cut] = {}
        end, closed = since, 0
        try:
            for record in reader.since(topic, {0: 0}):
                kind, name = TickKey.parse(record.key)
                body, offset = record.value or None, record.offset
                end = max(end, offset + 1)
                match kind:
                    case "cut" if body is None:
                        cuts.pop(name, None)
                    case "cut" if body is not None:
                        cuts[name] = msgspec.msgpack.decode(body, type=Cut)
                    case "closed" if body is not None:
                        closed = msgspec.msgpack.decode(body, type=int)
                    case "cursor" if offset >= since:
                        cursors[name] = None if body is None else msgspec.msgpack.decode(body, type=Cursor)
                    case "settled" if offset >= since:
                        note = None if body is None else msgspec.msgpack.decode(body, type=ProgressNote)
                        settled[StreamId(name)] = note
        finally:
            reader.close()
        self._cuts.recover(cuts)
        self._state.restore(cursors, settled, end)
        return closed

    def step(self) -> None:
        """Do a bounded amount of the work that is due."""
        now_ms = self._clock()
        self._firing.fired = []
        self.busy = self._intake.step()
        if not self._intake.armed:
            return
        self._probes.step(now_ms, self._intake.reached)
        if self._keep_up(now_ms):
            self.busy = True
            return
        if self._probes.completed:
            if (cut := self._cuts.due(now_ms)) is not None:
                self._firing.finish(*cut)
                self.busy = True
                return
            self.busy = self._big.step() or self.busy
            self._advance(now_ms)
        if not self.busy:
            self.busy = self.retention.step() or (self._big.stream_id is None and self._rolling.step())

    def _keep_up(self, now_ms: int) -> bool:
        """Write the progress or trim the log, if this is due; return whether it was due.

        A step that does this does nothing else afterwards.
        """
        if self._probes.turned_back or not 0 <= now_ms - self._noted_ms < _NOTE_MS:
            self._probes.turned_back, self._noted_ms = False, now_ms
            self._delivery.note_progress({name: self._probes.note(name) for name in self._working.inventory.streams})
            return True
        if not 0 <= now_ms - self._trimmed_ms < _TRIM_MS and self.taken_in and self._big.stream_id is None:
            self._trimmed_ms = now_ms
            self._rolling.begin()
            self.retention.trim()
            return True
        return False

    def _advance(self, now_ms: int) -> None:
        """Fire ticks that the streams' progress allows, and move the progress of streams whose due ticks have fired."""
        streams = [name for name in self._working.inventory.streams if name != self._big.stream_id]
        due = {name: due_ms for name in streams if (due_ms := self._probes.due(name, now_ms)) > self._fired_ms(name)}
        with_ticks = self._state.with_ticks(due)
        settled = {}
        # Streams whose ticks have waited longest come first, since a Spark job makes digests for one stream at a time.
        for stream_id, due_ms in sorted(due.items(), key=lambda each: self._fired_ms(each[0])):
            if stream_id not in with_ticks and not self._firing.windows.waiting(stream_id):
                settled[stream_id] = due_ms
            elif self._big.has_rows(stream_id, due_ms):
                # If no evaluator has the stream, the ticks wait.
                self.busy = self._big.take(stream_id, due_ms, least=1) or self.busy
            elif self._big.take(stream_id, due_ms) or self._firing.fire(stream_id, due_ms):
                self.busy = True
            elif not self._firing.windows.waiting(stream_id):
                settled[stream_id] = due_ms
        self._probes.settle(settled)

    def _fired_ms(self, stream_id: StreamId) -> int:
        return self._probes.progress(stream_id).fired_ms

    def evaluated_ms(self, stream_id: StreamId) -> int:
        """Return the time up to which all events of a stream are evaluated and their matches taken in.

        For the changes of a table, all ticks up to this time have fired too. The last digest of a table's rows is due
        at the EXPIRE of a CQ, and must come before the end of the CQ.
        """
        progress = self._probes.progress(stream_id)
        return min(progress.evaluated_ms, progress.fired_ms) if is_changes(stream_id) else progress.evaluated_ms

    @property
    def taken_in(self) -> int:
        """The number of completed probes; 0 until all cuts that a crash left open were tried again.

        If the number has grown by two since an instant, one of these probes has begun after the instant. So all matches
        that the evaluator committed before the instant are taken in.
        """
        return 0 if self._cuts.untried else self._probes.completed

    def under_way(self, stream_id: StreamId) -> bool:
        """Tell whether a Spark job may be writing digests of a stream. The ends of the stream then wait for the job."""
        return stream_id == self._big.stream_id

    def waits(self, destination: Destination) -> bool:
        """Tell whether a digest of a destination is in an open cut, because of a crash or a full disk."""
        return destination.destination_id in self._cuts.waiting

    @property
    def waiting(self) -> Mapping[str, int]:
        """Stream → number of digests in open cuts."""
        return self._cuts.of_streams()

    def tick_after(self, destination: Destination, at_ms: int) -> int:
        """Return a destination's first tick that is later than an instant and has not fired yet."""
        fired_ms = self._fired_ms(destination.stream_id)
        (membership,) = self._state.memberships([destination.destination_id])
        return fired_ms if membership is None else tick_behind(membership, max(at_ms, fired_ms)) or fired_ms

    def armed_ms(self, destination: Destination) -> int | None:
        """Return the tick that a destination is armed for (0 for a look); None if it is not armed."""
        return self._state.armed(destination.stream_id, destination.destination_id)

    @property
    def reached(self) -> Mapping[int, int]:
        """Partition of `cq.pending` → offset up to which its records are taken in."""
        return self._intake.reached

    @property
    def fired(self) -> list[int]:
        """The ticks of the digests that the last step wrote."""
        return self._firing.fired

    def shortened(self) -> dict[DestinationId, tuple[int, int]]:
        """Return destination → the lowest epoch and version for which its visibility is still needed.

        Each call returns only the destinations that were noted since the last call.
        """
        found, self._firing.shortened = self._firing.shortened, {}
        return found

    def last_digests(self, notices: Sequence[EndNotice]) -> Iterator[tuple[EndNotice, LastDigest]]:
        """Yield the notice of each ended destination with the destination's last digest."""
        return self._firing.last_digests(notices)
