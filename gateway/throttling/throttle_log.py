"""The state of all throttled destinations: in memory, and as records of `cq.throttles`.

Each mark and each interval is a record of its own, so that a change of one of them is small. The topic is compacted. A
gateway that starts reads the whole topic.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from gateway.kafka import OutgoingRecord, Record
from gateway.metrics import FORGOTTEN_INTERVALS
from gateway.sdk.records.record import Mark
from gateway.throttling.intervals import Interval, ThrottleState
from grouping.model.ids import DestinationId
from grouping.model.trigger import Throttle
from grouping.settings.settings import Settings
from grouping.store.record_keys import ThrottleKey

__all__ = ["ThrottleLog"]

log = logging.getLogger(__name__)

_encode = msgspec.msgpack.encode


class ThrottleLog:
    """The marks and intervals of all destinations, and the positions on `cq.throttled` that they belong to."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.topics.throttles
        self._most = settings.limits.throttled_values
        self._destinations: dict[DestinationId, ThrottleState] = {}
        self._intervals = 0
        """The number of intervals of all destinations."""
        self._changed: dict[bytes, bytes | None] = {}
        """The keys and values of records that are to be written, in the order of the last changes. A gateway that
        starts sees the intervals in this order too, so it forgets the same ones."""

    def recover(self, records: Iterable[Record]) -> dict[int, int]:
        """Take the state from the records of the topic.

        Returns:
            Partition of `cq.throttled` → offset before which all results are decided.
        """
        self._destinations, self._changed = {}, {}
        reached: dict[int, int] = {}
        for record in records:
            kind, owner, name = ThrottleKey.parse(record.key)
            body = record.value or None
            match kind:
                case "reached" if body is not None:
                    reached[int(owner)] = msgspec.msgpack.decode(body, type=int)
                case "mark" if body is None:
                    self._of(owner).marks.pop(name, None)
                case "mark" if body is not None:
                    self._of(owner).marks[name] = msgspec.msgpack.decode(body, type=Mark)
                case "interval":
                    interval = None if body is None else msgspec.msgpack.decode(body, type=Interval)
                    self._of(owner).set(bytes.fromhex(name), interval)
        self._destinations = {name: each for name, each in self._destinations.items() if each.marks or each.intervals}
        self._intervals = sum(len(each.intervals) for each in self._destinations.values())
        return reached

    def _of(self, name: str) -> ThrottleState:
        return self._destinations.setdefault(DestinationId(name), ThrottleState())

    def is_repeat(self, name: DestinationId, source: str, mark: Mark) -> bool:
        """Tell whether a result of a destination came before; note the place of a new result."""
        if self._of(name).is_repeat(source, mark):
            return True
        self._note(ThrottleKey.of("mark", name, source), _encode(mark))
        return False

    def take(self, name: DestinationId, values: bytes, time_ms: int, came_ms: int, throttle: Throttle) -> int | None:
        """Take a new result of a destination into its interval, as `ThrottleState.take` does."""
        own = self._of(name)
        before = len(own.intervals)
        answer = own.take(values, time_ms, came_ms, throttle)
        self._note(_interval_key(name, values), _encode(own.intervals[values]))
        for gone in own.forget_old(came_ms, throttle):
            self._note(_interval_key(name, gone), None)
        self._intervals += len(own.intervals) - before
        return answer

    def _note(self, key: bytes, body: bytes | None) -> None:
        self._changed.pop(key, None)
        self._changed[key] = body

    def changes(self, reached: Mapping[int, int]) -> Iterator[OutgoingRecord]:
        """Yield the records of all changes since the last call, with positions on `cq.throttled`.

        Before that, intervals beyond the limit of the settings are forgotten.

        Args:
            reached: Partition → offset before which all results are decided.
        """
        if self._intervals - len(self._destinations) > self._most:
            self._shrink()
        changed, self._changed = self._changed, {}
        for key, body in changed.items():
            yield self._record(key, body)
        for partition, offset in reached.items():
            yield self._record(ThrottleKey.of("reached", str(partition)), _encode(offset))

    def _shrink(self) -> None:
        """Forget the oldest intervals of the destinations with the most intervals, until a tenth of the room is free.

        Each destination keeps at least one interval.
        """
        sizes = [len(each.intervals) for each in self._destinations.values()]
        kept = bisect_right(range(max(sizes)), self._most * 9 // 10, key=lambda most: _further(sizes, most)) - 1
        gone = 0
        for name, own in self._destinations.items():
            for values in list(islice(own.intervals, max(len(own.intervals) - max(kept, 1), 0))):
                own.set(values, None)
                self._note(_interval_key(name, values), None)
                gone += 1
        self._intervals -= gone
        FORGOTTEN_INTERVALS.inc(gone)
        log.warning("intervals of AT MOST are forgotten", extra={"intervals": gone})

    def forget(self, name: DestinationId) -> Iterator[OutgoingRecord]:
        """Forget a destination that has ended; yield the records that delete its state."""
        own = self._destinations.pop(name, None)
        if own is not None:
            self._intervals -= len(own.intervals)
            for source in own.marks:
                yield self._record(ThrottleKey.of("mark", name, source), None)
            for values in own.intervals:
                yield self._record(_interval_key(name, values), None)

    def _record(self, key: bytes, body: bytes | None) -> OutgoingRecord:
        return OutgoingRecord(self._topic, key, body, (), 0)


def _interval_key(name: DestinationId, values: bytes) -> bytes:
    return ThrottleKey.of("interval", name, values.hex())


def _further(sizes: Sequence[int], most: int) -> int:
    """Return how many intervals besides the first of each destination there are, if each keeps a number at most."""
    return sum(min(size, most) - 1 for size in sizes if size)
