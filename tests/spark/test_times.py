"""Dates, times and intervals mean what Spark says: each expression over rows of edge values, in both."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.corpus import Corpus

_UNITS = (
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR"),
    *("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"),
)
_FIELDS = "year yrs yearofweek quarter month mon week w day d dow dow_iso doy hour hrs minute m second secs".split()

_INTERVALS = """
ts - INTERVAL 5 MINUTES
ts + INTERVAL '5' MINUTE
ts - INTERVAL '-5' MINUTES
ts - INTERVAL -90 SECONDS
ts + INTERVAL 1.5 SECONDS
ts + INTERVAL '0.000001999' SECOND
ts + INTERVAL '1 02:03:04.5' DAY TO SECOND
ts - INTERVAL '1 02' DAY TO HOUR
ts - INTERVAL '1 02:03' DAY TO MINUTE
ts - INTERVAL '100:03' HOUR TO MINUTE
ts - INTERVAL '-02:03:04' HOUR TO SECOND
ts - INTERVAL '3:4' MINUTE TO SECOND
ts + INTERVAL 1 DAY 2 HOURS
ts + INTERVAL '1 day 2 hours'
ts + INTERVAL 2 WEEKS
ts + INTERVAL 1 MONTH
ts - INTERVAL '1-2' YEAR TO MONTH
ts - INTERVAL 1 YEAR 3 MONTHS
INTERVAL 7 MILLISECONDS + ts
ts - -INTERVAL 1 HOUR
d + INTERVAL 1 DAY
d - INTERVAL '3' DAYS
d + INTERVAL 1 WEEK
d + INTERVAL 1 HOUR
d + INTERVAL 1 DAY 1 HOUR
d - INTERVAL 1 MONTH
d - INTERVAL 11 YEARS
INTERVAL 1 MONTH + d
d + INTERVAL 1 DAY * 2
d + 2 * INTERVAL 1 MONTH
ts - i * INTERVAL 1 SECOND
us - INTERVAL 1 DAY * (l % 100)
ts + (us - us)
d + (e - d)
d + 1
1 + d
d - 7
d - i
d + NULL
ts - us > INTERVAL 5 MINUTES
ts - us < INTERVAL 0 SECONDS
us - ts BETWEEN INTERVAL 1 DAY AND INTERVAL 400 DAYS
ts - d >= INTERVAL '12:34:56' HOUR TO SECOND
d - ts = INTERVAL 0 DAYS
d - e > INTERVAL 5 DAYS
d - e <> INTERVAL 1 MINUTE
d - '2024-01-01' > INTERVAL 30 DAYS
ts - '2024-01-01' <= INTERVAL 59 DAYS
INTERVAL 1 HOUR < ts - us
(ts - us) * 2 > INTERVAL 1 DAY
(ts - us) + INTERVAL 1 DAY > INTERVAL '-1' HOUR
ts BETWEEN us - INTERVAL 1 DAY AND us + INTERVAL 1 DAY
ts > us - INTERVAL 400 DAYS
extract(DAY FROM ts - us)
extract(DAY FROM d - e)
""".strip().split("\n")
_BESIDE = """
d = ts
d < ts
ts >= d
d IN (ts, e)
d BETWEEN ts AND us
d > TIMESTAMP '2024-02-28 23:59:59'
ts > DATE '2024-02-29'
d <=> ts
coalesce(ts, d)
coalesce(d, ts)
greatest(d, ts, e)
CASE WHEN f THEN d ELSE ts END
if(f, ts, e)
hour(d)
last_day(ts)
add_months(ts, 1)
date_add(ts, 1)
datediff(ts, d)
trunc(ts, 'MM')
date_trunc('HOUR', d)
next_day(ts, 'MON')
year('2024-01-01')
date_add('2024-01-01', i)
date_trunc('HOUR', '2024-01-01 10:11:12')
""".strip().split("\n")


@pytest.fixture(scope="module")
def corpus(spark: SparkSession) -> Corpus:
    """The rows."""
    return Corpus(spark)


def test_intervals_mean_what_spark_says(corpus: Corpus) -> None:
    """Literals of every form, added, subtracted, multiplied and compared."""
    assert not (wrong := corpus.differences(_INTERVALS)), "\n".join(wrong)


def test_units_and_fields_mean_what_spark_says(corpus: Corpus) -> None:
    """Every unit of timestampadd and timestampdiff, every field of EXTRACT and date_part."""
    texts = [
        *(f"timestampadd({unit}, {count}, ts)" for unit in _UNITS for count in (1, -13, "i % 1000")),
        *(
            f"timestampdiff({unit}, {ends})"
            for unit in _UNITS
            if unit != "DAYOFYEAR"
            for ends in ("ts, us", "us, ts", "d, us")
        ),
        *("dateadd(DAY, 1, d)", "date_add(HOUR, l % 99, ts)", "timestampadd(SECOND, NULL, d)"),
        *("datediff(MONTH, d, e)", "date_diff(WEEK, d, ts)", "timediff(HOUR, ts, us)"),
        *(f"extract({field} FROM {time})" for field in _FIELDS for time in ("ts", "d")),
        *("date_part('Year', ts)", "datepart('SECONDS', us)"),
    ]
    assert not (wrong := corpus.differences(texts)), "\n".join(wrong)


def test_dates_beside_times_mean_what_spark_says(corpus: Corpus) -> None:
    """A DATE beside a TIMESTAMP is its midnight; arguments are cast as Spark casts them."""
    assert not (wrong := corpus.differences(_BESIDE)), "\n".join(wrong)


def test_what_spark_refuses_is_refused(corpus: Corpus) -> None:
    """Months beside days, numbers added to times, and units that there are not."""
    refused = """
ts + INTERVAL 1 MONTH 2 DAYS
ts + INTERVAL 1.5 MINUTES
ts + INTERVAL '1' YEAR TO MONTH
ts + INTERVAL '1 25:00:00' DAY TO SECOND
INTERVAL 1 MONTH > INTERVAL 20 DAYS
ts + 1
d + l
d + '1'
d - d > 5
d + e
extract(EPOCH FROM ts)
timestampadd('HOUR', 1, ts)
timestampdiff(EON, ts, us)
timestampdiff(DAYOFYEAR, ts, us)
unix_date(ts)
unix_seconds(d)
+d
-d
date_add(ts, l)
""".strip().split("\n")
    assert not corpus.accepted(refused)
