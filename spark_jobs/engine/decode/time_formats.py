"""Derives from a time as text the SQL call for texts of its form, such as ``to_timestamp(column, 'dd/MM/yyyy')``."""

from __future__ import annotations

import re

__all__ = ["reading_calls"]

_LONGEST = 80
"""The largest number of characters of a text that is compared with the forms."""
_CLOCK = (
    r"(?P<hour>\d\d?)(?P<colon>[:.])(?P<minute>\d\d)(?:(?P=colon)(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?: ?(?P<half>[AP]M))?"
)
_ZONE = r"(?: ?(?P<zone>Z|[+-]\d{4}|[+-]\d\d:\d\d|UTC|GMT))?"
_MONTH = r"(?P<name>(?i:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[A-Za-z]*)"
_DAY_NAME = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_TIMES = [
    re.compile(rf"(?P<day>{_DAY_NAME}[a-z]*,? )?{form}", re.ASCII)
    for date in (
        r"(?P<year>\d{4})(?P<mark>[-/._:])(?P<first>\d\d?)(?P=mark)(?P<last>\d\d?)",
        r"(?P<first>\d\d?)(?P<mark>[/.-])(?P<last>\d\d?)(?P=mark)(?P<year>\d{4})",
        r"(?P<first>\d\d?)(?P<mark>[/.-])(?P<last>\d\d?)(?P=mark)(?P<year>\d\d)",
        r"(?P<year>(?:19|20)\d\d)(?P<first>0[1-9]|1[0-2])(?P<last>0[1-9]|[12]\d|3[01])",
        rf"(?P<last>\d\d?)(?P<mark>[/ -]){_MONTH}(?P=mark)(?P<year>\d{{4}}|\d\d)",
        rf"{_MONTH} (?P<last>\d\d?),? (?P<year>\d{{4}})",
        rf"(?P<year>\d{{4}})(?P<mark>[/ -]){_MONTH}(?P=mark)(?P<last>\d\d?)",
    )
    for form in (rf"{date}(?:(?:[ :_T-]|, |  ){_CLOCK}{_ZONE})?", rf"{_CLOCK}{_ZONE} {date}")
]
"""Dates with a month as a number or a name; a time of the day may come before or after the date."""
_DAY_DIGITS = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_ISO = r"\d{4}-\d\d?-\d\d?[T ]\d\d?:\d\d?(?::\d\d?(?:\.\d+)?)?"
_SPACED = "regexp_replace({}, ' +', ' ')"
"""Replaces several blanks by one: programs write a further blank before a day below 10 (`_PADDED`)."""
_PADDED = r"[A-Z][a-z]{2} [ \d]\d [\d:]{8}"
_FORMS = [
    (re.compile(form, re.ASCII), call)
    for form, call in (
        (_DAY_DIGITS, "to_timestamp(column, 'yyyyMMdd')"),
        (_DAY_DIGITS + r"(?:[01]\d|2[0-3])[0-5]\d[0-5]\d", "to_timestamp(column, 'yyyyMMddHHmmss')"),
        (
            f"{_DAY_NAME} {_PADDED} \\d{{4}}",
            f"to_timestamp({_SPACED.format('substr(column, 5)')}, 'MMM d HH:mm:ss yyyy')",
        ),
        (
            f"{_DAY_NAME} {_PADDED} UTC \\d{{4}}",
            f"to_timestamp({_SPACED.format('substr(column, 5)')}, 'MMM d HH:mm:ss ''UTC'' yyyy')",
        ),
        (
            _PADDED,
            f"to_timestamp(concat(date_format(_time, 'yyyy '), {_SPACED.format('column')}), 'yyyy MMM d HH:mm:ss')",
        ),
        (r"\d{4}-\d\d", "to_timestamp(column, 'yyyy-MM')"),
        (r"(?:19|20)\d\d", "to_timestamp(column, 'yyyy')"),
        (
            _DAY_NAME + r" [A-Z][a-z]{2} \d\d [\d:]{8} [+-]\d{4} \d{4}",
            "to_timestamp(substr(column, 5), 'MMM dd HH:mm:ss XX yyyy')",
        ),
        (
            _DAY_NAME + r" [A-Z][a-z]{2} \d\d \d{4} [\d:]{8} GMT[+-]\d{4}(?: \(.*\))?",
            "to_timestamp(concat(substr(column, 5, 20), substr(column, 29, 5)), 'MMM dd yyyy HH:mm:ssXX')",
        ),
        (
            r"\[\d\d/[A-Z][a-z]{2}/\d{4}:[\d:]{8} [+-]\d{4}\]",
            "to_timestamp(substr(column, 2, 26), 'dd/MMM/yyyy:HH:mm:ss XX')",
        ),
        (r"/Date\(\d+\)/", "timestamp_millis(CAST(regexp_extract(column, '[0-9]+', 0) AS BIGINT))"),
        (_ISO + r"(?:Z|[+-]\d\d:\d\d)\[[\w/+-]+\]", "CAST(substring_index(column, '[', 1) AS TIMESTAMP)"),
        (_ISO + r"\[[A-Z][a-z]+/[\w/]+\]", "CAST(replace(replace(column, '[', ' '), ']', '') AS TIMESTAMP)"),
        (_ISO + r"(?:Z|[ ]?(?:UTC|GMT)| [A-Z][a-z]+/[A-Za-z_/]+)?", "CAST(column AS TIMESTAMP)"),
        (_ISO + r" (?:EST|PST|CST|MST|JST|IST)", "CAST(column AS TIMESTAMP)"),
        (r" *" + _ISO + r"(?:Z|[+-]\d\d:\d\d)? *", "CAST(trim(column) AS TIMESTAMP)"),
    )
]
"""Other usual forms, each with the call that reads the form."""
_LETTERS = {"name": "M", "minute": "m", "second": "s", "fraction": "S", "half": "a", "zone": "X"}
_QUOTED = re.compile("([A-Za-z]+)")
"""Letters of a text that are no field of its format. The format has them in quotes, which SQL doubles in a string."""
_SHORT_NAME = 3
_MONTHS = 12
_DAYS = 31


