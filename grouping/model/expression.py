"""Typed expressions, and references to the columns that they read: the output of the compiler.

An expression is a tree of four kinds of nodes without SQL text; the gateway sends it to Spark as JSON. Types within a
stored expression are texts, such as ``DECIMAL(10,2)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from grouping.model.errors import InternalError
from grouping.model.sql_type import SqlType

__all__ = [
    "LEFT_ON",
    "Call",
    "Column",
    "Computed",
    "Expression",
    "Framed",
    "Key",
    "LookupKey",
    "Reference",
    "Slot",
    "TableColumn",
    "Value",
    "Variable",
    "lookup_key",
    "read_reference",
    "stored_reference",
    "walk",
]

LEFT_ON = "left on"
"""The operator for conditions with constants in ON of a LEFT JOIN, if an event may join several rows. Its arguments are
the table's prefix and the condition. For a joined row its value is the condition. For the row padded with NULLs its
value is TRUE if no joined row of the same event satisfies the condition.
"""

_SEPARATOR = "\x1f"
"""Separates a table's prefix from its column in a stored text; names have no control characters."""
_COMPUTED = "\x1e"
"""Marks the text of a computed column."""
_FRAMED = "\x1d"
"""Marks the text of a value over a frame."""
_VARIABLE = "\x1c"
"""Marks the level of a lambda's variable."""


class TableColumn(msgspec.Struct, frozen=True, cache_hash=True):
    """A column of a joined table."""

    prefix: str
    """The table's qualifier within the computation."""
    name: str


class Computed(msgspec.Struct, frozen=True, cache_hash=True):
    """A column that is computed: a key of GROUP BY, an aggregate value, or the switch of UNTIL."""

    text: str
    """The expression's text."""


class Framed(msgspec.Struct, frozen=True, cache_hash=True):
    """A column computed over a frame of rows."""

    text: str
    """The function, its arguments and its frame (`grouping.plan.frame_value.FrameValue` as JSON)."""


class Variable(msgspec.Struct, frozen=True, cache_hash=True):
    """A variable of a lambda, within its body: the element of an array, or the accumulated value of reduce."""

    level: int
    """The number of variables of the enclosing lambdas. In reduce, this level belongs to the accumulated value, and the
    next level to the element."""


class Key(msgspec.Struct, frozen=True, cache_hash=True):
    """A column that is computed for an index, as the key of its look-ups; plans never contain such a column."""

    expression: Call


Reference = str | TableColumn | Computed | Framed | Variable | Key
"""A plain text is a column of the stream, or a field of the record, such as `_time` (`RECORD_FIELDS`)."""


def stored_reference(reference: Reference) -> str:
    """Return the stored text of a reference.

    Raises:
        InternalError: Keys of indexes are not stored.
    """
    match reference:
        case TableColumn(prefix, name):
            return f"{prefix}{_SEPARATOR}{name}"
        case Computed(text):
            return _COMPUTED + text
        case Framed(text):
            return _FRAMED + text
        case Variable(level):
            return f"{_VARIABLE}{level}"
        case Key():
            raise InternalError("a key of an index is not stored")
        case name:
            return name


@lru_cache(maxsize=65_536)
def read_reference(stored: str) -> Reference:
    """Return the reference from its stored text.

    Example:
        >>> read_reference(stored_reference(TableColumn("profiles", "industry"))), read_reference("symbol")
        (TableColumn(prefix='profiles', name='industry'), 'symbol')
    """
    if stored.startswith(_COMPUTED):
        return Computed(stored[1:])
    if stored.startswith(_FRAMED):
        return Framed(stored[1:])
    if stored.startswith(_VARIABLE):
        return Variable(int(stored[1:]))
    prefix, separator, name = stored.rpartition(_SEPARATOR)
    return TableColumn(prefix, name) if separator else stored


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
        """The reference to the column, read from its text."""
        return read_reference(self.stored)

    @property
    def type(self) -> SqlType:
        """The column's type."""
        return SqlType.of(self.type_text)


class Slot(msgspec.Struct, frozen=True, tag="slot", tag_field="node"):
    """The place of a lifted constant, ``:c0`` for index 0. The `ConstantRow` has the constant's type."""

    index: int


class Value(msgspec.Struct, frozen=True, tag="value", tag_field="node"):
    """A constant that is not lifted, as in a SELECT list: a JSON scalar, or a DECIMAL, DATE or TIMESTAMP as text."""

    value: Scalar
    type_text: str = msgspec.field(name="type")

    @property
    def type(self) -> SqlType:
        """The constant's type."""
        return SqlType.of(self.type_text)


class Call(msgspec.Struct, frozen=True, tag="call", tag_field="node"):
    """An operator or a function over its arguments.

    The operators, such as ``=``, ``and``, ``+`` and ``case``, are in `grouping.functions.operators`. A function
    has Spark's name in lower case. ``case`` takes conditions and results in turn; if the number of arguments is odd,
    the last one is ELSE. ``in`` takes the needle, and then either a slot with a set or several values. NOT IN is
    ``not`` around ``in``.
    """

    op: str
    args: tuple[Column | Slot | Value | Call, ...]
    type_text: str = msgspec.field(name="type")
    """Empty if the type depends on the types of the row's constants."""

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
    """Return an expression without slots as a key: a column of the row, or a column computed by the expression.

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
