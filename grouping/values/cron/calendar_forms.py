"""Words and calendar times of systemd, App Engine, APScheduler and English that stand for a cron expression."""

from __future__ import annotations

import re

__all__ = ["calendar_fields"]

_WORDS = {
    "minutely": "* * * * *",
    "hourly": "0 * * * *",
    **dict.fromkeys(("daily", "midnight", "nightly"), "0 0 * * *"),
    **dict.fromkeys(("noon", "midday"), "0 12 * * *"),
    "weekly": "0 0 * * 0",
    **dict.fromkeys(("weekday", "weekdays", "workdays"), "0 0 * * MON-FRI"),
    **dict.fromkeys(("weekend", "weekends"), "0 0 * * SAT,SUN"),
    **dict.fromkeys(("monthly", "month", "1 month", "p1m"), "0 0 1 * *"),
    **dict.fromkeys(("bimonthly", "2 months", "p2m"), "0 0 1 */2 *"),
    **dict.fromkeys(("quarterly", "quarter", "1 quarter", "3 months", "p3m"), "0 0 1 */3 *"),
    **dict.fromkeys(("semiannually", "semi-annually", "biannually", "6 months", "p6m"), "0 0 1 */6 *"),
    **dict.fromkeys(("yearly", "annually", "year", "1 year", "12 months", "p1y", "p12m"), "0 0 1 1 *"),
}
_DAYS = r"(?:sun|mon|tue|wed|thu|fri|sat)[a-z]*"
_TIME = re.compile(
    rf"(?:on )?(?:every )?(?:(?:(?P<nth>[1-5])(?:st|nd|rd|th)|(?P<last>last)) )?"
    rf"(?P<days>{_DAYS}(?:(?:,| and |\.\.|-| to ){_DAYS})*|day|daily|weekdays?)?"
    r"(?: of (?:the |each |every )?month)?[ ,]*+"
    r"(?:(?:(?:(?P<year>[*\d]+)-)?(?P<month>[*\d,/]+)-(?P<day>[*\d,/]+|~0?1))[ t]?)?(?:at )?"
    r"(?P<hour>[*\d,/]+|noon|midnight)(?::(?P<minute>[*\d,/]+)(?::[*\d,/]+)?)? ?(?P<half>[ap]m)?z?",
    re.ASCII,
)
_KEYWORD = re.compile(r"(?<!\w)(\w++)\s*+=\s*+['\"]?([\w*/,#-]+(?: [a-z]+)?)['\"]?(?:\s*,\s*|$)", re.ASCII)
_KEYWORDS = (("month", "1"), ("day", "1"), ("day_of_week", "*"), ("hour", "0"), ("minute", "0"))
"""The keywords of APScheduler, the largest unit first, each with its value where only larger units are given."""
_NTH = re.compile(r"([1-5])(?:st|nd|rd|th) ([a-z]+)|last ([a-z]+)", re.ASCII)
_HOURS = {"noon": "12", "midnight": "0"}
_NOON = 12


def calendar_fields(text: str) -> tuple[list[str], str] | None:
    """Return the fields that words or a calendar time stand for, and the part that is left out; None without a meaning.

    Example:
        >>> calendar_fields("Mon..Fri *-*-* 08:30:00"), calendar_fields("@noon")
        ((['30', '8', '*', '*', 'mon-fri'], ''), (['0', '12', '*', '*', '*'], ''))
    """
    text = " ".join(text.casefold().split())
    if call := re.fullmatch(r"(?:at|rate)\((.*)\)", text):
        text = call[1]
    if expression := _WORDS.get(text.removeprefix("@").removeprefix("every ")):
        return expression.split(), ""
    found = _TIME.fullmatch(text)
    if found is None and _KEYWORD.sub("", text) == "" and text:
        return _keyword_fields(dict(_KEYWORD.findall(text))), ""
    if found is None or (found["minute"] is None and found["half"] is None and not found["hour"].isalpha()):
        return None
    if found["days"] and (found["day"] or "*") != "*" and found["days"] != "day":
        return None  # a cron expression with both would fire on all these days of the week and on all these dates
    hour = _HOURS.get(found["hour"], found["hour"])
    if found["half"] and hour.isdigit():
        hour = str(int(hour) % _NOON + _NOON * (found["half"] == "pm"))
    days = re.sub(r" and ", ",", re.sub(r"\.\.| to ", "-", found["days"] or "*"))
    days = {"day": "*", "daily": "*", "weekday": "MON-FRI", "weekdays": "MON-FRI"}.get(days, days)
    days += f"#{found['nth']}" if found["nth"] else "L" if found["last"] else ""
    day = (found["day"] or "*").replace("~01", "L").replace("~1", "L")
    year = "without year" if (found["year"] or "*") != "*" else ""
    fields = [_plain_number(each) for each in (found["minute"] or "0", hour, day, found["month"] or "*", days)]
    return fields, year


def _keyword_fields(given: dict[str, str]) -> list[str]:
    """Return the fields for keywords.

    A missing unit is ``*`` if it is larger than the smallest given unit; otherwise it has its lowest value.
    """
    smallest = max((place for place, (name, _) in enumerate(_KEYWORDS) if name in given), default=0)
    fields = [given.get(name, "*" if place < smallest else low) for place, (name, low) in enumerate(_KEYWORDS)]
    month, day, weekday, hour, minute = fields
    weekday = re.sub(r"(?<![#\w])[0-6]", lambda found: str((int(found[0]) + 1) % 7), weekday)  # 0 is Monday there
    if found := _NTH.fullmatch(day):
        day, weekday = "*", f"{found[2]}#{found[1]}" if found[1] else f"{found[3]}L"
    return [minute, hour, day, month, weekday]


def _plain_number(field: str) -> str:
    return str(int(field)) if field.isdigit() else field
