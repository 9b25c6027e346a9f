"""The log of pending matches, `cq.pending`: read by position, with recent records kept in memory."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from grouping.digests.pending_matches import PendingMatches

__all__ = ["PendingLog", "Place", "RecordsReader"]

log = logging.getLogger(__name__)

Place = tuple[int, int]
"""Partition and offset of a record."""

RecordsReader = Callable[[int, int, int], Iterator[tuple[int, bytes]]]
"""Reads offsets and values of a partition's records, from a first offset to a last one, both included."""

_KEPT_BYTES = 128 << 20
"""The largest number of bytes of the records kept in memory, in packed form. In memory, records take somewhat more."""
_NEAR = 64
"""The longest gap between two wanted records, in offsets, that is read and dropped. A seek skips a longer gap."""


class PendingLog:
    """Reads records by their places."""

    def __init__(self, span: RecordsReader, *, most_bytes: int = _KEPT_BYTES, keeping: bool = False) -> None:
        """Begin with no record in memory.

        Args:
            span: Reads the log.
            most_bytes: The largest number of bytes of the records kept in memory, in packed form.
            keeping: Whether `load` itself keeps records, for callers that do not call `keep`.
        """
        self._span = span
        self._most_bytes = most_bytes
        self._keeping = keeping
        self._kept: OrderedDict[Place, tuple[PendingMatches, int]] = OrderedDict()
        self._bytes = 0

    def keep(self, place: Place, record: PendingMatches, size: int) -> None:
        """Keep a record in memory for a while, since most ticks need recent records."""
        if place in self._kept:
            return  # known already: the log is read again after a server failed
        self._kept[place] = (record, size)
        self._bytes += size
        while self._bytes > self._most_bytes:
            _, (_, gone) = self._kept.popitem(last=False)
            self._bytes -= gone

    def load(self, places: Iterable[Place]) -> dict[Place, PendingMatches]:
        """Return the records at these places, each read once."""
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
                for offset, body in self._span(partition, first, last):
                    if offset in wanted:
                        record = found[partition, offset] = PendingMatches.decode(body)
                        if self._keeping:
                            self.keep((partition, offset), record, len(body))
            if lost := [offset for offset in offsets if (partition, offset) not in found]:
                log.error("pending matches lost", extra={"partition": partition, "offsets": lost[:10]})
        return found

    def scan(self, partition: int, first: int, last: int) -> Iterator[tuple[Place, PendingMatches]]:
        """Yield a partition's records from a first offset to a last one, both included."""
        for offset, body in self._span(partition, first, last):
            yield (partition, offset), PendingMatches.decode(body)


def _runs(offsets: list[int]) -> Iterator[tuple[int, int]]:
    """Join offsets with small gaps into runs; yield the first and the last offset of each run."""
    first = last = offsets[0]
    for offset in offsets[1:]:
        if offset > last + _NEAR:
            yield first, last
            first = offset
        last = offset
    yield first, last
