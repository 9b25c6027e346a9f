"""Sizes of texts: upper bounds for the texts that an expression computes, from the sizes of its input texts.

The gateway knows only the constants, and assumes a size for the text of a column. The evaluator calculates with the
longest text of each column, or with the texts of each row. Sizes are whole numbers, or arrays of whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from grouping.functions.functions import FUNCTIONS
from grouping.functions.nested import ELEMENTWISE
from grouping.functions.operators import OPERATORS
from grouping.functions.sizes import LONGEST_SCALAR, Size, constant_size
from grouping.model.errors import InputError
from grouping.model.expression import Call, Column, Expression, Reference, Slot, Value, walk
from grouping.model.group import ConstantRow
from grouping.model.sql_type import BINARY, STRING

__all__ = ["TextSizes", "check_growth", "grows"]

_ORDINARY = 100
"""The number of bytes that the gateway assumes for a text in a column."""
_MOST_MADE = 1 << 20
"""The largest number of bytes of a text that is computed from texts of the assumed size. The evaluator's limit is a
separate setting."""
_RULES = {
    **{op: operator.size for op, operator in OPERATORS.items()},
    **{name: row.size for name, row in FUNCTIONS.items()},
}


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
        """Take the function that returns the size of a leaf, and the largest size of a computed text."""
        self._leaf = leaf
        self._limit = limit
        self._elements: dict[Reference, Size] = {}
        """Variable of a lambda → size of the array."""
        self.longest: Size = 0
        """Bytes of the longest computed text, before the limit."""
        self.total: Size = 0
        """Bytes of all texts that are read or computed; a computed text counts up to the limit."""

    def _of_lambda(self, call: Call) -> Size:
        """Return the size of the result of a function with a lambda.

        An array has at most as many elements as bytes, and transform makes a value for each element.
        """
        array = self.of(call.args[0])
        if call.op == "reduce":
            return self._reduced(call, array)
        _, variable, body = call.args
        assert isinstance(variable, Column), "an element"
        self._elements[variable.reference] = array
        size = self.of(body)
        return (array + 1) * np.maximum(size, LONGEST_SCALAR) if call.op == "transform" else array

    def _reduced(self, call: Call, array: Size) -> Size:
        """Return the size of reduce's result: a text may grow with each element, up to the limit."""
        _, start, total, variable, body = call.args
        assert isinstance(total, Column) and isinstance(variable, Column), "the variables of a lambda are columns"
        self._elements |= {total.reference: self.of(start), variable.reference: array}
        self.of(body)
        return self._limit if call.type in (STRING, BINARY) else 0

    def of(self, expression: Expression) -> Size:
        """Return an upper bound for the bytes of the expression's value, and note the sizes of all texts within it."""
        if isinstance(expression, Column) and expression.reference in self._elements:
            size = self._elements[expression.reference]
        elif not isinstance(expression, Call):
            size = self._leaf(expression)
        elif expression.op in ELEMENTWISE:
            return self._of_lambda(expression)
        else:
            sizes = [self.of(argument) for argument in expression.args]
            rule = _RULES.get(expression.op)
            computed = 0 if rule is None else rule(expression, sizes)
            self.longest = np.maximum(self.longest, computed)
            size = np.minimum(computed, self._limit)
        self.total = self.total + size
        return size


def grows(expressions: Iterable[Expression]) -> bool:
    """Tell whether a function in expressions can make a text longer than all of its arguments together."""
    calls = (part for one in expressions for part in walk(one) if isinstance(part, Call))
    return any(call.op in FUNCTIONS and FUNCTIONS[call.op].grows for call in calls)


def check_growth(expressions: Iterable[Expression], row: ConstantRow) -> None:
    """Refuse expressions that would be NULL for most events, because their texts become too long.

    Args:
        expressions: The expressions to compute.
        row: The constants of the slots.

    Raises:
        InputError: ``unsupported-query``.
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
    """Return an expression with the row's texts and numbers in place of slots.

    The functions upper, lower and translate are replaced by their first argument, since they rarely change its size.
    """
    match expression:
        case Slot(index) if isinstance(value := row.values[index], str | int):
            return Value(value, str(row.types[index]))
        case Call("upper" | "lower" | "translate", args):
            return _ordinary(args[0], row)
        case Call(op, args, kind):
            return Call(op, tuple(_ordinary(argument, row) for argument in args), kind)
    return expression
