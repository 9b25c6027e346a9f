"""The grid of a trigger: the instants at which it fires, either START + k × EVERY or the times of a cron expression."""

from __future__ import annotations

from datetime import UTC, datetime

from cronsim import CronSim

from gateway.model.records import Cq, millis
from gateway.model.trigger_spec import TriggerSpec
from grouping.values.time_zone import cron_zone

__all__ = ["next_tick", "next_tick_of", "previous_tick"]

_LAST_MS = millis(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))


def next_tick(trigger: TriggerSpec, after_ms: int, start_ms: int | None = None) -> int | None:
    """Return the first tick later than an instant; None if there is none up to the year 9999.

    Args:
        trigger: An interval with its phase, or a cron expression.
        after_ms: Epoch milliseconds.
        start_ms: START, epoch milliseconds. There are no ticks at START or before.

    Example:
        >>> next_tick(TriggerSpec(every_ms=10_000, phase_ms=3_000), 13_000)
        23000
        >>> next_tick(TriggerSpec(cron="0 8 * * MON", zone="Europe/Madrid"), 0)
        370800000
    """
    after_ms = after_ms if start_ms is None else max(after_ms, start_ms)
    if trigger.every_ms:
        tick = after_ms - (after_ms - trigger.phase_ms) % trigger.every_ms + trigger.every_ms
        return tick if tick <= _LAST_MS else None
    return _cron(trigger, after_ms, reverse=False)


def next_tick_of(cq: Cq, trigger: TriggerSpec, after_ms: int) -> int | None:
    """Return a CQ's first tick later than an instant; None if there is none up to the year 9999."""
    if cq.start_ms is None:
        after_ms = max(after_ms, trigger.anchor_ms(cq.since_ms))
    return next_tick(trigger, after_ms, cq.start_ms)


def previous_tick(trigger: TriggerSpec, before_ms: int) -> int | None:
    """Return the last tick earlier than an instant; None if there is none.

    Example:
        >>> previous_tick(TriggerSpec(every_ms=10_000, phase_ms=3_000), 13_000)
        3000
    """
    if trigger.every_ms:
        return before_ms - 1 - (before_ms - 1 - trigger.phase_ms) % trigger.every_ms
    return _cron(trigger, before_ms, reverse=True)


def _cron(trigger: TriggerSpec, at_ms: int, *, reverse: bool) -> int | None:
    try:
        local = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(cron_zone(trigger.zone))
        found = next(CronSim(trigger.cron, local, reverse=reverse), None)
        return None if found is None else millis(found.astimezone(UTC))
    except (OverflowError, ValueError):  # the instant is outside the years 1 to 9999
        return None
