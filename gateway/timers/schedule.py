"""When a destination fires, and where its digest begins: the rules of docs/results.md as functions. No I/O."""

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
    "has_gap",
    "is_tick",
    "last_tick",
    "may_fire",
    "missed_by",
    "run_of",
    "tick_after",
    "tick_behind",
    "tick_to_fire",
]


Run = tuple[int, int]
"""The first and the last instant of a run, that is, of an interval in which ticks fired without a gap."""


class MissedTicks(NamedTuple):
    """An interval in which no gateway fired ticks. All ticks of a destination in this interval become one tick."""

    since_ms: int
    until_ms: int


def tick_after(membership: Membership, at_ms: int, runs: Collection[Run] = ()) -> int | None:
    """Return a destination's first tick later than an instant; None if its last CQ expires before this tick.

    The EXPIRE of the last CQ is not a tick, since the last digest takes the place of a tick. For digests of a table's
    rows, however, the EXPIRE is the last tick. No tick comes before the CQ was accepted, nor before the instant from
    which EVERY counts. The given instant may be earlier: the time of a match is set by its publisher.

    Args:
        membership: The destination with its members.
        at_ms: The instant, epoch milliseconds.
        runs: The runs that lie in the future because the clock was turned back. If a CQ was accepted within such a run,
            it is taken as accepted in the past.
    """
    windows = membership.seen
    if not windows:
        return None
    born_ms = _past(membership.timed.born_ms, runs)
    after_ms = max(at_ms, _anchor(membership, born_ms))
    tick = next_tick(membership.destination.trigger, after_ms, windows[0][0])
    last = membership.last_ms
    if last is not None and membership.destination.of_rows and last > max(at_ms, born_ms):
        return last if tick is None else min(tick, last)
    return tick if tick is not None and (last is None or tick < last) else None


def tick_behind(membership: Membership, at_ms: int) -> int | None:
    """Return a destination's first tick later than an instant, even if its CQs are paused or expired."""
    return next_tick(membership.destination.trigger, max(at_ms, _anchor(membership, membership.timed.born_ms)))


def is_tick(membership: Membership, at_ms: int, runs: Collection[Run] = ()) -> bool:
    """Tell whether an instant is a tick of a destination.

    If all CQs of the destination are paused, the result is True for any instant: the caller must first ask `may_fire`.
    """
    return not membership.windows or tick_after(membership, at_ms - 1, runs) == at_ms


def missed_by(
    membership: Membership, armed_ms: int, missed: MissedTicks | None, due_ms: int | None
) -> MissedTicks | None:
    """Return the interval whose ticks become one tick for a destination.

    For digests of a table's rows, all ticks from the armed tick up to `due_ms` become one tick. The evaluator makes
    these digests from the present rows, so the digests of all these ticks would be equal.

    Args:
        membership: The destination with its members.
        armed_ms: The tick that the destination is armed for.
        missed: An interval in which no gateway fired ticks.
        due_ms: The instant up to which the evaluator makes digests of a table's rows now; None if it makes none.
    """
    if due_ms is None or not membership.destination.of_rows:
        return missed
    return MissedTicks(armed_ms - 1, due_ms)


def tick_to_fire(membership: Membership, armed_ms: int, missed: MissedTicks | None, runs: Collection[Run] = ()) -> int:
    """Return the tick at which an armed destination fires: its last missed tick or, without any, the armed tick.

    Args:
        membership: The destination with its members.
        armed_ms: The tick that the destination is armed for.
        missed: An interval in which no gateway fired ticks.
        runs: The runs that lie in the future because the clock was turned back. Ticks within a run have fired already.
    """
    if missed is None or not missed.since_ms < armed_ms <= missed.until_ms:
        return armed_ms
    trigger = membership.destination.trigger
    last = previous_tick(trigger, missed.until_ms + 1)
    while last is not None and last > armed_ms and (run := run_of(membership, last, runs)) is not None:
        last = previous_tick(trigger, previous_tick(trigger, run[0] + 1) or run[0])
    found = armed_ms if last is None else max(armed_ms, last)
    end = membership.last_ms if membership.destination.of_rows else None
    return found if end is None else min(found, end)


def run_of(membership: Membership, tick_ms: int, runs: Iterable[Run]) -> Run | None:
    """Return the run in which a tick may have fired already, so that the id of its digest may be in use.

    The last tick before the beginning of a run may have fired in the run too, since missed ticks become one tick.
    """
    for first_ms, last_ms in runs:
        if tick_ms <= last_ms:
            first = previous_tick(membership.destination.trigger, first_ms + 1)
            if first is None or first <= tick_ms:
                return first_ms, last_ms
    return None


