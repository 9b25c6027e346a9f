"""Values that tell engines apart: extremes, NaN, -0.0, look-alike strings, constants between a column's values."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

__all__ = ["KINDS"]

_INT64 = st.sampled_from([-(2**63), -(2**53) - 1, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1])
_STRINGS = st.sampled_from(["", "a", "A", "a ", "ab", "é", "é", "\U0001f600", "￿", "\x00", "it's"])
_DOUBLES = st.sampled_from(
    [float("-inf"), -1.5, -0.0, 0.0, 5e-324, 1.0, 1.5, 2.0**53, 1e308, float("inf"), float("nan")]
)
_DECIMALS = st.sampled_from(
    [Decimal(text) for text in ("-99999.99", "-0.01", "0.00", "0.01", "1.00", "1.50", "99999.99")]
)
_LONG = st.sampled_from([Decimal(text) for text in ("-1e20", "0", "9007199254740993", "12345678901234567890.123")])
_NUMERIC = st.sampled_from(
    [Decimal(text) for text in ("-1e30", "-1.5", "-0.5", "0.005", "0.5", "1.5", "9223372036854775807.5", "1e30")]
)
_DATES = st.dates(date(2026, 1, 1), date(2026, 1, 4))
_TIMES = st.integers(0, 3).map(
    lambda n: datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) + timedelta(microseconds=n)
)

KINDS = {
    ("STRING", "STRING"): (_STRINGS, _STRINGS),
    ("BOOLEAN", "BOOLEAN"): (st.booleans(), st.booleans()),
    ("INT", "BIGINT"): (st.integers(-2, 3), _INT64),
    ("INT", "NUMERIC"): (st.integers(-2, 3), _NUMERIC),
    ("BIGINT", "BIGINT"): (_INT64, _INT64),
    ("BIGINT", "NUMERIC"): (_INT64, _NUMERIC),
    ("DOUBLE", "DOUBLE"): (_DOUBLES, _DOUBLES),
    ("DECIMAL(7,2)", "BIGINT"): (_DECIMALS, _INT64),
    ("DECIMAL(7,2)", "NUMERIC"): (_DECIMALS, st.one_of(_NUMERIC, _DECIMALS)),
    ("DECIMAL(30,3)", "NUMERIC"): (_LONG, st.one_of(_NUMERIC, _LONG)),
    ("DATE", "DATE"): (_DATES, _DATES),
    ("TIMESTAMP", "TIMESTAMP"): (_TIMES, _TIMES),
}
"""(Column type, slot type) → strategies of event values and of constants, without NULL."""
