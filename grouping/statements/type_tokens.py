"""Checks of the tokens of types in CAST: types unknown to Spark are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from grouping.model.errors import InputError
from grouping.model.refusals import unsupported
from grouping.model.type_names import NAMED

__all__ = ["FOREIGN_TYPES", "check_types", "within_types"]

_TAKEN = frozenset(
    """ANY BYTE DEC FIXED INT1 INT16 INT32 INTEGER INTERVAL JSON JSONB LONG LONGVARCHAR NULL NUMERIC REAL SHORT
    STR""".split()
)
"""Names of `NAMED` that are not refused here.

The parser reads most of these names as types of Spark, such as LONG, INT16 and STR. For the others, the parser or
`binding.cast_types.cast_type` refuses the CAST later: ANY, INTERVAL, JSON, JSONB and NULL.
"""
FOREIGN_TYPES = {name: nearest for name, nearest in NAMED.items() if name not in _TAKEN} | {
    "DOUBLE PRECISION": "DOUBLE",
    "INT8": "BIGINT",
}
"""Name of a type of another system → the nearest type of Spark."""
_QUOTED = (TokenType.IDENTIFIER, TokenType.STRING)
_NESTED = frozenset((TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT))
_BEFORE_TYPES = frozenset((TokenType.ALIAS, TokenType.DCOLON))
_ENDS = (TokenType.COMMA, TokenType.GT, TokenType.L_PAREN)
"""Tokens that may follow the name of a type within brackets. Other tokens follow the name of a field."""


def check_types(tokens: Sequence[Token]) -> None:
    """Refuse the types in `FOREIGN_TYPES` in CAST and after ``::``, also within nested types.

    Raises:
        InputError: ``unsupported-query``; ``syntax-error`` for ``DECIMAL()``.
    """
    places = list(_type_places(tokens))
    for place in places:
        _check_type(tokens[place])
        if [token.token_type for token in tokens[place + 1 : place + 3]] == [TokenType.L_PAREN, TokenType.R_PAREN]:
            raise InputError(
                f'the type "{tokens[place].text}" has empty parentheses',
                code="syntax-error",
                detail=f"Line {tokens[place + 1].line}, column {tokens[place + 1].col}: they hold nothing.",
                hint="Write DECIMAL(10, 2).",
            )
    for place in _within(tokens, places):
        if tokens[place + 1].token_type in _ENDS:
            _check_type(tokens[place])


def within_types(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the places of the tokens within the angle brackets of nested types."""
    if not any(token.token_type in _NESTED for token in tokens):
        return frozenset()
    return _within(tokens, _type_places(tokens))


def _within(tokens: Sequence[Token], places: Iterable[int]) -> frozenset[int]:
    found: list[int] = []
    for place in places:
        if tokens[place].token_type in _NESTED:
            found += _bracketed(tokens, place + 1)
    return frozenset(found)


def _type_places(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the place of the first token of each type."""
    if not any(token.token_type in _BEFORE_TYPES for token in tokens):
        return
    within = [False]
    """For each open parenthesis, whether it belongs to a CAST."""
    for place in range(1, len(tokens)):
        kind, before = tokens[place].token_type, tokens[place - 1]
        if kind is TokenType.L_PAREN:
            within.append(before.text.upper() in ("CAST", "TRY_CAST"))
        elif kind is TokenType.R_PAREN and len(within) > 1:
            within.pop()
        elif before.token_type is TokenType.DCOLON or (within[-1] and before.token_type is TokenType.ALIAS):
            yield place


def _bracketed(tokens: Sequence[Token], opening: int) -> range:
    """Return the places between a bracket and its closing bracket; empty if either is missing."""
    depth = 0
    for place in range(opening, len(tokens)):
        depth += (tokens[place].token_type is TokenType.LT) - (tokens[place].token_type is TokenType.GT)
        if depth == 0:
            return range(opening + 1, place)
    return range(0)


def _check_type(token: Token) -> None:
    known = FOREIGN_TYPES.get(" ".join(token.text.upper().split()))
    if known is not None and token.token_type not in _QUOTED:
        raise unsupported(
            f"CAST to {token.text.upper()}",
            f"Line {token.line}, column {token.col - (token.end - token.start)}: no column has this type.",
            f"Use {known}.",
        )
