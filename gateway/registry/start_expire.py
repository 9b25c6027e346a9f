"""START and EXPIRE as instants, and their checks."""

from __future__ import annotations

from datetime import datetime, timedelta

from gateway.model.records import instant, millis
from gateway.model.trigger_spec import TriggerSpec
from gateway.registry.grid import next_tick
from grouping.model.errors import InputError

__all__ = ["check_ticks", "check_window", "expiry"]


def expiry(expire: datetime | timedelta, now_ms: int) -> int:
    """Return EXPIRE as an instant, epoch milliseconds; a length of time counts from acceptance."""
    return now_ms + round(expire.total_seconds() * 1000) if isinstance(expire, timedelta) else millis(expire)


def check_window(start_ms: int | None, expire_ms: int | None, now_ms: int) -> None:
    """Check START and EXPIRE at the time of acceptance.

    Raises:
        InputError: bad-time, already-expired.
    """
    if expire_ms is None:
        return
    if start_ms is not None and expire_ms <= start_ms:
        raise InputError(
            "EXPIRE is not after START",
            code="bad-time",
            detail=f"START is {instant(start_ms)} and EXPIRE {instant(expire_ms)}.",
            hint="Give an EXPIRE that is later than START.",
        )
    if expire_ms <= now_ms:
        raise InputError(
            "EXPIRE is past",
            code="already-expired",
            detail=f"EXPIRE is {instant(expire_ms)}, and it is {instant(now_ms)} now.",
            hint="Give an EXPIRE in the future, or leave it out.",
        )


def check_ticks(trigger: TriggerSpec, start_ms: int | None, now_ms: int) -> None:
    """Check that a tick follows START.

    Raises:
        InputError: bad-time.
    """
    if start_ms is not None and trigger.timed and next_tick(trigger, now_ms, start_ms) is None:
        raise InputError(
            f'START "{instant(start_ms)}" is too late',
            code="bad-time",
            detail="The first tick after it is beyond the year 9999.",
            hint="Give an earlier START.",
        )
