"""FOR and ON SILENCE over window functions, beside the same query over a stream that has the values as columns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.testing import Record, Stream, evaluate

_STREAM = Stream("machines (device STRING, room STRING, temp DOUBLE, PARTITION KEY (device))")
_VALUED = Stream(
    "valued (device STRING, room STRING, temp DOUBLE, n BIGINT, s DOUBLE, passes INT, PARTITION KEY (device))"
)
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_WINDOW = "WINDOW w AS (PARTITION BY device ORDER BY _time RANGE BETWEEN INTERVAL '4' MINUTE PRECEDING AND CURRENT ROW)"
_VALUES = "count(*) OVER w AS n, sum(temp) OVER w AS s"
_ROWS = st.lists(
    st.tuples(
        st.integers(-2, 4),
        st.fixed_dictionaries(
            {
                "device": st.sampled_from(["a", "b"]),
                "room": st.sampled_from(["hall", "yard", None]),
                "temp": st.sampled_from([None, 50.0, 79.0, 85.0, 91.0]),
            }
        ),
    ),
    max_size=24,
)
_CONDITIONS = [
    "temp > 84",
    "n > 1",
    "s > 160 AND device = 'a'",
    "n >= 2 AND room = 'hall'",
    "n IS NULL OR s < 120",
    "room = 'hall'",
]
_EMITS = [
    "ON ENTER BY device FOR '3 minutes'",
    "ON ENTER OR EXIT BY device FOR '5 minutes'",
    "ON ENTER OR EXIT BY room, device FOR '2 minutes'",
    "ON ENTER OR EXIT BY device FOR '3 minutes' UNTIL n < 2",
    "ON ENTER OR EXIT BY device FOR '3 minutes' UNTIL s < 100 OR room = 'yard'",
    "ON ENTER OR EXIT BY device FOR '3 minutes' UNTIL temp < 80",
    "ON SILENCE '3 minutes' BY device",
    "ON SILENCE '6 minutes' BY device, room",
]


@settings(max_examples=150, deadline=None)
@given(
    _ROWS,
    st.sampled_from(["", "temp > 60", "temp > 60 AND device = 'a'"]),
    st.sampled_from(_CONDITIONS),
    st.sampled_from(_EMITS),
)
def test_results_are_those_of_a_stream_with_the_values(
    rows: list[tuple[int, dict[str, Any]]], where: str, qualify: str, emit: str
) -> None:
    """An event for which WHERE is not TRUE has no values, is no match, and still moves the watermark."""
    at, records = _BEGIN, []
    for step, row in rows:
        at += timedelta(minutes=step)
        records.append(Record(row, time=at, partition=0))
    plain = evaluate(f"SELECT {_VALUES} FROM machines {'WHERE' if where else ''} {where} {_WINDOW}", _STREAM, records)
    valued = [
        Record(row | (each.result or {}) | {"passes": int(each.result is not None)}, time=record.time, partition=0)
        for record, (_, row), each in zip(records, rows, plain, strict=True)
    ]
    shown = "" if "SILENCE" in emit else ", _edge"
    framed = evaluate(
        f"SELECT device, temp, {_VALUES}{shown} FROM machines {'WHERE' if where else ''} {where} "
        f"QUALIFY {qualify} {_WINDOW} EMIT {emit}",
        _STREAM,
        records,
    )
    wanted = evaluate(
        f"SELECT device, temp, n, s{shown} FROM valued WHERE passes = 1 AND ({qualify}) EMIT {emit}", _VALUED, valued
    )
    assert [(each.edge, each.result) for each in wanted] == [(each.edge, each.result) for each in framed]


def test_an_average_that_stays_high() -> None:
    """The mean of two minutes is above 90 for three minutes: the result has the values of the entering event."""
    temps = [95, 95, 95, 95, 95, 20]
    records = [
        Record({"device": "a", "temp": temp}, time=_BEGIN + timedelta(minutes=minute))
        for minute, temp in enumerate(temps)
    ]
    query = (
        "SELECT device, avg(temp) OVER w AS mean FROM machines QUALIFY mean > 90 "
        "WINDOW w AS (PARTITION BY device ORDER BY _time RANGE INTERVAL 2 MINUTES PRECEDING) "
        "EMIT ON ENTER BY device FOR '3 minutes'"
    )
    outcomes = evaluate(query, _STREAM, records)
    assert [each.result for each in outcomes] == [{"device": "a", "mean": 95.0}, None, None, None, None, None]
    assert outcomes[5].why is not None and "is FALSE" in outcomes[5].why
