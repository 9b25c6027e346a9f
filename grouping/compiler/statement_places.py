"""Converts the line and column of an error from its SELECT to the whole statement."""

from __future__ import annotations

from grouping.model.errors import PLACE, InputError

__all__ = ["in_statement"]


def in_statement(error: InputError, statement: str, select: str) -> InputError:
    r"""Return an error of a SELECT; its line and column, if any, are counted from the start of the statement.

    Example:
        >>> error = InputError("no", code="syntax-error", detail="Line 1, column 8: there.")
        >>> in_statement(error, "CREATE CQ a AS\n  SELECT price,", "SELECT price,").detail
        'Line 2, column 10: there.'
    """
    found = PLACE.match(error.detail or "")
    if found is None or error.detail is None:
        return error
    before = statement[: statement.find(select)]
    line, column = int(found[1]), int(found[2])
    if line == 1:
        column += len(before) - (before.rfind("\n") + 1)
    place = f"Line {line + before.count(chr(10))}, column {column}"
    return InputError(error.message, code=error.code, detail=place + error.detail[found.end() :], hint=error.hint)
