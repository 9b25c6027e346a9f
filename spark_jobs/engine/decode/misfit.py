"""A value that does not fit its column: its place in the record, and the sentence about it for a dead letter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grouping.model.catalog import StreamColumn
from grouping.model.column_place import RecordPath, path_text
from grouping.model.sql_type import WHOLE_BITS, SqlType

__all__ = ["Misfit", "checked_part", "misfit_detail", "whole_check"]

_LONGEST_PATH = 300
"""The largest number of characters of a path in the detail of a dead letter, since the keys of a MAP may be long."""


class Misfit(ValueError):
    """A value that a type cannot hold. The message is the reason, as a part of a sentence."""

    def __init__(self, reason: str, sql_type: SqlType) -> None:
        super().__init__(reason)
        self.sql_type = sql_type
        """The type that cannot hold the value: the column's type, or the type of a field or an element within."""
        self.path: RecordPath = ()
        """The path from the column's value to the value that does not fit."""

    def within(self, step: str | int) -> None:
        """Add a step at the beginning of the path, because the value around it is a part of an enclosing value."""
        self.path = (step, *self.path)


def checked_part(check: Callable[[Any], Any], value: Any, step: str | int) -> Any:
    """Return the result of a check or conversion of a part of a value.

    Args:
        check: The check, which raises `Misfit`.
        value: The part.
        step: Where the part is: a field's name, a key or an index.

    Raises:
        Misfit: The part does not fit; its path begins with `step`.
    """
    try:
        return check(value)
    except Misfit as exc:
        exc.within(step)
        raise


def whole_check(sql_type: SqlType) -> Callable[[int], int]:
    """Return a check that a number is in the range of a type of whole numbers.

    Example:
        >>> whole_check(SqlType.of("TINYINT"))(-128)
        -128
    """
    bound = 2 ** (WHOLE_BITS[sql_type.name] - 1)

    def check(value: int) -> int:
        if not -bound <= value < bound:
            raise Misfit("the number is out of range", sql_type)
        return value

    return check


def misfit_detail(column: StreamColumn, misfit: Misfit) -> str:
    """Return the sentence about a value that does not fit, with its path; for a column with FROM, also with its place.

    Example:
        >>> column = StreamColumn("repository", "STRUCT<created_at: TIMESTAMP>")
        >>> misfit = Misfit("a number is no string", SqlType.of("TIMESTAMP"))
        >>> misfit.within("created_at")
        >>> misfit_detail(column, misfit)
        'Field "repository.created_at" of type TIMESTAMP cannot hold the value: a number is no string.'
    """
    inner = path_text(misfit.path)[1:]
    kind, name = ("Field" if inner else "Column"), (column.name + inner)[:_LONGEST_PATH]
    at = ""
    if column.from_text:
        place = column.place
        part = {"key": "the key ", "header": f'the header "{place.header}" '}.get(place.kind, "")
        at = f" at {part}{place.path_text}{inner}"[:_LONGEST_PATH].rstrip()
    # The text of a nested type lists all fields.
    sql_type = misfit.sql_type.name if misfit.sql_type.is_nested else misfit.sql_type
    return f'{kind} "{name}" of type {sql_type} cannot hold the value{at}: {misfit}.'
