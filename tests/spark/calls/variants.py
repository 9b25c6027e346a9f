"""The corpus's expressions over VARIANTs: JSON texts read, parts of them found, and CAST to every type."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

__all__ = ["DOCUMENTS", "variant_calls"]

DOCUMENTS = (
    "1", "0", "-7", "128", "3000000000", "9223372036854775807", "-9223372036854775809", "12345678901234567890",
    "1.5", "-2.5", "0.05", "127.9", "2147483647.5", "1732406400.1234567", "1.10", "100.00", "0.00000000001",
    "1234567890123456789012345678901234567.8", "12345678901234567890123456789012345678.9",
    "0.100000000000000000000000000000000000000000", "100000000000000000000000000000000000000", "-0", "-0.0",
    "1e3", "15e-1", "2.345e0", "-1.0000005e0", "1e7", "1e-3", "1e-4", "1e16", "9.3e18", "9.223372036854775807e18",
    "1e300", "-1e400", "1e-400", "-0e0", "1.7324064001234567e9", "0e5",
    "true", "false", "null", '""', '"a"', '" 12 "', '"1.5"', '"1e2"', '"t"', '"2024-02-29"',
    '"2024-02-29 12:34:56.789"', '"2024-02-29T12:34:56+02:00"', '"é😀"', '"NaN"', "[]", "{}", '[1, "2", null, 3.5]',
    '{"a": 1, "b": "x", "c": null}', '{"b": [1.50, 1e3, {"d": null}], "B": true, "a": "q\\"\\\\ \\u001f\\b"}',
    "[[1], [true], 2]", '["a", null, {"k": 1}]',
)  # fmt: skip
"""JSON of every kind, numbers at the ends of their types among it."""
_TYPES = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(3,0)", "DECIMAL(10,2)",
          "DECIMAL(38,18)", "STRING", "DATE", "TIMESTAMP", "BINARY", "ARRAY<INT>", "ARRAY<STRING>",
          "ARRAY<ARRAY<DOUBLE>>")  # fmt: skip
_DOCUMENT = (
    '{"user": {"id": 7, "name": "ann", "a b": [1, {"x": null}]}, "tags": ["p", "q"], "": 1, "*": 2, "a.b": 3, '
    '"A": 4, "a]": 5, " s": 6, "n": null}'
)
_PATHS = (
    "$", "$.user", "$.user.id", "$.user.none", "$.user.name.x", "$.user.a b[1].x", '$["user"].name',
    "$.tags", "$.tags[0]", "$.tags[1]", "$.tags[2]", "$.tags[00]", "$.tags.x", "$[0]", '$[""]', "$.*", '$["*"]',
    '$["a.b"]', "$.a", "$.A", "$.a]", "$. s", "$.n", "$.n.x", "$.user.id.",
)  # fmt: skip
_TEXTS = (
    " 1 ", "1 x", "1x", "1]", '"a"x', "truex", "true]", "true,", "{}x", "[1]]", "[1,]", "[,1]", "{,}", '{"a":}',
    '{"a":1,}', '{"a":1,"a":2}', '{"a":{"b":1,"b":1}}', "{a:1}", "/*c*/1", "nan", "NaN", "Infinity", "+1", ".5",
    "1.", "01", "-", "-01", "1e", "1e+", "", " ", "tru", "null", "nullx", '"\\ud83d\\ude00"', '"\\ud800"', '"\\x"',
    '"\\u12"', '"a', '"tab\there"', "[", "{", '{"a"', '{"a" 1}', "[1 2]", "\ufeff1", "\u00a01", '{"é":1,"z":2}',
)  # fmt: skip


def variant_calls() -> Iterator[str]:
    """Yield the expressions; a result that is a VARIANT is shown as JSON."""
    for value in DOCUMENTS:
        yield f"to_json(parse_json('{value}'))"
        yield f"is_variant_null(parse_json('{value}'))"
    for value, kind in product(DOCUMENTS, _TYPES):
        yield f"TRY_CAST(parse_json('{value}') AS {kind})"
    for path in _PATHS:
        found = f"try_variant_get(parse_json('{_DOCUMENT}'), '{path}'"
        yield f"to_json({found}))"
        yield f"is_variant_null({found}))"
        yield from (f"{found}, '{kind}')" for kind in ("string", "int", "array<string>", "decimal(5,1)"))
    yield from (f"to_json(try_parse_json('{text}'))" for text in _TEXTS)
    yield from (
        "to_json(try_parse_json(CAST(NULL AS STRING)))",
        "is_variant_null(try_parse_json('x'))",
        "parse_json('1') IS NULL",
        "try_parse_json('x') IS NULL",
        "try_variant_get(parse_json('null'), '$') IS NULL",
        "to_json(coalesce(try_parse_json('x'), parse_json('[2]')))",
        "to_json(CASE WHEN TRUE THEN parse_json('1.50') ELSE parse_json('2') END)",
        "try_variant_get(parse_json('1'), '$', 'long')",
        "try_variant_get(parse_json('1'), '$', 'numeric(10,2)')",
        "transform(try_variant_get(parse_json('[1, \"x\", {}]'), '$', 'array<variant>'), x -> to_json(x))",
        "size(try_variant_get(parse_json('[1, null]'), '$', 'array<variant>'))",
        "try_variant_get(parse_json('{\"a\": 1, \"b\": \"7\"}'), '$', 'struct<b: int, a: string, c: int>').b",
        "try_variant_get(parse_json('{\"a\": 1, \"b\": \"x\"}'), '$', 'map<string, int>')['a']",
        "map_keys(try_variant_get(parse_json('{\"b\": 1, \"a\": \"x\"}'), '$', 'map<string, int>'))",
        "greatest(parse_json('1'), parse_json('2'))",
        "parse_json('1') = parse_json('1')",
        "parse_json(1)",
        "hash(parse_json('1'))",
        "array_contains(try_variant_get(parse_json('[\"a\"]'), '$', 'array<string>'), 'a')",
    )
