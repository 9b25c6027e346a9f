"""Clocks of time zones: converts a time of UTC to the time that a zone's clock shows, and back."""

from __future__ import annotations

from datetime import UTC, datetime

from grouping.values.time_zone import time_zone

__all__ = ["from_utc", "to_utc"]


def from_utc(time: datetime, zone: str) -> datetime:
    """Return the local time of a zone at a time of UTC; the result is labelled as a time of UTC."""
    return time.astimezone(time_zone(zone)).replace(tzinfo=UTC)


def to_utc(time: datetime, zone: str) -> datetime:
    """Return the instant at which a zone's clock shows a time.

    As with Java's ``ofLocal``, a time that the clock shows twice is the first of the two instants, and a time that the
    clock skips is moved later by the gap.
    """
    return time.replace(tzinfo=time_zone(zone), fold=0).astimezone(UTC)
