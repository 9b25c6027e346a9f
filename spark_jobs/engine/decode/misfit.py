"""A value that does not fit its column: where the value is in the record, and the sentence that says so."""

from __future__ import annotations

from grouping.model.catalog import StreamColumn
from grouping.model.column_place import RecordPath, path_text
from grouping.model.sql_type import SqlType

__all__ = ["Misfit", "misfit_detail"]

_LONGEST_PATH = 300
"""Characters of a path in the detail of a dead letter: the keys of a MAP may be long."""


class Misfit(ValueError):
    """A value that a type cannot hold; the message is the reason, part of a sentence."""

    def __init__(self, reason: str, sql_type: SqlType) -> None:
        super().__init__(reason)
        self.sql_type = sql_type
        """The type that cannot hold the value: the column's, or that of a field or an element within."""
        self.path: RecordPath = ()
        """Leads from the column's value to the value that does not fit."""

    def within(self, step: str | int) -> None:
        """Note that the value lies in a part of the value around it."""
        self.path = (step, *self.path)


def misfit_detail(column: StreamColumn, misfit: Misfit) -> str:
    """Return the sentence about a value that does not fit: its path from the column, and its place if declared.

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
