"""Tokens that sqlglot's parser takes otherwise than Spark, respelled so that it does not."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from grouping.values.intervals import UNITS

__all__ = ["INTERVAL_LITERAL", "UNARY_PLUS", "after_operand", "renamed", "respelled"]

UNARY_PLUS = TokenType.PIPE_SLASH
"""What a plus without a left operand is handed over as: sqlglot would drop it. It becomes an `exp.Sqrt`."""

INTERVAL_LITERAL = "interval literal"
"""The function that ``INTERVAL '5' MINUTE`` is handed over as: its literal and its units. No query can name it."""

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
    for place, token in enumerate(tokens := _with_intervals(tokens)):
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


def _with_intervals(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens with each INTERVAL literal as a call; of several numbers and units it is the sum."""
    if not any(token.token_type is TokenType.INTERVAL for token in tokens):
        return tokens
    made: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        end = _end_of_interval(tokens, place) if token.token_type is TokenType.INTERVAL else place
        if end == place:
            made.append(token)
            continue
        made.append(renamed(token, TokenType.L_PAREN, "("))
        while end > place:
            made += _interval_call(token, tokens[place:end])
            place = end
            end = _end_of_interval(tokens, place)
            if end > place:
                made.append(renamed(token, TokenType.PLUS, "+"))
        made.append(renamed(token, TokenType.R_PAREN, ")"))
    return made


def _interval_call(word: Token, parts: Sequence[Token]) -> list[Token]:
    units = [part for part in parts if part.token_type not in _LITERAL and part.text.upper() != "TO"]
    made = [renamed(word, TokenType.VAR, INTERVAL_LITERAL), renamed(word, TokenType.L_PAREN, "(")]
    made += [part for part in parts if part.token_type in _LITERAL]
    for unit in units:
        made += (renamed(word, TokenType.COMMA, ","), renamed(unit, TokenType.STRING, unit.text.upper()))
    return [*made, renamed(word, TokenType.R_PAREN, ")")]


_LITERAL = frozenset((TokenType.DASH, TokenType.NUMBER, TokenType.STRING))


def _end_of_interval(tokens: Sequence[Token], place: int) -> int:
    """Return the place behind a number or string with its units, the same place where there is none."""
    first = place
    if place < len(tokens) and tokens[place].token_type is TokenType.DASH:
        place += 1
    if place == len(tokens) or tokens[place].token_type not in (TokenType.NUMBER, TokenType.STRING):
        return first
    is_string = tokens[place].token_type is TokenType.STRING
    place += 1
    if not _is_unit(tokens, place):
        # A string may hold its units itself, behind the word INTERVAL.
        return place if is_string and tokens[first - 1].token_type is TokenType.INTERVAL else first
    place += 1
    if place + 1 < len(tokens) and tokens[place].text.upper() == "TO" and _is_unit(tokens, place + 1):
        place += 2
    return place


def _is_unit(tokens: Sequence[Token], place: int) -> bool:
    return place < len(tokens) and tokens[place].text.upper().removesuffix("S") in UNITS
