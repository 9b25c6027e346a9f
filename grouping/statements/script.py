"""A text of several statements, with semicolons between them."""

from __future__ import annotations

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from grouping.statements.tokens import PlainSql, unreadable

__all__ = ["statements_of"]

_TOKENIZER = PlainSql().tokenizer()


def statements_of(text: str) -> list[str]:
    r"""Return the statements of a text as they are written, without the semicolons behind them.

    Example:
        >>> statements_of("SHOW CQS; -- all of them\n DROP CQ \"a;b\"; ;")
        ['SHOW CQS', '-- all of them\n DROP CQ "a;b"']

    Raises:
        InputError: ``syntax-error``; a string, a quoted name or a comment has no end.
    """
    try:
        tokens = _TOKENIZER.tokenize(text)
    except SqlglotError:
        raise unreadable(text) from None
    found, begin, empty = [], 0, True
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            if not empty:
                found.append(text[begin : token.start].strip())
            begin, empty = token.end + 1, True
        else:
            empty = False
    if not empty:
        found.append(text[begin:].strip())
    return found
