"""The implementation of each operator and function.

An implementation returns NULL for the values for which Spark's ``try_`` form of the operator or function returns NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import polars as pl

from grouping.model.sql_type import BOOLEAN, UNKNOWN, SqlType
from spark_jobs.engine.expressions.by_value import of_one_length
from spark_jobs.engine.expressions.casts import cast
from spark_jobs.engine.expressions.codes.byte_codes import BYTE_CODES
from spark_jobs.engine.expressions.codes.hashes import HASHES
from spark_jobs.engine.expressions.codes.text_codes import CODES
from spark_jobs.engine.expressions.numbers import arithmetic as polars_numbers
from spark_jobs.engine.expressions.numbers import bits
from spark_jobs.engine.expressions.numbers.doubles import DOUBLES
from spark_jobs.engine.expressions.numbers.mathematics import MATHEMATICS
from spark_jobs.engine.expressions.numbers.printed import PRINTED
from spark_jobs.engine.expressions.texts import text as polars_text
from spark_jobs.engine.expressions.texts.regex import REGEX
from spark_jobs.engine.expressions.texts.words import WORDS
from spark_jobs.engine.expressions.times import dates as polars_dates
from spark_jobs.engine.expressions.types import Implementation, Operand, polars_type, widened, wider

__all__ = ["FUNCTIONS", "either"]

_LONG = 16
"""The smallest number of operands for which AND and OR become a single call with all operands, in place of a chain."""


def _extreme(better: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Implementation:
    """Return the implementation of greatest or least, which ignore NULLs.

    The expression for two operands contains each operand twice. More operands are therefore combined as columns, one
    after another.
    """

    def choose(left: pl.Expr, right: pl.Expr) -> pl.Expr:
        return pl.when(right.is_null() | better(left, right)).then(left).otherwise(right)

    def fold(columns: Sequence[pl.Series]) -> pl.Series:
        return reduce(
            lambda left, right: pl.select(choose(pl.lit(left), pl.lit(right))).to_series(), of_one_length(columns)
        )

    def apply(args: list[Operand], sql_type: SqlType) -> Operand:
        sql_type, exprs = _common(args, sql_type)
        if len(exprs) == 2:
            return Operand(choose(*exprs), sql_type)
        return Operand(pl.map_batches(exprs, fold, return_dtype=polars_type(sql_type)), sql_type)

    return apply


def _common(args: list[Operand], sql_type: SqlType) -> tuple[SqlType, list[pl.Expr]]:
    if sql_type == UNKNOWN:
        sql_type = wider([argument.type for argument in args])
    return sql_type, [widened(argument, sql_type) for argument in args]


def _coalesce(args: list[Operand], sql_type: SqlType) -> Operand:
    sql_type, exprs = _common(args, sql_type)
    return Operand(pl.coalesce(exprs), sql_type)


def _nullif(args: list[Operand], _: SqlType) -> Operand:
    _, (left, right) = _common(args, wider([argument.type for argument in args]))
    return Operand(pl.when((left == right).fill_null(False)).then(None).otherwise(args[0].expr), args[0].type)


def either(exprs: list[pl.Expr]) -> pl.Expr:
    """Return the OR of any number of predicates; a chain of thousands of calls would overflow the stack."""
    return reduce(pl.Expr.or_, exprs) if len(exprs) < _LONG else pl.any_horizontal(exprs)


def _all(exprs: list[pl.Expr]) -> pl.Expr:
    return reduce(pl.Expr.and_, exprs) if len(exprs) < _LONG else pl.all_horizontal(exprs)


FUNCTIONS: dict[str, Implementation] = {
    "and": lambda args, _: Operand(_all([argument.expr for argument in args]), BOOLEAN),
    "or": lambda args, _: Operand(either([argument.expr for argument in args]), BOOLEAN),
    "not": lambda args, _: Operand(~args[0].expr, BOOLEAN),
    "is_null": lambda args, _: Operand(args[0].expr.is_null(), BOOLEAN),
    "greatest": _extreme(lambda a, b: a >= b),
    "least": _extreme(lambda a, b: a <= b),
    "coalesce": _coalesce,
    "nullif": _nullif,
    "cast": cast,
    **polars_numbers.FUNCTIONS,
    **bits.FUNCTIONS,
    **polars_text.FUNCTIONS,
    **polars_dates.FUNCTIONS,
    **REGEX,
    **WORDS,
    **CODES,
    **BYTE_CODES,
    **HASHES,
    **DOUBLES,
    **MATHEMATICS,
    **PRINTED,
}
"""The implementation by operator or function; the names are those in `grouping.functions`."""
