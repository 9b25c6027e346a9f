"""Typed expressions: what the compiler makes of SQL, and what the evaluator runs.

An expression is a tree of four node kinds and holds no SQL text, so it travels as JSON from the gateway to Spark.
Types are written as in SQL (``BIGINT``, ``DECIMAL(10,2)``).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

__all__ = ["Call", "Column", "Expression", "Slot", "Value", "walk"]

Scalar = str | int | float | bool | None


class Column(msgspec.Struct, frozen=True, tag="column", tag_field="node"):
    """A column of the stream, or one of the source record's own fields (`_key`, `_time`, `_partition`, `_offset`)."""

    name: str
    """As the stream declares it."""
    type: str


class Slot(msgspec.Struct, frozen=True, tag="slot", tag_field="node"):
    """The place of a lifted constant, ``:c0`` for index 0. Its type belongs to the row (see `ConstantRow`)."""

    index: int


class Value(msgspec.Struct, frozen=True, tag="value", tag_field="node"):
    """A constant that was not lifted (in a SELECT list): JSON scalar, DECIMAL, DATE and TIMESTAMP as text."""

    value: Scalar
    type: str


class Call(msgspec.Struct, frozen=True, tag="call", tag_field="node"):
    """An operator or a function over its arguments.

    Operators are ``= <> < <= > >= <=> and or not in is_null like rlike + - * / div % neg case cast``; functions go by
    Spark's name in lower case. ``case`` alternates condition and result, an odd last one is ELSE. ``in`` takes the
    needle and one set-valued slot (or several arguments). ``not in``, ``is not null``: ``not`` around it.
    """

    op: str
    args: tuple[Column | Slot | Value | Call, ...]
    type: str
    """The result's type; "" where it depends on the types of the row's constants."""


Expression = Column | Slot | Value | Call


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and everything below it, outermost first."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.args:
            yield from walk(argument)
