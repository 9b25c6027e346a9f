"""Expressions as Polars expressions that mean what Spark's do.

A compiled expression reads the event's columns by their names and constants as ``:c0``, ``:c1``, …; what Polars cannot
compare exactly (decimals, sets) it reads from columns that `spark_jobs.residual` adds: `KeyPair`, `Member`.
Polars compares as Spark does: NaN equals itself and is the greatest, -0.0 equals 0.0, strings compare by code points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import polars as pl

from grouping.errors import InternalError
from grouping.expression import Call, Column, Expression, Slot, Value
from spark_jobs.polars_functions import FUNCTIONS, either
from spark_jobs.polars_types import Typed, polars_type, widened, wider

__all__ = ["Compiled", "KeyPair", "Member", "compile_expression"]


class KeyPair(NamedTuple):
    """A comparison of a column with a constant that is made on exact keys (`spark_jobs.keys`)."""

    column: Column
    slot: int

    @property
    def names(self) -> tuple[str, str]:
        """The columns with the event's and the constant's key."""
        return f":event {self.column.name} {self.slot}", f":constant {self.column.name} {self.slot}"


class Member(NamedTuple):
    """The membership of a column's or an expression's value in a set-valued constant."""

    needle: Expression
    type: str
    slot: int

    @property
    def name(self) -> str:
        """The column with the answer, NULL included; each slot stands in one place only."""
        return f":member {self.slot}"


class Compiled(NamedTuple):
    """What to evaluate, and which columns it reads."""

    expression: pl.Expr
    type: str
    columns: tuple[str, ...]
    slots: tuple[int, ...]
    keys: tuple[KeyPair, ...]
    members: tuple[Member, ...]


@lru_cache(maxsize=4096)
def compile_expression(expression: Expression, types: tuple[str, ...]) -> Compiled:
    """Compile an expression over slots of these types.

    Raises:
        InternalError: The compiler of queries let something pass that is not evaluated here.
    """
    compiler = _Compiler(types)
    expr, kind = compiler.compile(expression)
    return Compiled(
        expr, kind, tuple(compiler.columns), tuple(compiler.slots), tuple(compiler.keys), tuple(compiler.members)
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


class _Compiler:
    def __init__(self, types: tuple[str, ...]) -> None:
        self._types = types
        self.columns: dict[str, None] = {}
        self.slots: dict[int, None] = {}
        self.keys: dict[KeyPair, None] = {}
        self.members: dict[Member, None] = {}

    def compile(self, expression: Expression) -> Typed:
        match expression:
            case Column(name, kind):
                self.columns[name] = None
                return Typed(pl.col(name), kind)
            case Slot(index):
                self.slots[index] = None
                kind = self._types[index]
                return Typed(pl.col(f":c{index}").cast(polars_type(kind)), kind)
            case Value(value, kind):
                return Typed(_literal(value, kind), kind)
            case Call(op, args, kind):
                return self._call(op, args, kind)

    def _call(self, op: str, args: Sequence[Expression], kind: str) -> Typed:
        if op in _COMPARISONS:
            return Typed(self._comparison(op, args), "BOOLEAN")
        if op == "in":
            return Typed(self._membership(args), "BOOLEAN")
        typed = [self.compile(argument) for argument in args]
        if op == "case":
            return _case(typed, kind)
        function = FUNCTIONS.get(op)
        if function is None:
            raise InternalError(f'"{op}" is not evaluated here')
        return function(typed, kind)

    def _comparison(self, op: str, args: Sequence[Expression]) -> pl.Expr:
        match tuple(args):
            case (Column() as column, Slot(slot)) if self._needs_keys(column.type, self._types[slot]):
                pair = KeyPair(column, slot)
                self.keys[pair] = None
                event, constant = (pl.col(name) for name in pair.names)
                return _COMPARISONS[op](event, constant)
        left, right = (self.compile(argument) for argument in args)
        if "NUMERIC" in (left.type, right.type):
            raise InternalError("an exact number is compared with something that is no column")
        kind = wider([left.type, right.type])
        return _COMPARISONS[op](widened(left, kind), widened(right, kind))

    @staticmethod
    def _needs_keys(column: str, constant: str) -> bool:
        return constant == "NUMERIC" or column.startswith("DECIMAL")

    def _membership(self, args: Sequence[Expression]) -> pl.Expr:
        match tuple(args):
            case (needle, Slot(slot)) if self._types[slot].startswith("SET<"):
                member = Member(needle, compile_expression(needle, self._types).type, slot)
                self.members[member] = None
                return pl.col(member.name)
        needle, *others = args
        return either([self._comparison("=", (needle, other)) for other in others])


def _case(typed: list[Typed], kind: str) -> Typed:
    """Compile condition, result, …[, ELSE]."""
    results = [*typed[1::2], *(typed[-1:] if len(typed) % 2 else [])]
    kind = kind or wider([result.type for result in results])
    otherwise = widened(typed[-1], kind) if len(typed) % 2 else pl.lit(None, polars_type(kind))
    for i in range(len(typed) // 2 * 2 - 2, -1, -2):
        otherwise = pl.when(typed[i].expr).then(widened(typed[i + 1], kind)).otherwise(otherwise)
    return Typed(otherwise, kind)


def _literal(value: str | int | float | bool | None, kind: str) -> pl.Expr:
    """Return a constant in every row: a single value would give an expression of constants a single row."""
    target = polars_type(kind)
    constant: Any = value
    if value is not None and kind.startswith("DECIMAL"):
        constant = Decimal(str(value))
    elif value is not None and kind == "DATE":
        constant = date.fromisoformat(str(value))
    elif value is not None and kind == "TIMESTAMP":
        constant = datetime.fromisoformat(str(value))
    repeated: pl.Expr = pl.repeat(constant, pl.len(), dtype=target)
    return repeated
