"""The zone of a cron expression: a name of the IANA database in any case, or an offset."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache

from grouping.model.errors import InputError, near_name
from grouping.values.time_zone import iana_zones, time_zone

__all__ = ["find_zone", "read_zone", "zone_with_abbreviation"]

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?", re.ASCII | re.IGNORECASE)
_LONGEST = 200
_ABBREVIATIONS = {
    "America/Chicago": "CDT CST",
    "America/Denver": "MDT",
    "America/Los_Angeles": "PDT PST",
    "America/New_York": "EDT",
    "America/Sao_Paulo": "BRT",
    "Asia/Hong_Kong": "HKT",
    "Asia/Kolkata": "IST",
    "Asia/Seoul": "KST",
    "Asia/Singapore": "SGT",
    "Asia/Tokyo": "JST",
    "Australia/Sydney": "AEDT AEST",
    "Europe/Berlin": "CEST",
    "Europe/Helsinki": "EEST",
    "Europe/London": "BST",
    "Europe/Moscow": "MSK",
    "Pacific/Auckland": "NZDT NZST",
}


def read_zone(name: str) -> str:
    """Return the usual form of a zone.

    Raises:
        InputError: ``bad-interval``, with a zone of a similar name.

    Example:
        >>> read_zone("europe/madrid"), read_zone("UTC+2")
        ('Europe/Madrid', '+02:00')
    """
    if known := find_zone(name):
        return known
    shown = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
    raise InputError(
        f'time zone "{shown}" is not known',
        code="bad-interval",
        detail="Zones are those of the IANA time zone database, and offsets such as +02:00.",
        hint=_near_zone(name[:_LONGEST]) or "Europe/Madrid is one.",
    )


def find_zone(name: str) -> str | None:
    """Return the usual form of a zone; None if no zone has this name."""
    stripped = name.strip()
    if known := _zones().get(stripped.casefold()):
        return known
    if offset := _OFFSET.fullmatch(stripped):
        text = f"{offset[1]}{offset[2]:0>2}:{offset[3] or '00'}"
        try:
            return text if time_zone(text).utcoffset(None) != timedelta(0) else "UTC"
        except ValueError:
            return None  # more than 18 hours, or 60 minutes and more
    return "UTC" if stripped.upper() == "Z" else None


def zone_with_abbreviation(name: str) -> str | None:
    """Return a zone in which an abbreviation such as PST is in use; None for an unknown abbreviation."""
    return next((zone for zone, known in _ABBREVIATIONS.items() if name.upper() in known.split()), None)


def _near_zone(name: str) -> str | None:
    if zone := zone_with_abbreviation(name.strip()):
        return f"An abbreviation may mean several zones: {zone} is one."
    words = name.replace(" ", "_").strip("_").casefold()
    city = [zone for zone in _zones().values() if zone.casefold().endswith(f"/{words}")]
    return f'Did you mean "{min(city, key=len)}"?' if city and words else near_name(words, _zones().values())


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    return {zone.casefold(): zone for zone in sorted(iana_zones())}
