"""The expressions of the conformance corpus: every function and operator over the corners of its parameters' types.

They are made of the compiler's own table of functions, so that a new function is in the corpus once it is in the table;
operators, CASTs and forms of a grammar of their own are listed here. The same expressions come out on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product

from grouping.functions.functions import ALIASES, CASTING, CASTS, FUNCTIONS, REWRITTEN, Function
from tests.spark.array_calls import array_calls
from tests.spark.decimal_calls import decimal_calls
from tests.spark.map_calls import map_calls
from tests.spark.variant_calls import variant_calls

__all__ = ["calls"]

_NULL = "NULL"
_POOLS: dict[str, tuple[str, ...]] = {
    "STRING": (
        "''", "'a'", "'Hello World'", "'é😀x'", "'a\u0301bc'", "' 12 '", "'-7'", "'a,b,,c'", "'2024-02-29'", "'ﬁß ǆ'",
        "'100%_x'", "'41c3A9'", "'true'", "'1e3'", "'\u2167½Z9'", "'T0sgbm8=' ", "CAST(NULL AS STRING)", _NULL,
        "12", "TRUE", "DATE'2024-02-29'",
    ),
    "INT": ("0", "1", "-1", "2", "7", "16", "21", "2147483647", "-2147483648", "CAST(NULL AS INT)", _NULL, "3Y"),
    "WHOLE": ("0", "1", "-3", "65", "3000000000", "9223372036854775807L", "-9223372036854775808L", "255Y", "7S",
              "CAST(NULL AS BIGINT)", _NULL, "-2147483648"),
    "DOUBLE": ("0", "1.5D", "-2.5D", "0.1D", "1e300", "DOUBLE('NaN')", "DOUBLE('Infinity')", "DOUBLE('-Infinity')",
               "-0.0D", "2.25", "100", "1e-300", "CAST(NULL AS DOUBLE)", _NULL, "'3.5'", "FLOAT(1.1D)"),
    "BOOLEAN": ("TRUE", "FALSE", _NULL, "CAST(NULL AS BOOLEAN)"),
    "DATE": ("DATE'2024-02-29'", "DATE'1969-12-31'", "DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'1582-10-15'",
             "DATE'2023-03-31'", "'2024-01-31'", "TIMESTAMP'2024-02-29 23:59:59.999999'", "CAST(NULL AS DATE)", _NULL),
    "TIMESTAMP": ("TIMESTAMP'2024-02-29 12:34:56.789012'", "TIMESTAMP'1969-12-31 23:59:59.999999'",
                  "TIMESTAMP'2024-03-31 01:30:00'", "TIMESTAMP'2024-10-27 00:30:00'", "TIMESTAMP'0001-01-01 00:00:00'",
                  "TIMESTAMP'9999-12-31 23:59:59.999999'", "TIMESTAMP'1900-01-01 00:00:00'", "DATE'2024-03-10'",
                  "'2024-11-03 06:30:00'", "CAST(NULL AS TIMESTAMP)", _NULL),
    "NUMBER": ("0", "-7", "2147483647", "-2147483648", "9223372036854775807L", "1.25", "-2.50", "99999999.995",
               "0.5D", "-2.5D", "1e300", "DOUBLE('NaN')", "3Y", "-4S", "12345678901234567890.123456",
               "CAST(-0.05 AS DECIMAL(38,18))", "'12'", "CAST(NULL AS DECIMAL(10,2))", _NULL, "FLOAT(0.3D)"),
    "VALUE": ("0", "-1", "3000000000", "5Y", "300S", "TRUE", "1.5", "-2.50", "12345678901234567890.5", "0.0D", "-0.0D",
              "DOUBLE('NaN')", "1.5D", "FLOAT(1.5D)", "FLOAT(-0.0D)", "''", "'a'", "'abcd'", "'abcdé'", "'😀'",
              "'0123456789abcdef0123456789abcdef'", "'0123456789abcdef0123456789abcdef+12345678+1234+xyz'",
              "X''", "X'1F80FF'", "DATE'1969-12-31'", "DATE'2024-02-29'", "TIMESTAMP'1969-12-31 23:59:59.999999'",
              "TIMESTAMP'2024-02-29 12:34:56'", _NULL, "CAST(NULL AS STRING)", "CAST(1 AS DECIMAL(38,0))",
              "CAST(-129 AS DECIMAL(20,1))"),
    "COMMON": ("1", "2L", "-2.5", "1.5D", "DOUBLE('NaN')", "'a'", "'é'", "''", "TRUE", "DATE'2024-02-29'",
               "TIMESTAMP'2024-02-29 00:00:00'", _NULL, "X'00'", "X'FF01'", "CAST(NULL AS INT)", "3Y", "FLOAT(2.5D)"),
    "ANY": ("1", "'a'", "-2.5", "1.5D", "TRUE", "DATE'2024-02-29'", "TIMESTAMP'2024-02-29 12:34:56.789'", _NULL,
            "X'61'",
            "'2024-02-29 10:00:00'", "' 7 '", "CAST(NULL AS DOUBLE)", "3000000000", "-129", "DOUBLE('NaN')", "''"),
    "COUNT": ("0", "1", "3", "-1", "12", _NULL),
    "SCALE": ("0", "1", "2", "-1", "-3", "5", "-20", "18"),
    "LIKE": ("'%'", "'a%'", "'%b%'", "''", "'_'", "'é_x'", "'100\\%\\_x'", _NULL, "'%o W%d'", "'Hello World'"),
    "ESCAPE": ("'!'", "'\\'"),
    "PATTERN": ("'a'", "'^H.*d$'", "'(?i)h'", "'[0-9]+'", "'é.x'", "'\\d'", "'b|c'", "'\\s'", "'x{2,}'", _NULL),
    "GROUPS": ("'(a)'", "'([0-9]+)'", "'(\\w)(\\w)'", "'o'", _NULL),
    "OCCURRENCES": ("'a'", "'[0-9]'", "','", "'o W'", "'[a-z]+'"),
    "REPLACEMENT": ("'x'", "''", "'<>'"),
    "MASK": ("'X'", "'*'", _NULL),
    "PRINTF": ("'%s'", "'a%5sb'", "'%-4s|'", "'%%'"),
    "PRINTED": ("'é😀'", "7", "-3000000000", "TRUE", _NULL),
    "ZONE": ("'UTC'", "'Europe/Madrid'", "'America/New_York'", "'Asia/Kathmandu'", "'+05:30'", "'PST'",
             "'Europe/Amsterdam'", _NULL),
    "UNIT": ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"),
    "FIELD": ("'year'", "'quarter'", "'month'", "'week'", "'day'", "'dow'", "'doy'", "'hour'", "'minute'", "'second'"),
    "FORMAT": ("'yyyy-MM-dd'", "'yyyy-MM-dd HH:mm:ss'", "'dd/MM/yy'", "'HH:mm:ss.SSS'", "'yyyyMMdd'"),
    "SECONDS": ("0", "59.999999", "60", "12.5", "-1", _NULL),
}  # fmt: skip
"""By parameter as `grouping.functions.function` names them: what stands for it."""
_POOLS["DAY"] = _POOLS["DATE"] + _POOLS["TIMESTAMP"]
_POOLS["BYTES"] = (*_POOLS["STRING"], "X''", "X'00FF7E'", "X'C3A9'", "CAST('é' AS BINARY)", "X'feff0041'")
_POOLS["TEXT"] = _POOLS["BYTES"]
_POOLS["HEXED"] = (*_POOLS["BYTES"], *_POOLS["WHOLE"])
_URLS = (
    "'http://spark.apache.org/path?query=1'",
    "'https://ann:pw@h.example.com:8080/a/b;c?q=1&p=%20x&q=2#top'",
    "'ftp://1.2.3.4/x'",
    "'http://[::1]:80/i'",
    "'http://my_host/x?id=7'",
    "'http://a-.com/x'",
    "'http://h:/p'",
    "'http://h:x/p'",
    "'mailto:ann@x.org'",
    "'/a/b?c=d#e'",
    "'?q=1'",
    "'#f'",
    "''",
    "'http://'",
    "'http:///p'",
    "'file:///etc/x?y'",
    "'http://é.org/ü?ö=1#ß'",
    "'http://h/a b'",
    "'http://h/a|b'",
    "'http://h/%zz'",
    "'http://h/a%41?x=[1]'",
    "'http://h/[x]'",
    "'1http://h/'",
    "'a+b-c.d:x'",
    "'http://h?id=5&xid=6&id=7'",
    "'http://h/p?id=&b'",
    "'http://256.1.1.1/'",
    "'http://1.2.3/'",
    "'http://h.1x/'",
    "'http://h.x1./'",
    "'http://@h/'",
    "'http://u@/'",
    "'http://u%41:x@h/'",
    "'http://h%41/'",
    "'urn:isbn:1?x#y'",
    "'//h/p'",
    "'http:/x'",
    "'http:x'",
    "'::'",
    "'http://h/a\\b'",
    "'http://h/😀'",
    "'http://h/ '",
    "'http://h:99999999999/'",
    "'http://h:80:80/'",
    "'http://a..b/'",
    "'http://-a/'",
    "'http://h#a#b'",
    "'http://h/p?a#'",
    "'NO'",
    "'http://h/^'",
    "CAST(NULL AS STRING)", _NULL,
)  # fmt: skip
_SPECIAL: dict[tuple[str, int], tuple[str, ...]] = {
    ("conv", 0): ("'ff'", "'-10'", "'zz'", "'18446744073709551615'", "'18446744073709551616'", "''", "' 12x'", "'1é'",
                  "'-ff'", "100", "'-'", _NULL, "'9223372036854775808'", "'ABCDEFGHIJKLMNOPQRSTUVWXYZ'"),
    ("conv", 1): ("10", "16", "36", "2", "1", "37", "-10", _NULL),
    ("conv", 2): ("10", "16", "-10", "36", "2", "-16", "0", _NULL),
    ("unhex", 0): ("'1F'", "'f'", "''", "'zz'", "'AbCd'", "' 1'", "'é'", _NULL, "12", "'0x1F'"),
    ("unbase64", 0): ("'YQ=='", "'YQ'", "'YWI='", "'YWI'", "'YWJj'", "''", "'Y'", "'Y='", "'YQ='", "'='", "'Y W J j'",
                      "'YWJj!!'", "'YQ==x'", "'YWI=Yg=='", "'é'", "'YQ==\\n'", "'YR=='", _NULL, "'YQ=x'"),
    **{(name, 1): ("'UTF-8'", "'utf-16'", "'UTF-16LE'", "'UTF-16BE'", "'ISO-8859-1'", "'US-ASCII'", "'UTF-32'", "'x'",
                   "'latin1'", _NULL) for name in ("encode", "decode")},
    ("decode", 0): ("X'61'", "X'C3A9'", "X'FF'", "X'FEFF0041'", "X'FFFE4100'", "X'0041'", "X'D83DDE00'", "X'EDA080'",
                    "X''", "'é'", "X'0000FEFF00000041'", "X'00000041'", "X'61C3'", _NULL, "X'D800'"),
    ("encode", 0): ("'a'", "'é😀'", "''", "'a\u0301'", _NULL, "12", "'ÿ'"),
    ("sha2", 1): ("0", "224", "256", "384", "512", "1", _NULL),
    ("factorial", 0): ("0", "1", "20", "21", "-1", _NULL, "CAST(5 AS BIGINT)", "5Y"),
    ("width_bucket", 3): ("1", "10", "0", "-1", "9223372036854775807L", "9223372036854775806L", _NULL),
    ("next_day", 1): ("'MON'", "'tu'", "'Friday'", "'x'", _NULL),
    ("trunc", 1): ("'year'", "'MM'", "'week'", "'quarter'", "'day'", "'x'", _NULL),
    ("date_trunc", 0): ("'year'", "'quarter'", "'month'", "'week'", "'day'", "'hour'", "'minute'", "'second'",
                        "'millisecond'", "'microsecond'", "'x'", _NULL),
    **{(name, 0): (
        """'[1, [2, 3], {"a": 4}]'""", "'[]'", "' [ ] x'", "'[1,]'", "'[1 2]'", "'[1'", "'[nul]'", "'[01]'", "''",
        "'7'", "'null'", """'{"a": 1}'""", """'{"a": {"b": [1]}, "c": null, "a": 2}'""", "'{}'",
        """'{"é😀": 1} rest'""",
        """'{"a": 1,}'""", """'{a: 1}'""", """'{"a"}'""", """'{"": 1e400, "b": -0.0}'""", """'["x''y", true]'""",
        "'[\t1,\n2]'", _NULL, "5", """'{"a": 1}{"b": 2}'""", "'[[[[]]]]'", """'["unclosed]'""", "'[NaN]'",
    ) for name in ("json_array_length", "json_object_keys")},
    ("locate", 0): ("'a'", "''", "'o'", "'😀'", "'zz'", _NULL),
    ("position", 0): ("'a'", "''", "'o'", "'x'"),
    ("space", 0): ("0", "3", "-1"),
    ("chr", 0): ("65", "233", "256", "-1", "0", "8364L", _NULL),
    ("make_date", 0): ("2024", "0", "9999", "-1", _NULL),
    ("make_timestamp", 0): ("2024", "1900", "9999", "0"),
    **{("make_timestamp", place): ("1", "2", "10", "29") for place in (1, 2)},
    **{("make_timestamp", place): ("0", "1", "2", "23") for place in (3, 4)},
    ("parse_url", 0): _URLS,
    ("parse_url", 1): ("'HOST'", "'PATH'", "'QUERY'", "'REF'", "'PROTOCOL'", "'FILE'", "'AUTHORITY'", "'USERINFO'",
                       "'host'", "'QUERY'", "'QUERY'", _NULL),
    ("parse_url", 2): ("'id'", "'q'", "'x'", "'id'", "''", _NULL),
    ("elt", 0): ("1", "2", "0", "-1", "5", _NULL),
}  # fmt: skip
_EACH, _EACH_ALIAS = 44, 4
"""Calls of a function, and of one of its other names."""

_NUMBERS = ("0", "1", "-7", "3Y", "-4S", "2147483647", "-9223372036854775807L", "1.25", "-2.50", "0.0", "1.5D",
            "12345678901234567890.123456", "DOUBLE('NaN')", "'12'", _NULL, "FLOAT(0.3D)", "TRUE",
            "CAST(7 AS DECIMAL(38,0))", "CAST(-0.5 AS DECIMAL(38,38))")  # fmt: skip
_COMPARED = ("1", "1.0", "1.5D", "'1'", "'a'", "'é'", "TRUE", "DATE'2024-02-29'", "'2024-02-29'",
             "TIMESTAMP'2024-02-29 00:00:00'", _NULL, "X'61'", "X''", "X'62'", "DOUBLE('NaN')", "-0.0D", "0",
             "9007199254740993L", "FLOAT(1.5D)")  # fmt: skip
_BITS = ("0", "1", "-1", "5Y", "-7S", "3000000000", "-9223372036854775808L", _NULL, "1.5", "'3'")
_INTERVALS = (
    "INTERVAL '.5' SECOND", "INTERVAL '12:30.25' MINUTE TO SECOND", "INTERVAL '5.' SECOND", "make_dt_interval()",
    "make_dt_interval(1, 2)", "make_dt_interval(1, 2, 3, 4.5)", "make_dt_interval(0, 0, 0, -1.000001)",
    "make_dt_interval(0, 25, 61, 100)", "make_dt_interval(1, 2, NULL)", "make_dt_interval(106751991, 5)",
    "make_dt_interval(0, 0, 0, 1.5D)", "make_dt_interval(0, 0, 0, 0.0000005)", "make_dt_interval(3000000000)",
    "make_dt_interval(106751992, -24)", "make_dt_interval(0, 0, 0, 1234567890123.5)", "make_dt_interval('1')",
    "make_ym_interval()", "make_ym_interval(1)", "make_ym_interval(1, 2)", "make_ym_interval(0, -14)",
    "make_ym_interval(178956970, 7)", "make_ym_interval(178956971, -12)", "make_ym_interval(NULL, 1)",
    "INTERVAL 5 MINUTES", "INTERVAL '1.5' SECOND", "INTERVAL 1.5 SECONDS", "INTERVAL '-0.000001' SECOND",
    "INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL 3 MONTHS", "INTERVAL '1-2' YEAR TO MONTH", "INTERVAL -1 DAY",
    "INTERVAL 2 WEEKS", "INTERVAL '1 day 2 hours'", "INTERVAL 1.5 HOURS", "INTERVAL '1.5' DAY",
    "INTERVAL '1.5 seconds'", "INTERVAL 0.5 SECOND",
)  # fmt: skip
_FORMS = (
    "position('a' IN 'banana')", "position('' IN 'x')", "position('😀' IN 'é😀')", "locate('a', 'banana', 3)",
    "position('a', 'banana', 4)", "locate('a', 'banana', 0)", "locate('a', 'banana', NULL)", "locate('', 'abc', 2)",
    "substring('banana' FROM 2 FOR 3)", "substr('banana', -3)", "trim(BOTH 'a' FROM 'aba')", "X'1f' = X'1F'",
    "X'1F' < X'20'", "X'1' = X'01'", "X'61' = 'a'", "X'61' IN (X'61', X'62')", "X'FF' > X'7F'", "X'' < X'00'",
    "X'61' <=> NULL", "X'61' BETWEEN X'60' AND X'62'", "length(X'C3A9')", "octet_length('é')", "bit_length(X'C3A9')",
    "NOT TRUE", "NOT NULL", "TRUE AND NULL", "FALSE AND NULL", "TRUE OR NULL", "'a' || 'b' || NULL", "'a' || 1",
    "CASE WHEN NULL THEN 1 ELSE 2 END", "CASE 1 WHEN 1 THEN 'a' END", "1 IN (1, NULL)", "2 IN (1, NULL)",
    "1.25 IN (1.25, 2.50)", "1.25 IN (2.5, NULL)", "2.5 IN (1.25, 2.50, 7)",
    "'b' BETWEEN 'a' AND 'c'", "NULL IS NULL", "1 IS DISTINCT FROM NULL", "-(-2147483648)", "- -1", "+1.5", "~5",
    "EXTRACT(YEAR FROM DATE'2024-02-29')", "EXTRACT(SECOND FROM TIMESTAMP'2024-02-29 12:34:56.789')",
    "'Abc' ILIKE 'aB%'", "'a%c' LIKE 'a!%c' ESCAPE '!'", "'abc' RLIKE '^a.c$'", "size(array(1, 2))",
    "array_contains(array('a', 'b'), 'b')", "element_at(array(1, 2), 2)", "split('a,b', ',')[1]",
    "get(array('x'), 3)", "arrays_overlap(array(1), array(1, 2))", "exists(array(1, 2), x -> x > 1)",
    "get_json_object('{\"a\": {\"b\": 1}}', '$.a.b')", "hash(1, 'a', NULL, TRUE)", "xxhash64(1, 'a', NULL, 2.5)",
    "hash()", "pmod(hash('user-1'), 100)", "hex(encode('é', 'UTF-16'))", "decode(unbase64('w6k='), 'UTF-8')",
    "-9223372036854775808L", "-128Y", "-32768S", "9223372036854775808", "128Y", "base64(unhex('61'))",
)  # fmt: skip


_NUMBER_TEXTS = (
    "'454'",
    "'-454'",
    "'+4'",
    "'4-'",
    "'<4.5>'",
    "'$78.12'",
    "'-$5'",
    "'12,454.8'",
    "'1,2'",
    "'1234'",
    "' 5'",
    "'5 '",
    "'4 5'",
    "'.5'",
    "'5.'",
    "'5.55'",
    "'005'",
    "''",
    "' '",
    "'-'",
    "'$'",
    "'a'",
    "'5a'",
    "',5'",
    "'5,'",
    "'٥'",
    "'5 5'",
    "NULL",
    "12",
    "1.25",
    "'--5'",
    "'<5'",
    "'5>'",
    "'1,234,567.89'",
    "'.'",
    "'0'",
)
_NUMBER_FORMATS = (
    "999",
    "000",
    "9",
    "0",
    "9.9",
    "99.99",
    "999.99",
    "$99.99",
    "S999",
    "999S",
    "MI999",
    "999MI",
    "999PR",
    "9,999",
    "0,000",
    "99,999.9",
    "9,999,999.99",
    "9G999D9",
    "s9",
    "S$9.9",
    "9.",
    "90,09",
    "$9S",
    "0.00",
    "99PR",
)
"""Texts that are numbers, and formats."""
_LINES = ("a@b.c", "a@b.c\r\n", "a\r", "a\r\n", "a\n", "a\n\n", "\r\n", "a\u2028", "", "ab\u0085", "a\n\r")
_ENDED = ("^[^@]+@[^@]+$", "^a[^@]$", "[^,]*$", "\\s$", "^a\\s$", "a\\W?$", "^a\\s+$", "^\\D\\D?$", "x|a[^b]$",
          "^a\\b$", "^[^x]*\\b$", "^\\S$")  # fmt: skip
"""Texts with line ends, and patterns that end in ``$`` and take these themselves."""


def calls() -> list[str]:
    """Return the expressions, each once, in an order that does not change."""
    made: dict[str, None] = {}
    for name in sorted({*FUNCTIONS, *REWRITTEN}):
        made.update(dict.fromkeys(_calls_of(name, name, FUNCTIONS.get(name) or REWRITTEN[name], _EACH)))
    for alias, name in sorted(ALIASES.items()):
        made.update(dict.fromkeys(_calls_of(alias, name, FUNCTIONS[name], _EACH_ALIAS)))
    made.update(dict.fromkeys(_operators()))
    made.update(dict.fromkeys(_FORMS))
    made.update(dict.fromkeys(array_calls()))
    made.update(dict.fromkeys(variant_calls()))
    made.update(dict.fromkeys(decimal_calls()))
    made.update(dict.fromkeys(map_calls()))
    numbers = _chosen("to_number", (_NUMBER_TEXTS, _NUMBER_FORMATS), 320)
    made.update(dict.fromkeys(f"try_to_number({text}, '{form}')" for text, form in numbers))
    made.update(dict.fromkeys(f"'{text}' RLIKE '{pattern}'" for text, pattern in product(_LINES, _ENDED)))
    return list(made)


def _calls_of(written: str, name: str, function: Function, most: int) -> Iterator[str]:
    """Yield calls with as few and as many arguments as a function takes; one more and one less are refused."""
    least, params = len(function.params) - function.optional, function.params
    counts = {least, len(params), *([len(params) + 1, len(params) + 2] if function.variadic else [])}
    for count in sorted(counts):
        pools = [_pool(name, place, params[min(place, len(params) - 1)]) for place in range(count)]
        turned = written in ("trim", "ltrim", "rtrim") and count == 2
        for args in _chosen(f"{written} {count}", pools, most // len(counts)):
            yield f"{written}({', '.join(args[::-1] if turned else args)})"
    strange = random.Random(f"{written} strange")
    for _ in range(6 if most == _EACH else 1):
        yield f"{written}({', '.join(strange.choice(_POOLS['VALUE']) for _ in range(max(least, 1)))})"


def _pool(name: str, place: int, param: str) -> tuple[str, ...]:
    return _SPECIAL.get((name, place)) or _POOLS[param]


def _chosen(seed: str, pools: Sequence[Sequence[str]], most: int) -> list[tuple[str, ...]]:
    """Return every combination where they are few; else so many, in which each value of each pool stands if it can."""
    every = 1
    for pool in pools:
        every *= len(pool)
    if every <= most:
        return list(product(*pools))
    drawn = random.Random(seed)
    columns = []
    for pool in pools:
        column = [value for _ in range(most // len(pool) + 1) for value in drawn.sample(pool, len(pool))]
        columns.append(column[:most])
    return list(zip(*columns, strict=True))


def _operators() -> Iterator[str]:
    for op in ("+", "-", "*", "/", "%", "div"):
        yield from (f"{a} {op} {b}" for a, b in _chosen(op, (_NUMBERS, _NUMBERS), 60))
    for op in ("=", "<>", "<", ">=", "<=>"):
        yield from (f"{a} {op} {b}" for a, b in _chosen(op, (_COMPARED, _COMPARED), 60))
    for op in ("&", "|", "^", "<<", ">>"):
        yield from (f"{a} {op} {b}" for a, b in _chosen(op, (_BITS, _BITS), 16))
    for op in ("+", "-"):
        times = ("DATE'2024-03-31'", "TIMESTAMP'2024-02-29 12:00:00'", _NULL, "'2024-02-29'")
        yield from (f"{a} {op} {b}" for a, b in product(times, _INTERVALS))
    kinds = ("DECIMAL(10,2)", "DECIMAL(38,6)", *sorted(CASTING))
    for value in dict.fromkeys((*_POOLS["ANY"], *_NUMBERS, *_POOLS["STRING"])):
        drawn = random.Random(f"cast {value}")
        yield from (f"CAST({value} AS {kind.upper()})" for kind in drawn.sample(kinds, 8))


assert CASTS.keys() <= {kind.upper() for kind in CASTING} | {"VARIANT"}
