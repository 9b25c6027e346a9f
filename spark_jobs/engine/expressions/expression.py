"""Expressions as Polars expressions with the same meaning as in Spark.

A compiled expression reads the event's columns by their names, and constants as ``:c0``, ``:c1``, …. Polars compares as
Spark does: NaN equals itself and is the greatest number, -0.0 equals 0.0, and strings compare by code points. Polars
cannot compare values with decimals and sets exactly. For these comparisons, the expression reads columns that
`match.residual` adds for a `KeyPair` or a `Member`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import polars as pl

from grouping.functions.nested import ELEMENTWISE
from grouping.model.errors import InternalError
from grouping.model.expression import LEFT_ON, Call, Column, Expression, Slot, Value
from grouping.model.sql_type import BOOLEAN, DATE, NUMERIC, STRING, TIMESTAMP, UNKNOWN, SqlType
from spark_jobs.engine.expressions.functions import FUNCTIONS, either
from spark_jobs.engine.expressions.nested.parts import NESTED, OF_OPERANDS
from spark_jobs.engine.expressions.texts.text import BYTES
from spark_jobs.engine.expressions.times.units import BY_UNIT
from spark_jobs.engine.expressions.types import Operand, polars_type, widened, wider
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = ["CompiledExpression", "ElementCall", "KeyPair", "Member", "compile_expression"]


class KeyPair(NamedTuple):
    """A comparison of a column with a constant, by the exact keys of both (`spark_jobs.engine.index.keys`)."""

    column: Column
    slot: int

    @property
    def names(self) -> tuple[str, str]:
        """The columns with the event's and the constant's key."""
        return f":event {self.column.stored} {self.slot}", f":constant {self.column.stored} {self.slot}"


class Member(NamedTuple):
    """The test whether the value of a column or an expression is in a constant that is a set."""

    needle: Expression
    type: SqlType
    slot: int

    @property
    def name(self) -> str:
        """The name of the column with the result, which may be NULL; no other test has the same slot."""
        return f":member {self.slot}"


class ElementCall(NamedTuple):
    """A call with an expression that is evaluated for several rows of each event.

    The call is a function with a lambda: its body is evaluated for each element of an array (`match.elements`). Or the
    call is the condition of a LEFT JOIN (`grouping.model.expression.LEFT_ON`): it is evaluated for each joined row.
    """

    call: Call
    number: int

    @property
    def name(self) -> str:
        """The column with the value of the call."""
        return f":lambda {self.number}"


class CompiledExpression(NamedTuple):
    """The Polars expression to evaluate, and the columns that it reads."""

    steps: tuple[tuple[str, pl.Expr], ...]
    """Columns to compute first, in this order: values that the expression or a later step may use more than once."""
    expression: pl.Expr
    type: SqlType
    columns: tuple[Column, ...]
    slots: tuple[int, ...]
    keys: tuple[KeyPair, ...]
    members: tuple[Member, ...]
    lambdas: tuple[ElementCall, ...]


@lru_cache(maxsize=4096)
def compile_expression(
    expression: Expression, types: tuple[SqlType, ...], most_bytes: int | None = None
) -> CompiledExpression:
    """Compile an expression over slots of these types.

    Args:
        expression: The expression to compile.
        types: The types of the slots.
        most_bytes: The largest size in bytes of a computed text, array, map or STRUCT; a larger value becomes NULL.
            For array_repeat and the functions in `BYTES`, the size is known beforehand, so a larger value is not
            computed. A text that a function in `NESTED` makes is not checked. None: no value is checked.

    Raises:
        InternalError: The expression has an operator or a comparison that is not implemented here; the compiler of
            queries should have refused it.
    """
    compiler = _Compiler(types, most_bytes)
    expr, sql_type = compiler.compile(expression)
    return CompiledExpression(
        tuple(compiler.steps),
        expr,
        sql_type,
        tuple(compiler.columns),
        tuple(compiler.slots),
        tuple(compiler.keys),
        tuple(compiler.members),
        tuple(compiler.lambdas),
    )


_COMPARISONS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<=>": lambda a, b: a.eq_missing(b),
}


_ONCE = frozenset("and or not is_null case coalesce like rlike neg abs + - *".split())
"""Operators whose Polars expression contains each operand once.

