"""`-x` and `abs(x)` of DECIMALs with more than 34 digits. The expected values are those of Spark."""

from __future__ import annotations

import pytest

from gateway.testing import Stream, evaluate

_WIDE = Stream("wide (x DECIMAL(38,0))")
_NINES = "9" * 38


@pytest.mark.parametrize(
    ("x", "negated", "absolute"),
    [
        ("12345678901234567890123456789012345678", "-12345678901234567890123456789012350000", "as it is"),
        ("-12345678901234567890123456789012345678", "12345678901234567890123456789012350000", "negated"),
        ("-12345678901234567890123456789012345000", "12345678901234567890123456789012340000", "negated"),
        ("-12345678901234567890123456789012346500", "12345678901234567890123456789012350000", "negated"),
        ("-1234567890123456789012345678901234", "1234567890123456789012345678901234", "negated"),
        ("0", "0", "negated"),
        (_NINES, None, "as it is"),
        (f"-{_NINES}", None, "negated"),
    ],
)
def test_a_negated_number_has_34_digits(x: str, negated: str | None, absolute: str) -> None:
    """Half even; NULL where the rounded number has too many digits. A number above 0 keeps all digits in `abs`."""
    [row] = evaluate("SELECT -x AS n, abs(x) AS a FROM wide", _WIDE, [{"x": x}])
    assert row.result == {"n": negated, "a": x if absolute == "as it is" else negated}


def test_a_change_of_prices_is_compared() -> None:
    """A quotient of prices is such a DECIMAL."""
    trades = Stream("trades (price DECIMAL(18,8), last DECIMAL(18,8))")
    rows = [{"price": "99.4", "last": "100"}, {"price": "99.6", "last": "100"}, {"price": "100.6", "last": "100"}]
    found = evaluate("SELECT price FROM trades WHERE abs(price / last - 1) > 0.005", trades, rows)
    assert [row.matches for row in found] == [True, False, True]
