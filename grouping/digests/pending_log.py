"""`cq.pending`, the log of matches that wait for a tick: read by position, some records kept at hand."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from grouping.digests.pending_matches import PendingMatches

__all__ = ["PendingLog", "Place", "Span"]

log = logging.getLogger(__name__)

Place = tuple[int, int]
"""Partition and offset of a record."""

Span = Callable[[int, int, int], Iterator[tuple[int, bytes]]]
"""Reads a partition's records from one offset to another, that one included: their offsets and values."""

_KEPT_BYTES = 128 << 20
"""Of records as they lie on the log; unpacked they take some more."""
_NEAR = 64
"""Records that are read over rather than sought past."""


class PendingLog:
    """Reads records by their places."""

    def __init__(self, span: Span, *, most_bytes: int = _KEPT_BYTES, keeping: bool = False) -> None:
        """Begin with nothing at hand.

        Args:
            span: Reads the log.
            most_bytes: Of records that are kept at hand, as they lie on the log.
            keeping: Whether what `load` has to read is kept too: where nothing is told by `keep`.
        """
        self._span = span
        self._most_bytes = most_bytes
        self._keeping = keeping
        self._kept: OrderedDict[Place, tuple[PendingMatches, int]] = OrderedDict()
        self._bytes = 0

    def keep(self, place: Place, record: PendingMatches, size: int) -> None:
        """Keep a record at hand for a while, since most ticks want recent ones."""
        if place in self._kept:
            return  # the log is read again after a server failed
        self._kept[place] = (record, size)
        self._bytes += size
        while self._bytes > self._most_bytes:
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
                for offset, body in self._span(partition, first, last):
                    if offset in wanted:
                        record = found[partition, offset] = PendingMatches.decode(body)
                        if self._keeping:
                            self.keep((partition, offset), record, len(body))
            if lost := [offset for offset in offsets if (partition, offset) not in found]:
                log.error("pending matches lost", extra={"partition": partition, "offsets": lost[:10]})
        return found

    def scan(self, partition: int, first: int, last: int) -> Iterator[tuple[Place, PendingMatches]]:
        """Yield a partition's records from one offset to another, that one included."""
        for offset, body in self._span(partition, first, last):
            yield (partition, offset), PendingMatches.decode(body)


def _runs(offsets: list[int]) -> Iterator[tuple[int, int]]:
    """Join offsets that are near each other to runs, first and last."""
    first = last = offsets[0]
    for offset in offsets[1:]:
        if offset > last + _NEAR:
            yield first, last
            first = offset
        last = offset
    yield first, last