The expressions of other operators may repeat an operand. Nested operands would then be computed 2^depth times;
therefore `_once` makes a step of each operand that is a call.
"""


class _Compiler:
    def __init__(self, types: tuple[SqlType, ...], most_bytes: int | None) -> None:
        self._types = types
        self._most_bytes = most_bytes
        self.steps: list[tuple[str, pl.Expr]] = []
        self.columns: dict[Column, None] = {}
        self.slots: dict[int, None] = {}
        self.keys: dict[KeyPair, None] = {}
        self.members: dict[Member, None] = {}
        self.lambdas: list[ElementCall] = []

    def compile(self, expression: Expression) -> Operand:
        match expression:
            case Column():
                self.columns[expression] = None
                return Operand(pl.col(expression.stored), expression.type)
            case Slot(index):
                self.slots[index] = None
                sql_type = self._types[index]
                return Operand(pl.col(f":c{index}").cast(polars_type(sql_type)), sql_type)
            case Value(value):
                return Operand(_literal(value, expression.type), expression.type)
            case Call(op) if op in ELEMENTWISE or op == LEFT_ON:
                self.lambdas.append(ElementCall(expression, len(self.lambdas)))
                return Operand(pl.col(self.lambdas[-1].name), expression.type)
            case Call(op, args):
                return self._call(op, args, expression.type)

    def _call(self, op: str, args: Sequence[Expression], sql_type: SqlType) -> Operand:
        if op in _COMPARISONS:
            return Operand(self._comparison(op, args), BOOLEAN)
        if op == "in":
            return Operand(self._membership(args), BOOLEAN)
        if op in NESTED:
            first, *others = args
            named = [
                other.value if isinstance(other, Value) and op not in OF_OPERANDS else self._once(other)
                for other in others
            ]
            operand = self._once(first)
            if op == "array_repeat" and self._most_bytes is not None:
                return self._repeated(operand, sql_type, args[1])
            return self._bounded(Operand(NESTED[op](operand, sql_type, *named), sql_type))
        if op in BY_UNIT:
            place, compute = BY_UNIT[op]
            unit = args[place]
            assert isinstance(unit, Value), unit
            operands = [self._once(other) for other in (*args[:place], *args[place + 1 :])]
            return Operand(compute(str(unit.value), operands), sql_type)
        function = _case if op == "case" else FUNCTIONS.get(op)
        if function is None:
            raise InternalError(f'"{op}" is not evaluated here')
        typed = [self.compile(argument) if op in _ONCE else self._once(argument) for argument in args]
        if self._most_bytes is None:
            return function(typed, sql_type)
        if op in BYTES:
            fits = BYTES[op](*[argument.expr for argument in typed]) <= self._most_bytes
            # Each of these functions is NULL if its first operand is NULL.
            typed[0] = self._step(Operand(pl.when(fits).then(typed[0].expr), typed[0].type))
        result = function(typed, sql_type)
        if result.type != STRING:
            return self._bounded(result)
        result = self._step(result)
        return Operand(pl.when(result.expr.str.len_bytes() <= self._most_bytes).then(result.expr), STRING)

    def _bounded(self, value: Operand) -> Operand:
        """Replace arrays, maps and STRUCTs that are too large by NULL; return values of other types unchanged."""
        if self._most_bytes is None or not value.type.is_nested:
            return value
        value = self._step(value)
        return Operand(pl.when(_is_small(value.expr, self._most_bytes)).then(value.expr), value.type)

    def _repeated(self, value: Operand, sql_type: SqlType, count: Expression) -> Operand:
        """Compile array_repeat. An array that would be too large is not made; the result is NULL."""
        assert isinstance(count, Value) and isinstance(count.value, int) and self._most_bytes is not None, count
        fits = self._step(Operand(_is_small(value.expr, self._most_bytes // max(count.value, 1)), BOOLEAN))
        value = self._step(Operand(pl.when(fits.expr).then(value.expr), value.type))
        made = Operand(pl.when(fits.expr).then(NESTED["array_repeat"](value, sql_type, count.value)), sql_type)
        return self._bounded(made)

    def _once(self, expression: Expression) -> Operand:
        """Compile an operand that may be repeated: the result of an operator or function is computed in a step."""
        value = self.compile(expression)
        return self._step(value) if isinstance(expression, Call) else value

    def _step(self, value: Operand) -> Operand:
        name = f":step {len(self.steps)}"
        self.steps.append((name, value.expr))
        return Operand(pl.col(name), value.type)

    def _comparison(self, op: str, args: Sequence[Expression]) -> pl.Expr:
        match tuple(args):
            case (Column() as column, Slot(slot)) if self._needs_keys(column.type, self._types[slot]):
                pair = KeyPair(column, slot)
                self.keys[pair] = None
                event, constant = (pl.col(name) for name in pair.names)
                return _COMPARISONS[op](event, constant)
        left, right = (self.compile(argument) for argument in args)
        return self._compared(op, left, right)

    @staticmethod
    def _compared(op: str, left: Operand, right: Operand) -> pl.Expr:
        if NUMERIC in (left.type, right.type):
            raise InternalError("an exact number is compared with something that is no column")
        sql_type = wider([left.type, right.type])
        return _COMPARISONS[op](widened(left, sql_type), widened(right, sql_type))

    @staticmethod
    def _needs_keys(column: SqlType, constant: SqlType) -> bool:
        return constant == NUMERIC or column.is_decimal

    def _membership(self, args: Sequence[Expression]) -> pl.Expr:
        match tuple(args):
            case (needle, Slot(slot)) if self._types[slot].is_set:
                member = Member(needle, compile_expression(needle, self._types).type, slot)
                self.members[member] = None
                return pl.col(member.name)
        sought, *others = (self._once(argument) for argument in args)
        return either([self._compared("=", sought, other) for other in others])


def _is_small(value: pl.Expr, most: int) -> pl.Expr:
    return value.map_batches(lambda column: pl.Series(value_sizes(column.to_arrow()) <= most), return_dtype=pl.Boolean)


def _case(typed: list[Operand], sql_type: SqlType) -> Operand:
    """Compile CASE; the operands are condition, result, condition, result, …, and last the value of ELSE if any."""
    results = [*typed[1::2], *(typed[-1:] if len(typed) % 2 else [])]
    if sql_type == UNKNOWN:
        sql_type = wider([result.type for result in results])
    otherwise = widened(typed[-1], sql_type) if len(typed) % 2 else pl.lit(None, polars_type(sql_type))
    for i in range(len(typed) // 2 * 2 - 2, -1, -2):
        otherwise = pl.when(typed[i].expr).then(widened(typed[i + 1], sql_type)).otherwise(otherwise)
    return Operand(otherwise, sql_type)


def _literal(value: str | int | float | bool | None, sql_type: SqlType) -> pl.Expr:
    """Return a constant as a value in every row; an expression of only plain literals would have a single row."""
    target = polars_type(sql_type)
    constant: Any = value
    if value is not None and sql_type.is_decimal:
        constant = Decimal(str(value))
    elif value is not None and sql_type == DATE:
        constant = date.fromisoformat(str(value))
    elif value is not None and sql_type == TIMESTAMP:
        constant = datetime.fromisoformat(str(value))
    repeated: pl.Expr = pl.repeat(constant, pl.len(), dtype=target)
    return repeated
