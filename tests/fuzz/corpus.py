"""Well-formed input to begin with: statements of the golden cases and scenarios, records, schemas."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

__all__ = ["COLUMNS", "RECORDS", "SCHEMA", "TOKENS", "statements"]

_TESTS = Path(__file__).parents[1]

COLUMNS = (
    ("symbol", "STRING"), ("price", "DOUBLE"), ("volume", "BIGINT"), ("qty", "INT"), ("flag", "BOOLEAN"),
    ("amount", "DECIMAL(18,4)"), ("day", "DATE"), ("at", "TIMESTAMP"),
)  # fmt: skip
"""Columns of the stream used in statements."""

TOKENS = (
    "SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "IN", "(", ")", ",", ";", "''", "'", '"', "`", "--", "/*", "*/",
    "EVERY", "START", "EXPIRE", "DO", "PUBLISH", "DIGEST", "TOP", "BY", "VIRTUAL", "LIKE", "RLIKE", "ESCAPE", "BETWEEN",
    "CASE", "WHEN", "THEN", "END", "CAST", "AS", "::", "NULL", "IS", "DISTINCT", "1e400", "9" * 45, "0.1", "-", "+",
    "/ 0", "%", "||", "\x00", "\ud800", "\u2028", "é", "😀",
    "repeat(symbol, 1000)", "lpad(symbol, 1000, 'x')", "[", "{",
    "$", "?", ":c0", "@", "_time", "_key", "quotes", "symbol", "price", "amount", "WITH", "JOIN", "UNION", "GROUP BY",
    "CREATE", "DROP", "ALTER", "PAUSE", "CQ", "STREAM", "SHOW", "DESCRIBE", "EXPLAIN", "LIMIT 1", "DECIMAL(38, 38)",
    "regexp_replace", "(a+)+$", "(" * 50, "NOT " * 50, "'10 minutes'", "CRON", "'* * * * *'",
)  # fmt: skip
"""Pieces of statements, and some foreign ones."""

RECORDS = tuple(
    json.dumps(record).encode()
    for record in (
        {},
        {"symbol": "INTC", "price": 99.5, "volume": 2**53 + 1, "qty": -1, "flag": True},
        {"amount": "12345.6789", "day": "2024-02-29", "at": "2024-02-29T23:59:59.999999+02:00"},
        {"symbol": "é\u2028\x00", "price": 1e308, "other": {"a": [1, {"b": None}]}},
        dict.fromkeys((name for name, _ in COLUMNS)),
    )
)
"""Records of the stream, in JSON."""

SCHEMA = json.dumps(
    {
        "type": "record", "name": "R", "fields": [
            {"name": "symbol", "type": ["null", "string"]},
            {"name": "price", "type": "double"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "more", "type": {"type": "map", "values": ["null", "long"]}},
            {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4}},
        ],
    }
)  # fmt: skip
"""Schema of a stream in Avro."""


@cache
def statements() -> tuple[str, ...]:
    """Return the statements of all golden cases and scenarios, and one of each clause."""
    found = [
        "CREATE CQ intel AS SELECT symbol, price FROM quotes WHERE symbol = 'INTC' AND price < 100",
        "CREATE OR REPLACE CQ \"a b\" AS SELECT * FROM quotes WHERE price BETWEEN 1 AND 2 EVERY '1 hour'",
        "CREATE CQ t AS SELECT symbol, price * 2 AS p FROM quotes EVERY CRON '0 8 * * 1' DO PUBLISH DIGEST TOP 5 BY p",
        "ALTER CQ intel SET EVERY '1 hour', EXPIRE AFTER '30 days'",
        "SHOW CQS LIKE 'a%' AFTER 'b' LIMIT 5", "SHOW CQS OF ALL AFTER 'b'", "DROP CQS LIKE 'a%' OF bob",
        "SET QUOTA cqs = 5, views = DEFAULT FOR bob", "SHOW QUOTA FOR bob",
        "PAUSE GROUP g_1", "RESUME GROUP g_1",
        "DROP CQ intel", "PAUSE CQ intel", "RESUME CQ intel",
        "DESCRIBE CQ intel", "EXPLAIN SELECT symbol FROM quotes WHERE symbol LIKE 'IN%' OR price > 5",
        "EXPLAIN STAGES SELECT symbol FROM quotes WHERE NOT (5 < price OR flag)",
        "CREATE STREAM s (a STRING, b DECIMAL(10,2)) WITH (topic = 't', format = 'json', partitions = 2)",
    ]  # fmt: skip
    for path in sorted((_TESTS / "scenarios").glob("*.scenario")):
        found += [line for line in path.read_text().splitlines() if line.startswith("SELECT")]
    for path in sorted((_TESTS / "cases").glob("*/*.case")):
        blocks = path.read_text().split("\n\n")
        found += ["\n".join(block.split("\n----")[0].splitlines()[2:]) for block in blocks if "\n----" in block]
    return tuple(text for text in found if text.strip())
