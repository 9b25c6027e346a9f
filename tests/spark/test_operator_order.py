"""Operators without parentheses are applied in Spark's order."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from sqlglot import exp

from grouping.model.errors import InputError
from grouping.statements.select_text import read_select
from tests.spark.corpus import Corpus

_EDGES: dict[str, tuple[str, list[Any]]] = {
    "i": ("INT", [0, 1, 7, None]),
    "l": ("BIGINT", [2, 3, 12]),
    "s": ("STRING", ["1", "25"]),
    "t": ("STRING", ["abc", "", "b", None]),
    "ts": ("TIMESTAMP", [datetime(2024, 2, 29, tzinfo=UTC)]),
    "f": ("BOOLEAN", [True, False, None]),
}
"""Values for which no operator fails: Spark stops at a row that fails."""
_FORMS = (
    "regexp_substr(t, 'x*')", "regexp_substr(t, '[a-c]*')", "regexp_substr(t, '(b|)')", "getbit(i, 3)", "getbit(l, 63)",
    "t LIKE ANY ('a%', '%c')", "t NOT LIKE ALL ('a%', '%c')", "ts + INTERVAL '1-2' YEAR TO MONTH", "f = (i IS NULL)",
    "'1' || 2 + 2", "2 + 2 || '1'", "'1' || 2 - 1 || '3'", "s || i + l", "- i IS NULL", "! f", "NOT f = f",
)  # fmt: skip
_OPERATORS = "+ - * / % || || || & | ^ = < >= <=> <>".split()
_BEHIND = ("IS NULL", "IS NOT NULL", "IN (b, c)", "NOT IN (b)", "BETWEEN b AND c", "LIKE c", "RLIKE b", "IS TRUE")


def test_forms_of_the_golden_corpus(spark: SparkSession) -> None:
    """Forms that were read otherwise once have Spark's types and values."""
    assert [] == Corpus(spark, _EDGES).differences(_FORMS)


def _condition(rng: random.Random) -> str:
    text = rng.choice(("a", "NOT a", "! a", "-a", "~a"))
    for _ in range(rng.randint(1, 4)):
        roll = rng.random()
        if roll < 0.2:
            text += f" {rng.choice(_BEHIND)}"
        elif roll < 0.35:
            text += f" {rng.choice(('AND', 'OR'))} {rng.choice(('', 'NOT '))}{rng.choice('abc')}"
        else:
            text += f" {rng.choice(_OPERATORS)} {rng.choice(('', '', '', '-'))}{rng.choice('abc')}"
    return text


def _parted(node: exp.Expr) -> str:
    """Return a condition with all of its parentheses written out."""
    match node:
        case exp.Paren():
            return _parted(node.this)
        case exp.Column() | exp.Literal() | exp.Null() | exp.Boolean():
            return str(node.sql())
        case exp.Neg() | exp.BitwiseNot() | exp.Not():
            return f"({_UNARY[type(node)]} {_parted(node.this)})"
        case exp.Between():
            return f"({_parted(node.this)} BETWEEN {_parted(node.args['low'])} AND {_parted(node.args['high'])})"
        case exp.In():
            return f"({_parted(node.this)} IN ({', '.join(map(_parted, node.expressions))}))"
        case exp.Is():
            return f"({_parted(node.this)} IS {node.expression.sql()})"
        case exp.Binary():
            return f"({_parted(node.this)} {_BINARY[type(node)]} {_parted(node.expression)})"
    raise AssertionError(repr(node))


_UNARY = {exp.Neg: "-", exp.BitwiseNot: "~", exp.Not: "NOT"}
_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||", exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.EQ: "=", exp.LT: "<", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
    exp.NEQ: "<>", exp.And: "AND", exp.Or: "OR", exp.Like: "LIKE", exp.RegexpLike: "RLIKE",
}  # fmt: skip


def test_conditions_are_parsed_as_spark_parses_them(spark: SparkSession) -> None:
    """Spark reads each condition that is accepted as it reads the one with all parentheses."""
    parser = spark._jsparkSession.sessionState().sqlParser()  # type: ignore[attr-defined]  # noqa: SLF001
    rng, compared = random.Random(39), 0
    for _ in range(400):
        text = _condition(rng)
        try:
            tree = read_select(f"SELECT a FROM s WHERE {text}").args["where"].this
        except InputError:
            continue
        if _is_refused(tree):
            continue
        compared += 1
        bare, parted = (parser.parseExpression(one).toString() for one in (text, _parted(tree)))
        assert bare == parted, text
    assert compared > 100


def _is_refused(tree: exp.Expr) -> bool:
    """Tell whether binding refuses a tree: predicates within other operators, and operators of bits out of order."""
    strength = {exp.BitwiseAnd: 3, exp.BitwiseXor: 2, exp.BitwiseOr: 1}
    for node in tree.find_all(exp.Binary):
        within = not isinstance(node, exp.And | exp.Or)
        if within and any(isinstance(side, _PREDICATES) for side in (node.this, node.expression)):
            return True
        if strength.get(type(node.this), 9) < strength.get(type(node), 0):
            return True
    return False


_PREDICATES = (exp.EQ, exp.NEQ, exp.LT, exp.GTE, exp.NullSafeEQ, exp.In, exp.Between, exp.Like, exp.RegexpLike, exp.Not)
