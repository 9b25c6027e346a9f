"""Window functions over the rows of a test, beside DuckDB, which computes each value by a query of its own."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.testing import Record, Stream, digests, evaluate
from grouping.model.errors import InputError

_STREAM = Stream(
    "logins (user STRING, ip STRING, ok BOOLEAN, n BIGINT, x DOUBLE, d DECIMAL(9,2), i INT, PARTITION KEY (user))"
)
_BEGIN = datetime(2026, 11, 29, 10, tzinfo=UTC)
_ROWS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 1500),
        st.fixed_dictionaries(
            {
                "user": st.sampled_from(["a", "b", None]),
                "ip": st.sampled_from(["1", "2", None]),
                "ok": st.sampled_from([True, False, None]),
                "n": st.sampled_from([1, 2**62, -7, None]),
                "x": st.sampled_from([0.5, 0.25, -2.0, None]),
                "d": st.sampled_from(["1.50", "-0.33", "2.00", None]),
                "i": st.sampled_from([1, 2, 3]),
            }
        ),
    ),
    max_size=25,
)
_CALLS = {
    "count(*)": "count(*)",
    "count(n)": "count(n)",
    "count(DISTINCT ip)": "count(DISTINCT ip)",
    "sum(i)": "sum(i)::BIGINT",
    "sum(d)": "sum(d)::DOUBLE",
    "avg(x)": "avg(x)",
    "avg(n)": "sum(n)::HUGEINT / count(n)",
    "min(ip)": "min(ip)",
    "max(x)": "max(x)",
    "sum(i * 2) FILTER (WHERE ok)": "(sum(i * 2) FILTER (WHERE ok))::BIGINT",
    "stddev(x)": "CASE WHEN count(x) > 1 THEN stddev_samp(x) END",
    "variance(i)": "CASE WHEN count(i) > 1 THEN var_samp(i) END",
    "first(i)": "first(i ORDER BY rank)",
    "last(x)": "last(x ORDER BY rank)",
}
_FRAMES = {
    "ORDER BY _offset ROWS BETWEEN 2 PRECEDING AND CURRENT ROW": ("e.o", "TRUE", 3),
    "ORDER BY _offset ROWS 0 PRECEDING": ("e.o", "TRUE", 1),
    "ORDER BY _time RANGE BETWEEN INTERVAL '10' MINUTE PRECEDING AND CURRENT ROW": (
        "e.t",
        "e.t BETWEEN own.t - 600 AND own.t",
        1000,
    ),
    "ORDER BY _time RANGE INTERVAL 30 MINUTES PRECEDING": ("e.t", "e.t BETWEEN own.t - 1800 AND own.t", 1000),
}
_WHERE = {"": "TRUE", "WHERE ok = FALSE": "ok = FALSE", "WHERE i > 1 AND user = 'a'": "i > 1 AND u = 'a'"}


def _expected(rows: list[tuple[int, int, dict[str, Any]]], call: str, frame: str, where: str) -> list[Any]:
    """Return the value of each row that WHERE lets through, None for other rows, each in a tuple."""
    rank, within, most = _FRAMES[frame]
    columns: dict[str, Any] = {name: [row[name] for _, _, row in rows] for name in ("ip", "ok", "n", "x", "i")}
    columns |= {"u": [row["user"] for _, _, row in rows], "p": [partition for partition, _, _ in rows]}
    columns |= {"t": [at for _, at, _ in rows], "o": list(range(len(rows)))}
    kinds = {"ip": pa.string(), "u": pa.string(), "ok": pa.bool_(), "n": pa.int64(), "x": pa.float64(), "i": pa.int32()}
    kinds |= dict.fromkeys(("p", "t", "o"), pa.int64())
    given = pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})
    given = given.append_column("d", pa.array([row["d"] for _, _, row in rows], pa.string()).cast(pa.decimal128(9, 2)))
    with duckdb.connect() as engine:
        engine.register("given", given)
        engine.execute(f"CREATE TABLE events AS SELECT * FROM given WHERE {_WHERE[where]}")
        found = engine.execute(
            f"SELECT own.o, (SELECT {_CALLS[call]} FROM (SELECT *, {rank} * 10000 + e.o AS rank FROM events e"
            f" WHERE e.p = own.p AND e.u IS NOT DISTINCT FROM own.u AND e.o <= own.o AND {within}"
            f" ORDER BY e.o DESC LIMIT {most})) FROM events own ORDER BY own.o"
        ).fetchall()
    values = dict(found)
    return [(values[place],) if place in values else None for place in range(len(rows))]


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None or isinstance(one, str) and isinstance(other, str):
        return one == other
    return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-12)


@settings(max_examples=60, deadline=None)
@given(_ROWS, st.sampled_from([*_CALLS]), st.sampled_from([*_FRAMES]), st.sampled_from([*_WHERE]))
def test_values_are_those_of_a_query_alone(
    rows: list[tuple[int, int, dict[str, Any]]], call: str, frame: str, where: str
) -> None:
    """Each function over each kind of frame has the value that an independent engine computes for the event alone."""
    if "sum(n" in call or call == "avg(n)":
        rows = [(partition, at, row | {"n": row["n"] and row["n"] % 1000}) for partition, at, row in rows]
    records = [
        Record(row, partition=partition, time=_BEGIN + timedelta(seconds=at % 900)) for partition, at, row in rows
    ]
    rows = [(partition, at % 900, row) for partition, at, row in rows]
    query = f"SELECT {call} OVER (PARTITION BY user {frame}) AS v FROM logins {where}"
    outcomes = evaluate(query, _STREAM, records)
    wanted = _expected(rows, call, frame, where)
    for outcome, each in zip(outcomes, wanted, strict=True):
        assert (outcome.result is None) == (each is None)
        assert each is None or outcome.result is None or _same(outcome.result["v"], each[0])


def test_a_sum_too_large_is_null() -> None:
    """A sum of BIGINT that overflows is NULL, as Spark's try_sum; it is back when the large values have left."""
    rows = [{"user": "a", "n": value} for value in (2**62, 2**62, 1, 1)]
    query = "SELECT sum(n) OVER (PARTITION BY user ORDER BY _offset ROWS 1 PRECEDING) AS s FROM logins"
    assert [row.result and row.result["s"] for row in evaluate(query, _STREAM, rows)] == [2**62, None, 2**62 + 1, 2]


