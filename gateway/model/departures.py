"""Departures: CQs that have left their destinations, but still get results of events that were published before.

The constant table keeps an entry for these CQs. The entry is valid for events below the end offsets that the source
partitions had when the CQ left. The entry stays even if the destination is used again, paused or ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from gateway.model.membership import union
from gateway.model.records import Destination
from grouping.digests.cursor import Window

__all__ = ["Departure", "Departures", "without"]


class Departure(msgspec.Struct, array_like=True, frozen=True):
    """CQs that left a destination at the same source offsets; events below these offsets still count for them."""

    until: tuple[int, ...]
    """By source partition: the first offset whose event no longer counts."""
    windows: tuple[Window, ...]
    """The record times that the CQs see."""


class Departures(msgspec.Struct, array_like=True, frozen=True):
    """A destination's departures that still wait: some events below their `until` are not evaluated yet."""

    destination: Destination
    number: int
    """`Membership.number` of the destination: its index in the match counts of its stream."""
    departures: tuple[Departure, ...] = ()
    """The departures in order, the earliest first. Their windows are disjoint: a time in the windows of several
    departures belongs only to the latest departure."""

    def joined(self, window: Window, until: tuple[int, ...]) -> Departures:
        """Return the departures after another CQ has left; its window and `until` are given."""
        latest = [window]
        others = []
        for each in self.departures:
            if each.until == until:
                latest = union([*each.windows, window])
            elif left := without(each.windows, [window]):
                others.append(Departure(each.until, tuple(left)))
        return msgspec.structs.replace(self, departures=(*others, Departure(until, tuple(latest))))

    def passed(self, until: tuple[int, ...]) -> Departures | None:
        """Return the departures that still wait when all events below `until` are evaluated; None if none waits."""
        left = tuple(each for each in self.departures if not _within(each.until, until))
        return msgspec.structs.replace(self, departures=left) if left else None

    def entries(self, living: Sequence[Window]) -> list[tuple[tuple[int, ...], list[Window]]]:
        """Return `until` and windows of the entries that the constant table needs in addition to those of live members.

        Args:
            living: The windows of live members, which need no second entry.
        """
        kept = ((each.until, without(each.windows, living)) for each in self.departures)
        return [(until, windows) for until, windows in kept if windows]


def _within(until: tuple[int, ...], reached: tuple[int, ...]) -> bool:
    return len(until) <= len(reached) and all(end <= at for end, at in zip(until, reached, strict=False))


def without(windows: Iterable[Window], others: Iterable[Window]) -> list[Window]:
    """Return the parts of some windows that lie outside of other windows.

    Example:
        >>> without([(None, 10), (20, None)], [(5, 25)])
        [(None, 5), (25, None)]
    """
    left = list(windows)
    for other in others:
        left = [part for window in left for part in _cut(window, other)]
    return left


def _cut(window: Window, other: Window) -> list[Window]:
    """Return the parts of a window that lie before and after another window."""
    (start, expire), (begin, end) = window, other
    after = end is not None and start is not None and end <= start
    before = begin is not None and expire is not None and begin >= expire
    if after or before:
        return [window]
    parts: list[Window] = []
    if begin is not None and (start is None or start < begin):
        parts.append((start, begin))
    if end is not None and (expire is None or end < expire):
        parts.append((end, expire))
    return parts
