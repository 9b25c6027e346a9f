"""Hints for a SELECT that cannot be parsed, by the words and signs around the place at which parsing ended."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from grouping.model.errors import InputError, near_name
from grouping.statements.refused_forms import CLAUSE_HINTS
from grouping.statements.respelled_tokens import INTERVAL_LITERAL
from grouping.statements.tokens import clipped
from grouping.values.intervals import UNITS

__all__ = ["check_quotes", "unread"]

_ROUND_QUOTES = re.compile("[‘’‚‛“”„‟«»′″´]")
_CLAUSES = {
    "EVERY": ("an interval in single quotes", "Write the interval in quotes: EVERY '10 minutes'."),
    "EXPIRE": (
        "a time in single quotes, or AFTER and an interval",
        "Write it in quotes: EXPIRE AFTER '30 days', or EXPIRE '2026-12-01T10:00:00Z'.",
    ),
    "START": ("a time in single quotes", "Write the time in quotes: START '2026-11-21T10:00:00Z'."),
}
"""Word of a clause → the part that must follow, and a hint with its form."""
_WORDS = {
    **CLAUSE_HINTS,
    "PUBLISH": "Write DO PUBLISH.",
    "GROUP": "Write GROUP BY.",
    "IF": "CREATE OR REPLACE CQ changes a CQ that exists.",
    **dict.fromkeys(
        ("CONTAINS", "INCLUDES", "HAS"),
        "contains(text, part) looks for a part of a STRING, array_contains(tags, 'a') for an element of an ARRAY.",
    ),
    **dict.fromkeys(("STARTS", "STARTSWITH"), "Write startswith(text, 'A'), or text LIKE 'A%'."),
    **dict.fromkeys(("ENDS", "ENDSWITH"), "Write endswith(text, 'A'), or text LIKE '%A'."),
    **dict.fromkeys(("~", "MATCHES", "MATCH"), "Write text RLIKE 'pattern'."),
    "&&": "Write AND.",
    "=>": "Write >= for greater or equal.",
    "#": "A comment begins with --.",
    "%": "% is the remainder of a division; ten percent are 0.1.",
}
"""Unexpected word or sign → the form to write."""
_KEYWORDS = """AND AS BETWEEN CASE ELSE END EVERY EXPIRE FROM GROUP HAVING JOIN LIKE SELECT START THEN WHEN
    WHERE""".split()
_OPEN = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET}
_NEVER_LAST = frozenset(
    """, ( + - / % = == <> != < <= > >= <=> || & ^ and between by case else from having ilike in is like
    not on or rlike select then when where""".split()
)
_OPERANDS = frozenset((TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.R_PAREN))


def check_quotes(tokens: Sequence[Token], text: str) -> None:
    """Refuse typographic quotes, which would be parts of names.

    Raises:
        InputError: ``syntax-error``.
    """
    for token in tokens if _ROUND_QUOTES.search(text) else ():
        if token.token_type is TokenType.VAR and (found := _ROUND_QUOTES.search(token.text)):
            column = token.col - len(token.text) + 1 + found.start()
            raise InputError(
                f'"{found[0]}" is not a quote of SQL',
                code="syntax-error",
                detail=f"Line {token.line}, column {column}: it would be a part of a name.",
                hint=f"Write a string in straight quotes: '{_ROUND_QUOTES.sub('', clipped(token.text))}'.",
            )


def unread(tokens: Sequence[Token], line: int, column: int, shown: str) -> InputError:
    """Return the ``syntax-error`` of a SELECT.

    Args:
        tokens: The tokens of the SELECT.
        line: The line of the token at which parsing ended, from 1.
        column: The column of that token's last character, from 1.
        shown: The token as written; empty for the end of the SELECT.
    """
    if not tokens:
        return InputError("the SELECT is empty", code="syntax-error", detail="The text has only comments.")
    if (unbalanced := _unbalanced(tokens)) is not None:
        return unbalanced
    place = next((n for n, token in enumerate(tokens) if (token.line, token.col) == (line, column)), len(tokens) - 1)
    if place == len(tokens) - 1 and tokens[place].text.lower() in _NEVER_LAST:
        last = tokens[place]
        return _error("the SELECT ends too early", last, f'nothing follows "{clipped(last.text)}"')
    clause = next((near for near in (place, place - 1) if near >= 0 and _word(tokens, near) in _CLAUSES), None)
    if clause is not None and clause + 1 < len(tokens):
        return _of_clause(tokens, clause)
    start = max(column - max(len(shown) - 1, 0), 1)
    return InputError(
        f'"{clipped(shown)}" is not expected here' if shown else "the SELECT is not complete",
        code="syntax-error",
        detail=f"Line {line}, column {start}: the SELECT cannot be read.",
        hint=_hint(tokens, place),
    )


def _unbalanced(tokens: Sequence[Token]) -> InputError | None:
    """Return the refusal of an unbalanced parenthesis or bracket, or of CASE without END; None if all are balanced."""
    opened: list[Token] = []
    for token in tokens:
        if token.token_type in _OPEN or token.token_type is TokenType.CASE:
            opened.append(token)
        elif token.token_type is TokenType.END and opened and opened[-1].token_type is TokenType.CASE:
            opened.pop()
        elif token.token_type in _OPEN.values():
            if not opened or _OPEN.get(opened[-1].token_type) is not token.token_type:
                if opened and opened[-1].token_type is TokenType.CASE:
                    break
                return _error(f'"{token.text}" is not expected here', token, "it closes nothing")
            opened.pop()
    if not opened:
        return None
    if opened[-1].token_type is TokenType.CASE:
        return _error("CASE is not complete", opened[-1], "it has no END", _OF_CASE)
    return _error(f'"{opened[-1].text}" is never closed', opened[-1], "it is opened here")


_OF_CASE = "A CASE is CASE WHEN condition THEN value ELSE value END."


def _error(message: str, token: Token, reason: str, hint: str | None = None) -> InputError:
    column = token.col - (token.end - token.start)
    return InputError(message, code="syntax-error", detail=f"Line {token.line}, column {column}: {reason}.", hint=hint)


def _of_clause(tokens: Sequence[Token], clause: int) -> InputError:
    """Return the refusal of the token after EVERY, EXPIRE or START, or after their second word CRON or AFTER."""
    wanted, hint = _CLAUSES[_word(tokens, clause)]
    if _word(tokens, clause + 1) in ("CRON", "AFTER") and clause + 2 < len(tokens):
        wanted = "an expression in single quotes" if _word(tokens, clause + 1) == "CRON" else "an interval in quotes"
        hint = "Write it in quotes: EVERY CRON '0 8 * * MON'." if _word(tokens, clause + 1) == "CRON" else hint
        clause += 1
    found = tokens[clause + 1]
    shown = clipped(found.text) if found.text != "(" else "INTERVAL"
    return _error(
        f'"{shown}" is not expected here', found, f"after {_word(tokens, clause)} there should be {wanted}", hint
    )


def _hint(tokens: Sequence[Token], place: int) -> str | None:
    word, before = _word(tokens, place), _word(tokens, place - 1)
    earlier = _word(tokens, place - 2)
    token = tokens[place]
    if (hint := _WORDS.get(word) or _WORDS.get(before)) is not None:
        return hint
    if word == "/" and _word(tokens, place + 1) == "/":
        return _WORDS["#"]
    if before == "<" and earlier == "=":
        return "Write <= for less or equal."
    if earlier == "LIKE" and before in ("*", "%"):
        return "A pattern is a string in quotes; % in it stands for any text: LIKE '%INTC%'."
    if before == "TOP" and token.token_type is TokenType.NUMBER:
        return "DO PUBLISH DIGEST TOP 10 BY price EVERY '10 minutes' keeps the largest matches of each tick."
    if word.removesuffix("S") in UNITS and tokens[place - 1].token_type is TokenType.NUMBER:
        return f"Write INTERVAL {tokens[place - 1].text} {word}."
    if _is_unit(tokens, place):
        return near_name(word, UNITS) or f"The units of an INTERVAL are {', '.join(UNITS)}."
    if (before == "," and earlier.isdecimal() and word.replace(".", "", 1).isdecimal()) or (
        word.startswith("_") and before.isdecimal()
    ):
        return "A number has no separators between its digits, and a point before its fraction: 1000.5."
    if word == "," and "BETWEEN" in (earlier, _word(tokens, place - 3)):
        return "Write BETWEEN low AND high."
    if before == "," and _called(tokens, place) in ("CAST", "TRY_CAST"):
        return "Write CAST(value AS type)."
    if any(other.token_type is TokenType.CASE for other in tokens[:place]):
        return _OF_CASE
    for near in (place, place - 1):
        if near >= 0 and tokens[near].token_type is TokenType.VAR and (hint := near_name(tokens[near].text, _KEYWORDS)):
            return hint
    if token.token_type in _OPERANDS and tokens[place - 1].token_type in _OPERANDS and place:
        return "An operator or a comma is missing before it."
    return None


def _is_unit(tokens: Sequence[Token], place: int) -> bool:
    """Tell whether a token is a word after the bare number of an INTERVAL: ``INTERVAL '5' PARSEC``."""
    # `respelled_tokens` has written the tokens before the word: ( interval literal ( '5' ) )
    return (
        tokens[place].token_type is TokenType.VAR
        and _word(tokens, place - 5) == INTERVAL_LITERAL.upper()
        and not tokens[place - 3].text.strip(" +-.0123456789")
    )


def _called(tokens: Sequence[Token], place: int) -> str:
    """Return the word before the parenthesis around a token."""
    depth = 0
    for at in range(place - 1, 0, -1):
        kind = tokens[at].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if depth < 0:
            return _word(tokens, at - 1)
    return ""


def _word(tokens: Sequence[Token], place: int) -> str:
    if not 0 <= place < len(tokens) or tokens[place].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return ""
    return tokens[place].text.upper()
