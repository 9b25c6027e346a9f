"""Typed expressions: the output of the compiler, run by the evaluator.

An expression is a tree of four node kinds and holds no SQL text, so it travels as JSON from the gateway to Spark.
An expression is stored and sent with the texts of its types (``BIGINT``, ``DECIMAL(10,2)``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from grouping.model.reference import Key, Reference, read_reference, stored_reference
from grouping.model.sql_type import SqlType

__all__ = ["LEFT_ON", "Call", "Column", "Expression", "LookupKey", "Slot", "Value", "lookup_key", "walk"]

LEFT_ON = "left on"
"""The operator for conditions with constants in ON of a LEFT JOIN, if an event may join several rows. Its arguments are
the table's prefix and the condition. For a joined row its value is the condition. For the row padded with NULLs its
value is TRUE if no joined row of the same event satisfies the condition.
"""

Scalar = str | int | float | bool | None


class Column(msgspec.Struct, frozen=True, tag="column", tag_field="node"):
    """The value of a column."""

    stored: str = msgspec.field(name="name")
    """The reference as text; for a column of the stream, its name as declared."""
    type_text: str = msgspec.field(name="type")

    @classmethod
    def of(cls, reference: Reference, type_text: str) -> Column:
        """Return the expression that reads a column."""
        return cls(stored_reference(reference), type_text)

    @property
    def reference(self) -> Reference:
        """The column."""
        return read_reference(self.stored)

    @property
    def type(self) -> SqlType:
        """The column's type."""
        return SqlType.of(self.type_text)


class Slot(msgspec.Struct, frozen=True, tag="slot", tag_field="node"):
    """The place of a lifted constant, ``:c0`` for index 0. The `ConstantRow` has the constant's type."""

    index: int


class Value(msgspec.Struct, frozen=True, tag="value", tag_field="node"):
    """A constant that was not lifted (in a SELECT list): JSON scalar, DECIMAL, DATE and TIMESTAMP as text."""

    value: Scalar
    type_text: str = msgspec.field(name="type")

    @property
    def type(self) -> SqlType:
        """The constant's type."""
        return SqlType.of(self.type_text)


class Call(msgspec.Struct, frozen=True, tag="call", tag_field="node"):
    """An operator or a function over its arguments.

    Operators are ``= <> < <= > >= <=> and or not in is_null like rlike + - * / div % neg case cast``; functions go by
    Spark's name in lower case. ``case`` alternates conditions and results; an odd last argument is ELSE. ``in`` takes
    the needle and one set-valued slot (or several arguments). ``not in``, ``is not null``: ``not`` around it.
    """

    op: str
    args: tuple[Column | Slot | Value | Call, ...]
    type_text: str = msgspec.field(name="type")
    """Empty if the type is unknown."""

    @property
    def type(self) -> SqlType:
        """The result's type; `UNKNOWN` if the type depends on the types of the row's constants."""
        return SqlType.of(self.type_text)


Expression = Column | Slot | Value | Call


class LookupKey(NamedTuple):
    """The value in an event's row by which constants are looked up."""

    reference: Reference
    type: SqlType


@lru_cache(maxsize=65_536)
def lookup_key(expression: Expression) -> LookupKey:
    """Return an expression without slots as a key: its column, or a computed column with its value.

    Example:
        >>> lookup_key(Column("s", "STRING")).reference
        's'
    """
    if isinstance(expression, Column):
        return LookupKey(expression.reference, expression.type)
    assert isinstance(expression, Call), "a key is a column or computed of columns"
    return LookupKey(Key(expression), expression.type)


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and everything below it, outermost first."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.args:
            yield from walk(argument)
