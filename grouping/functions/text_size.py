"""Sizes of texts: upper bounds for the texts of an expression, from its functions and its input texts.

The same calculation serves the gateway, with constants only, and the evaluator, with the longest text of each column,
or the texts of each row: sizes are whole numbers, or arrays of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from grouping.functions.nested_functions import OF_ELEMENTS
from grouping.model.errors import InputError
from grouping.model.expression import Call, Column, Expression, Slot, Value, walk
from grouping.model.group import ConstantRow
from grouping.model.sql_type import BINARY, STRING, SqlType
from grouping.values.literals import LARGEST_COUNT

__all__ = ["Size", "TextSizes", "check_growth", "constant_size", "grows"]

Size = Any
"""Bytes in UTF-8, 0 for a value without text: an int, or a NumPy array with a size for each row."""

_GROWING = frozenset(("array_repeat", "concat", "concat_ws", "replace", "repeat"))
_ORDINARY = 100
"""Bytes of a text in a column, as it is reckoned with before there is any."""
_MOST_MADE = 1 << 20
"""Bytes that may be made of such texts. The evaluator's limit is a setting of its own."""
_MOST_CASED = 3
"""Bytes that one byte may become in another case: U+0390 is two, and three letters of two bytes in capitals."""
_WIDEST = 4
"""Bytes of the longest character."""
_LONGEST_FIELD = 11
"""Bytes that a letter of a format may become: "1st quarter" is of four."""
_LONGEST_DIGEST = 128
"""Bytes of the longest digest, in hexadecimal digits."""
_LONGEST_NUMBER = 512
"""Digits and commas before the point of the largest DOUBLE, about."""
_LARGEST_WIDTH = 999
"""Characters to which a format fills an argument up."""
_MOST_ENCODED = 4
"""Output bytes per input byte: in an encoding, in a mask, or for a number in a VARIANT's text."""
_FROM_ARRAYS = frozenset(
    """array_compact array_distinct array_except array_intersect array_max array_min array_remove array_sort flatten
    map_entries map_from_entries slice sort_array str_to_map""".split()
) | {"array numbered", "array or none", "reverse array"}
"""Functions that yield some of an array's elements, or its bytes in a different form."""
_LONGEST_SCALAR = 64
"""Bytes, and more than enough, of a number, a date or a time as text."""
_PLAIN = 8
"""Bytes of a number or a time in an array."""
_MARKS = 8
"""Quotes, colons, commas and brackets around a name or a value in JSON, at most."""


class TextSizes:
    """The sizes of the texts that an expression reads and computes.

    Example:
        >>> s = Column("s", "STRING")
        >>> sizes = TextSizes(lambda leaf: 100 if leaf == s else constant_size(leaf), limit=1_000)
        >>> both = Call("concat", (s, Value("é", "STRING")), "STRING")
        >>> int(sizes.of(Call("repeat", (both, Value(50, "INT")), "STRING")))
        1000
        >>> int(sizes.longest), int(sizes.total)
        (5100, 1204)
    """

    def __init__(self, leaf: Callable[[Column | Slot | Value], Size], limit: int) -> None:
        """Take the function that tells the size of a leaf, and the most bytes that a computed text may have."""
        self._leaf = leaf
        self._limit = limit
        self._elements: dict[str, Size] = {}
        """By the name of a lambda's variable: its array."""
        self.longest: Size = 0
        """Bytes of the longest computed text, before the limit."""
        self.total: Size = 0
        """Bytes of the longest text that is read or computed."""

    def _of_lambda(self, call: Call) -> Size:
        """Return the size of an array that a lambda yields: it has no more elements than bytes, and quotes for each."""
        array = self.of(call.args[0])
        if call.op == "reduce":
            return self._reduced(call, array)
        _, variable, body = call.args
        assert isinstance(variable, Column), "an element"
        self._elements[variable.name] = array
        size = self.of(body)
        return (array + 1) * np.maximum(size, _LONGEST_SCALAR) if call.op == "transform" else array

    def _reduced(self, call: Call, array: Size) -> Size:
        """Return the size of reduce's result: a text may grow with each element, up to the limit."""
        _, start, total, variable, body = call.args
        assert isinstance(total, Column) and isinstance(variable, Column), "what its lambda is of"
        self._elements |= {total.name: self.of(start), variable.name: array}
        self.of(body)
        return self._limit if call.type in (STRING, BINARY) else 0

    def of(self, expression: Expression) -> Size:
        """Return the most bytes of the expression's value, and add all texts within it up."""
        if isinstance(expression, Column) and expression.name in self._elements:
            size = self._elements[expression.name]
        elif not isinstance(expression, Call):
            size = self._leaf(expression)
        elif expression.op in OF_ELEMENTS:
            return self._of_lambda(expression)
        else:
            computed = _computed(expression, [self.of(argument) for argument in expression.args])
            self.longest = np.maximum(self.longest, computed)
            size = np.minimum(computed, self._limit)
        self.total = self.total + size
        return size


