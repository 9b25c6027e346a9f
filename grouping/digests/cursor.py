"""How far a destination has been served: after each digest on `cq.ticks`, key ``cursor/<incarnation>``."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

__all__ = [
    "MOST_HELD",
    "DigestCoverage",
    "Cursor",
    "Offsets",
    "VisibilityInterval",
    "Window",
    "highest",
    "moved",
    "visibility_since",
    "window_base",
    "windows_at",
]

Offsets = Mapping[str, int]
"""By partition (as text, as in JSON): the next offset."""

Window = tuple[int | None, int | None]
"""Record times [start, expire) in epoch milliseconds that a CQ sees; None is unbounded."""

VisibilityInterval = tuple[int, int, list[Window]]
"""From an epoch and a version of the constant tables on: the record times that a destination sees."""


MOST_HELD = 64
"""Positions that a cursor names; from the first of more the log is read again."""


class DigestCoverage(msgspec.Struct, array_like=True, frozen=True):
    """What digests held up to one of them: matches of times before its tick, and of offsets that its cut covered."""

    tick_ms: int
    covered: Offsets


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """A match was in an earlier digest exactly when its offset is below `covered` and its time below `tick_ms`.

    Or when the same holds of one of `earlier`: of digests at ticks that lie ahead since the clock was turned back.
    """

    tick_ms: int = 0
    """The last digest's tick."""
    covered: Offsets = {}
    """By source partition: what that digest's cut covered."""
    next: int = 0
    """In the partition of `cq.pending` that holds the matches: all records before it are done with, but the `held`."""
    held: tuple[int, ...] = ()
    """Earlier records with matches that are still to come; a cursor of an earlier version has them in any order."""
    earlier: tuple[DigestCoverage, ...] = ()
    window: tuple[DigestCoverage, ...] = ()
    """With OVER LAST what the digests held that a window still to come begins behind, and those since; oldest first."""

    def passed(self, partition: int, offset: int, time_ms: int) -> bool:
        """Tell whether a match was in an earlier digest."""
        number = str(partition)
        if time_ms < self.tick_ms and offset < self.covered.get(number, 0):
            return True
        return any(time_ms < one.tick_ms and offset < one.covered.get(number, 0) for one in self.earlier)


def moved(
    cursor: Cursor,
    tick: int | None,
    covered: Offsets,
    reached: int,
    held: Collection[int],
    most_held: int = MOST_HELD,
    over_ms: int = 0,
) -> Cursor:
    """Return a cursor after a tick.

    Args:
        cursor: As it was.
        tick: The tick; None when nothing was sent.
        covered: By the tick's cut.
        reached: Up to where the partition of the log was taken in.
        held: Records before that with matches that are still to come.
        most_held: Of these are named by the cursor, at most.
        over_ms: The length of OVER LAST; 0 where there is none.

    Example:
        >>> moved(Cursor(next=3), 20, {"0": 7}, 9, (4,))
        Cursor(tick_ms=20, covered={'0': 7}, next=9, held=(4,), earlier=(), window=())
    """
    passed, named = max(cursor.next, reached), tuple(sorted(held))
    if len(named) > most_held:
        passed, named = named[0], ()
    if tick is not None:
        reached_by = highest(covered, cursor.covered)
        window = _windows(cursor, DigestCoverage(tick, reached_by), over_ms) if over_ms else ()
        return Cursor(tick, reached_by, passed, named, _ahead(cursor, tick), window)
    return msgspec.structs.replace(cursor, next=passed, held=named) if held else cursor


def window_base(cursor: Cursor, tick_ms: int, over_ms: int) -> DigestCoverage | None:
    """Return what the last digest held before the window of a tick begins, None where all lies within it."""
    begun = [one for one in cursor.window if one.tick_ms <= tick_ms - over_ms]
    return begun[-1] if begun else None


def _windows(cursor: Cursor, latest: DigestCoverage, over_ms: int) -> tuple[DigestCoverage, ...]:
    """Return the coverages that windows of later ticks may begin behind."""
    known = tuple(one for one in cursor.window if one.tick_ms < latest.tick_ms)
    base = window_base(cursor, latest.tick_ms + 1, over_ms)
    return (*(one for one in known if base is None or one.tick_ms >= base.tick_ms), latest)


def _ahead(cursor: Cursor, tick: int) -> tuple[DigestCoverage, ...]:
    """Return what digests held whose ticks lie ahead of the present one; usually nothing."""
    if not cursor.earlier and cursor.tick_ms <= tick:
        return ()
    return tuple(one for one in (*cursor.earlier, DigestCoverage(cursor.tick_ms, cursor.covered)) if one.tick_ms > tick)


def highest(covered: Offsets, before: Offsets) -> Offsets:
    """Return what a cut covers together with the one before: never less, though a restart may know of less.

    Example:
        >>> highest({"0": 5, "1": 2}, {"0": 7})
        {'0': 7, '1': 2}
    """
    for partition, offset in before.items():
        if covered.get(partition, 0) < offset:
            break
    else:
        return covered
    return {**covered, **{partition: max(offset, covered.get(partition, 0)) for partition, offset in before.items()}}


def windows_at(visibility: tuple[VisibilityInterval, ...], epoch: int, version: int) -> list[Window]:
    """Return the record times that a destination saw at a version of the tables.

    Example:
        >>> windows_at(((1, 4, [(None, None)]), (1, 9, [])), 1, 8)
        [(None, None)]
    """
    for since_epoch, since_version, windows in reversed(visibility):
        if (since_epoch, since_version) <= (epoch, version):
            return windows
    return []


def visibility_since(
    visibility: tuple[VisibilityInterval, ...], table: tuple[int, int]
) -> tuple[VisibilityInterval, ...]:
    """Return the part of a history that matches met at a version of the tables, or later, can refer to.

    Example:
        >>> visibility_since(((1, 4, []), (1, 9, [(None, None)]), (1, 12, [])), (1, 10))
        ((1, 9, [(None, None)]), (1, 12, []))
    """
    first = 0
    while first + 1 < len(visibility) and visibility[first + 1][:2] <= table:
        first += 1
    return visibility[first:]
