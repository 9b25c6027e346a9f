"""References: the kinds of columns that expressions read, and the text of each in stored forms."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from grouping.model.errors import InternalError

if TYPE_CHECKING:
    from grouping.model.expression import Call

__all__ = ["Computed", "Framed", "Key", "Reference", "TableColumn", "Variable", "read_reference", "stored_reference"]

_SEPARATOR = "\x1f"
"""Separates a table's prefix from its column in a stored text; no name holds a control character."""
_COMPUTED = "\x1e"
"""Marks the text of an expression that computes a column of aggregates."""
_FRAMED = "\x1d"
"""Marks the text of a value over a frame."""
_VARIABLE = "\x1c"
"""Marks the level of an element variable."""


class TableColumn(msgspec.Struct, frozen=True, cache_hash=True):
    """A column of a joined table."""

    prefix: str
    """The table's qualifier within the computation."""
    name: str


class Computed(msgspec.Struct, frozen=True, cache_hash=True):
    """A column of aggregates that is computed: a key of GROUP BY, or an aggregate value."""

    text: str
    """The expression's text."""


class Framed(msgspec.Struct, frozen=True, cache_hash=True):
    """A column computed over a frame of rows."""

    text: str
    """The function, its arguments and its frame (`grouping.plan.frame_value.FrameValue` as JSON)."""


class Variable(msgspec.Struct, frozen=True, cache_hash=True):
    """The element of an array within the body of a lambda."""

    level: int
    """The number of lambdas around the element's lambda."""


class Key(msgspec.Struct, frozen=True, cache_hash=True):
    """A computed column by which an index looks constants up. Plans do not name the column."""

    expression: Call


Reference = str | TableColumn | Computed | Framed | Variable | Key
"""A plain text is a column of the stream, or one of the record's own fields (`_key`, `_time`, `_partition`, `_offset`).
"""


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