def grows(expressions: Iterable[Expression]) -> bool:
    """Tell whether some function in expressions makes texts longer than its operands."""
    return any(isinstance(part, Call) and part.op in _GROWING for one in expressions for part in walk(one))


def check_growth(expressions: Iterable[Expression], row: ConstantRow) -> None:
    """Check that ordinary columns do not make texts that are NULL for their length.

    Args:
        expressions: The expressions to compute.
        row: The constants of the slots.

    Raises:
        InputError: ``unsupported-query``; nothing but NULL could come of most events.
    """
    for expression in expressions:
        sizes = TextSizes(_ordinary_size, _MOST_MADE)
        sizes.of(_ordinary(expression, row))
        if sizes.longest > _MOST_MADE:
            raise InputError(
                f"the expression can make a value of {int(sizes.longest):,} bytes; the limit is {_MOST_MADE:,}",
                code="unsupported-query",
                detail=f"This is reckoned with {_ORDINARY} bytes for each text of a column; a longer value is NULL.",
                hint="Repeat less, or replace by something shorter.",
            )


def _ordinary_size(leaf: Column | Slot | Value) -> int:
    if isinstance(leaf, Column) and leaf.type.is_sized:
        return _ORDINARY
    return constant_size(leaf)


def _ordinary(expression: Expression, row: ConstantRow) -> Expression:
    """Return an expression with its texts and counts in place of their slots, over letters of one byte."""
    match expression:
        case Slot(index) if isinstance(value := row.values[index], str | int):
            return Value(value, str(row.types[index]))
        case Call("upper" | "lower" | "translate", args):
            return _ordinary(args[0], row)
        case Call(op, args, kind):
            return Call(op, tuple(_ordinary(argument, row) for argument in args), kind)
    return expression


def constant_size(leaf: Column | Slot | Value) -> int:
    """Return the size of a constant in its place; 0 for a column or slot."""
    return len(leaf.value.encode()) if isinstance(leaf, Value) and isinstance(leaf.value, str) else 0


