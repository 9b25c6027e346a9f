"""Short numbers, FLOAT and BINARY, typed literals, casts, and texts beside numbers mean the same as in Spark."""

from __future__ import annotations

import gc
import math
import warnings
from collections.abc import Iterator
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.corpus import Corpus

_EDGES = {
    "i": ("INT", [0, 3, -7, None, 2**31 - 1, -(2**31), 130]),
    "l": ("BIGINT", [1, -2, None, 2**40, -(2**63), 33_000]),
    "ti": ("TINYINT", [0, 1, -1, 127, -128, None, 5]),
    "tj": ("TINYINT", [3, -128, 100, None, 0, -1]),
    "si": ("SMALLINT", [0, 7, -1, 32_767, -32_768, None, 300]),
    "fl": ("FLOAT", [0.0, -0.0, 1.5, 0.1, None, math.nan, math.inf, -3.4e38, 1e-45, 127.9, -2.5]),
    "fm": ("FLOAT", [2.0, 0.1, None, -1.25, 16_777_217.0, 0.0]),
    "x": ("DOUBLE", [0.1, 1.5, None, math.nan, 300.7, -128.9, 1e300]),
    "n": ("DECIMAL(10,2)", [*map(Decimal, ("0", "1.25", "-2.50", "200.00")), None]),
    "s": ("STRING", ["12", " -7 ", None, "128", "x", "70000", "1.5"]),
    "f": ("BOOLEAN", [True, False, None]),
    "b": ("BINARY", [b"", b"ab", None, b"\xff\x00"]),
}
_RISK = "get_json_object(b, '$.r')"
_WHOLE = ["70", "71", " 71 ", "-0", "3000000000", "9007199254740993", None]
_NUMBERS = ["99.5", "70.5", "70", "71.0", '"71"', "7.1e1", "1e400", "null"]
_TEXTS = """
try_add(ti, tj)
try_subtract(ti, si)
try_multiply(si, si)
try_divide(ti, tj)
try_mod(si, ti)
try_add(ti, 1)
try_add(si, l)
try_add(ti, n)
try_multiply(ti, x)
ti + x
fl + fm
fl - fm
fl * fm
fl + 1
fl * 1.5
fl + x
fl + n
fl + l
try_divide(fl, fm)
try_mod(fl, fm)
-fl
abs(fl)
fl = fm
fl < fm
fl >= 0.1
fl = 0.1
fl = 1.5
fl IN (1.5, 2)
fl BETWEEN 0 AND 10
fl > x
fl = n
fl > i
ti = 5
ti > 300
ti < si
ti = 5.0
ti IN (1, 127, 300)
si BETWEEN -1 AND 300
si > 6.5
ti > l
ti = n
ti <=> tj
coalesce(ti, tj)
coalesce(ti, si)
coalesce(fl, i)
coalesce(fl, fm)
coalesce(ti, n)
greatest(ti, si, i)
least(fl, fm)
if(f, ti, 3)
CASE WHEN f THEN fl ELSE fm END
nullif(ti, 5)
ceil(ti)
floor(fl)
ceil(fl)
sqrt(fl)
sign(ti)
round(ti, 0)
isnan(fl)
upper(ti)
date_add(DATE '2024-01-01', ti)
DATE '2024-01-01' + ti
try_cast(i AS TINYINT)
try_cast(l AS SMALLINT)
try_cast(x AS TINYINT)
try_cast(fl AS TINYINT)
try_cast(fl AS INT)
try_cast(fl AS BIGINT)
try_cast(n AS SMALLINT)
try_cast(s AS TINYINT)
try_cast(s AS SMALLINT)
CAST(f AS TINYINT)
CAST(f AS FLOAT)
CAST(f AS DECIMAL(3,1))
CAST(ti AS BOOLEAN)
CAST(fl AS BOOLEAN)
CAST(ti AS STRING)
CAST(ti AS BIGINT)
CAST(ti AS DOUBLE)
CAST(si AS FLOAT)
CAST(i AS FLOAT)
CAST(l AS FLOAT)
CAST(x AS FLOAT)
CAST(fl AS DOUBLE)
CAST(ti AS DECIMAL(5,1))
CAST(ti AS TIMESTAMP)
CAST(s AS BINARY)
b IS NULL
i > '3'
l <= ' 12 '
x > '0.5'
fl = '1.5'
ti IN ('1', '127')
i BETWEEN '-7' AND '3'
'3' < si
i & 3
i & l
ti & si
ti | 1
l ^ i
~ti
~l
i << 2
l << 63
si >> 1
shiftleft(i, 33)
shiftright(l, 65)
shiftrightunsigned(i, 1)
shiftrightunsigned(l, ti)
1 | (2 & i)
1 & i | 8
i & 4 = 4
bit_count(i)
bit_count(l)
bin(l)
bin(ti)
int(ti)
double(i)
string(si)
bigint(f)
tinyint(5)
decimal(i)
boolean(l)
date('2024-02-29')
substr(s FROM 1 FOR 2)
10Y
-5S
3L
1.5BD
12BD
2.50BD
3.0D
1.5F
1 IN (x, i)
1 NOT IN (fl, i)
i IN (x, 3)
2.50 IN (x, n)
l IN (x, n, 1)
9007199254740993 IN (x, l)
array_contains(array(x, i), 3)
b = unhex('xf')
b > unhex('f')
nullif(ti, si)
nullif(2.50, n)
try_add(ti, 10Y)
try_add(si, 5S)
""".strip().split("\n")


