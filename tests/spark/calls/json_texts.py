"""Calls of from_json and get_json_object: schemas, paths, and texts that suit them, do not, or are cut and broken."""

from __future__ import annotations

import random
from collections.abc import Iterator

from grouping.binding.written_types import written_schema
from grouping.model.sql_type import SqlType

__all__ = ["json_calls"]

_SCHEMAS = (
    "a INT, b STRING, c DOUBLE", "a STRING, b STRUCT<x: INT, y: STRING>, c ARRAY<INT>",
    "m MAP<STRING, INT>, a BOOLEAN, n MAP<STRING, STRING>", "a TINYINT, b SMALLINT, c BIGINT",
    "a DECIMAL(5,2), b DECIMAL(38,0), c DECIMAL(10,3)", "a DATE, b TIMESTAMP, c STRING", "ARRAY<INT>",
    "ARRAY<STRUCT<a: INT, b: STRING>>", "MAP<STRING, INT>", "MAP<STRING, STRUCT<a: INT, b: ARRAY<DOUBLE>>>",
    "a ARRAY<STRUCT<b: INT, c: ARRAY<STRING>>>, b STRUCT<a: STRUCT<c: INT>, b: BOOLEAN>, c MAP<STRING, ARRAY<INT>>",
    "ARRAY<ARRAY<STRING>>", "a STRUCT<a: STRUCT<a: STRUCT<a: INT, b: INT>, b: INT>, b: INT>, b INT",
)  # fmt: skip
_RIGHT = (
    "1", "-0", "200", "-129", "32768", "2147483648", "9223372036854775808", "1.5", "1.0", "-0.0", "1e3", "1E-2",
    "1e400", '"x"', '""', '"1"', '"1.5"', "true", "false", "null", '"true"', '"2026-01-05"', '"123"', "1700000000",
    '"2026-01-05T10:00:00Z"', '"2026-1-5 9:03"', '"2026-01-05T10:00:00GMT+01:00"', '"-00141500"', '"20260105"',
    '"\\u00e9\\ud83d\\ude00"', '"é😀"', '"a\\nb\\"c\\\\"', '"1e2"', '"+5"', '"  5 "', "0.1", "123.456", "99999.995",
    "12345678901234567890123456789012345678901", "NaN", "Infinity", "-Infinity", '"NaN"', '"-INF"', '"INF"',
)  # fmt: skip
_WRONG = (
    "+INF", "-INF", '"\\ud800"', '"\\x"', '"a\tb"', "01", ".5", "1.", "-", "1e", "+1", "tru", "nul", "truex", "nan",
    "None", '"a', "/*c*/1", "abc", '"\\u12"', '"\\u00zz"', "1x", "-x", "1.2.3", "1e5e", "2026-01-05",
)  # fmt: skip
_NAMES = ('"a"', '"b"', '"c"', '"m"', '"x"', '"A"', "b", '"\\u0061"', '""')
_TWISTS = '{}[],:" x1t.-\\'
_EACH = 45
_FORMS = (
    "from_json('{\"a\":1}', 'a INT').a", "from_json('{\"a\":1}', 'a INT').A", "from_json('{\"a\":1}', 'a INT')['a']",
    "from_json('{\"a\":1}', 'STRUCT<a INT>').a", "from_json('{\"a\":1}', 'struct<A: int>').a",
    "from_json('{\"a\":1}', 'a INT NOT NULL').a", "from_json('[1, null]', 'ARRAY<INT>')[1]",
    "size(from_json('[1, null]', 'ARRAY<INT>'))", "from_json('{\"k\":1,\"k\":2}', 'MAP<STRING, INT>')['k']",
    "map_keys(from_json('{\"k\":1,\"k\":2}', 'MAP<STRING, INT>'))", "from_json('', 'a INT') IS NULL",
    "from_json('x', 'a INT') IS NULL", "from_json('x', 'ARRAY<INT>') IS NULL", "from_json('null', 'a INT').a IS NULL",
    "from_json(NULL, 'a INT').a", "from_json(CAST(NULL AS STRING), 'a INT') IS NULL", "from_json(1, 'a INT').a",
    "from_json('{\"a\":1}', 'a: INT').a", "from_json('1', 'INT')", "from_json('{\"a\":1}', 'a INT,').a",
    "from_json('{\"a\":1}', 'a INT b INT').a", "from_json('{\"a\":1}', 'a').a", "from_json('{\"a\":1}', '').a",
    "from_json('{\"a\":1}', 'a INT PRIMARY KEY').a", "from_json('{\"a\":1}', 'a TEXT').a", "from_json('{\"a\":1}').a",
    "from_json('{\"a-b\":1}', '`a-b` LONG').`a-b`", "from_json('{\"a\":1}', 'STRUCT<a INT> x').a",
    "from_json('{\"a\":1}', 'a INT[]').a", "from_json('{\"date\":\"2026-01-05\"}', 'date DATE').date",
    "exists(from_json('[{\"n\":1},{\"n\":3}]', 'ARRAY<STRUCT<n: INT>>'), x -> x.n > 2)",
    "array_contains(from_json('[\"a\",\"b\"]', 'ARRAY<STRING>'), 'b')", "from_json('{\"a\":1}', 'a INT') = 1",
    "from_json(parse_json('{}'), 'a INT').a", "to_json(from_json('{\"a\":1}', 'a INTEGER, b DEC(3,1), c LONG'))",
)  # fmt: skip


