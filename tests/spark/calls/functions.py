"""The expressions of the conformance corpus: every function and operator over the corners of its parameters' types.

The expressions are made from the compiler's table of functions, so the corpus includes each new function. Operators,
CASTs and special forms are listed here. The expressions are the same on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product

from grouping.functions.any_type import CASTING
from grouping.functions.function import Function
from grouping.functions.functions import CASTS, GROUPS
from tests.spark.calls.arguments import NULL, POOLS, SPECIAL
from tests.spark.calls.arrays import array_calls
from tests.spark.calls.corners import corner_calls
from tests.spark.calls.decimals import decimal_calls
from tests.spark.calls.json_texts import json_calls
from tests.spark.calls.maps import map_calls
from tests.spark.calls.variants import variant_calls

__all__ = ["calls"]

_EACH, _EACH_ALIAS = 44, 4
"""Calls of a function, and of one of its other names."""
_LISTED = ("Parts of nested values", "Aggregates")
"""Groups of functions with calls that are listed by hand."""

_NUMBERS = ("0", "1", "-7", "3Y", "-4S", "2147483647", "-9223372036854775807L", "1.25", "-2.50", "0.0", "1.5D",
            "12345678901234567890.123456", "DOUBLE('NaN')", "'12'", NULL, "FLOAT(0.3D)", "TRUE",
            "CAST(7 AS DECIMAL(38,0))", "CAST(-0.5 AS DECIMAL(38,38))")  # fmt: skip
_COMPARED = ("1", "1.0", "1.5D", "'1'", "'a'", "'é'", "TRUE", "DATE'2024-02-29'", "'2024-02-29'",
             "TIMESTAMP'2024-02-29 00:00:00'", NULL, "X'61'", "X''", "X'62'", "DOUBLE('NaN')", "-0.0D", "0",
             "9007199254740993L", "FLOAT(1.5D)")  # fmt: skip
_BITS = ("0", "1", "-1", "5Y", "-7S", "3000000000", "-9223372036854775808L", NULL, "1.5", "'3'")
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
_WRITTEN_NUMBERS = (
    "0", "-0.5", "12", "-12", "1234.5", "-1234.56", "0.05", "1.005", "123456.789", "7L", "-3Y", "1.25D", "-0.0D",
    "0.1D", "1e20D", "DOUBLE('NaN')", "FLOAT(0.5D)", "FLOAT(0.1D)", "' 12 '", "'x'", "CAST(1.500 AS DECIMAL(5,3))",
    "NULL", "CAST(NULL AS DECIMAL(10,2))", "TRUE", "-99999999999999999999",
)  # fmt: skip
_WRITTEN_FORMATS = (
    "9,999PR",
    "S9,999",
    "9,999.99MI",
    "0,999",
    "$0,999.99",
    "9.MI",
    "99.S",
    "MI9.9",
    "9PR",
    "999D",
    "$99PR",
)
"""Numbers that are written, and formats besides."""
_LINES = ("a@b.c", "a@b.c\r\n", "a\r", "a\r\n", "a\n", "a\n\n", "\r\n", "a\u2028", "", "ab\u0085", "a\n\r")
_ENDED = ("^[^@]+@[^@]+$", "^a[^@]$", "[^,]*$", "\\s$", "^a\\s$", "a\\W?$", "^a\\s+$", "^\\D\\D?$", "x|a[^b]$",
          "^a\\b$", "^[^x]*\\b$", "^\\S$")  # fmt: skip
"""Texts with line ends, and patterns that end in ``$`` and take these themselves."""


def calls() -> list[str]:
    """Return the expressions, each once, in an order that does not change."""
    made: dict[str, None] = {}
    plain = {row.name: row for title, rows in GROUPS.items() if title not in _LISTED for row in rows}
    for name in sorted(plain):
        made.update(dict.fromkeys(_calls_of(name, plain[name], _EACH)))
    for alias, row in sorted((alias, one) for one in plain.values() for alias in one.aliases):
        made.update(dict.fromkeys(_calls_of(alias, row, _EACH_ALIAS)))
    made.update(dict.fromkeys(_operators()))
    made.update(dict.fromkeys(_FORMS))
    made.update(dict.fromkeys(array_calls()))
    made.update(dict.fromkeys(variant_calls()))
    made.update(dict.fromkeys(decimal_calls()))
    made.update(dict.fromkeys(map_calls()))
    made.update(dict.fromkeys(corner_calls()))
    made.update(dict.fromkeys(json_calls()))
    numbers = _chosen("to_number", (_NUMBER_TEXTS, _NUMBER_FORMATS), 320)
    made.update(dict.fromkeys(f"try_to_number({text}, '{form}')" for text, form in numbers))
    written = _chosen("to_char", (_WRITTEN_NUMBERS, (*_NUMBER_FORMATS, *_WRITTEN_FORMATS)), 160)
    made.update(dict.fromkeys(f"to_char({number}, '{form}')" for number, form in written))
    made.update(dict.fromkeys(f"'{text}' RLIKE '{pattern}'" for text, pattern in product(_LINES, _ENDED)))
    return list(made)


def _calls_of(written: str, function: Function, most: int) -> Iterator[str]:
    """Yield calls with as few and as many arguments as a function takes; one more and one less are refused."""
    least, params = len(function.params) - function.optional, function.params
    counts = {least, len(params), *([len(params) + 1, len(params) + 2] if function.variadic else [])}
    for count in sorted(counts):
        pools = [_pool(function.name, place, params[min(place, len(params) - 1)]) for place in range(count)]
        turned = written in ("trim", "ltrim", "rtrim") and count == 2
        for args in _chosen(f"{written} {count}", pools, most // len(counts)):
            yield f"{written}({', '.join(args[::-1] if turned else args)})"
    strange = random.Random(f"{written} strange")
    for _ in range(6 if most == _EACH else 1):
        yield f"{written}({', '.join(strange.choice(POOLS['VALUE']) for _ in range(max(least, 1)))})"


def _pool(name: str, place: int, param: str) -> tuple[str, ...]:
    return SPECIAL.get((name, place)) or POOLS[param]


def _chosen(seed: str, pools: Sequence[Sequence[str]], most: int) -> list[tuple[str, ...]]:
    """Return every combination where they are few; else `most`, in which each value of each pool stands if it can."""
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
        times = ("DATE'2024-03-31'", "TIMESTAMP'2024-02-29 12:00:00'", NULL, "'2024-02-29'")
        yield from (f"{a} {op} {b}" for a, b in product(times, _INTERVALS))
    kinds = ("DECIMAL(10,2)", "DECIMAL(38,6)", *sorted(CASTING))
    for value in dict.fromkeys((*POOLS["ANY"], *_NUMBERS, *POOLS["STRING"])):
        drawn = random.Random(f"cast {value}")
        yield from (f"CAST({value} AS {kind.upper()})" for kind in drawn.sample(kinds, 8))


assert CASTS.keys() <= {kind.upper() for kind in CASTING} | {"VARIANT"}
