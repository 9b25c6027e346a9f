"""When a destination fires, and where its digest begins: rules of docs/results.md as functions of times. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from gateway.model.membership import Membership
from gateway.registry.grid import next_tick, previous_tick
from grouping.digests.cursor import Cursor

__all__ = [
    "MissedTicks",
    "Run",
    "digest_from",
    "following_tick",
    "is_tick",
    "last_instant",
    "last_tick",
    "may_fire",
    "run_of",
    "tick_after",
    "tick_to_fire",
]


Run = tuple[int, int]
"""A time, first and last instant, in which ticks fired one after the other, by a clock that was turned back since."""


class MissedTicks(NamedTuple):
    """A time in which no tick fired since nobody was there: its ticks become one."""

    since_ms: int
    until_ms: int


def last_instant(membership: Membership) -> int | None:
    """Return when the last of a destination's CQs expires, None when not all of them do (or some are paused)."""
    windows = membership.seen
    if membership.paused or not windows or windows[-1][1] is None:
        return None
    return windows[-1][1]


def tick_after(membership: Membership, at_ms: int) -> int | None:
    """Return a destination's first tick later than an instant, None when none comes while its CQs live.

    A tick at the EXPIRE of its last CQ, or later, is none: there the last digest comes in its place.
    """
    windows = membership.seen
    if not windows:
        return None
    tick = next_tick(membership.destination.trigger, at_ms, windows[0][0])
    last = last_instant(membership)
    return tick if tick is not None and (last is None or tick < last) else None


def is_tick(membership: Membership, at_ms: int) -> bool:
    """Tell whether a destination fires at an instant; one whose CQs are all paused by now did, before they were."""
    return not membership.windows or tick_after(membership, at_ms - 1) == at_ms


def tick_to_fire(membership: Membership, armed_ms: int, missed: MissedTicks | None) -> int:
    """Return the tick at which a destination that was armed fires: of missed ones the last."""
    if missed is None or not missed.since_ms < armed_ms <= missed.until_ms:
        return armed_ms
    last = previous_tick(membership.destination.trigger, missed.until_ms + 1)
    return armed_ms if last is None else max(armed_ms, last)


def run_of(membership: Membership, tick_ms: int, runs: Iterable[Run]) -> Run | None:
    """Return the run in which a tick may have fired already: its id must not be used again.

    The first tick of a run is the one before it began, since ticks that were missed become one.
    """
    for first_ms, last_ms in runs:
        if tick_ms <= last_ms:
            first = previous_tick(membership.destination.trigger, first_ms + 1)
            if first is None or first <= tick_ms:
                return first_ms, last_ms
    return None


def last_tick(membership: Membership, cursor: Cursor, runs: Iterable[Run]) -> int:
    """Return the tick of the digest before, 0 where that lies ahead since the clock was turned back."""
    return cursor.tick_ms if run_of(membership, cursor.tick_ms, runs) is None else 0


def digest_from(membership: Membership, tick_ms: int, missed: MissedTicks | None, last_ms: int) -> int:
    """Return where a digest begins: at the tick before (before missed ones), the first at START or acceptance.

    Args:
        membership: Whose digest.
        tick_ms: Its tick.
        missed: A time in which nobody was there.
        last_ms: The tick of the digest before, 0 if there was none.
    """
    trigger, note = membership.destination.trigger, membership.timed
    before: int | None
    if trigger.over_ms:
        return tick_ms - trigger.over_ms
    if missed is not None and missed.since_ms < tick_ms <= missed.until_ms:
        before = previous_tick(trigger, missed.since_ms + 1)
        before = last_ms if before is None else max(before, last_ms)
    else:
        before = previous_tick(trigger, tick_ms)
    # A tick before the destination was there, or before START, is none of its own.
    return note.from_ms if before is None or before < max(note.born_ms, note.from_ms) else before


def may_fire(membership: Membership, armed_ms: int) -> bool:
    """Tell whether a destination that was armed for a tick (0: to be looked at) fires, or waits for a RESUME.

    One whose CQs are all paused fires at ticks up to the PAUSE; and once more when it was an EXPIRE that left only
    paused ones, for what the one that is gone had seen is not theirs to hold up.
    """
    if membership.windows:
        return True
    note = membership.timed
    owed = next_tick(membership.destination.trigger, note.owed_ms - 1) if note.owed_ms else None
    return 0 < armed_ms <= max(note.changed_ms, owed or 0)


def following_tick(
    membership: Membership, tick: int | None, left_ms: int | None, served_ms: int, runs: Collection[Run] = ()
) -> int | None:
    """Return the tick for which a destination is armed next: the first that has something, if any has.

    Args:
        membership: Which destination.
        tick: The one at which it was served, None when it was only looked at.
        left_ms: The earliest time of what waits for later ticks, None when nothing does.
        served_ms: Up to when its ticks have fired.
        runs: Of ticks that lie ahead and may have fired: none of these is taken.
    """
    after_ms = max(served_ms, tick or 0)
    born_ms, changed_ms = (_past(at_ms, runs) for at_ms in (membership.timed.born_ms, membership.timed.changed_ms))
    if tick is None and changed_ms > born_ms:
        after_ms = max(after_ms, changed_ms)  # RESUME: what waited comes at the first tick after it
    if membership.destination.clause.even_if_empty:
        return _unused(membership, tick_after(membership, max(after_ms, born_ms)), runs)
    return None if left_ms is None else _unused(membership, tick_after(membership, max(after_ms, left_ms)), runs)


def _past(at_ms: int, runs: Collection[Run]) -> int:
    """Return an instant that was noted, 0 where that was by a clock that was turned back since."""
    return 0 if any(first_ms <= at_ms <= last_ms for first_ms, last_ms in runs) else at_ms


def _unused(membership: Membership, tick: int | None, runs: Collection[Run]) -> int | None:
    """Return a tick, or the first after it that cannot have fired."""
    while tick is not None and (run := run_of(membership, tick, runs)) is not None:
        tick = tick_after(membership, run[1])
    return tick
