"""Windows of time, EMIT and FOR SYSTEM_TIME in the words of several systems: refused, each by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot.tokenizer_core import Token, TokenType

from grouping.model.refusals import unsupported

__all__ = ["check_forms"]


class _Refusal(NamedTuple):
    what: str
    detail: str
    hint: str


_DETAIL = "Windows of time are not kept running."
_TICKS = "EVERY '5 minutes' counts the matches of each tick."
_SPARK = f"Spark's form is GROUP BY window(_time, '5 minutes'), which is not kept running either. {_TICKS}"
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


def check_forms(tokens: Sequence[Token]) -> None:
    """Refuse windows of time, EMIT and FOR SYSTEM_TIME.

    Raises:
        InputError: ``unsupported-query``.
    """
    for place, token in enumerate(tokens):
        if token.text.upper() not in _FIRST or token.token_type in _QUOTED:
            continue
        words = tuple(_word(near) for near in tokens[place : place + _LONGEST])
        if words[1:2] != ("(",) and place and tokens[place - 1].token_type in _BEFORE_NAMES:
            continue
        for length in range(2, len(words) + 1):
            if (refusal := _FORMS.get(words[:length])) is not None:
                raise unsupported(*refusal)


def _word(token: Token) -> str:
    return "" if token.token_type in _QUOTED else token.text.upper()