def reading_calls(text: str) -> tuple[str, ...]:
    """Return the calls that may read a text in the column ``column`` as a time: several if the order is not certain.

    Example:
        >>> reading_calls("21/11/2026 10:00")
        ("to_timestamp(column, 'dd/MM/yyyy HH:mm')",)
        >>> reading_calls("5/6/2026"), reading_calls("soon")
        (("to_timestamp(column, 'd/M/yyyy')", "to_timestamp(column, 'M/d/yyyy')"), ())
    """
    if len(text) > _LONGEST:
        return ()
    if call := next((call for form, call in _FORMS if form.fullmatch(text)), ""):
        return (call,)
    found = next((found for form in _TIMES if (found := form.fullmatch(text))), None)
    if found is None:
        return ()
    column = "regexp_replace(column, '^[A-Za-z]+,? ', '')" if found["day"] else "column"
    return tuple(f"to_timestamp({column}, '{_format(found, order)}')" for order in _orders(found))


def _orders(found: re.Match[str]) -> list[str]:
    """Return each possible assignment of the format letters M, d and y to the fields "first", "last" and "year".

    A text with the name of a month has no field "first", whose letter is then "-".

    If a year of four digits comes first, the month is before the day. If the parts are separated by points, the day is
    before the month. In other dates, a number above 12 is the day; without such a number, both orders are possible. A
    year of two digits may also come first.
    """
    parts = found.groupdict()
    if "name" in parts:
        return ["-dy"]
    if found.start("year") < found.start("first"):
        return ["Mdy"]
    first, last, year = (int(parts[name]) for name in ("first", "last", "year"))
    orders = ["dMy"] if parts["mark"] == "." or first > _MONTHS else ["Mdy"] if last > _MONTHS else ["dMy", "Mdy"]
    is_short = len(parts["first"]) == len(parts["year"]) and parts["mark"] != "."
    return [*orders, "yMd"] if is_short and last <= _MONTHS and year <= _DAYS else orders


def _format(found: re.Match[str], order: str) -> str:
    """Return the format of a text: each field as its letters, everything between the fields as written."""
    letters = {**_LETTERS, **dict(zip(("first", "last", "year"), order, strict=True))}
    letters["hour"] = "h" if found["half"] else "H"
    spans = sorted((*found.span(name), name) for name, text in found.groupdict().items() if text and name in letters)
    parts: list[str] = []
    reached = found.end("day") if found["day"] else 0
    for start, end, name in spans:
        field = _QUOTED.sub(r"''\1''", found[name]) if found[name] in ("UTC", "GMT") else letters[name] * (end - start)
        field = {"half": "a", "name": "MMM" if end - start == _SHORT_NAME else "MMMM"}.get(name, field)
        if name == "zone" and "X" in field:
            field = "XXX" if ":" in found[name] else "XX"
        parts += (_QUOTED.sub(r"''\1''", found.string[reached:start]), field)
        reached = end
    return "".join(parts)
