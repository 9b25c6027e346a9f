"""The aggregates available to a query."""

from __future__ import annotations

from grouping.functions.function import Function
from grouping.functions.results import averaged, listed, of_first, summed
from grouping.model.sql_type import BIGINT, BOOLEAN, DOUBLE

__all__ = ["AGGREGATES"]

AGGREGATES = (
    Function("count(ANY, …)", BIGINT, "number of matches, of values that are not NULL, or of distinct values"),
    Function("sum(NUMBER)", summed, "sum", aliases=("try_sum",)),
    Function("avg(NUMBER)", averaged, "mean", aliases=("mean", "try_avg")),
    Function("min(ORDERED)", of_first, "least value"),
    Function("max(ORDERED)", of_first, "greatest value"),
    Function("approx_count_distinct(ANY)", BIGINT, "exact number of distinct values"),
    Function("min_by(ANY, ORDERED)", of_first, "first argument of the match with the least second one"),
    Function("max_by(ANY, ORDERED)", of_first, "first argument of the match with the greatest second one"),
    Function("first(ANY)", of_first, "value of the first match", aliases=("first_value",)),
    Function("last(ANY)", of_first, "value of the last match", aliases=("last_value",)),
    Function("stddev_pop(NUMBER)", DOUBLE, "standard deviation of all values"),
    Function("stddev_samp(NUMBER)", DOUBLE, "standard deviation of a sample", aliases=("std", "stddev")),
    Function("var_pop(NUMBER)", DOUBLE, "variance of all values"),
    Function("var_samp(NUMBER)", DOUBLE, "variance of a sample", aliases=("variance",)),
    Function("percentile(NUMBER, PERCENTAGE)", DOUBLE, "exact percentile, between two values in proportion"),
    Function("median(NUMBER)", DOUBLE, "percentile 0.5"),
    Function("approx_percentile(MEASURE, PERCENTAGE[, ACCURACY])", of_first, "value at a percentile, exact here",
             aliases=("percentile_approx",)),
    Function("collect_list(ANY)", listed, "ARRAY of the values by arrival, without NULLs", aliases=("array_agg",)),
    Function("collect_set(ANY)", listed, "ARRAY of the different values, in no promised order"),
    Function("bool_and(BOOLEAN)", BOOLEAN, "TRUE if all values are TRUE", aliases=("every",)),
    Function("bool_or(BOOLEAN)", BOOLEAN, "TRUE if a value is TRUE", aliases=("any", "some")),
)  # fmt: skip
