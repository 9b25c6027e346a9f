"""The intake of pending matches: follows `cq.pending`, and arms the destinations of new matches.

When the gateway starts, it takes the positions of pending matches from checkpoints, and reads only the tail of the log.
Then it arms the readers of all restored stores as if the matches were new, some thousand stores at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from gateway.kafka import LogReader, TailReader, Topics
from gateway.model.records import PENDING_PARTITIONS, incarnation_of
from gateway.state.timer_state import TimerState
from gateway.state.working_copy import WorkingCopy
from gateway.timers.checkpoints import TimerCheckpoints
from gateway.timers.pending_index import PendingIndex, store_key
from gateway.timers.schedule import tick_after
from gateway.timers.stream_progress import StreamProgress
from grouping.digests.cursor import Cursor
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from grouping.digests.pending_matches import PendingMatches
from grouping.model.ids import DestinationId, StreamId
from grouping.settings.settings import Settings

__all__ = ["READERS_AT_ONCE", "Intake"]

_TAKEN = 500
"""The largest number of records of the log that are taken in together."""
READERS_AT_ONCE = 2500
"""The largest number of readers of stores that are armed together. Commands wait while readers are armed, and a store
may have a million readers."""
_RESTORED = 5000
"""The largest number of restored stores whose readers are armed together."""


class Intake:
    """The log of pending matches, and the index of their positions."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        topics: Topics,
        state: TimerState,
        checkpoints: TimerCheckpoints,
        progress: Callable[[StreamId], StreamProgress],
    ) -> None:
        """Begin without records; call `recover` first.

        Args:
            settings: The gateway's settings.
            working: The gateway's working copy.
            topics: Asks Kafka for the ends of `cq.pending`.
            state: The readers of stores, and the event list.
            checkpoints: The checkpoints of positions.
            progress: Returns a stream's progress.
        """
        self._settings = settings
        self._working = working
        self._topics = topics
        self._state = state
        self._checkpoints = checkpoints
        self._progress = progress
        self._tail: TailReader | None = None
        self._restored: Iterator[tuple[bytes, MatchPlaces]] = iter(())
        self.held: Counter[bytes] = Counter()
        """Store → number of last digests that still need the store, even if no destination reads it any more."""
        self.aggregate_bytes: Counter[int] = Counter()
        """Partition → bytes of the records of aggregates that came in since the last rolling."""
        self.log = PendingLog(partial(_span, LogReader(settings), settings.topics.pending))
        self.index = PendingIndex()
        self.complete = False
        """Whether the readers of all restored stores are armed."""
        self._wanted: dict[DestinationId, int] = {}
        """Reader that is still to be armed → the earliest time of the matches that wait for it."""

    def recover(self) -> None:
        """Read the checkpoints, and follow the log from there."""
        topic = self._settings.topics.pending
        places = [(topic, number) for number in range(PENDING_PARTITIONS)]
        beginnings, ends = self._topics.offsets.beginnings(places), self._topics.offsets.ends(places)
        self.index = PendingIndex()
        known = self._checkpoints.read(self.index, {number: ends[topic, number] for _, number in places})
        if self._tail is not None:
            self._tail.close()
        offsets = {number: max(beginnings[topic, number], known.get(number, 0)) for _, number in places}
        self._tail = TailReader(self._settings, topic, offsets)
        self._restored, self.complete = iter(list(self.index)), False
        self._wanted.clear()
        self._working.joined.clear()

    @property
    def reached(self) -> dict[int, int]:
        """Partition → offset up to which the log is taken in."""
        assert self._tail is not None, "recovered before"
        return self._tail.reached

    @property
    def armed(self) -> bool:
        """Whether destinations are armed for all matches that were taken in; until then no tick fires."""
        return self.complete and not self._wanted

    def step(self) -> bool:
        """Do a bounded amount of work; return whether there is more to do now."""
        if self._wanted:
            self._arm_some()
            return True
        if not self.complete:
            self._restore(list(islice(self._restored, _RESTORED)))
            return True
        self._join()
        return self._take_in() == _TAKEN or bool(self._wanted)

    def _restore(self, some: list[tuple[bytes, MatchPlaces]]) -> None:
        """Arm the readers of restored stores, and drop positions that cursors have passed since the checkpoint."""
        if not some:
            self.complete = True
            return
        armed = {}
        cursors_of = self._state.cursors_of([store for store, _ in some])
        for (store, stored), cursors in zip(some, cursors_of, strict=True):
            if cursors and store not in self.held:
                low = min(cursor.next for cursor in cursors)
                stored.forget_before(low, {offset for cursor in cursors for offset in cursor.held})
            if stored.first is None:
                self.index.drop(store)
            else:
                armed[store] = (stored, stored.earliest_ms or 0)
                stored.earliest_ms = None
        self._arm(armed)

    def _join(self) -> None:
        """Give each new reader of a store a cursor at the end of the log. So the reader gets no earlier matches."""
        joined, self._working.joined = self._working.joined, []
        waiting = [(stored, name) for store, name in joined if (stored := self.index.get(store_key(store))) is not None]
        cursors = {}
        for (stored, name), membership in zip(
            waiting, self._state.memberships([name for _, name in waiting]), strict=True
        ):
            if membership is not None:
                stored.idle.add(name)
                stored.readers += 1
                cursors[incarnation_of(name, membership.timed)] = Cursor(next=self.reached[stored.partition])
        if cursors:
            self._state.begin_cursors(cursors)

    def _take_in(self) -> int:
        assert self._tail is not None, "recovered before"
        records = self._tail.read(_TAKEN)
        armed: dict[bytes, tuple[MatchPlaces, int]] = {}
        for pending in records:
            partition, offset, body = pending.partition, pending.offset, pending.value
            if body is None:
                continue
            matches = PendingMatches.decode(body)
            if matches.stream_id not in self._working.inventory.streams:
                continue
            self.log.keep((partition, offset), matches, len(body))
            self._checkpoints.count(partition, len(body))
            if matches.ends_at and not matches.before:
                self.aggregate_bytes[partition] += len(body)
            for store, stored, earliest_ms in self.index.take_in(matches, partition, offset):
                before = armed.get(store)
                armed[store] = (stored, earliest_ms if before is None else min(earliest_ms, before[1]))
        self._arm(armed)
        self._checkpoints.step(self.index, self.reached)
        return len(records)

    def _arm(self, stores: dict[bytes, tuple[MatchPlaces, int]]) -> None:
        """Arm the readers of stores with new matches.

        A match with an earlier time than all pending matches of its store arms all readers of the store. Any other
        match arms only the idle readers, since the other readers are armed already. A step arms a bounded number of
        readers, and the next steps arm the rest.
        """
        everyone = [
            store
            for store, (stored, earliest_ms) in stores.items()
            if stored.earliest_ms is None or earliest_ms < stored.earliest_ms
        ]
        for store, readers in zip(everyone, self._state.readers(everyone), strict=True):
            stored, earliest_ms = stores[store]
            stored.earliest_ms = earliest_ms
            stored.readers = len(readers)
            stored.idle.clear()
            if not readers and store not in self.held:
                self.index.drop(store)
            _want(self._wanted, readers, earliest_ms)
        for stored, earliest_ms in stores.values():
            _want(self._wanted, stored.idle, earliest_ms)
            stored.idle.clear()
        self._arm_some()

    def _arm_some(self) -> None:
        """Arm the next readers that are still to be armed."""
        names = list(islice(self._wanted, READERS_AT_ONCE))
        wanted = {name: self._wanted.pop(name) for name in names}
        ticks: dict[StreamId, dict[DestinationId, int]] = {}
        for name, membership in zip(names, self._state.memberships(names), strict=True):
            if membership is None:
                continue
            stream_id = membership.destination.stream_id
            progress = self._progress(stream_id)
            tick = tick_after(membership, max(wanted[name], progress.fired_ms), progress.runs)
            if tick is not None:
                ticks.setdefault(stream_id, {})[name] = tick
        for stream_id, some in ticks.items():
            self._state.arm(stream_id, some)


def _span(reader: LogReader, topic: str, partition: int, first: int, last: int) -> Iterator[tuple[int, bytes]]:
    for record in reader.span(topic, partition, first, last):
        if record.value is not None:
            yield record.offset, record.value


def _want(wanted: dict[DestinationId, int], names: Iterable[DestinationId], earliest_ms: int) -> None:
    for name in names:
        wanted[name] = min(earliest_ms, wanted.get(name, earliest_ms))