def _computed(call: Call, sizes: Sequence[Size]) -> Size:
    """Return the most bytes that an operator or function yields over operands of these sizes."""
    match call.op:
        case "concat":
            return sum(sizes)
        case "concat_ws":
            return sum(sizes[1:]) + sizes[0] * max(len(sizes) - 2, 0)
        case "replace":
            return _replaced(call, sizes)
        case "repeat":
            return sizes[0] * _count(call.args[1])
        case "lpad" | "rpad":
            return _WIDEST * _count(call.args[1])
        case "translate":
            return sizes[0] * _widest(call.args[2])
        case "upper" | "lower":
            return sizes[0] * _MOST_CASED
        case "overlay" | "elt":
            return sum(sizes)
        case "format_string":
            return sizes[0] + _marks(call.args[0], "%") * (sum(sizes[1:]) + _LARGEST_WIDTH)
        case "regexp_replace":  # all occurrences together, and so one group of each, are no longer than the text
            return (sizes[0] + 1) * (1 + sizes[2] + _marks(call.args[2], "$"))
        case "base64" | "url_encode" | "mask" | "initcap" | "hex" | "encode" | "decode":
            return np.maximum(sizes[0], _LONGEST_SCALAR) * _MOST_ENCODED + _WIDEST
        case "unhex" | "unbase64":
            return sizes[0]
        case "url_decode":
            return sizes[0] * _MOST_CASED
        case "md5" | "sha1" | "sha2" | "chr" | "conv" | "bin" | "to_char":
            return _LONGEST_DIGEST
        case "format_number":
            return _LONGEST_NUMBER + _count(call.args[1])
        case "soundex":
            return np.maximum(sizes[0], _WIDEST)
        case "space":
            return _count(call.args[0])
        case "regexp_extract" | "regexp_extract_all" | "regexp_substr" | "substring_index" | "json_object_keys":
            return sizes[0]
        case "parse_url":
            return sizes[0]
        case "trim" | "ltrim" | "rtrim" | "substring" | "left" | "right" | "reverse" | "split_part" | "nullif":
            return sizes[0]
        case "array":
            return sum(np.maximum(size, _PLAIN) for size in sizes)
        case "named_struct" | "array_union" | "concat arrays" | "arrays paired" | "array_insert" | "map_from_arrays":
            return sum(sizes)
        case "array_repeat":
            return np.maximum(sizes[0], _PLAIN) * _count(call.args[1])
        case "maps merged":
            return sum(sizes)
        case "array_join":  # an array has no more elements than bytes
            return sizes[0] + (sizes[0] + 1) * sum(sizes[1:])
        case op if op in _FROM_ARRAYS:
            return sizes[0]
        case "from_json" | "parse_json" | "variant_get":
            return _MOST_ENCODED * sizes[0]
        case "to_json" if not isinstance(call.args[0], Slot):  # an array has no more elements than bytes
            return _MOST_ENCODED * sizes[0] + (sizes[0] + 1) * _written(call.args[0].type)
        case "field" | "element" | "element_at" | "get_json_object" | "split" | "map_keys" | "map_values":
            return sizes[0]
        case "split by pattern" | "substring of bytes":
            return sizes[0]
        case "case" | "coalesce" | "greatest" | "least":
            longest: Size = 0
            for size in sizes:
                longest = np.maximum(longest, size)
            return longest
        case "date_format" | "from_unixtime":
            return _LONGEST_SCALAR + _LONGEST_FIELD * constant_size(call.args[1])  # type: ignore[arg-type]  # a Value
        case "cast" if call.type == BINARY:
            return sizes[0]
        case "cast" if call.type == STRING:
            return np.maximum(sizes[0], _LONGEST_SCALAR)
    return 0


def _marks(constant: Expression, mark: str) -> int:
    """Return how often a sign is in a constant."""
    return constant.value.count(mark) if isinstance(constant, Value) and isinstance(constant.value, str) else 1


def _replaced(call: Call, sizes: Sequence[Size]) -> Size:
    shortest = max(constant_size(call.args[1]), 1)  # type: ignore[arg-type]  # a Call has no size of its own
    new = sizes[2] if len(sizes) > 2 else 0
    return sizes[0] + sizes[0] // shortest * np.maximum(new - shortest, 0)


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
    """Return the most bytes that a JSON text has for one value of a type besides its texts: names, numbers, marks."""
    parts = [field for _, field in sql_type.fields] + ([] if sql_type.element is None else [sql_type.element])
    names = sum(len(name.encode()) + _MARKS for name, _ in sql_type.fields)
    return _LONGEST_SCALAR + _MARKS + names + sum(map(_written, parts))
