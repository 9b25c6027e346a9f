"""Typed expressions: the output of the compiler, run by the evaluator.

An expression is a tree of four node kinds and holds no SQL text, so it travels as JSON from the gateway to Spark.
An expression is stored and sent with the texts of its types (``BIGINT``, ``DECIMAL(10,2)``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from grouping.model.sql_type import SqlType

__all__ = [
    "Call",
    "Column",
    "Expression",
    "LEFT_ON",
    "Slot",
    "Value",
    "computed_name",
    "computed_text",
    "joined_name",
    "key_column",
    "key_expression",
    "source_of",
    "variable_name",
    "variable_text",
    "walk",
]

_SEPARATOR = "\x1f"
"""Between a table's name in a computation and its column: no name holds a control character."""

_COMPUTED = "\x1e"
"""Before the text of the expression that computes a column of groups."""

_KEY = "\x1d"
"""Before the JSON of an expression that constants are looked up by."""

_VARIABLE = "\x1c"
"""Before the number of an element variable."""

LEFT_ON = "left on"
"""The operator of ON's conditions with constants of a LEFT JOIN by which an event may meet several rows. Its arguments
are the table's prefix and the condition. For a row that met the table: the condition. For the row padded with NULLs:
TRUE if no row of the same event satisfies the condition."""

Scalar = str | int | float | bool | None


class Column(msgspec.Struct, frozen=True, tag="column", tag_field="node"):
    """A column of the stream, or one of the source record's own fields (`catalog.RECORD_FIELDS`)."""

    name: str
    """The name as the stream declares it; for a joined table, from `joined_name`; for aggregates, from `computed_name`.
    """
    type_text: str = msgspec.field(name="type")

    @property
    def type(self) -> SqlType:
        """The column's type."""
        return SqlType.of(self.type_text)


class Slot(msgspec.Struct, frozen=True, tag="slot", tag_field="node"):
    """The place of a lifted constant, ``:c0`` for index 0. Its type belongs to the row (see `ConstantRow`)."""

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
    Spark's name in lower case. ``case`` alternates condition and result, an odd last one is ELSE. ``in`` takes the
    needle and one set-valued slot (or several arguments). ``not in``, ``is not null``: ``not`` around it.
    """

    op: str
    args: tuple[Column | Slot | Value | Call, ...]
    type_text: str = msgspec.field(name="type")
    """Empty where the type is unknown."""

    @property
    def type(self) -> SqlType:
        """The result's type; `UNKNOWN` where it depends on the types of the row's constants."""
        return SqlType.of(self.type_text)


Expression = Column | Slot | Value | Call


@lru_cache(maxsize=65_536)
def key_column(expression: Expression) -> Column:
    """Return the column to look an expression without slots up by: itself, or a substitute column."""
    if isinstance(expression, Column):
        return expression
    assert isinstance(expression, Call), "a key is a column or computed of one"
    return Column(_KEY + msgspec.json.encode(expression).decode(), expression.type_text)


@lru_cache(maxsize=65_536)
def key_expression(name: str) -> Expression | None:
    """Return the expression of a column of `key_column`, None for any other column.

    Example:
        >>> lower = Call("lower", (Column("s", "STRING"),), "STRING")
        >>> key_expression(key_column(lower).name) == lower, key_expression("s")
        (True, None)
    """
    return msgspec.json.decode(name[1:], type=Expression) if name.startswith(_KEY) else None


def variable_name(level: int) -> str:
    """Return the name of the column of a lambda's element within its body; `level` is the lambda's."""
    return f"{_VARIABLE}{level}"


def variable_text(name: str) -> str | None:
    """Return how signatures write an element variable, None for any other column.

    Example:
        >>> variable_text(variable_name(0)), variable_text("x")
        ('λ0', None)
    """
    return f"λ{name[1:]}" if name.startswith(_VARIABLE) else None


def computed_name(text: str) -> str:
    """Return the name of a computed column of an aggregate query: a key expression, or an aggregate."""
    return _COMPUTED + text


def computed_text(name: str) -> str | None:
    """Return the expression text of a computed column, None for the name of a plain column.

    Example:
        >>> computed_text(computed_name("sum(volume)")), computed_text("volume")
        ('sum(volume)', None)
    """
    return name[1:] if name.startswith(_COMPUTED) else None


def joined_name(prefix: str, column: str) -> str:
    """Return the name that a table's column has within a computation."""
    return f"{prefix}{_SEPARATOR}{column}"


def source_of(name: str) -> tuple[str, str]:
    """Return the table's name before the dot of a column's name, "" for a column of the stream, and its own name.

    Example:
        >>> source_of(joined_name("profiles", "industry")), source_of("symbol")
        (('profiles', 'industry'), ('', 'symbol'))
    """
    prefix, _, column = name.rpartition(_SEPARATOR)
    return prefix, column


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and everything below it, outermost first."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.args:
            yield from walk(argument)
