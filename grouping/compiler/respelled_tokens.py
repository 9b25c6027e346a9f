"""Tokens that sqlglot's parser takes otherwise than Spark, respelled so that it does not."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

__all__ = ["UNARY_PLUS", "after_operand", "renamed", "respelled"]

UNARY_PLUS = TokenType.PIPE_SLASH
"""What a plus without a left operand is handed over as: sqlglot would drop it. It becomes an `exp.Sqrt`."""

_SINGLE_FLOATS = frozenset(("FLOAT", "REAL"))
"""Types of 32 bits, which sqlglot takes for DOUBLE."""
_SUFFIXES = {
    "Y": TokenType.TINYINT,
    "S": TokenType.SMALLINT,
    "L": TokenType.BIGINT,
    "F": TokenType.FLOAT,
    "D": TokenType.DOUBLE,
}
"""By the letter behind a number: its type."""
_BEFORE_OPERANDS = frozenset(
    """( [ , + - * / % || = == <> != < <= > >= <=> & | ^ ~ and between by case div else escape having
    ilike in like not on or regexp rlike select then when where""".split()
)
"""What an operand stands behind; anything else ends one, for nearly every word can be a column's name."""


def respelled(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with ``+x`` under `UNARY_PLUS`, FLOAT as itself, and ``3L`` as ``3::BIGINT``."""
    made: list[Token] = []
    for place, token in enumerate(tokens):
        kind, word = token.token_type, token.text.upper()
        if kind is TokenType.PLUS and not after_operand(tokens, place):
            made.append(renamed(token, UNARY_PLUS, token.text))
        elif kind is TokenType.DOUBLE and word in _SINGLE_FLOATS:
            made.append(renamed(token, TokenType.FLOAT, token.text))
        elif kind is TokenType.VAR and word in _SUFFIXES and _is_suffix(tokens, place):
            made += (renamed(token, TokenType.DCOLON, "::"), renamed(token, _SUFFIXES[word], token.text))
        else:
            made.append(token)
    return made


def after_operand(tokens: Sequence[Token], place: int) -> bool:
    """Return whether an operand ends before that place."""
    if place == 0:
        return False
    before = tokens[place - 1]
    quoted = before.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    return quoted or before.text.lower() not in _BEFORE_OPERANDS


def renamed(token: Token, kind: TokenType, text: str) -> Token:
    """Return a token in the same place of another kind and text."""
    return Token(kind, text, token.line, token.col, token.start, token.end)


def _is_suffix(tokens: Sequence[Token], place: int) -> bool:
    before = tokens[place - 1] if place else None
    return before is not None and before.token_type is TokenType.NUMBER and before.end + 1 == tokens[place].start
