"""Java's format strings, with the conversions that are exact: texts, whole numbers and booleans."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from grouping.model.errors import InputError

__all__ = ["Conversion", "parse_format"]

_PART = re.compile(
    r"%(?P<index>[1-9]\d{0,2}\$)?(?P<flags>[-#+ 0,(]*)(?P<width>[1-9]\d{0,2})?(?P<precision>\.\d+)?(?P<kind>[A-Za-z%])",
    re.ASCII,
)
_FLAGS = {"s": "-", "d": "-+ 0,(", "x": "-#0", "X": "-#0", "o": "-#0", "%": "", "n": ""}
"""The allowed flags by conversion."""


_MOST_SIGNS = 1000
"""The largest number of ``%`` signs in a format."""


class Conversion(NamedTuple):
    """A conversion: a part of a format that shows an argument."""

    argument: int
    """The number of the argument, from 0."""
    kind: str
    """``s``, ``d``, ``x``, ``X`` or ``o``."""
    flags: str
    width: int


@lru_cache(maxsize=4096)
def parse_format(text: str) -> tuple[str | Conversion, ...]:
    """Return the parts of a format: texts and conversions.

    Raises:
        InputError: ``unsupported-query`` for a conversion that is not exact, or that Java refuses.

    Example:
        >>> parse_format("%s: %05d%%")
        ('', Conversion(argument=0, kind='s', flags='', width=0), ': ', Conversion(argument=1, kind='d', \
flags='0', width=5), '', '%', '')
    """
    if text.count("%") > _MOST_SIGNS:
        raise _refused(text[:6], f"The format has more than {_MOST_SIGNS:,} signs %.")
    parts: list[str | Conversion] = []
    at = ordinary = 0
    while (percent := text.find("%", at)) >= 0:
        found = _PART.match(text, percent)
        if found is None:
            raise _refused(text[percent : percent + 6], "Java has no such conversion.")
        parts += (text[at:percent], _conversion(found, ordinary))
        ordinary += found["kind"] not in "%n" and found["index"] is None
        at = found.end()
    return (*parts, text[at:])


def _conversion(found: re.Match[str], ordinary: int) -> str | Conversion:
    kind, flags, width = found["kind"], found["flags"], int(found["width"] or 0)
    if kind not in _FLAGS:
        raise _refused(
            found[0],
            "Only conversions of texts, whole numbers and BOOLEANs are exact."
            + (" format_number(price, 2) shows a number with two decimal places." if kind == "f" else ""),
        )
    wrong = not set(flags) <= set(_FLAGS[kind]) or len(set(flags)) < len(flags) or {"+", " "} <= set(flags)
    if wrong or {"-", "0"} <= set(flags) or (set(flags) & {"-", "0"} and not width):
        raise _refused(found[0], "Java refuses these flags together.")
    if found["precision"] or (kind in "%n" and found[0] != f"%{kind}"):
        raise _refused(found[0], "This conversion takes no width or precision.")
    if kind in "%n":
        return "%" if kind == "%" else "\n"
    index = found["index"]
    return Conversion(int(index[:-1]) - 1 if index else ordinary, kind, flags, width)


def _refused(part: str, detail: str) -> InputError:
    return InputError(
        f'"{part}" in a format is not supported',
        code="unsupported-query",
        detail=detail,
        hint="There are %s, %d, %x, %X, %o and %%.",
    )
