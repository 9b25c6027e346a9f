"""Operators on the bits of whole numbers, with the results of Java."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from grouping.model.sql_type import BIGINT, INT, STRING, TINYINT, WHOLE_BITS, SqlType
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.types import Implementation, Operand, polars_type, widened, wider

__all__ = ["FUNCTIONS"]

_BITS = {INT: 32, BIGINT: 64}


def _between(op: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Implementation:
    def apply(args: list[Operand], _: SqlType) -> Operand:
        sql_type = wider([argument.type for argument in args])
        left, right = (widened(argument, sql_type) for argument in args)
        return Operand(op(left, right), sql_type)

    return apply


def _not(args: list[Operand], _: SqlType) -> Operand:
    (value,) = args
    return Operand(pl.lit(-1, polars_type(value.type)) - value.expr, value.type)


def _shift(move: Callable[[int, int, int], int]) -> Implementation:
    """Return the implementation of a shift.

    As in Java, only the lowest 5 bits of the distance are used for an INT, and the lowest 6 for a BIGINT.
    """

    def apply(args: list[Operand], _: SqlType) -> Operand:
        value, distance = args
        sql_type = BIGINT if value.type == BIGINT else INT
        bits = _BITS[sql_type]

        def shifted(number: int, by: int) -> int:
            half = 1 << (bits - 1)
            return (move(number, by % bits, bits) + half) % (2 * half) - half

        return Operand(each_distinct([value.expr, distance.expr], shifted, polars_type(sql_type)), sql_type)

    return apply


def _bit_count(args: list[Operand], _: SqlType) -> Operand:
    counted = each_distinct([args[0].expr.cast(pl.Int64)], lambda number: (number % 2**64).bit_count(), pl.Int32)
    return Operand(counted, INT)


def _bit_get(args: list[Operand], _: SqlType) -> Operand:
    """Return the bit at a place of a whole number; the lowest bit has the place 0.

    The result is NULL for a place that the type does not have.
    """
    number, place = args
    bits = WHOLE_BITS[number.type.name]
    found = each_distinct(
        [number.expr.cast(pl.Int64), place.expr.cast(pl.Int64)],
        lambda value, at: value >> at & 1 if 0 <= at < bits else None,
        pl.Int8,
    )
    return Operand(found, TINYINT)


def _bin(args: list[Operand], _: SqlType) -> Operand:
    written = each_distinct([args[0].expr.cast(pl.Int64)], lambda number: f"{number % 2**64:b}", pl.String)
    return Operand(written, STRING)


FUNCTIONS: dict[str, Implementation] = {
    "&": _between(lambda a, b: a & b),
    "|": _between(lambda a, b: a | b),
    "^": _between(lambda a, b: a ^ b),
    "~": _not,
    "shiftleft": _shift(lambda number, by, _: number << by),
    "shiftright": _shift(lambda number, by, _: number >> by),
    "shiftrightunsigned": _shift(lambda number, by, bits: number % (1 << bits) >> by),
    "bit_count": _bit_count,
    "bit_get": _bit_get,
    "bin": _bin,
}
"""The implementation by operator or function; the names are those in `grouping.functions`."""
