"""`cq.pending`, the log of matches that wait for a tick: read by position, recent records kept at hand."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from confluent_kafka import Message

from gateway.kafka import LogReader
from grouping.pending_matches import PendingMatches
from grouping.settings import Settings

__all__ = ["PendingLog", "Place"]

log = logging.getLogger(__name__)

Place = tuple[int, int]
"""Partition and offset of a record."""

_KEPT_BYTES = 128 << 20
"""Of records as they lie on the log; unpacked they take some more."""
_NEAR = 64
"""Records that are read over rather than sought past."""


class PendingLog:
    """Reads records by their places."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.topic("pending")
        self._reader = LogReader(settings)
        self._kept: OrderedDict[Place, tuple[PendingMatches, int]] = OrderedDict()
        self._bytes = 0

    def keep(self, place: Place, record: PendingMatches, size: int) -> None:
        """Keep a record at hand for a while, since most ticks want recent ones."""
        self._kept[place] = (record, size)
        self._bytes += size
        while self._bytes > _KEPT_BYTES:
            _, (_, gone) = self._kept.popitem(last=False)
            self._bytes -= gone

    def load(self, places: Iterable[Place]) -> dict[Place, PendingMatches]:
        """Return the records at those places, each read once."""
        found: dict[Place, PendingMatches] = {}
        missing: dict[int, list[int]] = {}
        for place in set(places):
            kept = self._kept.get(place)
            if kept is not None:
                found[place] = kept[0]
            else:
                missing.setdefault(place[0], []).append(place[1])
        for partition, offsets in missing.items():
            wanted = set(offsets)
            for first, last in _runs(sorted(offsets)):
                for place, record in self.scan(partition, first, last):
                    if place[1] in wanted:
                        found[place] = record
            if lost := [offset for offset in offsets if (partition, offset) not in found]:
                log.error("pending matches lost", extra={"partition": partition, "offsets": lost[:10]})
        return found

    def scan(self, partition: int, first: int, last: int) -> Iterator[tuple[Place, PendingMatches]]:
        """Yield a partition's records from one offset to another, that one included."""
        for message in self._reader.span(self._topic, partition, first, last):
            yield (partition, message.offset() or 0), PendingMatches.decode(_value(message))

    def close(self) -> None:
        """Leave."""
        self._reader.close()


def _runs(offsets: list[int]) -> Iterator[tuple[int, int]]:
    """Join offsets that are near each other to runs, first and last."""
    first = last = offsets[0]
    for offset in offsets[1:]:
        if offset > last + _NEAR:
            yield first, last
            first = offset
        last = offset
    yield first, last


def _value(message: Message) -> bytes:
    value = message.value()
    assert isinstance(value, bytes), "the evaluator writes no empty record"
    return value
