"""Logarithms, powers, angles and hyperbolic functions of DOUBLEs, with the results of Java's StrictMath bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import polars as pl

from grouping.model.sql_type import DOUBLE, SqlType
from spark_jobs.engine.expressions.numbers import arcs, fdlibm, hyperbolic, roots
from spark_jobs.engine.expressions.numbers.words import Doubles
from spark_jobs.engine.expressions.types import Implementation, Operand, to_double

__all__ = ["DOUBLES", "vector"]


def vector(function: Callable[..., Doubles], exprs: Sequence[pl.Expr]) -> pl.Expr:
    """Apply a function to columns of doubles; the result is NULL in each row in which one of the columns is NULL."""

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        with np.errstate(all="ignore"):
            return pl.Series(function(*(column.to_numpy() for column in columns)), dtype=pl.Float64)

    known = reduce(pl.Expr.and_, [expr.is_not_null() for expr in exprs])
    return pl.when(known).then(pl.map_batches(list(exprs), apply, return_dtype=pl.Float64))


def _of_doubles(function: Callable[..., Doubles]) -> Implementation:
    """Return the implementation of a function of doubles; the result is NULL if an argument is NULL."""

    def apply(args: list[Operand], _: SqlType) -> Operand:
        return Operand(vector(function, [to_double(argument) for argument in args]), DOUBLE)

    return apply


def _logarithm(function: Callable[[Doubles], Doubles], beyond: float = 0.0) -> Implementation:
    """Return the implementation of a logarithm; NULL for arguments of at most `beyond`, which have no logarithm."""

    def apply(args: list[Operand], _: SqlType) -> Operand:
        value = to_double(args[0])
        return Operand(pl.when(value > beyond).then(vector(function, [value])), DOUBLE)

    return apply


def _log(args: list[Operand], sql_type: SqlType) -> Operand:
    """Return the logarithm to a base as the quotient of two logarithms; the base is the first of two arguments."""
    if len(args) == 1:
        return _logarithm(fdlibm.log)(args, sql_type)
    base, value = (to_double(argument) for argument in args)
    quotient = vector(lambda b, x: fdlibm.log(x) / fdlibm.log(b), [base, value])
    return Operand(pl.when((base > 0) & (value > 0)).then(quotient), DOUBLE)


_LN2 = fdlibm.log(np.array([2.0]))
_LARGE = 2.0**28
"""Above this number the square root of ``x * x + 1`` is ``x`` in a double (fdlibm, s_asinh.c and e_acosh.c)."""


def _asinh(x: Doubles) -> Doubles:
    size = np.abs(x)
    square = x * x
    above_two = fdlibm.log(2.0 * size + 1.0 / (np.sqrt(square + 1.0) + size))
    near = hyperbolic.log1p(size + square / (1.0 + np.sqrt(1.0 + square)))
    result = np.where(size > _LARGE, fdlibm.log(size) + _LN2, np.where(size > 2.0, above_two, near))
    return np.where(size < 1.0 / _LARGE, x, np.copysign(result, x))


def _acosh(x: Doubles) -> Doubles:
    excess = x - 1.0
    above_two = fdlibm.log(2.0 * x - 1.0 / (x + np.sqrt(x * x - 1.0)))
    near = hyperbolic.log1p(excess + np.sqrt(2.0 * excess + excess * excess))
    result = np.where(x >= _LARGE, fdlibm.log(x) + _LN2, np.where(x > 2.0, above_two, near))
    return np.where(x < 1.0, np.nan, result)


DOUBLES: dict[str, Implementation] = {
    "acos": _of_doubles(arcs.acos),
    "acosh": _of_doubles(_acosh),
    "asin": _of_doubles(arcs.asin),
    "asinh": _of_doubles(_asinh),
    "atan": _of_doubles(arcs.atan),
    "atan2": _of_doubles(lambda y, x: arcs.atan2(y + 0.0, x + 0.0)),
    "atanh": _of_doubles(lambda x: 0.5 * (hyperbolic.log1p(x) - hyperbolic.log1p(-x))),
    "cbrt": _of_doubles(roots.cbrt),
    "cosh": _of_doubles(hyperbolic.cosh),
    "exp": _of_doubles(fdlibm.exp),
    "expm1": _of_doubles(hyperbolic.expm1),
    "hypot": _of_doubles(roots.hypot),
    "ln": _logarithm(fdlibm.log),
    "log": _log,
    "log10": _logarithm(fdlibm.log10),
    "log1p": _logarithm(hyperbolic.log1p, -1.0),
    "log2": _logarithm(lambda value: fdlibm.log(value) / _LN2),
    "pow": _of_doubles(fdlibm.power),
    "sinh": _of_doubles(hyperbolic.sinh),
    "tanh": _of_doubles(hyperbolic.tanh),
}
"""The implementation by function; the inverse hyperbolic functions use the same formulas as Spark."""
