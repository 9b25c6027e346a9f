"""The formats of to_number: the accepted texts, and their numbers.

A format has, in this order, an optional sign (``S`` or ``MI``), an optional ``$``, digits with thousands separators,
and an optional point with digits. Without a sign at its beginning, a format may end with a sign or with ``PR`` (angle
brackets). A group of digits with a leading 0 must be complete; a group with a leading 9 may have fewer.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from grouping.model.errors import InputError

__all__ = ["NumberFormat", "read_number_format"]

_FORM = re.compile(r"(S|MI)?(\$)?([09]+(?:[,G][09]+)*)(?:[.D]([09]*))?(S|MI|PR)?")
_MOST_DIGITS = 38
_BLANKS = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f")
_NO_BLANKS = frozenset("\u00a0\u2007\u202f")
"""Space characters that Java does not treat as spaces."""


class NumberFormat(NamedTuple):
    """A parsed format."""

    lead: str
    """The sign before the digits; "" without one."""
    dollar: bool
    groups: tuple[tuple[int, bool], ...]
    """For each group before the point, from the last to the first: its number of digits, and whether all are
    required.
    """
    point: bool
    scale: int
    """The number of digits after the point."""
    end: str
    """The sign, or PR, after the digits; "" without one."""

    @property
    def precision(self) -> int:
        """The precision of the resulting DECIMAL."""
        return sum(size for size, _ in self.groups) + self.scale

    def read(self, text: str) -> Decimal | None:
        """Return the number of a text in this format; None for any other text."""
        return _FormatText(text).read(self)


@lru_cache(maxsize=1024)
def read_number_format(text: str) -> NumberFormat:
    """Parse a format, in letters of any case.

    Raises:
        InputError: ``unsupported-query``.

    Example:
        >>> read_number_format("$9,999.99").read("$1,234.5")
        Decimal('1234.50')
    """
    found = _FORM.fullmatch(text.upper())
    if found is None or (found[1] and found[5]):
        raise _refused(text)
    groups = tuple((len(group), group[0] == "0") for group in reversed(re.split("[,G]", found[3])))
    made = NumberFormat(
        found[1] or "", bool(found[2]), groups, found[4] is not None, len(found[4] or ""), found[5] or ""
    )
    if made.precision > _MOST_DIGITS:
        raise _refused(text)
    return made


def _refused(text: str) -> InputError:
    return InputError(
        f'format "{text[:60]}" is not supported',
        code="unsupported-query",
        detail="A format has a sign S or MI, $, up to 38 digits 0 and 9 with , and one point, and S, MI or PR.",
        hint="Write '999,999.99'.",
    )


class _FormatText:
    """A text that is read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._whole: list[str] = []
        self._part: list[str] = []

    def read(self, form: NumberFormat) -> Decimal | None:
        opened = form.end == "PR" and self._take("<")
        negative = self._sign(form.lead)
        if form.dollar and not self._take("$") and self._at < len(self._text):
            return None
        pointed = self._digits(self._whole, form.groups) and form.point and self._take(".")
        if self._at < 0 or (
            form.scale and not self._digits(self._part if pointed else self._whole, ((form.scale, False),))
        ):
            return None
        if form.end == "PR":
            negative = self._take(">")
            if negative != opened:
                return None
        else:
            negative |= self._sign(form.end)
        if self._at < len(self._text) or not (self._whole or form.scale):
            return None  # a text without digits is 0 only if the format has digits after the point
        digits = "".join(self._whole) + "." + "".join(self._part).ljust(form.scale, "0")
        return Decimal(f"{'-' if negative else ''}0{digits}")

    def _take(self, mark: str) -> bool:
        taken = self._text.startswith(mark, self._at)
        self._at += taken
        return taken

    def _sign(self, kind: str) -> bool:
        """Step over a sign, if there is one; tell whether the sign is a minus."""
        if not kind:
            return False
        return self._take("-") or (kind == "S" and self._take("+") and False)

    def _digits(self, into: list[str], groups: tuple[tuple[int, bool], ...]) -> bool:
        """Consume digits, blanks between them and separators; tell whether the groups of digits fit the format."""
        sizes = [0]
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == ",":
                sizes.append(0)
            elif (digit := _digit(character)) is not None:
                into.append(digit)
                sizes[-1] += 1
            elif not _blank(character):
                break
            self._at += 1
        found = [*reversed(sizes), *[0] * len(groups)]
        fits = len(sizes) <= len(groups) and all(
            size == most if whole else size <= most for size, (most, whole) in zip(found, groups, strict=False)
        )
        if not fits:
            self._at = -1
        return fits


def _digit(character: str) -> str | None:
    if character.isascii():
        return character if character.isdigit() else None
    known = unicodedata.category(character) == "Nd" and ord(character) < 1 << 16
    return str(unicodedata.decimal(character)) if known else None


def _blank(character: str) -> bool:
    if character in _BLANKS:
        return True
    return unicodedata.category(character) in ("Zs", "Zl", "Zp") and character not in _NO_BLANKS
