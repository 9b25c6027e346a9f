"""FROM behind a column of CREATE STREAM: the column's place in the record."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from grouping.model.column_place import ColumnPlace, parse_path
from grouping.model.errors import InputError
from grouping.statements.tokens import Tokens

__all__ = ["read_place"]

_LONGEST_HEADER = 255


def read_place(tokens: Tokens) -> str:
    """Read FROM and the place, if they come next.

    Returns:
        The text of the place; empty where there is no FROM.

    Raises:
        InputError: ``syntax-error``.
    """
    if not tokens.accept("FROM"):
        return ""
    if tokens.accept("HEADER"):
        name = tokens.string("the name of a header")
        if not 0 < len(name) <= _LONGEST_HEADER:
            raise InputError(
                "the name of the header has no usual length",
                code="syntax-error",
                detail=f"The name of a header has 1 to {_LONGEST_HEADER} characters.",
            )
        return str(ColumnPlace("header", header=name))
    if tokens.accept("KEY"):
        path = parse_path(tokens.string("a path")) if tokens.type() is TokenType.STRING else None
        return str(ColumnPlace("key", path))
    if tokens.type() is not TokenType.STRING:
        raise tokens.unexpected("a path such as '$.data.price', HEADER 'name' or KEY")
    return str(ColumnPlace("value", parse_path(tokens.string("a path"))))
