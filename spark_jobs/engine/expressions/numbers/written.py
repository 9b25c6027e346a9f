"""to_char of numbers: a number by a format, with Spark's rules for blanks and signs."""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from grouping.model.sql_type import SqlType
from grouping.values.number_format import NumberFormat, read_number_format
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.types import Operand, polars_type

__all__ = ["to_char", "write_number"]


def to_char(number: Operand, sql_type: SqlType, form: object) -> pl.Expr:
    """Compile to_char of a DECIMAL and the text of a format."""
    read = read_number_format(str(form))
    return each_distinct([number.expr], lambda each: write_number(each, read), polars_type(sql_type))


def write_number(number: Decimal, form: NumberFormat) -> str:
    """Write a number by a format, with # in place of digits if the number has more digits than the format.

    Example:
        >>> [write_number(Decimal(text), read_number_format("$99,999.99")) for text in ("1234.5", "-0.5", "1.005")]
        ['$ 1,234.50', '$     0.50', '$## ###.##']
    """
    line = _Line()
    negative = number < 0
    if form.lead:
        line.add("-" if negative else "+" if form.lead == "S" else " ")
    if form.end == "PR" and negative:
        line.add("<")
    if form.dollar:
        line.add("$")
    whole, part = _digits(number, form)
    for size, exact in reversed(form.groups):
        line.group(whole[:size], exact=exact)
        whole = whole[size:]
        if whole:
            line.separate()
    if form.point:
        line.point(part)
    line.end(form.end, negative=negative)
    return line.text


def _digits(number: Decimal, form: NumberFormat) -> tuple[str, str]:
    """Return the digits before and after the point: as many characters as the format has digits before and after it."""
    count = form.precision - form.scale
    whole, _, part = format(abs(number), "f").partition(".")
    whole, part = whole.lstrip("0"), part.rstrip("0")
    if len(whole) > count or len(part) > form.scale:
        return "#" * count, "#" * form.scale
    return whole.rjust(count), part.ljust(form.scale, "0")


_END_SIGNS = {
    ("S", True): "-",
    ("S", False): "+",
    ("MI", True): "-",
    ("MI", False): " ",
    ("PR", True): ">",
    ("PR", False): "  ",
}
"""The text at the end, by the last part of a format and whether the number is negative."""


class _Line:
    """The text that has been written so far."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, characters: str) -> None:
        self.text += characters

    def group(self, characters: str, *, exact: bool) -> None:
        """Write the digits of a group; a zero or a blank stands in place of a missing digit."""
        for character in characters:
            if character != " ":
                self.add(character)
            elif exact:
                self.add("0")
            else:
                self._blank()

    def separate(self) -> None:
        """Write the separator of two groups: a comma after a digit, else a blank."""
        if self.text[-1:].isdigit():
            self.add(",")
        else:
            self._blank()

    def point(self, part: str) -> None:
        """Write a point and the fraction; a blank before the point becomes a zero."""
        if self.text.endswith(" "):
            self.text = self.text[:-1] + "0"
        self.add(f".{part}")

    def end(self, kind: str, *, negative: bool) -> None:
        """Replace a point at the end by a blank, and then write the closing sign before the trailing blanks."""
        if self.text.endswith("."):
            self.text = self.text[:-1] + " "
        written = self.text.rstrip(" ")
        self.text = written + _END_SIGNS.get((kind, negative), "") + self.text[len(written) :]

    def _blank(self) -> None:
        """Write a blank, or put a blank before a sign that the text ends with."""
        sign = self.text[-1:] if self.text.endswith(("+", "-", "<")) else ""
        self.text = f"{self.text.removesuffix(sign)} {sign}"
