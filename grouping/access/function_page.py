"""The documentation's section on operators, functions and CASTs, generated from the tables of the compiler."""

from __future__ import annotations

from collections.abc import Iterator

from grouping.access.function_guide import describe_function
from grouping.functions.functions import AGGREGATES, CASTS, FUNCTIONS

__all__ = ["function_page"]

_OPERATORS = (
    "`= <> != < <= > >= <=>`, `IS [NOT] DISTINCT FROM`, `BETWEEN`, `IN`, `[I]LIKE … ESCAPE`, `RLIKE`, `IS [NOT] NULL`, "
    "`IS [NOT] TRUE`, `AND OR NOT`, `+ - * / % div`, `& ^ ~ << >> >>>` and the bar between, `||`, `CASE`, `CAST`"
)
_NOTES = (
    "A *pattern* is a constant in Java's form: characters, sets (`[a-z&&[^aeiou]]` too), groups (`(?<name>…)` too), "
    "`|`, `* + ? {n,m}`, `^ $ \\A \\z \\Z \\b`, `\\d \\w \\s \\h \\v \\R`, `\\p{L}` (general categories, scripts as "
    "`\\p{IsLatin}`, Java's classes of ASCII as `\\p{Alpha}`; of the characters of Unicode 13), `\\x41`, "
    "`\\x{1F600}`, `\\u00e9`, `\\Q…\\E`, and the flags `(?i) (?s) (?m)`, also of a group as `(?i:…)`. `$` stands "
    "last, and `^` under `(?m)` first. `\\b` has its meaning of Java 19 and later, where `\\w` defines a word. "
    "RLIKE accepts look-around only where a search in linear time can decide it: after a first `^` and a fixed "
    "number of characters (`^(?=.*\\d)(?!.*test)`), `(?=…)` and `(?!abc)` at the end, `(?<=…)` and `(?<!abc)` at "
    "the beginning, and `(?<!…)` before a last `$`. Back-references, possessive repetitions and `(?x)` are refused, "
    "and the message names the nearest form. `regexp_count`, `regexp_extract_all` and `regexp_replace` accept no "
    "pattern that matches the empty text. In a *replacement* `$1` is a group. The *format* of format_string has "
    "`%s` (STRING, whole numbers, BOOLEAN), `%d` (whole numbers), `%x`, `%X`, `%o` (INT, BIGINT), widths, flags. A "
    "*replacement*, a *format*, a *scale* and a *count* (of up to 1000) are constants too.",
    "A *format* of a time consists of `y M L d D E H h k K m s S a Q q X x Z` and texts in single quotes. A format "
    "that reads texts may have only `y yy yyyy M MM MMM MMMM d dd DDD H HH h hh k kk K KK m mm s ss S… a X XX XXX`. A "
    "*zone* is a constant: an offset, or a name of the IANA database, as in Python's package `tzdata` and not as "
    "installed on the machine. A text without a date is not a TIMESTAMP; Spark takes it for a time of today.",
    "A *format* of a number, for to_char and to_number, may start with a sign `S` or `MI`. Then follow `$`, if wanted, "
    "and up to 38 digits `0` and `9`, with `,` and one point between them: `'$999,999.99'`. A format without a first "
    "sign may end with `S`, `MI` or `PR`. A number with more digits than its format is written with `#` in place of "
    "its digits.",
    "DECIMAL arithmetic has Spark's precision and scale, and rounds half up; `-x`, and `abs(x)` of an `x` below 0, "
    "have 34 significant digits at most, as in Spark. CAST of a DOUBLE or FLOAT to DECIMAL rounds its shortest "
    "decimal form half up; from 2^53 on that is the form of Java 19 and later. Dates are of the years 1 to 9999; a "
    "result outside of these is NULL. CAST of a number to TIMESTAMP reads it as seconds since 1970, cut to "
    "microseconds; timestamp_seconds of a DECIMAL with more decimals is NULL.",
    "Some functions are refused because their result depends on the version of Java or on the processor (`sin`, `cos` "
    "and `tan`: 3.4% of the results differ in the last digit), or would not be exact: CAST of DOUBLE to STRING, "
    "`floor` and `ceil` of a DOUBLE to a scale. A distance within a region needs only the cosine of the region's "
    "latitude, a constant: `6371 * hypot(radians(lat - 40.4), 0.7615 * radians(lon + 3.7))` is a distance in "
    "kilometres.",
)


def function_page() -> str:
    """Return the section as Markdown, without the lines that mark its beginning and end."""
    casts = [f"| {source} | {', '.join(sorted(targets))} |" for source, targets in sorted(CASTS.items())]
    lines = [f"**Operators**: {_OPERATORS}.", "", *_functions(), "", "| CAST of | to |", "|---|---|", *casts]
    for note in _NOTES:
        lines += ["", note]
    return "\n".join(lines)


def _functions() -> Iterator[str]:
    """Yield the lines of a table of all functions for each group. Aliases are in the row of their function."""
    yield "| function | result | meaning | example | index |"
    yield "|---|---|---|---|---|"
    functions = FUNCTIONS | AGGREGATES
    described = [describe_function(name) for name in functions]
    group = ""
    for row in sorted(described, key=lambda row: (str(row["group"]), str(row["function"]))):
        if row["group"] != group:
            group = str(row["group"])
            yield f"| **{group}** | | | | |"
        others = row["other_names"]
        names = "".join(f", `{name}`" for name in others) if isinstance(others, list) else ""
        cells = (
            f"`{row['form']}`{names}",
            str(row["returns"]),
            functions[str(row["function"])].meaning,
            f"`{row['example']}`",
            "yes" if row["index"] else "",
        )
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
