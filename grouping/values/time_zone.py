"""Names of time zones, by Spark's rules."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

__all__ = ["cron_zone", "iana_zone", "iana_zones", "time_zone"]

_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<time>[0-9]{1,2}|[0-9]{4}|[0-9]{6}|[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)", re.ASCII
)
_SHORT_HOUR = re.compile(r"([+-])([0-9]):")
_SHORT_MINUTE = re.compile(r"([+-][0-9]{2}:)([0-9])$")
_UTC = frozenset(("Z", "UTC", "GMT", "UT"))
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip
"""Java's short names."""
_DATABASE = files("tzdata")
_FARTHEST = timedelta(hours=18)
_SIXTY = 60


@lru_cache(maxsize=1024)
def time_zone(name: str) -> tzinfo:
    """Return the zone that a name means: a name of the IANA database, an offset, or one of Java's short names.

    Upper and lower case are distinguished. Names of the database without a slash, such as ``Japan``, are not accepted.

    Raises:
        ValueError: No zone has this name.

    Example:
        >>> str(time_zone("Europe/Madrid")), str(time_zone("+01:30")), time_zone("PST").key
        ('Europe/Madrid', 'UTC+01:30', 'America/Los_Angeles')
    """
    # Spark completes an offset in the same way before it calls Java.
    name = _SHORT_MINUTE.sub(r"\g<1>0\2", _SHORT_HOUR.sub(r"\g<1>0\2:", name, count=1))
    name = _SHORT.get(name, name)
    if name in _UTC:
        return UTC
    if found := _OFFSET.fullmatch(name):
        digits = found["time"].replace(":", "")
        digits = digits.zfill(2).ljust(6, "0")
        hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
        size = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if max(minutes, seconds) >= _SIXTY or size > _FARTHEST:
            raise ValueError(f'no offset "{name}"')
        return timezone(-size if found["sign"] == "-" else size)
    if "/" in name and name in iana_zones():
        return iana_zone(name)
    raise ValueError(f'no time zone "{name}"')


def cron_zone(name: str) -> tzinfo:
    """Return the zone of a cron trigger: of the IANA database, or a fixed offset such as ``+02:00``."""
    return time_zone(name) if name[0] in "+-" else iana_zone(name)


@lru_cache(maxsize=1024)
def iana_zone(name: str) -> ZoneInfo:
    """Return a zone from the package `tzdata`, a copy of the IANA database.

    Python would prefer the copy of the machine's operating system. That copy may be older, and may have other rules
    than Java for times before 1970, so gateway and executors on different machines might disagree.

    Raises:
        OSError: No zone has this name.
    """
    with _DATABASE.joinpath("zoneinfo", *name.split("/")).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)


@lru_cache(maxsize=1)
def iana_zones() -> frozenset[str]:
    """Return the names of all zones."""
    return frozenset(_DATABASE.joinpath("zones").read_text("ascii").split())
