"""Tokens that sqlglot's parser reads differently from Spark, respelled to avoid the difference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from sqlglot.tokenizer_core import Token, TokenType

from grouping.model.errors import InputError
from grouping.values.intervals import UNITS

__all__ = [
    "INTERVAL_LITERAL",
    "TYPED_LITERAL",
    "UNARY_PLUS",
    "UNSIGNED_SHIFT",
    "after_operand",
    "renamed",
    "respelled",
]

UNARY_PLUS = TokenType.PIPE_SLASH
"""The token for a unary plus, which sqlglot would drop. sqlglot makes an `exp.Sqrt` from this token."""

UNSIGNED_SHIFT = TokenType.DQMARK
"""The token for ``>>>``, which sqlglot does not know. sqlglot makes an `exp.Coalesce` from this token."""

INTERVAL_LITERAL = "interval literal"
"""The function that stands for ``INTERVAL '5' MINUTE``, with the literal and the units. No query can name it."""

TYPED_LITERAL = "typed literal"
"""The function that stands for ``4S``, with the number, its sign and its type. No query can name it."""

_SINGLE_FLOATS = frozenset(("FLOAT", "REAL"))
"""Names of the 32-bit type, which sqlglot takes for DOUBLE."""
_SUFFIXES = {
    "Y": TokenType.TINYINT,
    "S": TokenType.SMALLINT,
    "L": TokenType.BIGINT,
    "F": TokenType.FLOAT,
    "D": TokenType.DOUBLE,
    "BD": TokenType.DECIMAL,
}
"""Letter after a number → type of the number."""
_BEFORE_OPERANDS = frozenset(
    """( [ , -> + - * / % || = == <> != < <= > >= <=> & | ^ ~ and between by case div else escape having
    ilike in like not on or regexp rlike select then when where""".split()
)
"""Tokens that come before an operand. Any other token counts as the end of an operand, since nearly every word can be
the name of a column.
"""


_SHIFTS = re.compile(r">>>|\?\?")
_RESPELLED = frozenset((TokenType.PLUS, TokenType.DOUBLE, TokenType.VAR, TokenType.HEX_STRING))


def respelled(tokens: Sequence[Token], text: str) -> list[Token]:
    """Return the respelled tokens, such as `UNARY_PLUS` for the sign of ``+x``, and a SMALLINT for ``4S``."""
    made: list[Token] = []
    tokens = _with_intervals(tokens)
    if _SHIFTS.search(text):
        tokens = _with_shifts(tokens)
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind not in _RESPELLED:
            made.append(token)
            continue
        word = token.text.upper()
        if kind is TokenType.PLUS and not after_operand(tokens, place):
            made.append(renamed(token, UNARY_PLUS, token.text))
        elif kind is TokenType.DOUBLE and word in _SINGLE_FLOATS:
            made.append(renamed(token, TokenType.FLOAT, token.text))
        elif kind is TokenType.VAR and word in _SUFFIXES and _is_suffix(tokens, place):
            signed = place > 1 and tokens[place - 2].text == "-" and not after_operand(tokens, place - 2)
            _check_typed(tokens[place - 1], token, word, signed=signed)
            if word in _BITS:
                number = [made.pop()]
                if signed:
                    number.insert(0, made.pop())
                made += _typed_whole(number, token, _SUFFIXES[word].name)
            else:
                made += _typed(tokens[place - 1], token, word)
        elif kind is TokenType.HEX_STRING and token.end - token.start + 1 == len(token.text) + len("0x"):
            raise InputError(
                f'"0x{token.text[:40]}" is not a number',
                code="syntax-error",
                detail=f"Line {token.line}, column {token.col}: a number is written in decimal digits.",
                hint="X'1F' is a BINARY.",
            )
        else:
            made.append(token)
    return made


def after_operand(tokens: Sequence[Token], place: int) -> bool:
    """Return whether the token before a place ends an operand."""
    if place == 0:
        return False
    before = tokens[place - 1]
    quoted = before.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    return quoted or before.text.lower() not in _BEFORE_OPERANDS


def renamed(token: Token, kind: TokenType, text: str) -> Token:
    """Return a token in the same place with another kind and text."""
    return Token(kind, text, token.line, token.col, token.start, token.end)


_LARGEST_FLOAT = Decimal("3.4028234663852886E+38")
_BITS = {"Y": 8, "S": 16, "L": 64}


def _check_typed(number: Token, letter: Token, word: str, *, signed: bool) -> None:
    """Check that the number before a letter fits the letter's type. With a minus sign the number may be larger by 1.

    Raises:
        InputError: ``type-mismatch``; Spark refuses the number too.
    """
    kind, digits = _SUFFIXES[word].name, number.text.replace(".", "")
    whole = number.text.isdecimal()
    within = not whole or word not in _BITS or int(number.text) < 2 ** (_BITS[word] - 1) + signed
    within = within and (word != "F" or Decimal(number.text) <= _LARGEST_FLOAT)
    if not within or (word in _BITS and not whole) or (word == "BD" and not digits.isdecimal()):
        raise InputError(
            f'"{number.text[:40]}{letter.text}" is not a {kind}',
            code="type-mismatch",
            detail=f"Line {letter.line}, column {letter.col}: a {kind} ends in {word}, and is {_typed_form(word)}.",
        )


def _typed_form(word: str) -> str:
    """Return the numbers that may stand before a letter."""
    if (bits := _BITS.get(word)) is not None:
        return f"a whole number from {-(2 ** (bits - 1))} to {2 ** (bits - 1) - 1}"
    return f"at most {_LARGEST_FLOAT}" if word == "F" else "written without an exponent"


def _typed_whole(number: Sequence[Token], letter: Token, kind: str) -> list[Token]:
    """Return the tokens of a whole number with a letter.

    The tokens are not a CAST: in arithmetic with a DECIMAL, Spark gives such a number the precision of its digits, but
    gives a CAST the precision of its type.
    """
    call = [renamed(letter, TokenType.VAR, TYPED_LITERAL), renamed(letter, TokenType.L_PAREN, "("), *number]
    of_type = [renamed(letter, TokenType.COMMA, ","), renamed(letter, TokenType.STRING, kind)]
    return [*call, *of_type, renamed(letter, TokenType.R_PAREN, ")")]


def _typed(number: Token, letter: Token, word: str) -> list[Token]:
    """Return the tokens that make a CAST of the number before a letter."""
    made = [renamed(letter, TokenType.DCOLON, "::"), renamed(letter, _SUFFIXES[word], letter.text)]
    if word == "BD":
        digits = number.text.replace(".", "")
        scale = len(number.text.partition(".")[2])
        sizes = (str(max(len(digits.lstrip("0")), scale, 1)), str(scale))
        for mark, size in zip((TokenType.L_PAREN, TokenType.COMMA), sizes, strict=True):
            text = "(" if mark is TokenType.L_PAREN else ","
            made += (renamed(letter, mark, text), renamed(letter, TokenType.NUMBER, size))
        made.append(renamed(letter, TokenType.R_PAREN, ")"))
    return made


def _is_suffix(tokens: Sequence[Token], place: int) -> bool:
    before = tokens[place - 1] if place else None
    return before is not None and before.token_type is TokenType.NUMBER and before.end + 1 == tokens[place].start


def _with_shifts(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens with ``>>>`` joined to one token, unless the brackets close nested types."""
    made: list[Token] = []
    depth = place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token.token_type is UNSIGNED_SHIFT:
            raise InputError(
                f'"{token.text}" is not expected here',
                code="syntax-error",
                detail=f"Line {token.line}, column {token.col - 1}: it is not an operator.",
                hint="coalesce(a, b) is b where a is NULL.",
            )
        if token.token_type is TokenType.LT and place > 1 and tokens[place - 2].text.upper() in _NESTED_TYPES:
            depth += 1
        elif token.token_type is TokenType.GT and depth:
            depth -= 1
        elif token.token_type is TokenType.GT and _is_shift(tokens[place - 1 : place + 2]):
            token = Token(UNSIGNED_SHIFT, ">>>", token.line, token.col + 2, token.start, token.end + 2)
            place += 2
        made.append(token)
    return made


_NESTED_TYPES = ("ARRAY", "MAP", "STRUCT")


def _is_shift(three: Sequence[Token]) -> bool:
    first, last = three[0], three[-1]
    return len(three) == 3 and all(token.token_type is TokenType.GT for token in three) and last.end == first.end + 2


def _with_intervals(tokens: Sequence[Token]) -> Sequence[Token]:
    """Replace each INTERVAL literal by a call of `INTERVAL_LITERAL`, or by a sum of calls if it has several units."""
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
    """Return the place after a number or string with its units; the given place if no interval begins there."""
    first = place
    if place < len(tokens) and tokens[place].token_type is TokenType.DASH:
        place += 1
    if place == len(tokens) or tokens[place].token_type not in (TokenType.NUMBER, TokenType.STRING):
        return first
    is_string = tokens[place].token_type is TokenType.STRING
    place += 1
    if not _is_unit(tokens, place):
        # Directly after the word INTERVAL, a string may contain the units.
        return place if is_string and tokens[first - 1].token_type is TokenType.INTERVAL else first
    place += 1
    if place + 1 < len(tokens) and tokens[place].text.upper() == "TO" and _is_unit(tokens, place + 1):
        place += 2
    return place


def _is_unit(tokens: Sequence[Token], place: int) -> bool:
    return place < len(tokens) and tokens[place].text.upper().removesuffix("S") in UNITS
