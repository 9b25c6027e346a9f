"""Random expressions that are nearly right: calls with odd arguments, odd intervals, casts, lists and operators."""

from __future__ import annotations

import random

from grouping.functions.functions import ALIASES, FUNCTIONS
from grouping.values.intervals import UNITS

__all__ = ["odd_expression"]

_NAMES = sorted(
    name
    for name in {
        *ALIASES, *FUNCTIONS,
        "trim", "extract", "position", "overlay", "like", "rlike", "if", "struct", "named_struct", "sequence",
    }
    if name.isidentifier()
)  # fmt: skip
_LEAVES = (
    "symbol", "price", "volume", "qty", "flag", "amount", "day", "at", "_headers", "_value", "_key", "NULL",
    "TRUE", "''",
    "'a'", "'1'", "'-1'", "'2026-01-01'", "'%'", "'('", "'$.a'", "'UTC'", "'yyyy'", "'''", "0", "1", "-1", "2",
    "5", "99", "64",
    "2147483647", "-2147483648", "2147483648", "9223372036854775808", "1.5", "-0.0", "1e308", "1e-400", "0.1e1",
    "99999999999999999999999999999999999999", "X''", "X'00ff'", "array()", "array(1, 2)", "array('a', NULL)", "map()",
    "map('a', 1)", "struct(qty)", "named_struct('a', 1)", "DATE '2026-01-31'", "TIMESTAMP '2026-01-01 00:00:00'",
    "x -> x", "x -> x > 1", "(x, y) -> x + y", "x -> NULL", "(x, y) -> x", "parse_json(symbol)", "1L", "1Y",
    "2.5BD", "*",
)  # fmt: skip
_OPERATORS = (
    "+ - * / % div || & | ^ << >> >>> = <> < <= > >= <=> == AND OR IS LIKE RLIKE ILIKE BETWEEN IN NOT ! :: -> "
    "?? XOR MOD"
).split()
_PREDICATES = (
    "IS NULL", "IS NOT NULL", "IS TRUE", "IS UNKNOWN", "IN ()", "IN (NULL)", "IN ({}, {})", "NOT IN ({})",
    "IN {}", "! IN ({})",
    "LIKE ALL ()", "LIKE ANY ({})", "LIKE ALL ({}, {})", "NOT LIKE ALL ({})", "ILIKE ANY ()", "RLIKE ANY ({})",
    "LIKE {} ESCAPE {}",
    "BETWEEN {} AND {}", "BETWEEN {}", "NOT BETWEEN {} AND {}", "IS DISTINCT FROM {}", "IS NOT DISTINCT FROM {}",
    "RLIKE {}",
    "[{}]", "[]", ".a", "::INT", "::STRING", "::DECIMAL(5, 2)", "::{}", "= ANY ({})", "> ALL ({}, {})",
    "COLLATE {}", "ISNULL",
)  # fmt: skip
_CASTS = (
    "INT BIGINT STRING DOUBLE FLOAT TINYINT BOOLEAN DATE TIMESTAMP BINARY DECIMAL DECIMAL() DECIMAL(5) "
    "DECIMAL(39) DECIMAL(5,9)"
    " DECIMAL(-1) VARIANT ARRAY<INT> ARRAY<> MAP<STRING,INT> MAP<INT,INT> STRUCT<a:INT> STRUCT<> INTERVAL FOO "
    "VARCHAR(5)"
).split()
_UNITS = (*UNITS, *(f"{unit}S" for unit in UNITS), "FOO", "")


def odd_expression(rng: random.Random, depth: int = 3) -> str:
    """Return an expression that may be right, wrong in its types, or no expression at all."""
    roll = rng.random()
    if depth <= 0 or roll < 0.2:
        return rng.choice(_LEAVES)
    if roll < 0.6:
        arguments = [odd_expression(rng, depth - 2) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)))]
        return f"{rng.choice(_NAMES)}({', '.join(arguments)})"
    if roll < 0.7:
        return f"{odd_expression(rng, depth - 1)} {rng.choice(_OPERATORS)} {odd_expression(rng, depth - 1)}"
    if roll < 0.8:
        predicate = rng.choice(_PREDICATES)
        return f"{odd_expression(rng, depth - 1)} {predicate.format(*(rng.choice(_LEAVES) for _ in range(2)))}"
    if roll < 0.86:
        interval = _interval(rng)
        return rng.choice(
            (f"at + {interval}", f"day - {interval}", f"at - at > {interval}", f"{interval} + {interval}")
        )
    if roll < 0.92:
        word = rng.choice(("CAST", "TRY_CAST"))
        return f"{word}({odd_expression(rng, depth - 1)} AS {rng.choice(_CASTS)})"
    if roll < 0.96:
        parts = [odd_expression(rng, depth - 2) for _ in range(3)]
        return rng.choice(("CASE {} WHEN {} THEN {} END", "CASE WHEN {} THEN {} ELSE {} END", "CASE {1} END")).format(
            *parts
        )
    return f"({', '.join(odd_expression(rng, depth - 1) for _ in range(rng.randrange(3)))})"


def _interval(rng: random.Random) -> str:
    number = rng.choice(
        ("1", "-1", "'1'", "'1-2'", "'-1 02:03'", "'1 02:03:04.5'", "''", "'x'", "1.5", "1e3", "9" * 20, "'1 day'")
    )
    to = f" TO {rng.choice(_UNITS)}" if rng.random() < 0.4 else ""
    return f"INTERVAL {number} {rng.choice(_UNITS)}{to}"