def test_a_mean_of_whole_numbers_is_that_of_its_frame_alone() -> None:
    """Large values that have left the frame do not blur the mean of small ones, and overflow no sum."""
    rows = [{"user": "a", "n": value} for value in (2**63 - 1, 2**63 - 1, 1, 2, None, None)]
    query = "SELECT avg(n) OVER (PARTITION BY user ORDER BY _offset ROWS 1 PRECEDING) AS v FROM logins"
    found = [row.result and row.result["v"] for row in evaluate(query, _STREAM, rows)]
    assert [2.0**63, 2.0**63, 2.0**62, 1.5, 2.0, None] == found


def test_the_row_before_and_why() -> None:
    """QUALIFY compares with the row before; the outcome of a row that is no result says why."""
    rows = [{"user": "a", "x": value, "ok": ok} for value, ok in ((1.0, True), (9.0, False), (1.4, True), (2.0, True))]
    query = (
        "SELECT x, lag(x) OVER w AS was, lag(x, 2) OVER w AS earlier FROM logins WHERE ok "
        "QUALIFY x > was * 1.3 WINDOW w AS (PARTITION BY user ORDER BY _offset)"
    )
    outcomes = evaluate(query, _STREAM, rows)
    assert [row.result for row in outcomes] == [
        None,
        None,
        {"x": 1.4, "was": 1.0, "earlier": None},
        {"x": 2.0, "was": 1.4, "earlier": 1.0},
    ]
    assert [row.why for row in outcomes[:2]] == [
        "(lag(x, 1) * 1.3) < x is NULL",
        "ok = TRUE is FALSE, (lag(x, 1) * 1.3) < x is NULL",
    ]
    below = evaluate(query.replace("WHERE ok", "WHERE ok AND i IS NULL"), _STREAM, rows)
    assert below[1].why == "ok = TRUE is FALSE, (lag(x, 1) * 1.3) < x is NULL"
    none = evaluate(query.replace("WHERE ok", "WHERE i > 5"), _STREAM, rows)
    assert {row.why for row in none} == {"a condition of WHERE that decides which events the frames hold is not TRUE"}


def test_frames_in_digests() -> None:
    """With EVERY, results over frames wait for their tick as matches do."""
    rows = [{"user": "a", "x": value} for value in (1.0, 2.0, 3.0)]
    query = (
        "SELECT x, lag(x) OVER (PARTITION BY user ORDER BY _offset) AS was FROM logins QUALIFY was >= 1 "
        "EVERY '1 minute'"
    )
    [digest] = digests(query, _STREAM, rows)
    assert digest["rows"] == [{"x": 2.0, "was": 1.0}, {"x": 3.0, "was": 2.0}]


def test_frames_are_not_virtual() -> None:
    """Readers of a virtual destination have no rows before."""
    query = "SELECT lag(x) OVER (PARTITION BY user ORDER BY _offset) AS was FROM logins DO PUBLISH VIRTUAL"
    with pytest.raises(InputError, match="VIRTUAL") as refused:
        evaluate(query, _STREAM, [])
    assert refused.value.code == "unsupported-query"
