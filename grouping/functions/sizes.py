"""Upper bounds for the bytes of text of a call's result, from the sizes of its arguments.

A size is a whole number of bytes in UTF-8, 0 for a value without text, or a NumPy array with a size for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grouping.model.expression import Call, Column, Expression, Slot, Value
from grouping.model.sql_type import BINARY, STRING, SqlType
from grouping.values.literals import LARGEST_COUNT

__all__ = [
    "LONGEST_SCALAR",
    "Size",
    "SizeRule",
    "array_repeated",
    "cased",
    "cast",
    "code",
    "constant_size",
    "brief",
    "elements_joined",
    "encoded",
    "first",
    "formatted_number",
    "formatted_time",
    "joined",
    "json",
    "listed",
    "longest",
    "padded",
    "printed",
    "repeated",
    "replaced",
    "spaces",
    "substituted",
    "total",
    "translated",
    "variant",
]

Size = Any
SizeRule = Callable[[Call, Sequence[Size]], Size]

_MOST_CASED = 3
"""The largest number of bytes that one byte becomes in another case.

U+0390 has two bytes, and in upper case it is three letters of two bytes each.
"""
_WIDEST = 4
"""Bytes of the longest character."""
_LONGEST_FIELD = 11
"""The largest number of bytes for each letter of a time format: "1st quarter" comes from four letters."""
_LONGEST_DIGEST = 128
"""Bytes of the longest digest, in hexadecimal digits."""
_LONGEST_NUMBER = 512
"""Approximate number of digits and commas before the point of the largest DOUBLE."""
_LARGEST_WIDTH = 999
"""The largest width in a printf format."""
_MOST_ENCODED = 4
"""The largest number of output bytes for each input byte: in an encoding, in a mask, or for a number in a VARIANT's
text."""
LONGEST_SCALAR = 64
"""A generous upper bound for the bytes of a number, a date or a time as text."""
_PLAIN = 8
"""The least number of bytes that are counted for an element of an array, such as a number or a time."""
_MARKS = 8
"""The largest number of quotes, colons, commas and brackets around a name or a value in JSON."""


def constant_size(leaf: Column | Slot | Value) -> int:
    """Return the bytes of a text that is a constant and not lifted; 0 for any other leaf."""
    return len(leaf.value.encode()) if isinstance(leaf, Value) and isinstance(leaf.value, str) else 0


def first(call: Call, sizes: Sequence[Size]) -> Size:
    """The result has no more bytes than the first argument."""
    return sizes[0]


def total(call: Call, sizes: Sequence[Size]) -> Size:
    """The result has the bytes of all arguments."""
    return sum(sizes)


def longest(call: Call, sizes: Sequence[Size]) -> Size:
    """The result is one of the arguments."""
    most: Size = 0
    for size in sizes:
        most = np.maximum(most, size)
    return most


def listed(call: Call, sizes: Sequence[Size]) -> Size:
    """The result is an array of the arguments."""
    return sum(np.maximum(size, _PLAIN) for size in sizes)


def joined(call: Call, sizes: Sequence[Size]) -> Size:
    """The result joins all arguments after the first one; the first one is the separator."""
    return sum(sizes[1:]) + sizes[0] * max(len(sizes) - 2, 0)


def elements_joined(call: Call, sizes: Sequence[Size]) -> Size:
    """The result joins the elements of an array with a separator; an array has at most as many elements as bytes."""
    return sizes[0] + (sizes[0] + 1) * sum(sizes[1:])


def replaced(call: Call, sizes: Sequence[Size]) -> Size:
    """The result has a new text in place of each occurrence of a constant text."""
    shortest = max(constant_size(call.args[1]), 1)  # type: ignore[arg-type]  # a Call has no size of its own
    new = sizes[2] if len(sizes) > 2 else 0
    return sizes[0] + sizes[0] // shortest * np.maximum(new - shortest, 0)


def substituted(call: Call, sizes: Sequence[Size]) -> Size:
    """The result has a replacement for each match; each ``$`` in the replacement may insert a group of the match.

    Together, all matches are at most as long as the text, and so are all groups that one ``$`` inserts.
    """
    return (sizes[0] + 1) * (1 + sizes[2] + _marks(call.args[2], "$"))


def repeated(call: Call, sizes: Sequence[Size]) -> Size:
    """The result repeats a text; the second argument is the number of repetitions."""
    return sizes[0] * _count(call.args[1])


def array_repeated(call: Call, sizes: Sequence[Size]) -> Size:
    """The result is an array of one repeated value; the second argument is the number of repetitions."""
    return np.maximum(sizes[0], _PLAIN) * _count(call.args[1])


def padded(call: Call, sizes: Sequence[Size]) -> Size:
    """The second argument is the number of characters of the result."""
    return _WIDEST * _count(call.args[1])


def spaces(call: Call, sizes: Sequence[Size]) -> Size:
    """The first argument is the number of blanks in the result."""
    return _count(call.args[0])


def translated(call: Call, sizes: Sequence[Size]) -> Size:
    """The result may have the widest character of the third argument in place of each byte."""
    return sizes[0] * _widest(call.args[2])


def cased(call: Call, sizes: Sequence[Size]) -> Size:
    """The result is the text in another case; each byte may become three bytes."""
    return sizes[0] * _MOST_CASED


def encoded(call: Call, sizes: Sequence[Size]) -> Size:
    """The result has at most four bytes for each byte of the argument (at least for 64 bytes), and four in addition."""
    return np.maximum(sizes[0], LONGEST_SCALAR) * _MOST_ENCODED + _WIDEST


def variant(call: Call, sizes: Sequence[Size]) -> Size:
    """The result consists of parts of a JSON text or a VARIANT; each byte may become four bytes."""
    return _MOST_ENCODED * sizes[0]


def code(call: Call, sizes: Sequence[Size]) -> Size:
    """The result is the text itself, or a code of four letters."""
    return np.maximum(sizes[0], _WIDEST)


def brief(call: Call, sizes: Sequence[Size]) -> Size:
    """The result has at most 128 bytes."""
    return _LONGEST_DIGEST


def formatted_number(call: Call, sizes: Sequence[Size]) -> Size:
    """The result is a number; the second argument is its number of decimals."""
    return _LONGEST_NUMBER + _count(call.args[1])


def formatted_time(call: Call, sizes: Sequence[Size]) -> Size:
    """The result is a time in a format; the second argument is the format, and must be a constant."""
    return LONGEST_SCALAR + _LONGEST_FIELD * constant_size(call.args[1])  # type: ignore[arg-type]  # a Value


def printed(call: Call, sizes: Sequence[Size]) -> Size:
    """The result is a printf format with the other arguments in place of its conversions."""
    return sizes[0] + _marks(call.args[0], "%") * (sum(sizes[1:]) + _LARGEST_WIDTH)


def json(call: Call, sizes: Sequence[Size]) -> Size:
    """The result is the JSON of a value; an array has at most as many elements as bytes."""
    if isinstance(call.args[0], Slot):
        return 0
    return _MOST_ENCODED * sizes[0] + (sizes[0] + 1) * _written(call.args[0].type)


def cast(call: Call, sizes: Sequence[Size]) -> Size:
    """The result is the argument as a text or as bytes, or has no text."""
    if call.type == STRING:
        return np.maximum(sizes[0], LONGEST_SCALAR)
    return sizes[0] if call.type == BINARY else 0


def _marks(constant: Expression, mark: str) -> int:
    """Return the number of occurrences of a character in a constant; 1 for any other expression."""
    return constant.value.count(mark) if isinstance(constant, Value) and isinstance(constant.value, str) else 1


def _count(argument: Expression) -> int:
    if isinstance(argument, Value):
        return max(argument.value, 0) if isinstance(argument.value, int) else 0
    return LARGEST_COUNT


def _widest(argument: Expression) -> int:
    """Return the bytes of the widest character that may replace a character of one byte."""
    if isinstance(argument, Value) and isinstance(argument.value, str):
        return max((len(character.encode()) for character in argument.value), default=1)
    return _WIDEST


def _written(sql_type: SqlType) -> int:
    """Return the largest number of bytes of a value's JSON without the value's texts: names, numbers, punctuation."""
    parts = [field for _, field in sql_type.fields] + ([] if sql_type.element is None else [sql_type.element])
    names = sum(len(name.encode()) + _MARKS for name, _ in sql_type.fields)
    return LONGEST_SCALAR + _MARKS + names + sum(map(_written, parts))