_LEAVES = ("1", "1.50", '"x"', '""', "null", "true", '"é😀"', "[]", "{}", "1e3", '"a\\nb"')
_STEPS = ("[*]", "[*]", "[*]", "[0]", "[1]", ".a", ".b")
_PATHS = 60


def json_calls() -> Iterator[str]:
    """Yield the expressions; a result with parts is shown as JSON."""
    yield from _FORMS
    yield from _found_by_paths()
    drawn = random.Random("from_json")
    for schema in _SCHEMAS:
        sql_type = written_schema(schema)
        for _ in range(_EACH):
            yield f"to_json(from_json('{_Text(drawn, sql_type).made}', '{schema}'))"


class _Text:
    """A text for a type."""

    def __init__(self, drawn: random.Random, sql_type: SqlType) -> None:
        self._drawn = drawn
        self.made = self._twisted(self._suiting(sql_type) if drawn.random() < 0.85 else self._any(2))

    def _suiting(self, sql_type: SqlType) -> str:
        drawn = self._drawn
        if drawn.random() < 0.12:
            return self._any(2)
        if sql_type.fields:
            fields = [field for field in sql_type.fields for _ in range(drawn.choice((0, 1, 1, 1, 1, 1, 1, 2)))]
            drawn.shuffle(fields)
            return "{" + ", ".join(f'"{name}": {self._suiting(field)}' for name, field in fields) + "}"
        if sql_type.element is not None:
            parts = [self._suiting(sql_type.element) for _ in range(drawn.randrange(4))]
            if sql_type.key is None:
                return f"[{','.join(parts)}]"
            return "{" + ",".join(f'"{drawn.choice("abc")}":{part}' for part in parts) + "}"
        return drawn.choice(_RIGHT)

    def _any(self, levels: int) -> str:
        drawn = self._drawn
        kind = drawn.random()
        if not levels or kind < 0.5:
            return drawn.choice(_RIGHT if drawn.random() < 0.6 else _WRONG)
        parts = [self._any(levels - 1) for _ in range(drawn.randrange(4))]
        if kind < 0.75:
            return f"[{drawn.choice((',', ' , ', ',,', ';') if drawn.random() < 0.2 else (',',)).join(parts)}]"
        return "{" + ",".join(f"{drawn.choice(_NAMES)}:{part}" for part in parts) + "}"

    def _twisted(self, text: str) -> str:
        drawn = self._drawn
        kind, place = drawn.random(), drawn.randrange(len(text) + 1)
        if kind < 0.12:
            return text[:place]
        if kind < 0.2:
            return text[:place] + drawn.choice(_TWISTS) + text[place + drawn.randrange(2) :]
        if kind < 0.24:
            return drawn.choice(("", " ", "\ufeff")) + text + drawn.choice(("x", "}", ",{}", " "))
        return text


def _found_by_paths() -> Iterator[str]:
    """Yield calls with ``[*]`` in their paths, and arrays in arrays."""
    drawn = random.Random("get_json_object")
    for _ in range(_PATHS):
        path = "".join(drawn.choice(_STEPS) for _ in range(drawn.randint(1, 4)))
        for _ in range(3):
            text = _nested(drawn, 4)
            yield f"get_json_object('{text if drawn.random() < 0.9 else text[:-1]}', '$[*]{path}')"
            yield f"get_json_object('{{\"a\": {text}}}', '$.a{path}')"


def _nested(drawn: random.Random, levels: int) -> str:
    kind = drawn.random()
    if not levels or kind < 0.3:
        return drawn.choice(_LEAVES)
    parts = [_nested(drawn, levels - 1) for _ in range(drawn.randrange(4))]
    if kind < 0.7:
        return f"[{', '.join(parts)}]"
    return "{" + ", ".join(f'"{drawn.choice("ab")}": {part}' for part in parts) + "}"
