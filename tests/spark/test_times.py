"""Dates, times and intervals mean the same as in Spark: each expression over rows of edge values, in both."""

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
nullif(d, ts)
nullif(ts, d)
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


_CALLS = """
try_make_timestamp(2024, 2, 29, 12, 30, 59.5)
try_make_timestamp(2024, 2, 29, 23, 59, 60)
try_make_timestamp(2024, 2, i, 12, 30, n)
try_make_timestamp(2024, 2, 29, 12, 30, 5, 'Europe/Madrid')
try_make_timestamp(2024, 13, 29, 12, 30, 5)
months_between(ts, us)
months_between(us, d)
months_between(d, e, false)
monthname(d)
monthname(ts)
dayname(d)
dayname(us)
unix_timestamp(ts)
to_unix_timestamp(d)
from_unixtime(i)
from_unixtime(i, 'yyyy-MM-dd')
from_unixtime(l)
from_unixtime(l, 'y yy yyy yyyy yyyyy D EEE HH:mm:ss.SSS')
from_unixtime(i * 1000L, 'y yy yyy yyyy yyyyy D EEE')
from_unixtime(i * -1000L, 'y yy yyy yyyy yyyyyy D EEE')
to_date(ts)
to_date(ts, 'yyyy')
to_timestamp(d)
to_timestamp(ts, 'yyyy')
""".strip().split("\n")
_ZONES = (
    *("Europe/Madrid", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Cairo"),
    *("Europe/London", "Asia/Tokyo", "Pacific/Apia", "America/St_Johns", "Etc/GMT+5", "Europe/Oslo"),
    *("Europe/Amsterdam", "UTC", "PST", "EST", "+02:00", "-9", "+1:30", "GMT+3", "UTC-05:30", "Z"),
)
_WRITTEN = (
    *("y yy yyy yyyy yyyyy", "M MM MMM MMMM", "L LL LLL LLLL", "d dd D DD DDD", "E EE EEE EEEE"),
    *("H HH h hh k kk K KK", "m mm s ss", "S SS SSS SSSS SSSSS SSSSSS SSSSSSS SSSSSSSSS", "a Q QQ QQQ QQQQ q qq qqq"),
    *("X XX XXX x xx xxx Z ZZ ZZZ", "yyyy-MM-dd''T''HH:mm:ss.SSSXXX", "yyyyMMdd[HHmm]", "yyyy ''week'' é, qqqq"),
)
_READ = (
    *("yyyy-MM-dd", "yyyy-M-d", "y-M-d", "yyyyMMdd", "dd/MMM/yyyy", "d MMMM yyyy", "yy-MM-dd", "HH:mm", "yyyy"),
    *("yyyy-MM-dd hh:mm a", "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd HH:mm:ss.SSS", "yyyy-MM-dd HH:mm:ss[.SSSSSS]"),
    *("yyyy-MM-dd''T''HH:mm:ssXXX", "yyyyMMddHHmmss", "yyyy-DDD", "yyyy-MM-dd kk", "yyyy-MM-dd K:m a", "MM-dd"),
    *("yyyy-MM-dd H", "yyyy-MM-dd[ HH:mm:ss]"),
)
_TEXTS = (
    """
2024-02-03|2024-2-3|20240203|2024-02-30|2024-02-03 10|2024-02-03 10:11:12|03/Feb/2024|3 FEBRUARY 2024|24-01-02|10:11
2024|2024-02-03 10:11 PM|2024-02-03 12:11 am|2024-02-03 10:11:12.5|2024-02-03 10:11:12.512345|2024-02-03T10:11:12Z
2024-02-03T10:11:12+01:00| 2024-02-03|12024-02-03|2024-02-29|2024-13-03|2024-00-03|20240203101112|120240203|2024-060
2023-366|2024-02-03 24:00:00|2024-02-03 24|0000-01-01|9999-12-31|2024-02-03 10:11:60|02-29|
""".strip()
    .replace("\n", "|")
    .split("|")
)
_CASTABLE = (
    """
2024|2024-2|2024-2-3| 2024-02-03 |2024-02-03T|2024-02-03 1:2|2024-02-03 10|2024-02-03 10:11:12.1234567|20240203|x
2024-02-03 10:11:12.|2024-02-03 10:11:12.5Z|2024-02-03 10:11:12 Z|2024-02-03 10:11:12 UTC|2024-02-03 10:11:12UTC|
2024-02-03 10:11:12+1|2024-02-03 10:11:12+01:00|2024-02-03 10:11:12+0100|2024-02-03 10:11:12+1:0|2024-02-30
2024-02-03 10:11:12+01:00:30|2024-02-03 10:11:12 Europe/Madrid|2024-03-31 02:30:00 Europe/Madrid|0001-01-01
2024-10-27 02:30:00 Europe/Madrid|2024-02-03 10:11:12 PST|2024-02-03 10:11:12 GMT+2|2024-02-03 10:11:12 foo
2024-02-03 24:00:00|2024-02-03Z|2024-02-03 10:11Z|2024-02-03T10:11:12|02024-02-03|+2024-02-03|2024-02-03 10:11:60
2024-02-03 10:11:12-18:00|2024-02-03 10:11:12-18:01|2024-02-03  10:11:12|2024-02-03 10:11:12 europe/madrid
2024-02-03 10:11:12.1 +01:00|2024-02-03 10:11:12+130
""".strip()
    .replace("\n", "|")
    .split("|")
)


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


def test_calls_mean_what_spark_says(corpus: Corpus) -> None:
    """Times made of fields, and told by name or by number."""
    assert not (wrong := corpus.differences(_CALLS)), "\n".join(wrong)


def test_zones_mean_what_spark_says(corpus: Corpus) -> None:
    """A zone's clock, and back, over changes of the clock."""
    texts = [
        f"{name}({time}, '{zone}')"
        for zone in _ZONES
        for name in ("from_utc_timestamp", "to_utc_timestamp")
        for time in ("ts", "us", "d")
    ]
    assert not (wrong := corpus.differences(texts)), "\n".join(wrong)


def test_formats_mean_what_spark_says(corpus: Corpus) -> None:
    """Every letter that is written, of times in all corners of the calendar."""
    texts = [f"date_format({time}, '{form}')" for form in _WRITTEN for time in ("ts", "d")]
    assert not (wrong := corpus.differences(texts)), "\n".join(wrong)


def test_texts_are_read_as_spark_reads_them(spark: SparkSession) -> None:
    """By a format, or by CAST: the same texts are times, and the same times."""
    read = Corpus(spark, {"i": ("INT", [1]), "s": ("STRING", [*_TEXTS, None])})
    wrong = read.differences([f"try_to_timestamp(s, '{form}')" for form in _READ])
    castable = Corpus(spark, {"i": ("INT", [1]), "s": ("STRING", [*_CASTABLE, None])})
    wrong += castable.differences(["try_cast(s AS TIMESTAMP)", "hour(try_cast(s AS TIMESTAMP))"])
    assert not wrong, "\n".join(wrong)


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
