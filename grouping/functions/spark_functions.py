"""Functions of Spark that are refused as ``unsupported-query``, each with the reason."""

from __future__ import annotations

from grouping.functions.functions import AGGREGATE_ALIASES, AGGREGATES

__all__ = ["PRESENT", "REASONS"]

_AGGREGATES = frozenset(
    """
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor
    bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set corr count count_if
    count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id histogram_numeric
    hll_sketch_agg hll_union_agg kurtosis last last_value listagg max max_by mean median min min_by mode
    percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop
    stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance
    """.split()
)
"""Aggregates of Spark."""

_WINDOWS = frozenset(
    """
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
    """.split()
)
"""Window functions of Spark."""

PRESENT = frozenset(
    """
    curdate current_date current_time current_timestamp current_timezone localtimestamp now
    """.split()
)
"""Functions of the present time."""

_CHANGING = frozenset(
    """
    current_catalog current_database current_schema current_user input_file_block_length input_file_block_start
    input_file_name monotonically_increasing_id rand randn random randstr session_user shuffle
    spark_partition_id uniform user uuid version
    """.split()
)
"""Functions with a different result at each evaluation, or for each user."""

_GENERATORS = frozenset(
    """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack variant_explode
    variant_explode_outer
    """.split()
)
"""Functions that make several rows from one."""

_INEXACT = frozenset("cos cot csc sec sin tan".split())
"""Functions whose results may differ in the last digit between processors."""

_OTHERS = frozenset(
    """
    aes_decrypt aes_encrypt assert_true bitmap_bit_position bitmap_bucket_number bitmap_count collate collation
    collations convert_timezone extract from_avro from_csv from_protobuf from_xml hll_sketch_estimate hll_union
    is_valid_utf8 java_method make_interval make_timestamp_ntz make_valid_utf8 raise_error range reflect
    schema_of_avro schema_of_csv schema_of_json schema_of_variant schema_of_xml sentences session_window
    sql_keywords to_avro to_csv to_protobuf to_timestamp_ltz to_timestamp_ntz to_variant_object to_xml
    try_aes_decrypt try_make_interval try_make_timestamp_ntz try_reflect try_validate_utf8 typeof validate_utf8
    window window_time xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number
    xpath_short xpath_string
    """.split()
)
"""Further functions of Spark that are not aggregates."""

_DISTANCE = (
    "A distance within a region needs none: 6371 * hypot(radians(lat - 40.4), 0.7615 * radians(lon + 3.7)) are "
    "kilometres, with the cosine of the latitude as a constant."
)
_EACH_PERIOD = "GROUP BY symbol EVERY '5 minutes' computes aggregates of the events of each 5 minutes."

REASONS: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(_OTHERS, ("Spark has this function, and the evaluator does not compute it.", None)),
    **dict.fromkeys(_INEXACT, ("Java leaves the last digit of its result to the processor.", _DISTANCE)),
    **dict.fromkeys(
        _GENERATORS, ("A generator makes several rows of one event.", "exists(tags, t -> t = 'a') tests elements.")
    ),
    **dict.fromkeys(_CHANGING, ("Its result is not deterministic: a replay would give another one.", None)),
    **dict.fromkeys(
        _WINDOWS, ("Window functions are lag, and aggregates such as count, each with OVER.", _EACH_PERIOD)
    ),
    "lag": ("A window function stands before OVER.", "Write lag(price) OVER (PARTITION BY symbol ORDER BY _offset)."),
    **dict.fromkeys(_AGGREGATES, ("Spark has this aggregate, and continuous queries do not.", None)),
    **dict.fromkeys(
        (*AGGREGATES, *AGGREGATE_ALIASES),
        ("An aggregate summarises the events of one tick.", "Use it in SELECT or HAVING, and add EVERY '5 minutes'."),
    ),
}
"""By a function's name: the reason of its refusal, and the form to write, if any."""
