"""Functions of texts mean the same as in Spark: over the same rows and corners, in both, and with constants lifted."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gateway.testing import Stream, evaluate

_STREAM = Stream("texts (id INT, s STRING, t STRING, n INT, l BIGINT, f BOOLEAN)")
_TEXTS = [
    "", " ", "a", "A", "hello world", "HELLO  wORLD", "ab-12,cd-34", "a1b22c333", "x=1;y=22", "2026-11-21",
    "\xe9t\xe9 \xc9T", "\U0001f600b\U0001f600", "stra\xdfe \xdfx", "\u01c6o \u1fb3", "a\u0301e\u0301", "Tymczak",
    "Ashcraft", "h7-r", "-Robert", "Robert", "a,b,,c", ",", "b", "a.b.c.d", "aaa", "aa", "tab\tx", "line\n",
    "two\nlines\n", "\r\n", "79927398713", "4111111111111111", "41 11", "%20a+b%E2%82%ac", "%zz", "100%",
    "a=b&c=d e/f?~_-.*", "\u0391\u03a3", "\u2167\xbd\u0661Zz9", "user=ann id=7", "error: disk full (code 28)",
    "FOO foo Foo", "it's", "\\d $1", "192.168.10.254", "john.doe@example.com", "INC-2041 closed", None,
]  # fmt: skip
_NUMBERS = [0, 1, 2, -1, 3, -3, 65, 256, 97 + 256, -(2**31), 2**31 - 1, 10, None]
_LONGS = [0, 65, 8364, -5, 2**40 + 66, -(2**63), 2**63 - 1, None]
_ROWS: list[dict[str, Any]] = [
    {
        "id": row,
        "s": _TEXTS[row % len(_TEXTS)],
        "t": _TEXTS[(row * 7 + row // len(_TEXTS)) % len(_TEXTS)],
        "n": _NUMBERS[row % len(_NUMBERS)],
        "l": _LONGS[row % len(_LONGS)],
        "f": (True, False, None)[row % 3],
    }
    for row in range(3 * len(_TEXTS))
]

_VALUES = r"""
initcap(s)
soundex(s)
soundex(upper(s))
levenshtein(s, t)
levenshtein(s, 'hello')
levenshtein(s, t, 4)
levenshtein(s, t, n)
overlay(s, t, 2)
overlay(s, 'XY', 3, 1)
overlay(s, 'Z', n, 0)
overlay(s, '', 2, n)
find_in_set(t, s)
find_in_set('b', s)
find_in_set(s, 'a,b,,c')
substring_index(s, '.', 2)
substring_index(s, '.', -2)
substring_index(s, 'aa', 2)
substring_index(s, 'aa', -2)
substring_index(s, '', 1)
substring_index(s, t, 1)
substring_index(s, ' ', 0)
chr(n)
chr(l)
char(65)
md5(s)
sha1(s)
sha(s)
sha2(s, 256)
sha2(s, 0)
sha2(s, 224)
sha2(s, 384)
sha2(s, 512)
sha2(s, n)
crc32(s)
base64(s)
mask(s)
mask(s, 'U', 'l', 'd', 'o')
mask(s, NULL, 'l')
mask(s, 'U', NULL, '#', NULL)
elt(2, s, t)
elt(n, s, t, 'third')
luhn_check(s)
space(3)
space(0)
url_encode(s)
try_url_decode(s)
url_decode(url_encode(s))
regexp_extract(s, '(\w+)')
regexp_extract(s, '([a-z]+)-([0-9]+)', 2)
regexp_extract(s, '([a-z]+)-([0-9]+)', 0)
regexp_extract(s, '(a)|(b)', 2)
regexp_extract(s, 'user=(\w+)', 1)
regexp_extract(s, '^(\d+)\.(\d+)\.', 2)
regexp_extract(s, '(\d*)', 1)
regexp_extract(s, 'code (\d+)\)$', 1)
regexp_extract(s, 'l[a-z]+$', 0)
regexp_extract(s, '\b(f\w+)\b', 1)
regexp_extract(s, '(?i)(FOO) (?:foo) (\w)', 2)
regexp_extract(s, '(.*?)-(.*)', 1)
regexp_extract(s, '(.*)-(.*)', 1)
regexp_extract(s, '(?:(a)|b|c)+', 1)
regexp_extract(s, '(a|aa)(a?)', 1)
regexp_extract_all(s, '([a-z]+)', 1)
regexp_extract_all(s, '([a-z])(\d+)', 2)
regexp_extract_all(s, '([a-z])(\d+)', 0)
regexp_extract_all(s, '(\d+)')
regexp_extract_all(s, '(x)|(o)', 2)
regexp_extract_all(s, 'l[a-z]+$', 0)
regexp_extract_all(s, '\bf\w+', 0)
regexp_replace(s, '\d+', '#')
regexp_replace(s, '[^a-z]', '')
regexp_replace(s, '([a-z])(\d)', '$2$1')
regexp_replace(s, '(a)', '$11')
regexp_replace(s, '\s+', ' ')
regexp_replace(s, 'es$', '<\$\\>')
regexp_replace(s, '^a', 'b$0')
regexp_replace(s, '.', '-')
regexp_count(s, 'a')
regexp_count(s, '[a-z]+')
regexp_count(s, 's$')
regexp_instr(s, 'b|l')
regexp_instr(s, '\d+')
regexp_substr(s, '\d+')
regexp_substr(s, '[A-Z]\w*')
regexp_substr(s, 's$')
format_string('%s has %d of %,d%%', s, n, l)
format_string('%5d|%-5d|%05d|%+d|% d|%(d', n, n, n, n, n, n)
format_string('%x %X %o %#x %08x', n, l, n, l, n)
format_string('%2$s-%1$s %s %s', s, t)
format_string('%10s|%-10s|%s', s, t, f)
format_string('no arguments')
printf('%,015d%n', l)
upper(regexp_extract(s, '([a-z]+)', 1)) || '!'
""".strip().split("\n")

_PREDICATES = r"""
s RLIKE '\bfoo\b'
regexp_like(s, '\bid=\d')
regexp_extract(s, 'id=(\d+)', 1) = '7'
regexp_extract(s, '(\w+)@', 1) = 'john' OR regexp_extract(s, '(\w+)@', 1) = 'doe'
regexp_replace(s, '[^0-9]', '') = '20261121'
regexp_count(s, 'a') > 1
regexp_instr(s, '\.') = 2
initcap(s) IN ('A', 'Hello World')
soundex(s) = soundex('Rupert')
levenshtein(s, 'foo') <= 2
levenshtein(s, 'foo', 1) = -1
md5(s) = '0cc175b9c0f1b6a831c399e269772661'
sha2(s, 256) = 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afeebb48'
crc32(s) % 2 = 1
substring_index(s, '.', 1) = '192'
find_in_set('b', s) = 2
overlay(s, '_', 1, 1) = '_'
mask(s) = 'xx-nn,xx-nn'
elt(n, s, t) = 'a'
chr(n) = 'A'
format_string('%s/%d', s, 5) = 'a/5'
luhn_check(s)
size(regexp_extract_all(s, '([a-z]+)', 1)) > 2
array_contains(regexp_extract_all(s, '(\d+)', 1), '22')
regexp_replace(s, '(\d)', '<$1>') LIKE '%<2>%'
""".strip().split("\n")


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> list[dict[str, Any]]:
    """Spark's results for all expressions, by row."""
    kinds = {"id": pa.int32(), "s": pa.string(), "t": pa.string(), "n": pa.int32(), "l": pa.int64(), "f": pa.bool_()}
    table = pa.Table.from_pylist(_ROWS, pa.schema(kinds))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its sockets to the garbage collector
        # Failures are NULL with this setting, even in functions without a try_ form.
        settings = {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.sizeOfNull": "false"}
        for name, value in settings.items():
            spark.conf.set(name, value)
        try:
            texts = [f"({_spark(text)}) AS c{i}" for i, text in enumerate((*_VALUES, *_PREDICATES))]
            frame = spark.createDataFrame(table).selectExpr("id", *texts)
            rows: list[dict[str, Any]] = frame.toArrow().sort_by("id").to_pylist()
        finally:
            for name in settings:
                spark.conf.unset(name)
        gc.collect()
    return rows


def _spark(text: str) -> str:
    """Return our text in Spark's SQL, where a backslash in a literal is doubled."""
    return text.replace("\\", "\\\\")


def test_values_are_what_spark_says(found: list[dict[str, Any]]) -> None:
    """Each function over every corner; and with its constants lifted the rows that have a certain value are found."""
    wrong = []
    for number, text in enumerate(_VALUES):
        wanted = [row[f"c{number}"] for row in found]
        results = [row.result for row in evaluate(f"SELECT {text} AS v FROM texts", _STREAM, _ROWS)]
        ours = [result["v"] if result else "no result" for result in results]
        for row, one, other in zip(_ROWS, ours, wanted, strict=True):
            if one != other:
                wrong.append(f"{text} is {one!r}, Spark's {other!r} for {row}")
                break
        value = next((each for each in wanted if each), None)
        if isinstance(value, str | int) and not isinstance(value, bool):
            literal = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else value
            ids = _matching(f"{text} = {literal}")
            if ids != [row["id"] for row, each in zip(_ROWS, wanted, strict=True) if each == value]:
                wrong.append(f"{text} = {literal} holds in {ids}")
    assert not wrong, f"{len(wrong)} of {len(_VALUES)}:\n" + "\n".join(wrong)


def test_predicates_hold_where_spark_says(found: list[dict[str, Any]]) -> None:
    """WHERE and its NOT let the same rows through."""
    wrong = []
    for number, text in enumerate(_PREDICATES, len(_VALUES)):
        for truth, where in ((True, text), (False, f"NOT ({text})")):
            wanted = [row["id"] for row in found if row[f"c{number}"] is truth]
            if (ids := _matching(where)) != wanted:
                wrong.append(f"{where} holds in {ids}, Spark's in {wanted}")
    assert not wrong, "\n".join(wrong)


def _matching(where: str) -> list[int]:
    return [row.result["id"] for row in evaluate(f"SELECT id FROM texts WHERE {where}", _STREAM, _ROWS) if row.result]