@pytest.fixture(scope="module")
def corpus(spark: SparkSession) -> Corpus:
    """The rows."""
    return Corpus(spark, _EDGES)


def test_short_types_mean_what_spark_says(corpus: Corpus) -> None:
    """Arithmetic, comparisons, choices and casts: the result's type, and NULL where it overflows."""
    assert not (wrong := corpus.differences(_TEXTS)), "\n".join(wrong)


def test_what_is_no_number_of_a_type_is_refused(corpus: Corpus) -> None:
    """A literal out of its type's range, and a conversion that would not be exact."""
    refused = [
        "f = 1",
        "i > 'x'",
        "200Y",
        "40000S",
        "1.5L",
        "round(fl, 1)",
        "CAST(fl AS STRING)",
        "fl div 2",
        "i & x",
        "~n",
        "1 | 2 & i",
        "CAST(i AS BINARY)",
    ]
    assert not corpus.accepted(refused)


@pytest.fixture
def without_ansi(spark: SparkSession) -> Iterator[SparkSession]:
    """The session without ANSI."""
    spark.conf.set("spark.sql.ansi.enabled", "false")
    yield spark
    spark.conf.set("spark.sql.ansi.enabled", "true")


def _truths(spark: SparkSession, *texts: str) -> list[bool | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its sockets to the garbage collector
        [row] = spark.sql("SELECT " + ", ".join(f"'{text}' > 70" for text in texts)).toArrow().to_pylist()
        gc.collect()
    return [*row.values()]


def _json(numbers: list[str | None]) -> tuple[str, list[str]]:
    return "STRING", [f'{{"r": {number or "null"}}}' for number in numbers]


def test_whole_numbers_are_spark_s(spark: SparkSession) -> None:
    """A computed STRING beside a whole number, and the CAST of get_json_object to BIGINT, have Spark's values."""
    corpus = Corpus(spark, {"i": ("INT", [70, 71, None]), "s": ("STRING", _WHOLE), "b": _json(_WHOLE)})
    texts = [f"{text} {op} {other}" for text in ("upper(s)", f"CAST({_RISK} AS BIGINT)") for op, other in
             ((">", "70"), ("<=", "i"), ("=", "9007199254740992"))]  # fmt: skip
    assert not corpus.differences(texts)


def test_numbers_with_fractions_are_spark_s(spark: SparkSession) -> None:
    """The other form for get_json_object compares as DOUBLE, as Spark does beside 70.0."""
    corpus = Corpus(spark, {"i": ("INT", [70]), "b": _json([*_NUMBERS])})
    assert not corpus.differences([f"{_RISK} > 70.0", f"CAST({_RISK} AS DOUBLE) > i", f"{_RISK} = 70.5"])


def test_spark_reads_a_whole_number_as_ansi_says(spark: SparkSession) -> None:
    """Under ANSI the STRING becomes a BIGINT, and a fraction fails."""
    assert _truths(spark, "70", "71", "3000000000") == [False, True, True]
    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
        _truths(spark, "99.5")


def test_spark_without_ansi_cuts_the_fraction(without_ansi: SparkSession) -> None:
    """Without ANSI the STRING becomes an INT, so no mode of Spark compares as DECIMAL."""
    assert _truths(without_ansi, "99.5", "70.5", "3000000000") == [True, False, None]