def last_tick(membership: Membership, cursor: Cursor, runs: Iterable[Run]) -> int:
    """Return the tick of the last digest; 0 if the clock was turned back since, to a time before this tick."""
    return cursor.tick_ms if run_of(membership, cursor.tick_ms, runs) is None else 0


def digest_from(membership: Membership, tick_ms: int, missed: MissedTicks | None, last_ms: int) -> int:
    """Return the instant at which a digest begins.

    A digest begins at the previous tick that was not missed. The first digest begins at START or, without START, when
    the CQ was accepted. With OVER LAST, a digest begins at the start of the window.

    Args:
        membership: The destination with its members.
        tick_ms: The digest's tick.
        missed: An interval in which no gateway fired ticks.
        last_ms: The tick of the last digest, 0 if there was none.
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
    # This tick is before the beginning of the destination, or before START: the clock was turned back since then.
    if max(note.born_ms, note.from_ms) > tick_ms:
        return note.from_ms if before is None else before
    first = max(_anchor(membership, note.born_ms), note.from_ms)
    return note.from_ms if before is None or before <= first else before


def _anchor(membership: Membership, born_ms: int) -> int:
    """Return the instant from which a destination that began at `born_ms` counts EVERY."""
    note = membership.timed
    has_start = note.from_ms != note.born_ms
    return born_ms if has_start else membership.destination.trigger.anchor_ms(born_ms)


def has_gap(membership: Membership, tick_ms: int, missed: MissedTicks | None, last_ms: int) -> bool:
    """Tell, for OVER LAST, whether ticks were missed, so that some matches older than a tick's window are in no digest.

    Args:
        membership: The destination with its members.
        tick_ms: The tick.
        missed: An interval in which no gateway fired ticks.
        last_ms: The tick of the last digest, 0 if there was none.
    """
    over_ms = membership.destination.trigger.over_ms
    if not over_ms or missed is None or not missed.since_ms < tick_ms <= missed.until_ms:
        return False
    return max(last_ms, missed.since_ms) <= tick_ms - over_ms


def may_fire(membership: Membership, armed_ms: int) -> bool:
    """Tell whether an armed destination fires; if not, it waits for a RESUME.

    A destination with only paused CQs fires at ticks up to the PAUSE. If its last active CQ has expired, it also fires
    at ticks up to the first tick at or after the EXPIRE, for the matches of the expired CQ.

    Args:
        membership: The destination with its members.
        armed_ms: The tick that the destination is armed for; 0 for a look.
    """
    if membership.windows:
        return True
    note = membership.timed
    last_tick = tick_behind(membership, note.last_expire_ms - 1) if note.last_expire_ms else None
    return 0 < armed_ms <= max(note.changed_ms, last_tick or 0)


def following_tick(
    membership: Membership, tick: int | None, left_ms: int | None, served_ms: int, runs: Collection[Run] = ()
) -> int | None:
    """Return the tick to arm a destination for: its next tick with a digest.

    The result is None if no tick is left, or if no match waits and the destination does not fire at each tick.

    Args:
        membership: The destination with its members.
        tick: The tick at which the destination was served; None after a look.
        left_ms: The earliest time of the matches that wait for later ticks; None if no match waits.
        served_ms: The instant up to which the destination's ticks have fired.
        runs: The runs that lie in the future because the clock was turned back. Ticks within them are skipped, since
            they may have fired already.
    """
    after_ms = max(served_ms, tick or 0)
    born_ms, changed_ms = (_past(at_ms, runs) for at_ms in (membership.timed.born_ms, membership.timed.changed_ms))
    if tick is None and changed_ms > born_ms:
        after_ms = max(after_ms, changed_ms)  # after a RESUME, the next tick publishes waiting matches
    if membership.destination.at_each_tick:
        return _unused(membership, tick_after(membership, after_ms, runs), runs)
    return None if left_ms is None else _unused(membership, tick_after(membership, max(after_ms, left_ms), runs), runs)


def _past(at_ms: int, runs: Collection[Run]) -> int:
    """Return an instant, or 0 if the instant is within a run in the future: the clock was turned back later."""
    return 0 if runs and any(first_ms <= at_ms <= last_ms for first_ms, last_ms in runs) else at_ms


def _unused(membership: Membership, tick: int | None, runs: Collection[Run]) -> int | None:
    """Return a tick, or the first tick after it that cannot have fired yet."""
    while tick is not None and (run := run_of(membership, tick, runs)) is not None:
        tick = tick_after(membership, run[1], runs)
    return tick
