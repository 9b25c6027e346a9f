"""Parts of SELECTs in the words of several systems that are no part of a standing query: refused, each by its name.

sqlglot would take most of them for something else, or for nothing that it can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot.tokenizer_core import Token, TokenType

from grouping.model.refusals import unsupported

__all__ = ["check_forms", "check_words"]


class _Refusal(NamedTuple):
    what: str
    detail: str
    hint: str | None


_DETAIL = "Windows of time are not kept running."
_TICKS = "EVERY '5 minutes' counts the matches of each tick."
_SPARK = f"Spark's form is GROUP BY window(_time, '5 minutes'), which is not kept running either. {_TICKS}"
_EVENTS = "Each event is evaluated as it is."
_SETS = "It is a set operation, and a query is one SELECT."
_EMIT = "Each match is a result at once, or waits for a tick."

_FORMS: dict[tuple[str, ...], _Refusal] = {
    ("TUMBLE", "("): _Refusal("TUMBLE(…)", _DETAIL, _SPARK),
    ("HOP", "("): _Refusal("HOP(…)", _DETAIL, _SPARK),
    ("SESSION", "("): _Refusal("SESSION(…)", _DETAIL, _SPARK),
    ("WINDOW", "TUMBLING", "("): _Refusal("WINDOW TUMBLING", _DETAIL, _SPARK),
    ("WINDOW", "HOPPING", "("): _Refusal("WINDOW HOPPING", _DETAIL, _SPARK),
    ("WINDOW", "SESSION", "("): _Refusal("WINDOW SESSION", _DETAIL, _SPARK),
    ("WINDOW", "("): _Refusal("window(…)", _DETAIL, _TICKS),
    ("SESSION_WINDOW", "("): _Refusal("session_window(…)", _DETAIL, _TICKS),
    ("EMIT", "CHANGES"): _Refusal("EMIT CHANGES", _EMIT, _TICKS),
    ("EMIT", "FINAL"): _Refusal("EMIT FINAL", _EMIT, _TICKS),
    ("EMIT", "ON", "ENTER"): _Refusal("EMIT ON ENTER", _EMIT, "Leave it out."),
    ("EMIT", "ON", "EXIT"): _Refusal("EMIT ON EXIT", _EMIT, "Leave it out."),
    ("TABLESAMPLE", "("): _Refusal("TABLESAMPLE", _EVENTS, "Choose events in WHERE."),
    ("PIVOT", "("): _Refusal("PIVOT", _EVENTS, f"Aggregates may have FILTER. {_TICKS}"),
    ("UNPIVOT", "("): _Refusal("UNPIVOT", _EVENTS, "Name the columns."),
    ("MATCH_RECOGNIZE", "("): _Refusal("MATCH_RECOGNIZE", "Patterns of several events are not found.", None),
    ("MINUS", "SELECT"): _Refusal("MINUS", _SETS, None),
    ("MINUS", "ALL"): _Refusal("MINUS", _SETS, None),
    ("MINUS", "DISTINCT"): _Refusal("MINUS", _SETS, None),
    ("MINUS", "("): _Refusal("MINUS", _SETS, None),
    ("FOR", "SYSTEM_TIME"): _Refusal(
        "FOR SYSTEM_TIME AS OF", "An event is joined with the rows that are there when it comes.", "Leave it out."
    ),
}
"""By the words, and the parenthesis, that stand together."""
_FIRST = frozenset(words[0] for words in _FORMS)
_LONGEST = max(map(len, _FORMS))
_QUOTED = frozenset((TokenType.IDENTIFIER, TokenType.STRING))
_BEFORE_NAMES = frozenset((TokenType.DOT, TokenType.ALIAS, TokenType.FROM, TokenType.JOIN, TokenType.COMMA))
"""What a name stands behind: ``FROM emit changes`` is a stream and its alias."""

_BEHIND_FROM = frozenset(
    (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.SELECT, TokenType.WINDOW)
    + (TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.QUALIFY, TokenType.LIMIT)
    + (TokenType.LATERAL, TokenType.VALUES)
)
_AROUND_COMMAS = frozenset((TokenType.L_PAREN, TokenType.R_PAREN, TokenType.FROM, TokenType.COMMA)) | _BEHIND_FROM


def check_forms(tokens: Sequence[Token]) -> None:
    """Refuse what is no part of a standing query.

    Raises:
        InputError: ``unsupported-query``.
    """
    _check_commas(tokens)
    for place, token in enumerate(tokens):
        if token.text.upper() not in _FIRST or token.token_type in _QUOTED:
            continue
        words = tuple(_word(near) for near in tokens[place : place + _LONGEST])
        if words[1:2] != ("(",) and place and tokens[place - 1].token_type in _BEFORE_NAMES:
            continue
        check_words(words)


def check_words(words: tuple[str, ...]) -> None:
    """Refuse what begins with these words, in capitals; raises as `check_forms` does."""
    for length in range(2, len(words) + 1):
        if (refusal := _FORMS.get(words[:length])) is not None:
            raise unsupported(*refusal)


def _check_commas(tokens: Sequence[Token]) -> None:
    """Refuse joins by comma, which sqlglot takes for joins without ON."""
    within = [False]
    """By parenthesis that is open: whether FROM has begun there, and no clause behind it."""
    for place, token in enumerate(tokens):
        if token.token_type not in _AROUND_COMMAS:
            continue
        if token.token_type is TokenType.L_PAREN:
            within.append(False)
        elif token.token_type is TokenType.R_PAREN and len(within) > 1:
            within.pop()
        elif token.token_type is TokenType.FROM:
            within[-1] = place == 0 or tokens[place - 1].token_type is not TokenType.DISTINCT
        elif token.token_type in _BEHIND_FROM:
            within[-1] = False
        elif token.token_type is TokenType.COMMA and within[-1]:
            raise unsupported("a join by comma", "It has no ON that says what is joined.", "Write JOIN … ON.")


def _word(token: Token) -> str:
    return "" if token.token_type in _QUOTED else token.text.upper()
