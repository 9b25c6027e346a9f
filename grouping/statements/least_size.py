"""The least size that a CREATE CQ can have, by its tokens: what is too large in any case need not be parsed."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from grouping.model.errors import InputError
from grouping.model.refusals import predicate_too_large
from grouping.statements.tokens import PlainSql

__all__ = ["check_bytes", "check_least_size"]

MOST_COLUMNS = 10_000
"""Columns that a SELECT list may write out; `*` stands for any number."""
_TOKENIZER = PlainSql().tokenizer()
_OPENING = frozenset((TokenType.L_PAREN, TokenType.L_BRACKET))
_CLOSING = frozenset((TokenType.R_PAREN, TokenType.R_BRACKET))
_ORDERING = frozenset((TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE))
_BEHIND_WHERE = frozenset((TokenType.GROUP_BY, TokenType.HAVING))
_ANGLED = frozenset(("ARRAY", "MAP", "STRUCT"))
"""Words behind which an angle opens a type."""
_OF_COMPARISON = 3
"""Nodes of a comparison in order: itself and its sides. No spelling and no rule makes it fewer, as a set of an OR of
equalities is: so nothing is refused that the normal form's own limit admits."""


def check_bytes(text: str, limit: int) -> None:
    """Check that a command's text is not too long.

    Raises:
        InputError: ``command-too-large``.
    """
    if len(text) * 4 > limit and (size := len(text.encode("utf-8", "surrogatepass"))) > limit:
        raise InputError(
            "the command is too large",
            code="command-too-large",
            detail=f"Its text has {size} bytes, and the limit is {limit}.",
        )


def check_least_size(text: str, limit: int) -> None:
    """Check that a CREATE CQ is not too large whatever it means.

    Args:
        text: The statement.
        limit: Of the nodes of the normal form of its WHERE.

    Raises:
        InputError: ``quota-exceeded``.
    """
    if len(text) <= min(limit, MOST_COLUMNS):
        return  # a comparison has three nodes and four characters at least, a column two
    try:
        tokens = _TOKENIZER.tokenize(text)
    except SqlglotError:
        return  # the parser says it better
    if (nodes := _least_nodes(tokens)) > limit:
        raise predicate_too_large(f"at least {nodes:,}", limit)
    if (columns := _columns(tokens)) > MOST_COLUMNS:
        raise InputError(
            "the SELECT list is too large",
            code="quota-exceeded",
            detail=f"It has {columns:,} columns, and the limit is {MOST_COLUMNS:,}.",
            hint="Divide the query into several.",
        )


def _least_nodes(tokens: Sequence[Token]) -> int:
    """Return the nodes that the comparisons with <, <=, > and >= in WHERE have, or its ANDs join: what is more.

    What a FILTER has is no part of it.
    """
    depth, comparisons, joined, denied = 0, 0, 0, False
    within: list[int] = []  # the depths of the WHEREs that are open
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
            while within and within[-1] > depth:
                within.pop()
        elif kind is TokenType.WHERE and not (place > 1 and tokens[place - 2].text.upper() == "FILTER"):
            within.append(depth)
        elif kind in _BEHIND_WHERE and within and within[-1] == depth:
            within.pop()
        elif within and kind in _ORDERING:
            opens_type = kind is TokenType.LT and tokens[place - 1].text.upper() in _ANGLED
            comparisons += -1 if opens_type else 1  # so that the angle that closes the type counts for nothing
        elif within and kind is TokenType.AND:
            joined += 1
        elif within and kind is TokenType.NOT:
            denied = True  # it turns AND into OR, and an OR of equalities is a set, which is one constant
    return max(_OF_COMPARISON * comparisons, 0 if denied else joined + 1)


def _columns(tokens: Sequence[Token]) -> int:
    """Return how many columns the outermost SELECT list writes out."""
    depth, columns = 0, 0
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
        elif depth == 0 and kind is TokenType.SELECT:
            columns = 1
        elif depth == 0 and columns and kind is TokenType.COMMA:
            columns += 1
        elif depth == 0 and kind is TokenType.FROM and columns:
            break
    return columns
