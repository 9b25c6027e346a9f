"""Expressions written for a corner each: implicit casts of texts, and the findings of an audit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

__all__ = ["corner_calls"]

_TEXTS = ("concat('', '7')", "concat(' 12', '')", "concat('1', '.5')", "concat('', 'abc')", "concat('tr', 'ue')",
          "concat('2024-02', '-29')")  # fmt: skip
"""Texts that are no constants to the compiler."""
_DOUBLES = ("0x1p3", "-0X1.8P-1d", "0x.8p1f", "0x1p99999", "-0x0p1", "0x1p-1075", "0x1", "0x1.p", "0xp1", "1d", "1.5F",
            "1dd", " 1\t", "\x7f1", "1\x7f", "\x0b1", "+NaN", "-NaN", "-nan", "nAn", "+inf", "- inf", "1e400",
            "0x1.000000fp0", "0x1.0000010000000000000001p0", "1_0", "1,5", "0b1")  # fmt: skip
"""Texts that are DOUBLEs to Java, or nearly."""
_BESIDE = ("7", "ascii('7')", "unix_micros(TIMESTAMP'1970-01-01 00:00:00')", "3Y", "1.5", "1.5D", "FLOAT(1.5)",
           "99999999999999999999", "CAST(7 AS DECIMAL(10,2))", "pi()", "isnull(1)",
           "last_day(DATE'2024-02-01')", "date_trunc('DAY', TIMESTAMP'2024-02-29 01:00:00')", "NULL")  # fmt: skip
_FOUND = (
    "hash(99999999999999999999999999999999999999)", "xxhash64(99999999999999999999999999999999999999)",
    "hash(CAST(-99999999999999999999999999999.5 AS DECIMAL(38,1)))", "hash(1234567890123456789012345678901.25)",
    "99999999999999999999999999999999999999 div 0.01", "-99999999999999999999999999999999999999 div 0.1",
    "99999999999999999999999999999999999999 div 1.5", "conv('straße', 36, 10)", "conv('ßa', 36, 10)",
    "initcap('İstanbul')", "initcap('aİ İİ İ')", "initcap('ΑΣ ΑΣΑΣ Σ')", "initcap('ᾳ ﬁ ŉ ǆ Ǆ ß')",
    "DOUBLE(TIMESTAMP'2024-03-31 00:59:59.999999')", "DOUBLE(TIMESTAMP'2016-12-31 23:59:59.900001')",
    "DOUBLE(TIMESTAMP'0001-01-01 00:00:00.1')", "make_timestamp(2024, 2, 29, 12, 0, 4295)",
    "make_timestamp(2024, 2, 29, 12, 0, -4295)", "make_timestamp(2024, 2, 29, 12, 0, -2147483648)",
    "arrays_overlap(array(-0.0D), array_distinct(array(0.0D)))", "arrays_overlap(array(1.5D), array(1.5D, 2D))",
    "arrays_overlap(array_distinct(array(DOUBLE('NaN'))), array_distinct(array(DOUBLE('NaN'))))",
    "greatest(DATE'2024-02-29', '2024-01-01')", "least('2024-01-01', TIMESTAMP'2024-02-29 00:00:00')",
    "greatest(DATE'2024-02-29', NULL)", "greatest('a', NULL)", "array_contains(array_distinct(array(1, 2)), '1')",
    "array_contains(array_distinct(array(DATE'2024-02-29')), '2024-02-29')", "3.4e39F", "-3.4e39F", "3.4028235e38F",
    "1e39F > 0", "0x1F", "TRUE = FLOAT(1)",
    "get_json_object('{\"a\":71.5}', '$.a') > 70", "get_json_object('{\"a\":71.5}', '$.a') > 70.5",
    "70 < get_json_object('{\"a\":71}', '$.a')", "get_json_object('{\"a\":true}', '$.a') = TRUE",
    "get_json_object('{\"a\":\"2026-01-05\"}', '$.a') > DATE'2026-01-01'", "map('k', '7')['k'] IN (7, 8.5)",
    "map('k', '7')['k'] BETWEEN 5 AND 9.5", "split('7;8', ';')[1] <=> 8", "7 = map('k', 'x')['k']",
    "CASE map('k', '7')['k'] WHEN 7 THEN 'seven' END", "map('k', '7')['k'] IN ('7', 8)",
    "7 IN (map('k', '7')['k'], '8')",
    "format_string('%d|%5d|%05d|%,d|%+d|%s|%(d', -5S, -7Y, -5S, 1234S, 7Y, -3Y, -3S)", "format_string('%x', 5S)",
    "format_string('%d|%05d|%s', CAST(NULL AS SMALLINT), CAST(NULL AS TINYINT), CAST(NULL AS SMALLINT))",
    "(1 = 1) = (2 > 3)", "(NULL = 1) <=> (1 IS NULL)", "(1 = 1) > (2 = 3)", "(1 < 2) IN (FALSE, TRUE)",
    "(1 IN (1, 2)) <> (NULL IS NULL)", "(1 = 1) = TRUE", "NOT ((1 = 1) = (2 = 2))", "(1 = NULL) = (2 = 2)",
    "concat('1', '') IN (1, 1.5)", "concat('1', '') IN (1.5, 1)", "concat('1', '') IN (1, 1.5D)",
    "2 IN (concat('2', ''), 7)", "concat('2', '') BETWEEN 1 AND 7", "concat('2', '') BETWEEN 1 AND 2.5",
    "3 BETWEEN concat('2', '') AND 7", "CASE concat('2', '') WHEN 2 THEN 'two' END", "'7' + 1", "1 + '7'", "7 / '2'",
    "7 % '4'", "7 div '2'", "1.5 * '2'", "2.5D - '1'", "FLOAT(1.5) + '1'", "pmod(-7, '4')", "'7' + '1'", "1 - '1.5'",
    "base64(repeat('a', 57))", "base64(repeat('a', 58))", "base64(repeat('é', 200))",
    "unbase64(base64(repeat('a', 100)))", "unhex('zz') = X'61'", "try_to_binary('true', 'hex') > X'61'",
    "unhex('xf') <=> X'0F'", "X'61' IN (unhex('é'), X'62')", "unhex(NULL) = X'61'", "X'0F' = unhex('f')",
    "nullif(date_add(DATE'2024-02-28', 1), TIMESTAMP'2024-02-29 00:00:00')", "nullif(1.00, CAST(7 AS DECIMAL(38,0)))",
    "nullif(date_add(DATE'2024-02-28', 1), timestamp_seconds(0))",
    *(
        f"{made.format(number)}"
        for number in (
            "1.9999999D", "-1.9999999D", "-0.0000004D", "1e30D", "253402300799.9999D", "253402300800D", "1764403200.1D",
            "-62135596800.5D", "1.5F", "16777217.9F", "DOUBLE('-Infinity')", "1.2345678", "-1.9999999", "0.000001",
            "CAST(1764403200.123 AS DECIMAL(13,3))", "CAST('18446744073709551616' AS DECIMAL(20,0))",
            "CAST('36893488147.419' AS DECIMAL(20,3))", "CAST('18446744075474.1' AS DECIMAL(20,1))",
            "CAST('9223372036854.775808' AS DECIMAL(20,6))", "CAST(NULL AS DOUBLE)", "253402300799.999999", "'12.5'",
        )
        for made in ("CAST({} AS TIMESTAMP)", "timestamp_seconds({})")
        if number != "'12.5'" or made.startswith("t")
    ),
    "nullif(timestamp_seconds(0), last_day('2024-02-01'))",
    "coalesce(nullif(NULL, ascii('a')), 5)", "nullif(2.50, ascii('a'))", "nullif(ascii('a'), 97.0)",
    *(f"get_json_object('{text}', '$')" for text in ("1é", "1.5é", "-0😀", "1{", "1,", '1"x"', " 1 é", "1/", "[1é]")),
    "to_json(array(5e-324D, -5e-324D, 2e-323D, 3e0D))",
    *(f"{name}(array(0D / 1, DOUBLE('NaN'), -DOUBLE('NaN')))" for name in ("array_distinct", "array_sort")),
    *(f"{name}(array_distinct(array(-DOUBLE('NaN'))), array_distinct(array(DOUBLE('NaN'))))"
      for name in ("array_union", "array_intersect", "array_except", "arrays_overlap")),
    "exists(filter(array(1), x -> x > 5), x -> x = nullif(1, 1))", "exists(array(1), x -> x = nullif(1, 1))",
    "exists(filter(array('a'), x -> x > 'b'), x -> x = nullif('a', 'a')) IS NULL",
    "arrays_overlap(filter(array(1), x -> x > 5), array(2, nullif(1, 1)))",
    "arrays_overlap(array(nullif(1, 1)), filter(array(1), x -> x > 5))",
    "arrays_overlap(array(1), array(nullif(1, 1)))", "to_json(struct(map('a', 1)['a'], (split('b', ',')[0])))",
    "to_json(struct(named_struct('n', 7)['n'] AS m, ascii('a')))",
    "to_json(struct(named_struct('n', 7)['n'], named_struct('o', 8).o))",
    "EXTRACT(MINUTE FROM INTERVAL 90 SECONDS)", "EXTRACT(DAY FROM INTERVAL '02:03' HOUR TO MINUTE)",
    "EXTRACT(HOUR FROM -INTERVAL 90 SECONDS)", "EXTRACT(MINUTE FROM INTERVAL '02:03' HOUR TO MINUTE)",
    "EXTRACT(HOUR FROM INTERVAL 90 SECONDS * 60)", "EXTRACT(HOUR FROM INTERVAL 1 DAY + INTERVAL 1 HOUR)",
    *(f"EXTRACT({field} FROM INTERVAL {length})"
      for field in ("DAY", "HOUR", "MINUTE")
      for length in ("1 HOUR 30 MINUTES", "1 DAY 30 MINUTES", "1 WEEK 2 HOURS", "'1 day 2 hours'", "5 MILLISECONDS",
                     "1 MINUTE 5 MICROSECONDS", "'90 minutes'", "1 WEEK")),
    *(f"{name}({args})" for name in ("coalesce", "array", "nullif", "greatest") for args in (
        "1, '3'", "'3', 1", "1.5, '3'", "'3', 1.5", "true, 'false'", "1F, '3'", "nullif(1, 1), '3'", "'x', 3L",
        "DATE'2020-01-01', '2021-01-01'", "2, ltrim('3')", "2.5, ltrim('3')", "ltrim('3'), 2", 
        "true, ltrim('no')", "DATE'2020-01-01', ltrim('2021-01-01')", 
        "nullif(true, true), ltrim('yes')", "nullif(2D, 2), ltrim('4.5')")),
    *(f"coalesce({args})" for args in (
        "'3', 1.5, 2", "CAST(NULL AS INT), '3', 1.5", "'3', CAST(NULL AS INT), 1.5", "2, ltrim('3'), 4.5D",
        "NULL, ltrim('3'), 2", "DATE'2020-01-01', ltrim('2021-01-01'), TIMESTAMP'2020-01-01 01:00:00'")),
    "CASE WHEN NULL THEN 1 ELSE 2 END", "CASE WHEN true THEN 1 ELSE '2' END", "if(true, ltrim('1'), 2.5D)",
    "if(NULL, 1, ltrim('2'))", "nvl2(1, ltrim('5'), 2)", "nvl2(1, '5', 2)",
    "CASE 1 WHEN '1' THEN ltrim('4') ELSE 3 END",
    "width_bucket(1e308, 0, 1.5e308, 5)", "width_bucket(1e308, -1e308, 1.7e308, 3)",
    "width_bucket(-1e308, 1e308, 0, 2)",
    "from_unixtime(0, '')", "unix_timestamp('', '')", "unix_timestamp('x', '')", "map_contains_key(map('a', 1), NULL)",
    "map_contains_key(map('a', 1), CAST(NULL AS STRING))", "to_char(CAST(repeat('a', 100) AS BINARY), 'base64')",
    *(f"get_json_object('{text}', '$.a')" for text in (
        '{"a": ["\\ud83d"]}', '{"b": "\\ud83d", "a": 1}', '{"a": "\\ud83d"}', '{"\\udc00": 1, "a": {"\\ud83d": 2}}')),
    """get_json_object('{"a": ["\\ud83d", {"b": 1, "c": "\\ud83d"}]}', '$.a[*].b')""",
    """get_json_object('["\\ud83d", "x"]', '$[*]')""", """json_object_keys('{"x\\ud83dy": 1, "\\ud83d\\ude00": 2}')""",
    "url_decode('%ED%A0%BD%ED%B8%80x')", "url_decode('%ED%A0x%ED%9F%BF')", "url_decode('%F0%9F')",
    "1 IN (DOUBLE('1.5'), ascii('1'), 1L)", "9007199254740993L IN (DOUBLE('1'), crc32('a') + 9007199250842945L)",
)  # fmt: skip


def corner_calls() -> Iterator[str]:
    """Yield the expressions."""
    for op in ("=", "<", "+", "*", "/", "%", "div"):
        yield from (f"{text} {op} {other}" for text, other in product(_TEXTS, _BESIDE))
    for op in ("<>", ">=", "-"):
        yield from (f"{other} {op} {text}" for text, other in product(_TEXTS[:3], _BESIDE))
    for text, other in product(_TEXTS, _BESIDE):
        yield f"{text} IN ({other}, {other})"
    yield from _FOUND
    for text, kind in product(_DOUBLES, ("DOUBLE", "FLOAT")):
        yield f"CAST('{text}' AS {kind})"
