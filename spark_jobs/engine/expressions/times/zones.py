"""Clocks of time zones: a time of UTC as a zone's clock shows it, and back."""

from __future__ import annotations

from datetime import UTC, datetime

from grouping.values.time_zone import time_zone

__all__ = ["from_utc", "to_utc"]


def from_utc(time: datetime, zone: str) -> datetime:
    """Return the local time of a zone, as if it were a time of UTC."""
    return time.astimezone(time_zone(zone)).replace(tzinfo=UTC)


def to_utc(time: datetime, zone: str) -> datetime:
    """Return the instant at which a zone's clock shows a time.

    An ambiguous time is the first of the two, and a skipped time is moved later by the gap: as Java's ``ofLocal``.
    """
    return time.replace(tzinfo=time_zone(zone), fold=0).astimezone(UTC)
