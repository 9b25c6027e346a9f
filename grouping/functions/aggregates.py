"""The aggregates available to a query, with their result types in Spark 4."""

from __future__ import annotations

from typing import NamedTuple

from grouping.model.decimal_types import WIDEST
from grouping.model.sql_type import BIGINT, BOOLEAN, DOUBLE, SqlType, decimal

__all__ = ["AGGREGATES", "AGGREGATE_ALIASES", "AggregateFunction", "aggregate_type"]

_SUM_DIGITS = 10
"""Extra digits of a sum over its DECIMALs."""
_MEAN_DIGITS = 4
"""Digits after the point that a mean has more."""


class AggregateFunction(NamedTuple):
    """The arguments that an aggregate takes."""

    params: tuple[str, ...]
    """Kind of each argument: ``NUMBER``, ``BOOLEAN``, ``ORDERED`` (of a type whose values have an order) or ``ANY``."""
    variadic: bool = False
    """Whether the aggregate takes one argument or more."""


AGGREGATES: dict[str, AggregateFunction] = {
    "count": AggregateFunction(("ANY",), variadic=True),
    "sum": AggregateFunction(("NUMBER",)),
    "avg": AggregateFunction(("NUMBER",)),
    "min": AggregateFunction(("ORDERED",)),
    "max": AggregateFunction(("ORDERED",)),
    "approx_count_distinct": AggregateFunction(("ANY",)),
    "min_by": AggregateFunction(("ANY", "ORDERED")),
    "max_by": AggregateFunction(("ANY", "ORDERED")),
    "first": AggregateFunction(("ANY",)),
    "last": AggregateFunction(("ANY",)),
    "stddev_pop": AggregateFunction(("NUMBER",)),
    "stddev_samp": AggregateFunction(("NUMBER",)),
    "var_pop": AggregateFunction(("NUMBER",)),
    "var_samp": AggregateFunction(("NUMBER",)),
    "bool_and": AggregateFunction(("BOOLEAN",)),
    "bool_or": AggregateFunction(("BOOLEAN",)),
}
"""The aggregates by the name under which they are compiled."""

AGGREGATE_ALIASES = {
    "mean": "avg",
    "try_avg": "avg",
    "try_sum": "sum",
    "first_value": "first",
    "last_value": "last",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
}
"""Spark's synonyms of aggregates; an overflowing sum is NULL here anyhow, as with ``try_sum``."""

_OF_FIRST = frozenset(("min", "max", "min_by", "max_by", "first", "last"))


def aggregate_type(name: str, kinds: tuple[SqlType, ...]) -> SqlType:
    """Return the type of an aggregate's value over arguments of these types.

    Example:
        >>> str(aggregate_type("sum", (decimal(10, 2),))), str(aggregate_type("avg", (BIGINT,)))
        ('DECIMAL(20,2)', 'DOUBLE')
    """
    if name in ("count", "approx_count_distinct"):
        return BIGINT
    if name in ("bool_and", "bool_or"):
        return BOOLEAN
    if name in _OF_FIRST:
        return kinds[0]
    if name in ("sum", "avg") and kinds[0].is_decimal:
        precision, scale = kinds[0].precision, kinds[0].scale
        if name == "sum":
            return decimal(min(precision + _SUM_DIGITS, WIDEST), scale)
        return decimal(min(precision + _MEAN_DIGITS, WIDEST), min(scale + _MEAN_DIGITS, WIDEST))
    if name == "sum" and kinds[0].name in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return BIGINT
    return DOUBLE
