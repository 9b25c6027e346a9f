"""The corpus's CASTs of FLOAT and DOUBLE to DECIMAL: halves, digits without a binary fraction, values too wide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

__all__ = ["decimal_calls"]

_NUMBERS = (
    "0.5D", "1.5D", "2.5D", "-2.5D", "-0.5D", "0.0D", "-0.0D", "1.005D", "2.675D", "-1.115D", "0.1D", "99.995D",
    "999.5D", "9.5D", "1e7D", "12345678.905D", "123456789012345680D", "1e-7D", "5e-19D", "1e37D", "1e38D", "-1e38D",
    "1.7976931348623157e308D", "4.9e-324D", "9007199254740993D", "0.30000000000000004D", "DOUBLE('NaN')",
    "DOUBLE('Infinity')", "DOUBLE('-Infinity')", "CAST(NULL AS DOUBLE)", "FLOAT(0.1D)", "FLOAT(2.5D)", "FLOAT(-0.05D)",
    "FLOAT(16777217D)", "FLOAT(3.4e38D)", "FLOAT('NaN')", "CAST(NULL AS FLOAT)", "1.1F", "1e2", "1.5e0",
)  # fmt: skip
_TYPES = ("DECIMAL(1,0)", "DECIMAL(3,2)", "DECIMAL", "DECIMAL(18,6)", "DECIMAL(38,18)", "DECIMAL(38,0)",
          "DECIMAL(38,38)")  # fmt: skip


def decimal_calls() -> Iterator[str]:
    """Yield the expressions."""
    for number, kind in product(_NUMBERS, _TYPES):
        yield f"TRY_CAST({number} AS {kind})"
    yield from (
        "2.5D::decimal(3,1)", "CAST(2.25D AS DECIMAL(5,1)) = 2.3", "CAST(1.1F AS DECIMAL(10,2)) * 2",
        "CAST(0.1D + 0.2D AS DECIMAL(20,17))", "CAST(1D / 3D AS DECIMAL(10,4)) + 1", "decimal(2.5D)", "decimal(3.5F)",
        "TRY_CAST(sqrt(2D) AS DECIMAL(18,16))", "CAST(12345.678D AS DECIMAL(10,2)) IN (12345.68, 1.00)",
        "CAST(99.95D AS DECIMAL(3,1))", "CAST(1e300 AS DECIMAL(10,0))",
    )  # fmt: skip
