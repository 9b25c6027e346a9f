"""Functions that parse or print a number by a format; the format stays in the signature."""

from __future__ import annotations

from collections.abc import Callable

from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.binding.nested import fixed
from grouping.binding.operands import cast
from grouping.model.expression import Value
from grouping.model.refusals import mismatch
from grouping.model.sql_type import STRING, decimal
from grouping.values.number_format import read_number_format

__all__ = ["NUMBER_CALLS", "number_text"]

_DECIMALS = {
    "TINYINT": decimal(3, 0),
    "SMALLINT": decimal(5, 0),
    "INT": decimal(10, 0),
    "BIGINT": decimal(20, 0),
    "FLOAT": decimal(14, 7),
    "DOUBLE": decimal(30, 15),
    "STRING": decimal(38, 18),
}
"""Type of a value to be printed → the DECIMAL to which Spark casts the value."""


def _to_number(name: str, text: Bound, form: Bound) -> Bound:
    """Return a text parsed by a format as a DECIMAL; NULL for a text that does not fit the format.

    Raises:
        InputError: ``type-mismatch`` for the wrong arguments, ``unsupported-query`` for a format that is not supported.
    """
    pattern = str(fixed(form, STRING, f'the format of "{name}"').value)
    read = read_number_format(pattern)
    sql_type = decimal(read.precision, read.scale)
    if is_null(text):
        return Constant(None, sql_type)
    if text.type != STRING and not (text.type.is_whole or text.type.is_decimal):
        raise mismatch(f'an argument of "{name}" is {text.type}', "The argument must be STRING.", "CAST it.")
    return Term("to_number", (cast(text, STRING), Value(pattern, "STRING")), sql_type)


def number_text(name: str, value: Bound, pattern: str) -> Bound:
    """Return a number formatted as text.

    Raises:
        InputError: ``type-mismatch`` for the wrong arguments, ``unsupported-query`` for a format that is not supported.
    """
    read_number_format(pattern)
    if is_null(value):
        return Constant(None, STRING)
    if not value.type.is_decimal and value.type.name not in _DECIMALS:
        raise mismatch(f'an argument of "{name}" is {value.type}', "The argument must be a number, a time or BINARY.")
    number = value if value.type.is_decimal else cast(value, _DECIMALS[value.type.name])
    return Term("to_char", (number, Value(pattern, "STRING")), STRING)


NUMBER_CALLS: dict[str, Callable[..., Bound]] = dict.fromkeys(("to_number", "try_to_number"), _to_number)
"""Binders by function, called with the function's name and the bound arguments."""
